#include "measure/worker.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "measure/coordinator_link.h"
#include "measure/lease_book.h"
#include "measure/measure.grpc.pb.h"
#include "measure/protocol.h"
#include "measure/worker_queue.h"
#include "tests/fakes/fake_workbench.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

const std::string kRun(16, 'R');

// A coordinator without a log: a lease book behind a lock, and a script of faults.
class ScriptedCoordinator : public v1::Coordinator::Service {
 public:
  explicit ScriptedCoordinator(const std::string& address) : book_(LeaseBook::Make({})) {
    EXPECT_TRUE(book_->AddRun(FakeRunSpec(kRun), kFakeToolchain).ok());
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedCoordinator() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  void Add(const std::vector<std::string>& schedules) {
    std::scoped_lock lock(mutex_);
    for (const std::string& schedule : schedules) {
      v1::WorkItem item;
      item.mutable_screen()->set_schedule(schedule);
      EXPECT_TRUE(book_->AddItems(kRun, {item}).ok());
    }
  }
  // Asked for the number of each Return before it is taken: an error is answered instead.
  std::function<grpc::Status(int)> on_return;
  std::function<grpc::Status(const v1::EnrolRequest&)> on_enrol;
  std::atomic<bool> drain{false};

  std::map<std::string, v1::TrialResult> AwaitResults(size_t count) {
    std::unique_lock lock(mutex_);
    results_came_.wait_for(lock, std::chrono::seconds(60),
                           [&] { return results_.size() >= count; });
    EXPECT_EQ(results_.size(), count);
    return results_;
  }
  void AwaitResult(const std::string& schedule) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(results_came_.wait_for(lock, std::chrono::seconds(60),
                                       [&] { return results_.contains(schedule); }));
  }
  int queued() {
    std::scoped_lock lock(mutex_);
    return book_->QueuedItems(kRun);
  }
  int returns() {
    std::scoped_lock lock(mutex_);
    return returns_;
  }

  grpc::Status Enrol(grpc::ServerContext*, const v1::EnrolRequest* request,
                     v1::EnrolReply* reply) override {
    if (on_enrol != nullptr) {
      grpc::Status status = on_enrol(*request);
      if (!status.ok()) return status;
    }
    std::scoped_lock lock(mutex_);
    reply->set_enrolment_id(book_->Enrol(*request, absl::Now()));
    reply->set_heartbeat_ms(50);
    return grpc::Status::OK;
  }
  grpc::Status Lease(grpc::ServerContext*, const v1::LeaseRequest* request,
                     v1::LeaseReply* reply) override {
    const absl::Time end = absl::Now() + absl::Milliseconds(50);
    do {
      std::scoped_lock lock(mutex_);
      absl::StatusOr<v1::LeaseReply> leased = book_->Lease(*request, absl::Now());
      if (!leased.ok()) return ToGrpc(leased.status());
      *reply = *std::move(leased);
      if (drain) reply->set_drain(true);
      if (reply->has_run() || drain) break;
    } while (absl::Now() < end && (absl::SleepFor(absl::Milliseconds(5)), true));
    return grpc::Status::OK;
  }
  grpc::Status Built(grpc::ServerContext*, const v1::BuiltRequest* request,
                     v1::BuiltReply* reply) override {
    std::scoped_lock lock(mutex_);
    *reply = book_->Built(*request);
    return grpc::Status::OK;
  }
  grpc::Status Renew(grpc::ServerContext*, const v1::RenewRequest* request,
                     v1::RenewReply* reply) override {
    std::scoped_lock lock(mutex_);
    absl::StatusOr<v1::RenewReply> renewed = book_->Renew(*request, absl::Now());
    if (!renewed.ok()) return ToGrpc(renewed.status());
    *reply = *std::move(renewed);
    return grpc::Status::OK;
  }
  grpc::Status Return(grpc::ServerContext*, const v1::ReturnRequest* request,
                      v1::ReturnReply* reply) override {
    std::scoped_lock lock(mutex_);
    if (on_return != nullptr) {
      grpc::Status status = on_return(returns_++);
      if (!status.ok()) return status;
    }
    EXPECT_TRUE(CheckRequest(*request).ok()) << CheckRequest(*request);
    for (const v1::TrialResult& result : request->trials()) {
      EXPECT_TRUE(results_.emplace(result.schedule(), result).second);
      book_->Committed(kRun, result, true);
      reply->add_fates(v1::ReturnReply::COMMITTED);
    }
    book_->Release(
        kRun, std::vector<std::string>(request->released().begin(), request->released().end()));
    if (request->leaving()) book_->Leave(request->enrolment_id());
    results_came_.notify_all();
    return grpc::Status::OK;
  }

