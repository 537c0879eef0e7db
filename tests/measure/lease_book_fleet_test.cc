#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "measure/lease_book.h"
#include "tests/measure/lease_book_items.h"

namespace tilewright {
namespace {

using Kind = LeaseBook::Verdict::Kind;

// Random operations of several workers, with lost answers, deaths and silences, against a model of
// the database. At every step: each item is queued, leased, lost or done; a candidate has at most
// one trial; at the end every candidate has exactly one.
class RandomFleet {
 public:
  explicit RandomFleet(uint32_t seed) : random_(seed) { Restart(); }

  void Run() {
    for (int step = 0; step < 400; ++step) {
      Step();
      CheckInvariants();
    }
    Finish();
  }

 private:
  struct Worker {
    std::string device;
    std::string nonce;
    std::string enrolment;
    std::vector<v1::LeaseReply> leases;
    std::vector<std::pair<v1::Epoch, v1::TrialResult>> unacknowledged;
  };

  void Restart() {
    LeaseBookOptions options;
    options.generation = ++generation_;
    options.new_id = [this] { return Id(++ids_); };
    book_ = LeaseBook::Make(std::move(options));
    ASSERT_TRUE(book_->AddRun(Spec(1), kToolchain).ok());
    for (const std::string& schedule : proposed_) {
      if (!trials_.contains(schedule)) {
        ASSERT_TRUE(book_->AddItems(Id(1), {Screening(schedule)}).ok());
      }
    }
    lost_.clear();
    added_ = book_->QueuedItems(Id(1));
    done_ = 0;
  }

  int Draw(int bound) { return static_cast<int>(random_() % bound); }

  void Enrol(Worker* worker) {
    v1::EnrolRequest request;
    request.set_device_uuid(worker->device);
    request.set_worker_nonce(worker->nonce);
    request.set_target_text(kTarget);
    request.set_toolchain_id(kToolchain);
    worker->enrolment = book_->Enrol(request, now_);
  }

  void Step() {
    now_ += absl::Seconds(Draw(4));
    book_->Expire(now_);
    if (workers_.empty() || Draw(40) == 0) {
      workers_.push_back({absl::StrCat("gpu", Draw(3)), absl::StrCat("w", ++ids_), "", {}, {}});
      Enrol(&workers_.back());
    }
    const int who = Draw(static_cast<int>(workers_.size()));
    Worker& worker = workers_[who];
    switch (Draw(10)) {
      case 0:
        if (proposed_.size() < 60) Propose();
        break;
      case 1:
      case 2:
        LeaseSome(&worker);
        break;
      case 3:
        RenewAll(&worker);
        break;
      case 4:
      case 5:
      case 6:
        MeasureOne(&worker);
        break;
      case 7:
        ReturnAll(&worker);
        break;
      case 8:
        if (Draw(8) == 0) workers_.erase(workers_.begin() + who);  // kill -9
        break;
      case 9:
        if (Draw(20) == 0) Restart();
        break;
    }
    CommitLost();
  }

  void Propose() {
    const std::string schedule = absl::StrCat("s", proposed_.size());
    proposed_.push_back(schedule);
    ASSERT_TRUE(book_->AddItems(Id(1), {Screening(schedule)}).ok());
    ++added_;
  }

  void LeaseSome(Worker* worker) {
    v1::LeaseRequest request;
    request.set_enrolment_id(worker->enrolment);
    request.set_max_items(1 + Draw(5));
    for (const v1::LeaseReply& lease : worker->leases) *request.add_held() = lease.epoch();
    for (const auto& [epoch, result] : worker->unacknowledged) *request.add_held() = epoch;
    absl::StatusOr<v1::LeaseReply> reply = book_->Lease(request, now_);
    if (!reply.ok()) {
      Enrol(worker);
    } else if (reply->has_run() && Draw(10) != 0) {  // else the answer is lost
      worker->leases.push_back(*reply);
    }
  }

  void RenewAll(Worker* worker) {
    v1::RenewRequest request;
    request.set_enrolment_id(worker->enrolment);
    for (const v1::LeaseReply& lease : worker->leases) *request.add_epochs() = lease.epoch();
    absl::StatusOr<v1::RenewReply> reply = book_->Renew(request, now_);
    if (!reply.ok()) return;
    for (const v1::Epoch& lost : reply->lost()) {
      std::erase_if(worker->leases, [&](const v1::LeaseReply& lease) {
        return lease.epoch().counter() == lost.counter();
      });
    }
  }

