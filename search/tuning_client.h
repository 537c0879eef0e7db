// A TuningClient is the tuner's side of the coordinator: it proposes candidates and receives what
// became of them. `tune` speaks to the coordinator of its own process through it, a tuner child to
// that of `serve`.
//
//   client->StartRun(spec, toolchain, record);
//   client->Propose({run_id, schedules, results_seen, trained_on});   // logged, then queued
//   auto events = client->NextResults(run_id, absl::Seconds(1));      // in commit order
//   client->EndRun(run_id, "finished");
//
// Every proposed schedule ends with exactly one kTrial event (or, if the log has a trial of it that
// the tuner should have known, one kLate event); every finals item with one kFinals event. Run ids
// and trial ids are 16 bytes. Thread-safe. Errors: NotFound: unknown run; InvalidArgument names the
// field; Unavailable: the coordinator is stopping or gone; otherwise the code of the log's error
// (CommitSink).
#ifndef TILEWRIGHT_SEARCH_TUNING_CLIENT_H_
#define TILEWRIGHT_SEARCH_TUNING_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "measure/measure.pb.h"
#include "search/commit_sink.h"

namespace tilewright {

class Coordinator;

struct TuningEvent {
  enum class Kind {
    kTrial,    // `trial` is durable: measured or failed (`trial.has_failure()`)
    kLate,     // a result of this candidate was stored as late: nothing to learn, nothing more will
               // come
    kFinals,   // `finals`
    kSession,  // `session`: new, or its anchor was timed again, or refused (`session.refusal()`),
               // which is final for `device`
    kWorkerJoined,  // `device` enrolled; `suits_run` says whether it may measure this run
    kWorkerLost,    // `device` left, was superseded or has not been heard of
  };
  Kind kind = Kind::kTrial;
  v1::TrialResult trial;
  v1::FinalsResult finals;
  v1::SessionReport session;
  EnrolledDevice device;
  bool suits_run = false;
};

struct TuningStats {
  int queued = 0;      // items that wait for a worker
  int leased = 0;      // items with workers
  int64_t trials = 0;  // committed through this coordinator
  int64_t late = 0;
  int64_t retried = 0;      // items leased again after an infrastructure failure
  int live_enrolments = 0;  // those that suit the run
  absl::Duration busy;  // builders or runner at work, summed over the enrolments that suit the run,
                        // as last reported
  absl::Duration
      enrolled;  // time since they enrolled, likewise: busy / enrolled is the utilisation
};

class TuningClient {
 public:
  virtual ~TuningClient() = default;

  // Stores the run and lets enrolments of `spec.target_text` and `toolchain_id` work on it. A run
  // on the wire has one workload. OK and no change if the same run is already started. An event
  // kWorkerJoined follows for each live enrolment.
  virtual absl::Status StartRun(const v1::RunSpec& spec, const std::string& toolchain_id,
                                const RunRow& record) = 0;
  // Logs the batch, then queues a screening for each schedule. Schedules that are queued, leased or
  // done already are skipped.
  virtual absl::Status Propose(const Proposal& proposal) = 0;
  // Queues what a resumed run had proposed and never committed; nothing is logged.
  virtual absl::Status Requeue(const std::string& run_id,
                               absl::Span<const std::string> schedules) = 0;
  // Queues paired finals. Returns the id that the kFinals event will carry.
  virtual absl::StatusOr<std::string> Finals(const std::string& run_id,
                                             const v1::Finals& finals) = 0;
  // Waits up to `timeout` for events; returns all there are, none at the timeout. Returns the log's
  // error instead once the log has refused results for longer than
  // CoordinatorOptions::sink_patience (at once for DataLoss); events before it come first.
  virtual absl::StatusOr<std::vector<TuningEvent>> NextResults(const std::string& run_id,
                                                               absl::Duration timeout) = 0;
  virtual absl::Status RecordVerdict(const VerdictRow& verdict) = 0;
  virtual absl::Status RecordEvaluation(const EvaluationRow& evaluation) = 0;
  // Drops what is queued and stores the state; what workers still return is stored as late.
  virtual absl::Status EndRun(const std::string& run_id, const std::string& state) = 0;
  virtual absl::StatusOr<TuningStats> Stats(const std::string& run_id) = 0;
};

// For the coordinator in this process, which must outlive the client.
std::unique_ptr<TuningClient> NewLocalTuningClient(Coordinator* coordinator);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_TUNING_CLIENT_H_
