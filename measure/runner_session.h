// A RunnerSession is a runner's memory of one session: the workload's buffer sets, their
// references, and how candidates are screened and compared on them (DESIGN.md 6). It lives in the
// runner, the only process that calls kernels.
//
// A screening: two calls on one set (right? bitwise the same?), then a checked call on every
// further set that will be timed, then the timing, back to back on those sets, then a checked call
// on a seeded set. While calls are checked only the set in use may be written; before timing, the
// sets that the warm-up left out are read through, so that every timed call finds its data cold.
#ifndef TILEWRIGHT_MEASURE_RUNNER_SESSION_H_
#define TILEWRIGHT_MEASURE_RUNNER_SESSION_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "measure/children.pb.h"
#include "measure/launch_pool.h"

namespace tilewright {

class RunnerSession {
 public:
  // Called before work that may take long; the supervisor's deadline starts anew.
  using Progress = std::function<void(const std::string& phase, int entrant)>;

  // FailedPrecondition: the workload cannot be checked (MakeReferences). ResourceExhausted: no
  // memory for the buffers. InvalidArgument: a malformed request.
  static absl::StatusOr<std::unique_ptr<RunnerSession>> Open(const children::OpenSession& request,
                                                             LaunchPool& pool, Progress progress);
  virtual ~RunnerSession() = default;
  virtual children::KernelScreened Screen(const children::ScreenKernel& request) = 0;
  virtual children::FinalsDone Finals(const children::RunFinals& request) = 0;
  virtual int sets() const = 0;
  virtual double reference_seconds() const = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_RUNNER_SESSION_H_
