// Works off leased batches on a workbench: opens sessions, builds a batch in parallel, asks which
// kernels are twins, measures one after another, and posts each result as soon as it is there.
// Hidden behind measure/worker.h. Belongs to one thread; where the workbench builds ahead, Build
// may be called by one more.
#ifndef TILEWRIGHT_MEASURE_WORKER_BATCH_H_
#define TILEWRIGHT_MEASURE_WORKER_BATCH_H_

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "measure/coordinator_link.h"
#include "measure/measure.pb.h"
#include "measure/workbench.h"
#include "measure/worker_queue.h"

namespace tilewright {

class WorkerBatch {
 public:
  // `stop` is asked between candidates; all are borrowed.
  WorkerBatch(Workbench* bench, WorkerQueue* queue, CoordinatorLink* link, std::string target_text,
              std::function<bool()> stop);

  // A lease whose candidates have been built. Without outcomes if the run is not for this device or
  // does not parse: Measure then says so.
  struct BuiltLease {
    v1::LeaseReply lease;
    std::vector<std::string> texts;  // of the schedules
    std::vector<std::optional<Schedule>> schedules;
    std::vector<BuildOutcome> outcomes;
    std::vector<v1::BuiltReply> verdicts;  // screenings: is it a twin?
  };
  BuiltLease Build(v1::LeaseReply lease);
  // Unavailable: the device is lost; what was not measured has been given back.
  absl::Status Measure(const BuiltLease& built);
  // The one after the other, the session first: for devices that share their cores with builders.
  absl::Status Run(const v1::LeaseReply& lease);
  // Gives items back undone, from number `first` on.
  void Release(const v1::LeaseReply& lease, int first);
  absl::Duration busy() const { return absl::Nanoseconds(busy_ns_.load()); }  // any thread

 private:
  // The session of a run, as opened.
  struct Session {
    SessionSpec spec;
    std::string run_text;  // of the RunSpec: another one needs another session
  };

  // False: the lease has been refused.
  absl::StatusOr<bool> ReadySession(const v1::LeaseReply& lease);
  absl::Status OpenSession(const v1::LeaseReply& lease);
  absl::StatusOr<SessionSpec> SpecOf(const v1::LeaseReply& lease) const;
  void Refuse(const v1::LeaseReply& lease, const std::string& why);
  absl::Status RunScreenings(const BuiltLease& built);
  absl::Status RunFinals(const BuiltLease& built);
  // Absent: measure it. Else its result without a measurement, or (lost) none.
  v1::BuiltReply AskIfTwin(const v1::LeaseReply& lease, const v1::WorkItem& item,
                           const v1::BuildFacts& facts);
  v1::TrialResult Screened(const ScreenOutcome& outcome, v1::TrialResult result);
  // Builds those schedules that parse; the others fail.
  void BuildTexts(const SessionSpec& spec, BuiltLease* built);
  v1::ReturnRequest OutgoingOf(const v1::LeaseReply& lease);
  void NoteBusy();

  Workbench* const bench_;
  WorkerQueue* const queue_;
  CoordinatorLink* const link_;
  const std::string target_text_;
  const std::function<bool()> stop_;
  std::optional<Session> session_;
  std::atomic<int64_t> busy_ns_{0};
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_WORKER_BATCH_H_
