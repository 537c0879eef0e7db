// A RunnerSession is a runner's memory of one session: the workload's buffer sets, their
// references, and how candidates are screened and compared on them (DESIGN.md 6). It lives in the
// runner, the only process that calls kernels; there is one implementation per kind of device.
//
// A screening: two calls on one set (right? bitwise the same?), then a checked call on every
// further set that will be timed, then the timing, back to back on those sets, then a checked call
// on a seeded set.
#ifndef TILEWRIGHT_MEASURE_RUNNER_SESSION_H_
#define TILEWRIGHT_MEASURE_RUNNER_SESSION_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel.h"
#include "measure/children.pb.h"
#include "measure/failure.h"
#include "schedule/workload.h"

namespace tilewright {

// How a session speaks to the process that supervises the runner.
struct Supervisor {
  // Called before work that may take long; the supervisor's deadline starts anew. `entrant`: whose
  // kernel it is, in finals.
  std::function<void(const std::string& phase, int entrant)> progress;
  // The device's state is spoilt by a kernel: reports whose fault it was and ends the process.
  std::function<void(const CandidateFailure& failure, int entrant)> end;
};

class RunnerSession {
 public:
  virtual ~RunnerSession() = default;
  virtual children::KernelScreened Screen(const children::ScreenKernel& request) = 0;
  virtual children::FinalsDone Finals(const children::RunFinals& request) = 0;
  virtual int sets() const = 0;
  virtual double reference_seconds() const = 0;
};

// The device of a runner: what outlives its sessions (threads, a GPU's context).
class RunnerDevice {
 public:
  virtual ~RunnerDevice() = default;
  // FailedPrecondition: the workload cannot be checked (MakeReferences). ResourceExhausted: no
  // memory for the buffers. Unavailable: the device cannot be used. InvalidArgument: a malformed
  // request. The session before must be gone.
  virtual absl::StatusOr<std::unique_ptr<RunnerSession>> Open(const children::OpenSession& request,
                                                              const Supervisor& supervisor) = 0;
  // Inactive between requests.
  virtual void SetActive(bool active) = 0;
};
std::unique_ptr<RunnerDevice> NewCpuRunnerDevice();
// Without CUDA headers at build time its Open says that (Unimplemented).
std::unique_ptr<RunnerDevice> NewCudaRunnerDevice();

// ---- What sessions on every device have in common

absl::StatusOr<Kernel> ParseBuiltKernel(const v1::BuiltKernel& built);
void SetFailure(const CandidateFailure& failure, v1::Failure* out);
// The sizes a workload with ranges is checked at beside those it is measured at: the lower end and
// three seeded ones, uniform in the logarithm, so that small sizes (tails) are well represented.
std::vector<Sizes> ChooseExtraShapes(const Workload& workload, const Sizes& at, uint64_t seed);
// How many different contents the sets share: four, or two where a reference is expensive.
int ChooseContents(const Workload& workload, const Sizes& at);
// Set where `seconds` a call are less than physics allows.
std::optional<CandidateFailure> CheckTime(double seconds, double limit_seconds);

// A candidate this much slower than the anchor cannot win: it is timed long enough to learn from,
// no longer. A hopeless one's first call is its time.
inline constexpr double kSlowRatio = 1.3;
inline constexpr double kHopelessRatio = 10;
// Timing of one screening, in seconds (DESIGN.md 6: <= 40 ms of device time), and of a slow
// candidate's.
inline constexpr double kMostTiming = 40e-3;
inline constexpr double kSlowBudget = 15e-3;

// Poison of outputs: all ones is NaN in every floating type, the other is a small finite value in
// all of them.
inline constexpr unsigned char kNanPoison = 0xff;
inline constexpr unsigned char kFinitePoison = 0x2b;

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_RUNNER_SESSION_H_
