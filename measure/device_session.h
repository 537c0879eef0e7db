// The session of a GPU: buffer sets, references and checks live on the device, times are those of
// graphs. Hidden behind measure/runner_session.h.
#ifndef TILEWRIGHT_MEASURE_DEVICE_SESSION_H_
#define TILEWRIGHT_MEASURE_DEVICE_SESSION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "measure/children.pb.h"
#include "measure/cuda_context.h"
#include "measure/launch_pool.h"
#include "measure/runner_session.h"

namespace tilewright {

// `pool`: host threads that make inputs. The context outlives the session. Errors as
// RunnerDevice::Open.
absl::StatusOr<std::unique_ptr<RunnerSession>> OpenDeviceSession(
    const children::OpenSession& request, CudaContext& context, LaunchPool& pool,
    const Supervisor& supervisor);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_DEVICE_SESSION_H_
