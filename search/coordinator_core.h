// What the coordinator's one thread does, call by call: judges, commits, answers, tells the tuner.
// Not thread-safe; the thread of coordinator.cc owns it. Only EventQueue is shared with other
// threads.
//
// Worker calls hand in the request, the reply to fill and `done`, which is called exactly once, now
// or in a later Turn(); request and reply live until then.
#ifndef TILEWRIGHT_SEARCH_COORDINATOR_CORE_H_
#define TILEWRIGHT_SEARCH_COORDINATOR_CORE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "measure/lease_book.h"
#include "search/commit_sink.h"
#include "search/tuning_client.h"

namespace tilewright {

// The events of one run on their way to its tuner. Thread-safe.
class EventQueue {
 public:
  void Push(TuningEvent event);
  // Given to readers once there are no events; OK again: the log recovered.
  void SetStatus(absl::Status status);
  // All that there is; waits up to `timeout` for the first one.
  absl::StatusOr<std::vector<TuningEvent>> Take(absl::Duration timeout);

 private:
  std::mutex mutex_;                 // guards all that follows
  std::condition_variable changed_;  // told of every push and status
  std::deque<TuningEvent> events_;
  absl::Status status_;
};

class CoordinatorCore {
 public:
  struct Options {
    absl::Duration lease_time;
    int infrastructure_retries;
    absl::Duration sink_patience;
    std::function<absl::Time()> clock;
  };
  using Done = std::function<void(const absl::Status&)>;

  // Commits a generation.
  static absl::StatusOr<std::unique_ptr<CoordinatorCore>> Make(Options options,
                                                               std::unique_ptr<CommitSink> sink);

  uint64_t generation() const { return generation_; }

  // ---- Workers. Requests have passed CheckRequest.
  absl::Status Enrol(const v1::EnrolRequest& request, v1::EnrolReply* reply);
  absl::Status Renew(const v1::RenewRequest& request, v1::RenewReply* reply);
  absl::Status Built(const v1::BuiltRequest& request, v1::BuiltReply* reply);
  // Waits for work; `call` names it for CancelLease.
  void Lease(uint64_t call, const v1::LeaseRequest* request, v1::LeaseReply* reply, Done done);
  void CancelLease(uint64_t call);
  // Answered by the next Turn, which commits all that came since the last one.
  void Return(const v1::ReturnRequest* request, v1::ReturnReply* reply, Done done);

  // ---- The tuner: as TuningClient says.
  absl::Status StartRun(const v1::RunSpec& spec, const std::string& toolchain_id,
                        const RunRow& record);
  absl::Status Propose(const Proposal& proposal);
  absl::Status Requeue(const std::string& run_id, absl::Span<const std::string> schedules);
  absl::StatusOr<std::string> Finals(const std::string& run_id, const v1::Finals& finals);
  absl::Status EndRun(const std::string& run_id, const std::string& state);
  absl::StatusOr<TuningStats> Stats(const std::string& run_id);
  absl::StatusOr<std::shared_ptr<EventQueue>> Events(const std::string& run_id);
  CommitSink& sink() { return *sink_; }

  void Drain();
  int live_enrolments() const { return static_cast<int>(live_.size()); }

  // To be called after each group of calls and at NextWake().
  void Turn();
  absl::Time NextWake() const;
  // Ends all open calls with Unavailable, and every later Lease and Return too.
  void Stop();

 private:
  struct Waiter {
    uint64_t call;
    const v1::LeaseRequest* request;
    v1::LeaseReply* reply;
    Done done;
    absl::Time deadline;
  };
  struct PendingReturn {
    const v1::ReturnRequest* request;
    v1::ReturnReply* reply;
    Done done;
  };
  // What is known of an enrolment beside the book's facts.
  struct Worker {
    EnrolledDevice device;
    absl::Time enrolled;
    std::optional<absl::Time> ended;
    absl::Duration busy;
  };
  struct RunState {
    std::shared_ptr<EventQueue> events;
    TuningStats counts;
    bool ended = false;  // its tuner listens no longer
  };
  struct Group;  // the results of some requests on their way through one commit

  CoordinatorCore(Options options, std::unique_ptr<CommitSink> sink, uint64_t generation);

  absl::Time Now() const { return options_.clock(); }
  absl::Status AddItems(const std::string& run_id, const std::vector<v1::WorkItem>& items);
  void CommitPending();
  // Answers all of them, unless one has a row that can't be stored: then false, and nothing is
  // answered.
  bool CommitGroup(absl::Span<PendingReturn> requests);
  void CommitLost();
  void ServeWaiters();
  // Compares who is live with who was, and tells the tuners.
  void TellOfWorkers();
  void NoteSink(const absl::Status& status);
  void Tell(const std::string& run_id, TuningEvent event);
  // Takes one request into the group: judges its results and notes what is to be stored. An error
  // concerns the whole request, of which nothing is then stored.
  absl::Status AddToGroup(const v1::ReturnRequest& request, Group* group);
  absl::Status JudgeTrials(const v1::ReturnRequest& request, Group* group);
  absl::Status JudgeFinals(const v1::ReturnRequest& request, Group* group);
  void AddSession(const v1::ReturnRequest& request, Group* group);
  // After the commit: ends the items and tells the tuners, in the batch's order.
  void TellOfCommit(const CommitBatch& batch, const std::vector<TrialFate>& fates);
  void TellOfTrial(const CommitBatch::Trial& trial, TrialFate fate);
  // What a request says beside its results, once these are stored.
  void NoteWorker(const v1::ReturnRequest& request);

  const Options options_;
  const std::unique_ptr<CommitSink> sink_;
  const uint64_t generation_;
  std::unique_ptr<LeaseBook> book_;
  std::map<std::string, RunState> runs_;
  std::map<std::string, Worker> workers_;  // by enrolment id; those the book still knows
  std::set<std::string> live_;             // enrolment ids
  std::deque<Waiter> waiters_;
  std::vector<PendingReturn> pending_;
  std::vector<LeaseBook::Lost> lost_;                      // to be committed
  absl::flat_hash_map<std::string, int> session_anchors_;  // timings stored, by session id
  std::optional<absl::Time> sink_failing_since_;
  bool draining_ = false;
  bool stopped_ = false;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_COORDINATOR_CORE_H_
