// A CommitSink is where the coordinator makes results durable: the tuning log, or a list in memory
// in tests.
//
//   batch ─► Commit ─► fate of each trial ─► acknowledgement to the worker, event to the tuner
//
// All calls come from the coordinator's one thread, which owns the sink from Coordinator::Start on.
// Errors have the codes of db/database.h: ResourceExhausted and Unavailable are tried again with
// the same results; InvalidArgument means that the batch has a row that can never be stored;
// DataLoss ends the run.
#ifndef TILEWRIGHT_SEARCH_COMMIT_SINK_H_
#define TILEWRIGHT_SEARCH_COMMIT_SINK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "measure/measure.pb.h"

namespace tilewright {

struct EvaluationRow;  // db/rows.h
struct RunRow;
struct VerdictRow;

// What a worker said of its device when it enrolled: the environment of its sessions.
struct EnrolledDevice {
  std::string worker_name;
  std::string device_uuid;
  std::string target_text;
  std::string toolchain_id;
  std::string timer;
  std::string driver;
  uint64_t generation = 0;  // of the coordinator it enrolled with
};

// A batch that the search proposed: logged before it is leased.
struct Proposal {
  std::string run_id;                  // 16 bytes
  std::vector<std::string> schedules;  // in order
  int64_t results_seen = 0;            // n of DESIGN.md 8
  int64_t trained_on = 0;              // t
};

// All that arrived together; stored in one transaction.
struct CommitBatch {
  // The session is new or its anchor was timed again: `report.anchor_seconds` has all timings, of
  // which those not yet stored are to be appended. Stands before the trials that name it.
  struct Session {
    std::string run_id;
    EnrolledDevice device;
    v1::SessionReport report;
  };
  struct Trial {
    std::string run_id;
    EnrolledDevice device;
    // Exactly one of `seconds` > 0 and `failure` is set, also for the twin of an earlier kernel
    // (`same_as`), which has that trial's times, session and failure. `session_id` is empty if no
    // session was open.
    v1::TrialResult result;
    std::string late_reason;  // not empty: it must not count, even if it is the first
    absl::Time received;
  };
  // The rounds of finals. The tuner makes a verdict of them (RecordVerdict), which is what the log
  // keeps.
  struct Finals {
    std::string run_id;
    EnrolledDevice device;
    v1::FinalsResult result;
  };
  std::vector<Session> sessions;
  std::vector<Trial> trials;
  std::vector<Finals> finals;
};

enum class TrialFate {
  kFirst,      // it is the trial
  kLate,       // stored as late, never ranked
  kDuplicate,  // this trial id was stored before; nothing was written
};

class CommitSink {
 public:
  virtual ~CommitSink() = default;
  // Commits and returns a generation greater than every earlier one: the high part of lease epochs.
  virtual absl::StatusOr<uint64_t> NextGeneration() = 0;
  // Stores the run unless it is there already (a resumed one).
  virtual absl::Status StartRun(const RunRow& record) = 0;
  virtual absl::Status LogProposal(const Proposal& proposal) = 0;
  // All or nothing; one fate per trial, in order. On return without error everything is on disk.
  virtual absl::StatusOr<std::vector<TrialFate>> Commit(const CommitBatch& batch) = 0;
  virtual absl::Status RecordVerdict(const VerdictRow& verdict) = 0;
  virtual absl::Status RecordEvaluation(const EvaluationRow& evaluation) = 0;
  // `state` is one of RunRow::state: "finished", "interrupted", "failed".
  virtual absl::Status EndRun(const std::string& run_id, const std::string& state) = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_COMMIT_SINK_H_