  void MeasureOne(Worker* worker) {
    if (worker->leases.empty()) return;
    v1::LeaseReply& lease = worker->leases.front();
    v1::WorkItem item = lease.items(0);
    lease.mutable_items()->DeleteSubrange(0, 1);
    v1::TrialResult result;
    result.set_trial_id(item.trial_id());
    result.set_schedule(item.screen().schedule());
    result.set_measured_unix_ns(absl::ToUnixNanos(now_));
    v1::BuiltRequest built;
    built.set_enrolment_id(worker->enrolment);
    *built.mutable_epoch() = lease.epoch();
    built.set_run_id(Id(1));
    built.set_trial_id(item.trial_id());
    built.mutable_facts()->set_binary_digest(absl::StrCat("d", Draw(40)));
    const v1::BuiltReply verdict = book_->Built(built);
    if (Draw(15) == 0) {
      result.mutable_failure()->set_kind("device lost");
    } else if (verdict.verdict() == v1::BuiltReply::SAME_KERNEL) {
      result.set_same_as(verdict.same_as());
    } else {
      result.set_seconds(1);
    }
    if (verdict.verdict() != v1::BuiltReply::LOST || Draw(2) == 0) {
      worker->unacknowledged.emplace_back(lease.epoch(), result);
    }
    if (lease.items().empty()) worker->leases.erase(worker->leases.begin());
  }

  void ReturnAll(Worker* worker) {
    if (book_->FindEnrolment(worker->enrolment) == nullptr) Enrol(worker);
    auto& results = worker->unacknowledged;
    while (!results.empty()) {
      v1::ReturnRequest request;
      request.set_enrolment_id(worker->enrolment);
      request.set_run_id(Id(1));
      *request.mutable_epoch() = results.front().first;
      Decide(request, results.front().second);
      if (Draw(6) == 0) return;  // committed, but the answer is lost: it comes again
      results.erase(results.begin());
    }
  }

  void Decide(const v1::ReturnRequest& request, const v1::TrialResult& result) {
    const LeaseBook::Verdict verdict = book_->JudgeTrial(request, result);
    switch (verdict.kind) {
      case Kind::kCommit:
        Commit(result);
        break;
      case Kind::kRetry:
        book_->Retry(Id(1), result.trial_id(), result.has_failure());
        break;
      case Kind::kDuplicate:
        EXPECT_EQ(trials_[result.schedule()], result.trial_id());
        break;
      case Kind::kLate:
        break;
      default:
        ADD_FAILURE() << verdict.reason;
    }
  }

  // The database: the first result of a candidate stays.
  void Commit(const v1::TrialResult& result) {
    const bool first = trials_.emplace(result.schedule(), result.trial_id()).second;
    const bool duplicate = trials_[result.schedule()] == result.trial_id();
    if (book_->Committed(Id(1), result, first || duplicate)) ++done_;
  }

  void CommitLost() {
    while (!lost_.empty() && Draw(2) == 0) {
      v1::TrialResult result;
      result.set_trial_id(lost_.front().item.trial_id());
      result.set_schedule(lost_.front().item.screen().schedule());
      result.mutable_failure()->set_kind("worker lost");
      Commit(result);
      lost_.pop_front();
    }
  }

  void CheckInvariants() {
    for (LeaseBook::Lost& lost : book_->TakeLost()) lost_.push_back(lost);
    int lost = 0;  // a late result may have ended it meanwhile
    for (const LeaseBook::Lost& item : lost_) {
      if (!trials_.contains(item.item.screen().schedule())) ++lost;
    }
    ASSERT_EQ(book_->QueuedItems(Id(1)) + book_->LeasedItems(Id(1)) + lost + done_, added_);
  }

  void Finish() {
    workers_.clear();
    workers_.push_back({"gpu9", "last", "", {}, {}});
    Enrol(&workers_.back());
    for (int i = 0; i < 2000 && trials_.size() < proposed_.size(); ++i) {
      now_ += absl::Seconds(10);
      book_->Expire(now_);
      CommitLost();
      LeaseSome(&workers_.back());
      MeasureOne(&workers_.back());
      ReturnAll(&workers_.back());
      CheckInvariants();
    }
    EXPECT_EQ(trials_.size(), proposed_.size());
  }

  std::mt19937 random_;
  std::unique_ptr<LeaseBook> book_;
  uint64_t generation_ = 0;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  int ids_ = 0;
  int added_ = 0;
  int done_ = 0;
  std::deque<Worker> workers_;
  std::vector<std::string> proposed_;
  std::deque<LeaseBook::Lost> lost_;
  std::map<std::string, std::string> trials_;  // schedule to trial id
};

TEST(LeaseBookProperty, EveryCandidateGetsExactlyOneTrialWhateverHappens) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomFleet(seed).Run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilewright
