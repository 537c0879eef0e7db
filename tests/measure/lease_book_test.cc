#include "measure/lease_book.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/measure/lease_book_items.h"

namespace tilewright {
namespace {

using Kind = LeaseBook::Verdict::Kind;

// One book with a run, a clock that is moved by hand, and shorthands for what a worker does.
class LeaseBookTest : public ::testing::Test {
 protected:
  LeaseBookTest() { Restart(1); }

  void Restart(uint64_t generation) {
    LeaseBookOptions options;
    options.generation = generation;
    options.new_id = [this] { return Id(++ids_); };
    book_ = LeaseBook::Make(std::move(options));
    ASSERT_TRUE(book_->AddRun(Spec(1), kToolchain).ok());
  }

  void Add(const std::vector<std::string>& schedules, int run = 1) {
    std::vector<v1::WorkItem> items;
    for (const std::string& schedule : schedules) items.push_back(Screening(schedule));
    ASSERT_TRUE(book_->AddItems(Id(run), items).ok());
  }

  std::string Enrol(const std::string& device, const std::string& nonce) {
    v1::EnrolRequest request;
    request.set_device_uuid(device);
    request.set_worker_nonce(nonce);
    request.set_target_text(kTarget);
    request.set_toolchain_id(kToolchain);
    return book_->Enrol(request, now_);
  }

  // The worker names every lease it ever got from this helper as held.
  v1::LeaseReply Lease(const std::string& enrolment, int max_items = 8) {
    v1::LeaseRequest request;
    request.set_enrolment_id(enrolment);
    request.set_max_items(max_items);
    for (const v1::Epoch& epoch : held_) *request.add_held() = epoch;
    absl::StatusOr<v1::LeaseReply> reply = book_->Lease(request, now_);
    EXPECT_TRUE(reply.ok()) << reply.status();
    if (reply->has_run()) held_.push_back(reply->epoch());
    return *reply;
  }

  bool Renew(const std::string& enrolment, const v1::Epoch& epoch) {
    v1::RenewRequest request;
    request.set_enrolment_id(enrolment);
    *request.add_epochs() = epoch;
    absl::StatusOr<v1::RenewReply> reply = book_->Renew(request, now_);
    return reply.ok() && reply->lost().empty();
  }

  v1::ReturnRequest ReturnOf(const std::string& enrolment, const v1::Epoch& epoch, int run = 1) {
    v1::ReturnRequest request;
    request.set_enrolment_id(enrolment);
    request.set_run_id(Id(run));
    *request.mutable_epoch() = epoch;
    return request;
  }

  v1::TrialResult Measured(const v1::WorkItem& item, double seconds = 1) {
    v1::TrialResult result;
    result.set_trial_id(item.trial_id());
    result.set_schedule(item.screen().schedule());
    result.set_seconds(seconds);
    result.set_measured_unix_ns(absl::ToUnixNanos(now_));
    return result;
  }

  v1::TrialResult Failed(const v1::WorkItem& item, const std::string& kind) {
    v1::TrialResult result = Measured(item);
    result.clear_seconds();
    result.mutable_failure()->set_kind(kind);
    return result;
  }

  LeaseBook::Verdict Judge(const std::string& enrolment, const v1::Epoch& epoch,
                           const v1::TrialResult& result, int run = 1) {
    return book_->JudgeTrial(ReturnOf(enrolment, epoch, run), result);
  }

  v1::BuiltReply Built(const std::string& enrolment, const v1::LeaseReply& lease, int item,
                       const std::string& digest) {
    v1::BuiltRequest request;
    request.set_enrolment_id(enrolment);
    *request.mutable_epoch() = lease.epoch();
    request.set_run_id(lease.run().run_id());
    request.set_trial_id(lease.items(item).trial_id());
    request.mutable_facts()->set_binary_digest(digest);
    return book_->Built(request);
  }

