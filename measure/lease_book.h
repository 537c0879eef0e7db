// The lease book: which candidate is with which worker, as a pure state machine in memory. It has
// no clock, no thread and no database of its own: time is handed in, and its caller commits what it
// judged.
//
//   AddItems ─► Lease(enrolment, now) ─► Built, Renew … ─► JudgeTrial ─► (commit) ─► Committed
//                  ▲                                            │
//                  └──── Expire, Enrol, Leave, Release, Retry ◄─┘
//
// Every item is queued, leased, lost (waiting for TakeLost and its commit) or done. A lease has an
// epoch (generation committed at every coordinator start, counter) that fences renewal and return.
// The items of a lease that ended without results go back to the queue under new trial ids; then
// each is leased alone, to a worker that holds nothing else and gets nothing else meanwhile, so
// that one that takes its worker down can't take others along.
//
// The first committed result of a (run, candidate) is the trial, whatever its epoch, if device kind
// and toolchain are the run's and its enrolment was not superseded when it was measured; any later
// one is late. Not thread-safe: the coordinator's one thread owns it.
#ifndef TILEWRIGHT_MEASURE_LEASE_BOOK_H_
#define TILEWRIGHT_MEASURE_LEASE_BOOK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "measure/measure.pb.h"

namespace tilewright {

struct LeaseBookOptions {
  uint64_t generation = 1;
  absl::Duration lease_time = absl::Seconds(30);
  // An enrolment that is not heard of for this long has ended.
  absl::Duration enrolment_time = absl::Seconds(60);
  int infrastructure_retries =
      2;  // a candidate lost with its worker or device is leased again this often
  // Batches an enrolment gets from one run before another run's turn: each change of run costs a
  // session.
  int batches_in_a_row = 8;
  std::function<std::string()> new_id;  // 16 random bytes; seeded in tests
};

class LeaseBook {
 public:
  struct Enrolment {
    std::string id;
    std::string device_uuid;
    std::string target_text;
    std::string toolchain_id;
    bool operator==(const Enrolment&) const = default;
  };
  // What is to become of a result.
  struct Verdict {
    enum class Kind {
      kCommit,     // commit it as the trial
      kLate,       // commit it as late
      kDuplicate,  // this very result was committed: acknowledge
      kRetry,      // do not commit: Retry() queues its candidate again, unless that has happened
                   // already
      kInvalid,    // it contradicts what was leased
      kUnknown,    // no such run (yet): the worker keeps it
    };
    Kind kind;
    std::string reason;  // why late, retried or invalid
  };
  // An item that was lost with its worker more often than it may be.
  struct Lost {
    std::string run_id;
    v1::WorkItem item;
    std::string text;
  };

  static std::unique_ptr<LeaseBook> Make(LeaseBookOptions options);
  virtual ~LeaseBook() = default;

  // A run's leases go only to enrolments with its target and toolchain. OK if the same run is
  // there; AlreadyExists if one with this id but another spec is.
  virtual absl::Status AddRun(const v1::RunSpec& spec, const std::string& toolchain_id) = 0;
  // Drops its queue. Results that still come are late.
  virtual void EndRun(const std::string& run_id) = 0;
  // Queues items (order kept). `item.trial_id` is given by the book if empty. Schedules that are in
  // the book already, and finals whose id is, are skipped. NotFound: unknown or ended run.
  virtual absl::Status AddItems(const std::string& run_id,
                                absl::Span<const v1::WorkItem> items) = 0;

  // Returns the enrolment id: the one there is if the same worker process enrols the same device
  // again, else a new one, which supersedes a live one of the same device and takes its leases
  // back.
  virtual std::string Enrol(const v1::EnrolRequest& request, absl::Time now) = 0;
  // Ends an enrolment; its leases go back without blame.
  virtual void Leave(const std::string& enrolment_id) = 0;
  // Null: unknown. Superseded enrolments are kept, so that their results can be judged.
  virtual const Enrolment* FindEnrolment(const std::string& enrolment_id) const = 0;
  // NotFound: unknown enrolment, enrol again; FailedPrecondition: superseded, another worker has
  // the device.
  virtual absl::Status CheckLive(const std::string& enrolment_id) const = 0;
  // An empty reply (no run) if there is nothing for it. Takes back leases of this enrolment that
  // `held` does not name: their answers, or their results, were lost. Errors of CheckLive.
  virtual absl::StatusOr<v1::LeaseReply> Lease(const v1::LeaseRequest& request, absl::Time now) = 0;
  virtual absl::StatusOr<v1::RenewReply> Renew(const v1::RenewRequest& request, absl::Time now) = 0;
  // This enrolment can't measure this run: no anchor passed there. It gets no more leases of it.
  virtual void Refuse(const std::string& run_id, const std::string& enrolment_id) = 0;

  // Judges a result before it is committed. Changes nothing. Precondition: the request's enrolment
  // is known.
  virtual Verdict JudgeTrial(const v1::ReturnRequest& request,
                             const v1::TrialResult& result) const = 0;
  virtual Verdict JudgeFinals(const v1::ReturnRequest& request,
                              const v1::FinalsResult& result) const = 0;
  // The result that a twin shares: of the committed trial `trial_id`. Null: not committed here.
  virtual const v1::TrialResult* FindCommitted(const std::string& run_id,
                                               const std::string& trial_id) const = 0;
  // To be called after the database acknowledged a result that was judged kCommit. `is_trial`:
  // false if the database found an earlier trial of the candidate. True if this ended an item that
  // was not done yet: the tuner waits for it.
  virtual bool Committed(const std::string& run_id, const v1::TrialResult& result,
                         bool is_trial) = 0;
  // The same for finals, which take new trial ids when they are leased again: the id under which
  // they were added, by which the tuner knows them, if this ended them.
  virtual std::optional<std::string> CommittedFinals(const std::string& run_id,
                                                     const std::string& trial_id) = 0;
  // Queues the item again under a new trial id, at the head. `blame`: counts as one of its
  // infrastructure failures. Nothing if `trial_id` is no longer leased.
  virtual void Retry(const std::string& run_id, const std::string& trial_id, bool blame) = 0;
  // Items given back undone return to the head of the queue, in the order given.
  virtual void Release(const std::string& run_id, absl::Span<const std::string> trial_ids) = 0;
  // Takes back what expired.
  virtual void Expire(absl::Time now) = 0;
  virtual absl::Time NextExpiry() const = 0;  // InfiniteFuture: none
  // Items lost more than `infrastructure_retries` times since the last call; the caller commits
  // each as `worker lost`.
  virtual std::vector<Lost> TakeLost() = 0;
  // May this kernel run, or is it a known one's twin? Remembers the digest.
  virtual v1::BuiltReply Built(const v1::BuiltRequest& request) = 0;

  virtual int QueuedItems(const std::string& run_id) const = 0;
  virtual int LeasedItems(const std::string& run_id) const = 0;
  virtual std::vector<Enrolment> LiveEnrolments() const = 0;
  // Would this run's leases go to an enrolment like this?
  virtual bool Suits(const std::string& run_id, const Enrolment& enrolment) const = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_LEASE_BOOK_H_