 private:
  static grpc::Status ToGrpc(const absl::Status& status) {
    return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                        std::string(status.message()));
  }

  std::mutex mutex_;  // guards the book, the results and their number
  std::condition_variable results_came_;
  std::unique_ptr<LeaseBook> book_;
  std::map<std::string, v1::TrialResult> results_;
  int returns_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() {
    std::string pattern = ::testing::TempDir() + "/workerXXXXXX";
    directory_ = mkdtemp(pattern.data());
    options_.address = "unix:" + directory_ + "/c.sock";
    options_.name = "tester";
    options_.batch = 4;
    parts_ = std::make_unique<WorkerParts>(FakeWorkerParts(0, &log_));
  }
  ~WorkerTest() override {
    if (thread_.joinable()) Stop();
    std::filesystem::remove_all(directory_);
  }
  void Start() {
    thread_ = std::thread([this] { exit_ = RunWorker(options_, *parts_, stop_, &error_); });
  }
  WorkerExit Stop() {
    stop_ = true;
    return Join();
  }
  WorkerExit Join() {
    thread_.join();
    return exit_;
  }

  std::string directory_;
  WorkerOptions options_;
  FakeBenchLog log_;
  std::unique_ptr<WorkerParts> parts_;
  std::atomic<bool> stop_{false};
  WorkerExit exit_ = WorkerExit::kFailed;
  std::string error_;
  std::thread thread_;
};

TEST_F(WorkerTest, RefusesPlaintextToOtherMachines) {
  options_.address = "10.1.2.3:4000";
  EXPECT_EQ(RunWorker(options_, *parts_, stop_, &error_), WorkerExit::kBadInput);
  EXPECT_THAT(error_, HasSubstr("need TLS"));
}

TEST_F(WorkerTest, GivesUpWithoutACoordinator) {
  options_.give_up_after = absl::Milliseconds(200);
  EXPECT_EQ(RunWorker(options_, *parts_, stop_, &error_), WorkerExit::kCoordinatorGone);
  EXPECT_THAT(error_, HasSubstr("no coordinator for 200ms"));
}

TEST_F(WorkerTest, EndsWithItsWorkbenchesReason) {
  parts_->make_workbench = []() -> absl::StatusOr<std::unique_ptr<Workbench>> {
    return absl::UnavailableError("no device");
  };
  EXPECT_EQ(RunWorker(options_, *parts_, stop_, &error_), WorkerExit::kDeviceLost);
  EXPECT_EQ(error_, "no device");
}

TEST_F(WorkerTest, EndsIfItsVersionIsNotSpoken) {
  ScriptedCoordinator coordinator(options_.address);
  coordinator.on_enrol = [](const v1::EnrolRequest&) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "speaks 3 and 2");
  };
  EXPECT_EQ(RunWorker(options_, *parts_, stop_, &error_), WorkerExit::kBadInput);
  EXPECT_EQ(error_, "speaks 3 and 2");
}

TEST_F(WorkerTest, TellsWhatItIs) {
  ScriptedCoordinator coordinator(options_.address);
  v1::EnrolRequest seen;
  coordinator.on_enrol = [&](const v1::EnrolRequest& request) {
    seen = request;
    return grpc::Status::OK;
  };
  coordinator.drain = true;
  EXPECT_EQ(RunWorker(options_, *parts_, stop_, &error_), WorkerExit::kDrained);
  EXPECT_TRUE(CheckRequest(seen).ok());
  EXPECT_EQ(seen.worker_name(), "tester");
  EXPECT_EQ(seen.device_uuid(), "fake-device-0");
  EXPECT_EQ(seen.timer(), "clock");
}

