// The lease book: which candidate is with which worker, as a pure state machine in memory. It has no clock, no thread and no
// database of its own: time is handed in, and so are the functions that commit.
//
//   Add(items) ─► Lease(enrolment, now) ─► Renew … ─► Return(results) ─► commit ─► fate of each
//
// A lease has an epoch (generation committed at every coordinator start, counter) that fences renewal and return. An expired
// lease's items go back to the queue under new trial ids. The first committed result of a (run, candidate) is the trial, whatever
// its epoch, if device kind and toolchain are the run's and its enrolment was not superseded when it was measured; any later one is
// late. Not thread-safe: the coordinator's one thread owns it.
#ifndef TILEWRIGHT_MEASURE_LEASE_BOOK_H_
#define TILEWRIGHT_MEASURE_LEASE_BOOK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "measure/measure.pb.h"

namespace tilewright {

struct LeaseBookOptions {
  uint64_t generation = 1;
  absl::Duration lease_time = absl::Seconds(30);
  int infrastructure_retries = 2;  // a candidate lost with its worker or device is leased again this often
  std::function<std::string()> new_id;  // 16 random bytes; seeded in tests
};

class LeaseBook {
 public:
  struct Enrolment {
    std::string id;
    std::string device_uuid;
    std::string target_text;
    std::string toolchain_id;
  };
  // One result on its way to the database, with what the book knows of it.
  struct Verdict {
    enum class Kind { kCommit, kLate, kDuplicate } kind;
    std::string reason;  // why late
  };

  static std::unique_ptr<LeaseBook> Make(LeaseBookOptions options);
  virtual ~LeaseBook() = default;

  // A run's leases go only to enrolments with its target and toolchain.
  virtual absl::Status AddRun(const v1::RunSpec& spec, const std::string& toolchain_id) = 0;
  virtual void EndRun(const std::string& run_id) = 0;
  // Queues items (order kept). `item.trial_id` is given by the book if empty. InvalidArgument: unknown run.
  virtual absl::Status AddItems(const std::string& run_id, absl::Span<const v1::WorkItem> items) = 0;

  // Returns the enrolment id; supersedes a live one of the same device.
  virtual std::string Enrol(const v1::EnrolRequest& request, absl::Time now) = 0;
  // An empty reply (no run) if there is nothing for it. NotFound: unknown or superseded enrolment.
  virtual absl::StatusOr<v1::LeaseReply> Lease(const std::string& enrolment_id, int max_items, absl::Time now) = 0;
  virtual absl::StatusOr<v1::RenewReply> Renew(const v1::RenewRequest& request, absl::Time now) = 0;
  // Judges results before they are committed; `Committed` is called after the database acknowledged.
  virtual Verdict JudgeTrial(const v1::ReturnRequest& request, const v1::TrialResult& result) = 0;
  virtual Verdict JudgeFinals(const v1::ReturnRequest& request, const v1::FinalsResult& result) = 0;
  virtual void Committed(const std::string& run_id, const std::string& trial_id, const std::string& schedule) = 0;
  // Items given back undone return to the head of the queue.
  virtual void Release(const std::string& run_id, absl::Span<const std::string> trial_ids) = 0;
  // Returns expired leases' items to the queue. Items lost more than `infrastructure_retries` times are handed to `lost` as
  // results with the failure `worker lost`.
  virtual void Expire(absl::Time now, const std::function<void(const std::string& run_id, const v1::TrialResult&)>& lost) = 0;
  virtual absl::Time NextExpiry() const = 0;  // InfiniteFuture: none
  // May this kernel run, or is it a known one's twin? Remembers the digest.
  virtual v1::BuiltReply Built(const v1::BuiltRequest& request) = 0;

  virtual int QueuedItems(const std::string& run_id) const = 0;
  virtual int LeasedItems(const std::string& run_id) const = 0;
  virtual std::vector<Enrolment> LiveEnrolments() const = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_LEASE_BOOK_H_
