// A RunnerLink is the supervisor's end of a runner: it asks one question at a time, watches the
// deadline from one sign of life to the next, and turns whatever ends the runner into a failure of
// what was asked.
//
// Not thread-safe; one thread owns it.
#ifndef TILEWRIGHT_MEASURE_RUNNER_LINK_H_
#define TILEWRIGHT_MEASURE_RUNNER_LINK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "measure/child_process.h"
#include "measure/children.pb.h"
#include "measure/failure.h"

namespace tilewright {

class RunnerLink {
 public:
  // Starts `executable runner`. Internal: it could not be started.
  static absl::StatusOr<std::unique_ptr<RunnerLink>> Start(const std::string& executable);

  // Either a reply or the way the runner ended. After a failure the runner is dead and Ask must not
  // be called again.
  struct Answer {
    std::optional<children::RunnerReply> reply;
    CandidateFailure failure{FailureKind::kCrashed, ""};  // meaningful without a reply
    int entrant = 0;                                      // finals: whose call it was
    bool killed = true;  // false: the process could not be ended, and may still hold the device
  };
  // `step_timeout`: from one frame of the runner's to the next.
  Answer Ask(const children::RunnerRequest& request, absl::Duration step_timeout);

 private:
  explicit RunnerLink(std::unique_ptr<ChildProcess> child);
  Answer Ended(const absl::Status& status, absl::Duration step_timeout,
               const children::Progress& last);

  std::unique_ptr<ChildProcess> child_;
  // Processes that the system had killed for lack of memory when the runner started. Absent: it
  // does not say.
  const std::optional<int64_t> kills_before_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_RUNNER_LINK_H_