TEST_F(WorkerTest, MeasuresWhatItLeases) {
  ScriptedCoordinator coordinator(options_.address);
  coordinator.Add({"fake{us=1}", "fake{us=2}", "fake{us=3 fail=crashed}",
                   "fake{us=4 build=build_failed}", "fake{us=5}"});
  Start();
  std::map<std::string, v1::TrialResult> results = coordinator.AwaitResults(5);
  EXPECT_DOUBLE_EQ(results["fake{us=2}"].seconds(), 2e-6);
  EXPECT_DOUBLE_EQ(results["fake{us=2}"].anchor_seconds(), 100e-6);
  EXPECT_EQ(results["fake{us=2}"].samples_seconds_size(), 2);
  EXPECT_EQ(results["fake{us=2}"].facts().resources(0).name(), "code_bytes");
  EXPECT_GT(results["fake{us=2}"].measured_unix_ns(), 0u);
  EXPECT_EQ(results["fake{us=3 fail=crashed}"].failure().text(), "scripted: crashed");
  EXPECT_EQ(results["fake{us=4 build=build_failed}"].failure().kind(), "build failed");
  EXPECT_EQ(Stop(), WorkerExit::kDrained);
}

TEST_F(WorkerTest, BuildsTheNextLeaseWhileItMeasuresWhereTheWorkbenchCan) {
  for (const bool ahead : {false, true}) {
    FakeBenchLog log;
    log.builds_ahead = ahead;
    const WorkerParts parts = FakeWorkerParts(0, &log);
    std::atomic<bool> stop{false};
    std::string error;
    std::map<std::string, v1::TrialResult> results;
    WorkerExit exit = WorkerExit::kFailed;
    {
      ScriptedCoordinator coordinator(options_.address);
      std::vector<std::string> schedules;
      for (int us = 1; us <= 16; ++us) {
        schedules.push_back(absl::StrCat("fake{us=", us, " sleep_ms=20}"));
      }
      coordinator.Add(schedules);
      std::thread worker([&] { exit = RunWorker(options_, parts, stop, &error); });
      results = coordinator.AwaitResults(16);
      stop = true;
      worker.join();
    }
    EXPECT_EQ(exit, WorkerExit::kDrained) << error;
    EXPECT_DOUBLE_EQ(results["fake{us=7 sleep_ms=20}"].seconds(), 7e-6);
    // Leases of 4: without building ahead, no more than those are built and unmeasured.
    if (ahead) {
      EXPECT_GT(log.most_built_ahead(), 4);
    } else {
      EXPECT_LE(log.most_built_ahead(), 4);
    }
  }
}

TEST_F(WorkerTest, GivesBackWhatItBuiltAheadWhenItStops) {
  log_.builds_ahead = true;
  ScriptedCoordinator coordinator(options_.address);
  std::vector<std::string> schedules;
  for (int us = 1; us <= 16; ++us) {
    schedules.push_back(absl::StrCat("fake{us=", us, " sleep_ms=100}"));
  }
  coordinator.Add(schedules);
  Start();
  coordinator.AwaitResults(1);
  EXPECT_EQ(Stop(), WorkerExit::kDrained);
  // All is either measured or leased out no more.
  EXPECT_EQ(coordinator.queued() + log_.screens(), 16);
}

TEST_F(WorkerTest, KeepsResultsUntilTheyAreAcknowledged) {
  ScriptedCoordinator coordinator(options_.address);
  coordinator.on_return = [](int number) {
    return number < 5 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the log is full")
                      : grpc::Status::OK;
  };
  coordinator.Add({"fake{us=1}", "fake{us=2}", "fake{us=3}"});
  Start();
  coordinator.AwaitResults(3);
  EXPECT_GE(coordinator.returns(), 6);
  EXPECT_EQ(log_.screens(), 3);
  EXPECT_EQ(Stop(), WorkerExit::kDrained);
}

