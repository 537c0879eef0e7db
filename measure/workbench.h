// A Workbench builds and measures candidates on one device, through child processes: builders that
// compile and one runner that alone touches the device. It is what a worker has beside its
// connection.
//
// A runner that crashes, hangs or reports a sticky error is killed and replaced; then a known-good
// kernel probes the device, and only a failed probe quarantines it (DeviceLost from then on).
// Nothing a candidate does reaches the worker's process.
//
// A CPU device owns its cores: builds use all of them at once and alternate with timing. A GPU's
// builds go on while it measures: then Build may be called by one more thread than the one that
// owns the workbench and calls the rest.
#ifndef TILEWRIGHT_MEASURE_WORKBENCH_H_
#define TILEWRIGHT_MEASURE_WORKBENCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "codegen/kernel.h"
#include "measure/failure.h"
#include "measure/regime.h"
#include "schedule/schedule.h"
#include "schedule/target.h"
#include "schedule/workload.h"

namespace tilewright {

struct DeviceDescription {
  // A CPU's is name-based on /etc/machine-id, the target's text and the core list; a GPU's is the
  // driver's, "GPU-…".
  std::string uuid;
  Target target;
  std::string timer;   // "clock"; of a GPU "cupti" or "event"
  std::string driver;  // kernel release; of a GPU the CUDA version of its driver
};
// This machine's CPU; `cores` 0: all that this process may use.
absl::StatusOr<DeviceDescription> DescribeCpu(int cores);

struct BuildOutcome {
  std::optional<Kernel> kernel;  // absent: failure
  std::optional<CandidateFailure> failure;
  absl::Duration build_time;
};

// One candidate's screening (DESIGN.md 6): check in the warm-up pass, <= 40 ms of timing, check of
// one seeded set after it.
struct ScreenOutcome {
  std::optional<CandidateFailure> failure;
  std::vector<double> samples_seconds;  // per call
  double seconds = 0;                   // median; only if no failure
  double anchor_seconds = 0;            // the session's current figure for the anchor
  absl::Duration device_time;
  std::string check_json;  // evidence: sets checked, elements, largest error over allowance
};

struct FinalsOutcome {
  struct Entrant {
    std::optional<CandidateFailure> failure;
    std::vector<double> round_seconds;  // NaN: dropped sample
    std::string check_json;
  };
  std::vector<Entrant> entrants;
};

// What a session measures.
struct SessionSpec {
  Workload workload;
  Regime regime;
  Schedule anchor;
  uint64_t input_seed = 1;
  absl::Duration build_timeout = absl::Seconds(30);
  absl::Duration run_timeout = absl::Seconds(10);
};

struct SessionState {
  std::string id;                      // 16 random bytes
  Schedule anchor;                     // what is timed: the spec's, else the default, else naive
  std::vector<double> anchor_seconds;  // all its timings, oldest first
  std::vector<CandidateFailure> anchor_failures;  // of those that were passed over
  absl::Duration reference_time;                  // spent on making the references, for reports
};

struct WorkbenchOptions {
  // The program whose hidden commands `builder` and `runner` are started; empty: this executable.
  std::string executable;
  int builders = 0;  // 0: one per core of the device; for a GPU, of the host
  int share = 1;     // of the host's cores, among workbenches of one process: 1/share
  std::string dump_directory;
};

class Workbench {
 public:
  static absl::StatusOr<std::unique_ptr<Workbench>> Make(const DeviceDescription& device,
                                                         const WorkbenchOptions& options);
  virtual ~Workbench() = default;

  // True if Build may be called by another thread while this one measures.
  virtual bool builds_ahead() const = 0;
  // Builds candidates in parallel, each under the deadline. Results in the order given.
  virtual std::vector<BuildOutcome> Build(const Workload& workload,
                                          absl::Span<const Schedule> schedules,
                                          absl::Duration timeout) = 0;
  // Starts a session: makes inputs and references, compares the reference with the interpreter at
  // >= 256 points, times the anchor. FailedPrecondition: no anchor, not even naive, passed (the
  // workload is refused; all failures are in the message). Unavailable: the device is lost. The
  // current session, if any, ends.
  virtual absl::Status OpenSession(const SessionSpec& spec) = 0;
  virtual const SessionState& session() const = 0;
  // Precondition: a session is open. Times the anchor again when it is due (every 30 trials, after
  // a runner's replacement).
  virtual ScreenOutcome Screen(const Schedule& schedule, const Kernel& kernel) = 0;
  virtual FinalsOutcome Finals(absl::Span<const Kernel> kernels, int rounds, absl::Duration idle,
                               uint64_t order_seed) = 0;
  // Time with a builder or the runner at work so far (overlapping time counts once).
  virtual absl::Duration busy() const = 0;
  virtual bool quarantined() const = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_WORKBENCH_H_