  std::unique_ptr<LeaseBook> book_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  int ids_ = 1000;
  std::vector<v1::Epoch> held_;
};

TEST_F(LeaseBookTest, LeasesItemsInTheOrderTheyWereAdded) {
  Add({"a", "b", "c"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply first = Lease(worker, 2);
  ASSERT_EQ(first.items_size(), 2);
  EXPECT_EQ(first.items(0).screen().schedule(), "a");
  EXPECT_EQ(first.items(1).screen().schedule(), "b");
  EXPECT_EQ(first.epoch().generation(), 1u);
  const v1::LeaseReply second = Lease(worker, 2);
  ASSERT_EQ(second.items_size(), 1);
  EXPECT_EQ(second.items(0).screen().schedule(), "c");
  EXPECT_GT(second.epoch().counter(), first.epoch().counter());
  EXPECT_FALSE(Lease(worker).has_run());
  EXPECT_EQ(book_->QueuedItems(Id(1)), 0);
  EXPECT_EQ(book_->LeasedItems(Id(1)), 3);
}

TEST_F(LeaseBookTest, CommitsTheFirstResultAndCallsTheNextOneLate) {
  Add({"a"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker);
  const v1::TrialResult result = Measured(lease.items(0));
  EXPECT_EQ(Judge(worker, lease.epoch(), result).kind, Kind::kCommit);
  EXPECT_TRUE(book_->Committed(Id(1), result, true));
  EXPECT_EQ(Judge(worker, lease.epoch(), result).kind, Kind::kDuplicate);
  EXPECT_EQ(book_->LeasedItems(Id(1)), 0);
  EXPECT_FALSE(book_->Committed(Id(1), result, true));
}

TEST_F(LeaseBookTest, SkipsSchedulesItAlreadyHas) {
  Add({"a", "b", "a"});
  Add({"b", "c"});
  EXPECT_EQ(book_->QueuedItems(Id(1)), 3);
}

TEST_F(LeaseBookTest, GivesLeasesOnlyToTheTargetAndToolchainOfTheRun) {
  Add({"a"});
  v1::EnrolRequest request;
  request.set_device_uuid("other");
  request.set_worker_nonce("x");
  request.set_target_text("cpu:other{}");
  request.set_toolchain_id(kToolchain);
  EXPECT_FALSE(Lease(book_->Enrol(request, now_)).has_run());
  request.set_device_uuid("third");
  request.set_target_text(kTarget);
  request.set_toolchain_id("codegen 2");
  EXPECT_FALSE(Lease(book_->Enrol(request, now_)).has_run());
  EXPECT_TRUE(Lease(Enrol("gpu", "w")).has_run());
}

TEST_F(LeaseBookTest, AnExpiredLeaseGoesBackUnderNewTrialIds) {
  Add({"a", "b"});
  const std::string first = Enrol("gpu0", "w0");
  const std::string second = Enrol("gpu1", "w1");
  const v1::LeaseReply lease = Lease(first);
  EXPECT_EQ(book_->NextExpiry(), now_ + absl::Seconds(30));
  now_ += absl::Seconds(29);
  book_->Expire(now_);
  EXPECT_EQ(book_->LeasedItems(Id(1)), 2);
  now_ += absl::Seconds(1);
  book_->Expire(now_);
  EXPECT_EQ(book_->QueuedItems(Id(1)), 2);
  EXPECT_FALSE(Renew(first, lease.epoch()));
  const v1::LeaseReply again = Lease(second);
  EXPECT_EQ(again.items(0).screen().schedule(), "a");
  EXPECT_NE(again.items(0).trial_id(), lease.items(0).trial_id());
}

TEST_F(LeaseBookTest, RenewalKeepsALease) {
  Add({"a"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker);
  for (int i = 0; i < 10; ++i) {
    now_ += absl::Seconds(20);
    EXPECT_TRUE(Renew(worker, lease.epoch()));
    book_->Expire(now_);
  }
  EXPECT_EQ(book_->LeasedItems(Id(1)), 1);
}

TEST_F(LeaseBookTest, AResultAfterExpiryIsTheTrialIfItIsFirst) {
  Add({"a"});
  const std::string slow = Enrol("gpu0", "w0");
  const std::string quick = Enrol("gpu1", "w1");
  const v1::LeaseReply old_lease = Lease(slow);
  now_ += absl::Seconds(31);
  book_->Expire(now_);
  const v1::LeaseReply new_lease = Lease(quick);
  const v1::TrialResult old_result = Measured(old_lease.items(0));
  const v1::TrialResult new_result = Measured(new_lease.items(0));
  EXPECT_EQ(Judge(slow, old_lease.epoch(), old_result).kind, Kind::kCommit);
  EXPECT_TRUE(book_->Committed(Id(1), old_result, true));
  EXPECT_EQ(book_->LeasedItems(Id(1)), 0);
  EXPECT_EQ(Built(quick, new_lease, 0, "d").verdict(), v1::BuiltReply::LOST);
  const LeaseBook::Verdict late = Judge(quick, new_lease.epoch(), new_result);
  EXPECT_EQ(late.kind, Kind::kLate);
  EXPECT_THAT(late.reason, ::testing::HasSubstr("has a trial already"));
}

TEST_F(LeaseBookTest, ItemsThatWereLostAreLeasedAlone) {
  Add({"a", "b", "c"});
  const std::string worker = Enrol("gpu", "w");
  Lease(worker, 2);
  now_ += absl::Seconds(31);
  book_->Expire(now_);
  const v1::LeaseReply suspect = Lease(worker);
  ASSERT_EQ(suspect.items_size(), 1);
  EXPECT_EQ(suspect.items(0).screen().schedule(), "a");
  EXPECT_FALSE(Lease(worker).has_run());  // it would share the fate of "a"
  const v1::LeaseReply elsewhere = Lease(Enrol("gpu 2", "v"));
  ASSERT_EQ(elsewhere.items_size(), 1);
  EXPECT_EQ(elsewhere.items(0).screen().schedule(), "b");
  EXPECT_TRUE(book_->Committed(Id(1), Measured(suspect.items(0)), true));
  const v1::LeaseReply rest = Lease(worker);
  ASSERT_EQ(rest.items_size(), 1);
  EXPECT_EQ(rest.items(0).screen().schedule(), "c");
}

TEST_F(LeaseBookTest, AnItemThatWasLostWaitsForAWorkerThatHoldsNothing) {
  Add({"a", "b"});
  Lease(Enrol("gpu", "w"), 1);
  const std::string busy = Enrol("gpu 2", "v");
  const v1::LeaseReply held = Lease(busy, 1);
  now_ += absl::Seconds(20);
  EXPECT_TRUE(Renew(busy, held.epoch()));
  now_ += absl::Seconds(15);  // 35 s: the lease of "a" is over, that of "b" is not
  book_->Expire(now_);
  EXPECT_FALSE(Lease(busy).has_run());
  EXPECT_TRUE(book_->Committed(Id(1), Measured(held.items(0)), true));
  const v1::LeaseReply lost_before = Lease(busy);
  ASSERT_EQ(lost_before.items_size(), 1);
  EXPECT_EQ(lost_before.items(0).screen().schedule(), "a");
}

TEST_F(LeaseBookTest, AnItemLostThreeTimesIsHandedBackAsLost) {
  Add({"a"});
  std::string last_id;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(book_->TakeLost().empty());
    const v1::LeaseReply lease = Lease(Enrol("gpu", absl::StrCat("w", i)));
    ASSERT_EQ(lease.items_size(), 1);
    last_id = lease.items(0).trial_id();
    now_ += absl::Seconds(31);
    book_->Expire(now_);
  }
  const std::vector<LeaseBook::Lost> lost = book_->TakeLost();
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].run_id, Id(1));
  EXPECT_EQ(lost[0].item.trial_id(), last_id);
  EXPECT_EQ(book_->QueuedItems(Id(1)) + book_->LeasedItems(Id(1)), 0);
  v1::TrialResult result = Failed(lost[0].item, "worker lost");
  EXPECT_TRUE(book_->Committed(Id(1), result, true));
}

TEST_F(LeaseBookTest, ADeviceLostIsRetriedTwiceAndThenCommitted) {
  Add({"a"});
  const std::string worker = Enrol("gpu", "w");
  for (int i = 0; i < 2; ++i) {
    const v1::LeaseReply lease = Lease(worker);
    const v1::TrialResult result = Failed(lease.items(0), "device lost");
    EXPECT_EQ(Judge(worker, lease.epoch(), result).kind, Kind::kRetry);
    book_->Retry(Id(1), result.trial_id(), true);
    book_->Retry(Id(1), result.trial_id(), true);  // its answer was lost: no second blame
    EXPECT_EQ(Judge(worker, lease.epoch(), result).kind, Kind::kRetry);
    EXPECT_EQ(book_->QueuedItems(Id(1)), 1);
  }
  const v1::LeaseReply lease = Lease(worker);
  EXPECT_EQ(Judge(worker, lease.epoch(), Failed(lease.items(0), "device lost")).kind,
            Kind::kCommit);
}

TEST_F(LeaseBookTest, AFailureOfTheCandidateIsATrial) {
  Add({"a"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker);
  EXPECT_EQ(Judge(worker, lease.epoch(), Failed(lease.items(0), "wrong output")).kind,
            Kind::kCommit);
}

TEST_F(LeaseBookTest, TheSameWorkerProcessKeepsItsEnrolment) {
  Add({"a"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker);
  EXPECT_EQ(Enrol("gpu", "w"), worker);
  EXPECT_TRUE(Renew(worker, lease.epoch()));
  EXPECT_EQ(book_->LiveEnrolments().size(), 1u);
}

TEST_F(LeaseBookTest, ALaterEnrolmentSupersedesAndTakesTheLeasesBack) {
  Add({"a", "b"});
  const std::string old_worker = Enrol("gpu", "w0");
  const v1::LeaseReply lease = Lease(old_worker);
  const v1::TrialResult before = Measured(lease.items(0));
  now_ += absl::Seconds(1);
  const std::string new_worker = Enrol("gpu", "w1");
  EXPECT_NE(old_worker, new_worker);
  EXPECT_EQ(book_->QueuedItems(Id(1)), 2);
  now_ += absl::Seconds(1);
  const v1::TrialResult after = Measured(lease.items(1));
  EXPECT_EQ(book_->CheckLive(old_worker).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Judge(old_worker, lease.epoch(), before).kind, Kind::kCommit);
  EXPECT_EQ(Judge(old_worker, lease.epoch(), after).kind, Kind::kLate);
  EXPECT_EQ(book_->LiveEnrolments().size(), 1u);
}

TEST_F(LeaseBookTest, AWorkerThatComesBackAfterAnotherIsLateForWhatItMeasuredMeanwhile) {
  Add({"a"});
  const std::string first = Enrol("gpu", "w0");
  const v1::LeaseReply lease = Lease(first);
  now_ += absl::Seconds(1);
  Enrol("gpu", "w1");
  now_ += absl::Seconds(1);
  const v1::TrialResult meanwhile = Measured(lease.items(0));
  now_ += absl::Seconds(1);
  const std::string again = Enrol("gpu", "w0");
  EXPECT_EQ(Judge(again, lease.epoch(), meanwhile).kind, Kind::kLate);
}

TEST_F(LeaseBookTest, ResultsOfAnEarlierGenerationCountIfTheyAreFirst) {
  Add({"a", "b"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker);
  Restart(2);
  EXPECT_EQ(book_->FindEnrolment(worker), nullptr);
  now_ += absl::Seconds(1);
  v1::TrialResult a = Measured(lease.items(0));
  a.set_measured_unix_ns(absl::ToUnixNanos(now_ - absl::Seconds(1)));
  const std::string again = Enrol("gpu", "w");
  EXPECT_EQ(Judge(again, lease.epoch(), a).kind, Kind::kCommit);
  EXPECT_FALSE(book_->Committed(Id(1), a, true));  // nobody waits for it in this generation
  Add({"a", "b"});  // the tuner resumes: what is committed is not leased again
  EXPECT_EQ(book_->QueuedItems(Id(1)), 1);
  const v1::LeaseReply next = Lease(again);
  ASSERT_EQ(next.items_size(), 1);
  const v1::TrialResult b = Measured(next.items(0));
  EXPECT_TRUE(book_->Committed(Id(1), b, true));
  EXPECT_EQ(Judge(again, lease.epoch(), Measured(lease.items(1))).kind, Kind::kLate);
}

TEST_F(LeaseBookTest, RefusesTrialsThatWereNeverLeased) {
  Add({"a"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker);
  v1::TrialResult invented = Measured(lease.items(0));
  invented.set_trial_id(Id(7));
  EXPECT_EQ(Judge(worker, lease.epoch(), invented).kind, Kind::kInvalid);
  v1::TrialResult exchanged = Measured(lease.items(0));
  exchanged.set_schedule("b");
  EXPECT_EQ(Judge(worker, lease.epoch(), exchanged).kind, Kind::kInvalid);
  EXPECT_EQ(Judge(worker, lease.epoch(), invented, 9).kind, Kind::kUnknown);
}

TEST_F(LeaseBookTest, RunsTheSameKernelOnce) {
  Add({"a", "b", "c"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker);
  EXPECT_EQ(Built(worker, lease, 0, "d1").verdict(), v1::BuiltReply::RUN);
  EXPECT_EQ(Built(worker, lease, 0, "d1").verdict(), v1::BuiltReply::RUN);  // repeated
  const v1::BuiltReply same = Built(worker, lease, 1, "d1");
  EXPECT_EQ(same.verdict(), v1::BuiltReply::SAME_KERNEL);
  EXPECT_EQ(same.same_as(), lease.items(0).trial_id());
  EXPECT_EQ(Built(worker, lease, 2, "d2").verdict(), v1::BuiltReply::RUN);
  // The twin's result waits for the first one's.
  v1::TrialResult twin = Measured(lease.items(1));
  twin.clear_seconds();
  twin.set_same_as(same.same_as());
  EXPECT_EQ(Judge(worker, lease.epoch(), twin).kind, Kind::kRetry);
  EXPECT_TRUE(book_->Committed(Id(1), Measured(lease.items(0), 0.5), true));
  EXPECT_EQ(Judge(worker, lease.epoch(), twin).kind, Kind::kCommit);
  ASSERT_NE(book_->FindCommitted(Id(1), same.same_as()), nullptr);
  EXPECT_EQ(book_->FindCommitted(Id(1), same.same_as())->seconds(), 0.5);
}

TEST_F(LeaseBookTest, AnotherWorkersPendingTwinRuns) {
  Add({"a", "b"});
  const std::string first = Enrol("gpu0", "w0");
  const std::string second = Enrol("gpu1", "w1");
  const v1::LeaseReply a = Lease(first, 1);
  const v1::LeaseReply b = Lease(second, 1);
  EXPECT_EQ(Built(first, a, 0, "d").verdict(), v1::BuiltReply::RUN);
  EXPECT_EQ(Built(second, b, 0, "d").verdict(), v1::BuiltReply::RUN);
}

TEST_F(LeaseBookTest, ReleasedItemsReturnToTheHeadWithoutBlame) {
  Add({"a", "b", "c"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker, 2);
  book_->Release(Id(1), {lease.items(0).trial_id(), lease.items(1).trial_id()});
  const v1::LeaseReply again = Lease(worker, 8);
  ASSERT_EQ(again.items_size(), 3);
  EXPECT_EQ(again.items(0).screen().schedule(), "a");
  EXPECT_EQ(again.items(1).screen().schedule(), "b");
}

TEST_F(LeaseBookTest, TakesBackALeaseWhoseAnswerWasLost) {
  Add({"a", "b"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lost = Lease(worker, 1);
  held_.clear();  // the worker never saw it
  const v1::LeaseReply lease = Lease(worker, 8);
  ASSERT_EQ(lease.items_size(), 1);
  EXPECT_EQ(lease.items(0).screen().schedule(), "a");
  EXPECT_NE(lease.items(0).trial_id(), lost.items(0).trial_id());
}

TEST_F(LeaseBookTest, ASilentEnrolmentEnds) {
  const std::string worker = Enrol("gpu", "w");
  now_ += absl::Seconds(60);
  book_->Expire(now_);
  EXPECT_TRUE(book_->LiveEnrolments().empty());
  EXPECT_EQ(book_->CheckLive(worker).code(), absl::StatusCode::kNotFound);
}

TEST_F(LeaseBookTest, AWorkerThatLeavesGivesItsItemsBackAndMayStillBeJudged) {
  Add({"a"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker);
  book_->Leave(worker);
  EXPECT_TRUE(book_->LiveEnrolments().empty());
  EXPECT_EQ(book_->QueuedItems(Id(1)), 1);
  EXPECT_EQ(book_->CheckLive(worker).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Judge(worker, lease.epoch(), Measured(lease.items(0))).kind, Kind::kCommit);
}

TEST_F(LeaseBookTest, ARefusedRunIsNotLeasedToThatEnrolmentAgain) {
  Add({"a"});
  const std::string worker = Enrol("gpu", "w");
  book_->Refuse(Id(1), worker);
  EXPECT_FALSE(Lease(worker).has_run());
  EXPECT_TRUE(Lease(Enrol("gpu1", "w1")).has_run());
}

TEST_F(LeaseBookTest, AnEndedRunHasNoQueueAndOnlyLateResults) {
  Add({"a", "b"});
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply lease = Lease(worker, 1);
  book_->EndRun(Id(1));
  EXPECT_EQ(book_->QueuedItems(Id(1)), 0);
  EXPECT_FALSE(Lease(worker).has_run());
  EXPECT_EQ(Judge(worker, lease.epoch(), Measured(lease.items(0))).kind, Kind::kLate);
  EXPECT_EQ(book_->AddItems(Id(1), {Screening("c")}).code(), absl::StatusCode::kNotFound);
  now_ += absl::Seconds(31);
  book_->Expire(now_);
  EXPECT_EQ(book_->LeasedItems(Id(1)), 0);
}

TEST_F(LeaseBookTest, RunsTakeTurnsByBatches) {
  ASSERT_TRUE(book_->AddRun(Spec(2), kToolchain).ok());
  for (int i = 0; i < 20; ++i) {
    Add({absl::StrCat("a", i)});
    Add({absl::StrCat("b", i)}, 2);
  }
  const std::string worker = Enrol("gpu", "w");
  std::vector<std::string> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(Lease(worker, 1).run().run_id());
  EXPECT_EQ(std::count(runs.begin(), runs.begin() + 8, Id(1)), 8);
  EXPECT_EQ(std::count(runs.begin() + 8, runs.begin() + 16, Id(2)), 8);
  EXPECT_EQ(runs[16], Id(1));
}

TEST_F(LeaseBookTest, FinalsAreLeasedAloneAndCommittedOnce) {
  Add({"a"});
  ASSERT_TRUE(book_->AddItems(Id(1), {FinalsOf({"a", "b"})}).ok());
  Add({"c"});
  const std::string worker = Enrol("gpu", "w");
  EXPECT_EQ(Lease(worker).items_size(), 1);
  const v1::LeaseReply lease = Lease(worker);
  ASSERT_EQ(lease.items_size(), 1);
  ASSERT_TRUE(lease.items(0).has_finals());
  v1::FinalsResult result;
  result.set_trial_id(lease.items(0).trial_id());
  result.add_entrants()->set_schedule("a");
  EXPECT_EQ(book_->JudgeFinals(ReturnOf(worker, lease.epoch()), result).kind, Kind::kInvalid);
  result.add_entrants()->set_schedule("b");
  EXPECT_EQ(book_->JudgeFinals(ReturnOf(worker, lease.epoch()), result).kind, Kind::kCommit);
  EXPECT_EQ(book_->CommittedFinals(Id(1), result.trial_id()), result.trial_id());
  EXPECT_EQ(book_->JudgeFinals(ReturnOf(worker, lease.epoch()), result).kind, Kind::kDuplicate);
}

TEST_F(LeaseBookTest, FinalsLostWithTheirWorkerComeBackUnderTheIdTheyWereAddedAs) {
  ASSERT_TRUE(book_->AddItems(Id(1), {FinalsOf({"a"})}).ok());
  const v1::LeaseReply first = Lease(Enrol("gpu", "w"));
  ASSERT_EQ(first.items_size(), 1);
  now_ += absl::Hours(1);
  book_->Expire(now_);
  const std::string worker = Enrol("gpu", "w");
  const v1::LeaseReply again = Lease(worker);
  ASSERT_EQ(again.items_size(), 1);
  EXPECT_NE(again.items(0).trial_id(), first.items(0).trial_id());
  v1::FinalsResult result;
  result.set_trial_id(again.items(0).trial_id());
  result.add_entrants()->set_schedule("a");
  EXPECT_EQ(book_->JudgeFinals(ReturnOf(worker, again.epoch()), result).kind, Kind::kCommit);
  EXPECT_EQ(book_->CommittedFinals(Id(1), result.trial_id()), first.items(0).trial_id());
  EXPECT_EQ(book_->CommittedFinals(Id(1), result.trial_id()), std::nullopt);
}

}  // namespace
}  // namespace tilewright