TEST_F(WorkerTest, DropsWhatIsRefusedAndGoesOn) {
  ScriptedCoordinator coordinator(options_.address);
  coordinator.on_return = [](int number) {
    return number == 0 ? grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "trials[0].seconds")
                       : grpc::Status::OK;
  };
  options_.batch = 1;
  coordinator.Add({"fake{us=1}", "fake{us=2}"});
  Start();
  coordinator.AwaitResults(2);  // the refused one too: it is leased again
  EXPECT_EQ(Stop(), WorkerExit::kDrained);
}

TEST_F(WorkerTest, FindsACoordinatorThatWasRestarted) {
  auto first = std::make_unique<ScriptedCoordinator>(options_.address);
  first->Add({"fake{us=1}"});
  Start();
  first->AwaitResult("fake{us=1}");
  first.reset();
  ScriptedCoordinator second(options_.address);
  second.Add({"fake{us=2}"});
  // The first result may come again too: its acknowledgement may have been lost with the first
  // coordinator.
  second.AwaitResult("fake{us=2}");
  EXPECT_EQ(Stop(), WorkerExit::kDrained);
}

TEST_F(WorkerTest, StopsWhileNothingIsToBeDone) {
  ScriptedCoordinator coordinator(options_.address);
  Start();
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(Stop(), WorkerExit::kDrained);
  EXPECT_EQ(error_, "");
}

v1::ReturnRequest ResultOf(int item, uint64_t counter) {
  v1::ReturnRequest request;
  request.set_run_id(kRun);
  request.mutable_epoch()->set_counter(counter);
  request.mutable_session()->set_session_id(std::string(16, 's'));
  request.add_trials()->set_schedule(absl::StrCat(item));
  return request;
}

TEST(WorkerQueue, ReturnsTogetherWhatIsOfOneLease) {
  WorkerQueue queue;
  queue.Post(ResultOf(1, 7));
  queue.Post(ResultOf(2, 7));
  queue.Post(ResultOf(3, 8));
  v1::ReturnRequest request;
  ASSERT_TRUE(queue.AwaitOutgoing(&request));
  EXPECT_EQ(request.trials_size(), 2);
  queue.Post(ResultOf(4, 8));
  ASSERT_TRUE(queue.AwaitOutgoing(&request));  // not acknowledged: the same again
  EXPECT_EQ(request.trials_size(), 2);
  queue.Acknowledge();
  ASSERT_TRUE(queue.AwaitOutgoing(&request));
  EXPECT_EQ(request.trials_size(), 2);
  EXPECT_EQ(request.trials(0).schedule(), "3");
  queue.Acknowledge();
  EXPECT_TRUE(queue.AwaitEmpty(absl::ZeroDuration()));
}

TEST(WorkerQueue, HoldsALeaseUntilItsLastItemIsAcknowledged) {
  WorkerQueue queue;
  v1::LeaseReply lease;
  lease.mutable_epoch()->set_counter(7);
  lease.add_items();
  lease.add_items();
  queue.AddLease(lease);
  ASSERT_TRUE(queue.TakeLease(absl::ZeroDuration()).has_value());
  queue.Post(ResultOf(1, 7));
  v1::ReturnRequest request;
  ASSERT_TRUE(queue.AwaitOutgoing(&request));
  queue.Acknowledge();
  EXPECT_EQ(queue.Held().size(), 1u);
  queue.MarkLost(lease.epoch());
  EXPECT_TRUE(queue.IsLost(lease.epoch()));
  queue.Drop(lease.epoch(), 1);
  EXPECT_TRUE(queue.Held().empty());
  EXPECT_FALSE(queue.IsLost(lease.epoch()));
}

TEST(Backoff, StaysWithinItsBounds) {
  Backoff backoff(absl::Milliseconds(50), absl::Seconds(5));
  for (int i = 0; i < 50; ++i) {
    const absl::Duration pause = backoff.Next();
    EXPECT_GE(pause, absl::ZeroDuration());
    EXPECT_LE(pause, absl::Seconds(5));
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(50));
}

}  // namespace
}  // namespace tilewright
