// The CPU as a runner's device: the launch pool on the cores that kernels may use, and a limit on
// what kernels may allocate. Hidden behind measure/runner_session.h.
#ifndef TILEWRIGHT_MEASURE_CPU_RUNNER_DEVICE_H_
#define TILEWRIGHT_MEASURE_CPU_RUNNER_DEVICE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "measure/children.pb.h"
#include "measure/launch_pool.h"
#include "measure/runner_session.h"

namespace tilewright {

// The first `count` of the cores this process may use.
std::vector<int> UsableCores(int count);

absl::StatusOr<std::unique_ptr<RunnerSession>> OpenCpuSession(const children::OpenSession& request,
                                                              LaunchPool& pool,
                                                              const Supervisor& supervisor);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CPU_RUNNER_DEVICE_H_
