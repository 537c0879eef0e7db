#include "search/coordinator.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "db/rows.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "measure/measure.grpc.pb.h"
#include "measure/protocol.h"
#include "measure/worker.h"
#include "tests/fakes/fake_workbench.h"
#include "tests/fakes/memory_sink.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;
using Kind = TuningEvent::Kind;

const std::string kRun(16, 'R');

// A worker on a thread of its own.
class WorkerThread {
 public:
  WorkerThread(const std::string& address, WorkerParts parts, int batch = 8) : parts_(parts) {
    options_.address = address;
    options_.name = parts.device.uuid;
    options_.batch = batch;
    options_.give_up_after = absl::Seconds(20);
    options_.grace = absl::Seconds(1);
    thread_ = std::thread([this] { exit_ = RunWorker(options_, parts_, stop_, &error_); });
  }
  ~WorkerThread() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void RequestStop() { stop_ = true; }
  WorkerExit Stop() {
    RequestStop();
    return Join();
  }
  WorkerExit Join() {
    thread_.join();
    return exit_;
  }
  const std::string& error() const { return error_; }

 private:
  WorkerOptions options_;
  WorkerParts parts_;
  std::atomic<bool> stop_{false};
  WorkerExit exit_ = WorkerExit::kFailed;
  std::string error_;
  std::thread thread_;
};

class CoordinatorTest : public ::testing::Test {
 protected:
  CoordinatorTest() {
    std::string pattern = ::testing::TempDir() + "/coordXXXXXX";
    directory_ = mkdtemp(pattern.data());
    options_.listen = {"unix:" + directory_ + "/c.sock"};
    options_.lease_time = absl::Seconds(5);
    options_.sink_patience = absl::ZeroDuration();
  }
  ~CoordinatorTest() override {
    Shutdown();
    std::filesystem::remove_all(directory_);
  }

  void Start() {
    absl::StatusOr<std::unique_ptr<Coordinator>> started =
        Coordinator::Start(options_, NewMemorySink(&log_));
    ASSERT_TRUE(started.ok()) << started.status();
    coordinator_ = *std::move(started);
    client_ = NewLocalTuningClient(coordinator_.get());
    const absl::Status run = client_->StartRun(FakeRunSpec(kRun), kFakeToolchain, RunRow());
    ASSERT_TRUE(run.ok()) << run;
  }
  void Shutdown() {
    client_.reset();
    coordinator_.reset();
  }

  void Propose(const std::vector<std::string>& schedules) {
    const absl::Status proposed = client_->Propose({kRun, schedules, 0, 0});
    ASSERT_TRUE(proposed.ok()) << proposed;
  }

  // Collects events until `enough` of this kind are there.
  std::vector<TuningEvent> Await(Kind kind, int enough) {
    std::vector<TuningEvent> found;
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (static_cast<int>(found.size()) < enough && absl::Now() < end) {
      absl::StatusOr<std::vector<TuningEvent>> events =
          client_->NextResults(kRun, absl::Milliseconds(100));
      if (!events.ok()) {
        last_error_ = events.status();
        absl::SleepFor(absl::Milliseconds(20));
        continue;
      }
      for (TuningEvent& event : *events) {
        if (event.kind == kind) found.push_back(std::move(event));
      }
    }
    EXPECT_EQ(static_cast<int>(found.size()), enough);
    return found;
  }

  std::string address() const { return options_.listen[0]; }
  std::unique_ptr<v1::Coordinator::Stub> Stub() {
    return v1::Coordinator::NewStub(
        grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  }

  std::string directory_;
  CoordinatorOptions options_;
  MemoryLog log_;
  FakeBenchLog bench_log_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<TuningClient> client_;
  absl::Status last_error_;
};

std::vector<std::string> Schedules(int count, int first = 0) {
  std::vector<std::string> schedules;
  for (int i = 0; i < count; ++i)
    schedules.push_back(absl::StrCat("fake{us=", 100 + first + i, "}"));
  return schedules;
}

TEST_F(CoordinatorTest, EveryProposalBecomesOneTrial) {
  Start();
  WorkerThread worker(address(), FakeWorkerParts(0, &bench_log_));
  Propose(Schedules(20));
  const std::vector<TuningEvent> trials = Await(Kind::kTrial, 20);
  std::set<std::string> seen;
  for (const TuningEvent& event : trials) {
    seen.insert(event.trial.schedule());
    EXPECT_GT(event.trial.seconds(), 0);
    EXPECT_DOUBLE_EQ(event.trial.anchor_seconds(), 100e-6);
    EXPECT_EQ(event.device.device_uuid, "fake-device-0");
  }
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_EQ(log_.trials().size(), 20u);
  EXPECT_EQ(log_.proposals().size(), 1u);
  EXPECT_EQ(bench_log_.screens(), 20);
  const absl::StatusOr<TuningStats> stats = client_->Stats(kRun);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->trials, 20);
  EXPECT_EQ(stats->queued + stats->leased, 0);
  EXPECT_EQ(stats->live_enrolments, 1);
  EXPECT_EQ(worker.Stop(), WorkerExit::kDrained);
  ASSERT_TRUE(client_->EndRun(kRun, "finished").ok());
  EXPECT_EQ(log_.run_state(kRun), "finished");
}

TEST_F(CoordinatorTest, FailuresOfCandidatesAreTrials) {
  Start();
  WorkerThread worker(address(), FakeWorkerParts(0, nullptr));
  Propose({"fake{us=1 fail=wrong_output}", "fake{us=2 build=build_timeout}", "no schedule"});
  std::map<std::string, std::string> kinds;
  for (const TuningEvent& event : Await(Kind::kTrial, 3)) {
    kinds[event.trial.schedule()] = event.trial.failure().kind();
  }
  EXPECT_EQ(kinds["fake{us=1 fail=wrong_output}"], "wrong output");
  EXPECT_EQ(kinds["fake{us=2 build=build_timeout}"], "build timeout");
  EXPECT_EQ(kinds["no schedule"], "build failed");
}

TEST_F(CoordinatorTest, AHundredWorkersShareTheWork) {
  Start();
  Propose(Schedules(2000));
  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (int i = 0; i < 100; ++i) {
    workers.push_back(
        std::make_unique<WorkerThread>(address(), FakeWorkerParts(i, &bench_log_), 5));
  }
  std::set<std::string> seen;
  for (const TuningEvent& event : Await(Kind::kTrial, 2000)) seen.insert(event.trial.schedule());
  EXPECT_EQ(seen.size(), 2000u);
  EXPECT_EQ(log_.trials().size(), 2000u);
}

TEST_F(CoordinatorTest, AnAnswerLostAfterTheCommitIsNotStoredTwice) {
  Start();
  std::atomic<int> faults{5};
  log_.SetFault([&](bool after) {
    return after && faults-- > 0 ? absl::UnavailableError("the answer is lost") : absl::OkStatus();
  });
  WorkerThread worker(address(), FakeWorkerParts(0, &bench_log_));
  Propose(Schedules(20));
  std::map<std::string, int> seen;
  for (const TuningEvent& event : Await(Kind::kTrial, 20)) ++seen[event.trial.schedule()];
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_EQ(log_.trials().size(), 20u);
  EXPECT_TRUE(log_.late().empty());
  EXPECT_EQ(bench_log_.screens(), 20);
  absl::StatusOr<std::vector<TuningEvent>> more = client_->NextResults(kRun, absl::ZeroDuration());
  ASSERT_TRUE(more.ok());
  for (const TuningEvent& event : *more) EXPECT_NE(event.kind, Kind::kTrial);
}

TEST_F(CoordinatorTest, AFullDiskIsToldToTheTunerAndOverWithIt) {
  Start();
  std::atomic<bool> full{true};
  log_.SetFault([&](bool after) {
    return !after && full ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus();
  });
  WorkerThread worker(address(), FakeWorkerParts(0, &bench_log_));
  Propose(Schedules(5));
  absl::StatusOr<std::vector<TuningEvent>> events = std::vector<TuningEvent>();
  while (events.ok()) events = client_->NextResults(kRun, absl::Seconds(1));
  EXPECT_EQ(events.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(log_.trials().empty());
  full = false;
  Await(Kind::kTrial, 5);
  EXPECT_EQ(log_.trials().size(), 5u);
  EXPECT_EQ(bench_log_.screens(), 5);
}

TEST_F(CoordinatorTest, ARestartedCoordinatorTakesTheResultsOfTheEarlierOne) {
  Start();
  EXPECT_EQ(coordinator_->generation(), 1u);
  std::atomic<bool> refuse{true};
  log_.SetFault([&](bool after) {
    return !after && refuse ? absl::UnavailableError("refused") : absl::OkStatus();
  });
  WorkerThread worker(address(), FakeWorkerParts(0, &bench_log_));
  Propose(Schedules(4));
  while (bench_log_.screens() < 4) absl::SleepFor(absl::Milliseconds(5));
  Shutdown();
  refuse = false;
  Start();
  EXPECT_EQ(coordinator_->generation(), 2u);
  std::set<std::string> seen;
  for (const TuningEvent& event : Await(Kind::kTrial, 4)) seen.insert(event.trial.schedule());
  EXPECT_EQ(seen.size(), 4u);
  // The resumed tuner asks for what was proposed: it is there already.
  ASSERT_TRUE(client_->Requeue(kRun, Schedules(4)).ok());
  EXPECT_EQ(client_->Stats(kRun)->queued, 0);
  EXPECT_EQ(bench_log_.screens(), 4);
}

TEST_F(CoordinatorTest, ALateResultOfAnEarlierGenerationIsStoredAsLate) {
  Start();
  std::unique_ptr<v1::Coordinator::Stub> stub = Stub();
  v1::EnrolRequest enrol;
  enrol.set_protocol_version(kProtocolVersion);
  enrol.set_toolchain_id(kFakeToolchain);
  enrol.set_device_uuid("old");
  enrol.set_target_text(FakeTarget().ToString());
  enrol.set_worker_nonce(std::string(16, 'n'));
  auto call_enrol = [&] {
    grpc::ClientContext context;
    v1::EnrolReply reply;
    EXPECT_TRUE(stub->Enrol(&context, enrol, &reply).ok());
    return reply.enrolment_id();
  };
  Propose({"fake{us=100}"});
  v1::LeaseRequest lease_request;
  lease_request.set_enrolment_id(call_enrol());
  lease_request.set_max_items(1);
  v1::LeaseReply lease;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->Lease(&context, lease_request, &lease).ok());
    ASSERT_EQ(lease.items_size(), 1);
  }
  Shutdown();
  Start();
  {
    WorkerThread worker(address(), FakeWorkerParts(0, nullptr));
    Propose({"fake{us=100}"});
    Await(Kind::kTrial, 1);
  }
  v1::ReturnRequest request;
  stub = Stub();
  request.set_enrolment_id(call_enrol());
  request.set_run_id(kRun);
  *request.mutable_epoch() = lease.epoch();
  request.mutable_session()->set_session_id(std::string(16, 's'));
  v1::TrialResult* trial = request.add_trials();
  trial->set_trial_id(lease.items(0).trial_id());
  trial->set_schedule("fake{us=100}");
  trial->set_session_id(std::string(16, 's'));
  trial->set_seconds(1);
  trial->set_anchor_seconds(1);
  grpc::ClientContext context;
  v1::ReturnReply reply;
  const grpc::Status status = stub->Return(&context, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.fates(0), v1::ReturnReply::LATE);
  EXPECT_EQ(log_.late().size(), 1u);
  EXPECT_DOUBLE_EQ(log_.trials().at({kRun, "fake{us=100}"}).result.seconds(), 100e-6);
}

TEST_F(CoordinatorTest, AStoppedWorkerGivesBackWhatItHasNotBegun) {
  Start();
  Propose({"fake{us=1 sleep_ms=300}", "fake{us=2}", "fake{us=3}", "fake{us=4}"});
  WorkerThread first(address(), FakeWorkerParts(0, &bench_log_));
  while (bench_log_.screens() == 0) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(first.Stop(), WorkerExit::kDrained);
  EXPECT_EQ(first.error(), "");
  EXPECT_EQ(log_.trials().size(), 1u);
  EXPECT_EQ(client_->Stats(kRun)->queued, 3);
  EXPECT_EQ(client_->Stats(kRun)->live_enrolments, 0);
  WorkerThread second(address(), FakeWorkerParts(1, &bench_log_));
  Await(Kind::kTrial, 4);
  EXPECT_EQ(bench_log_.screens(), 4);
}

TEST_F(CoordinatorTest, DrainSendsTheWorkersHome) {
  Start();
  WorkerThread worker(address(), FakeWorkerParts(0, nullptr));
  Propose(Schedules(3));
  Await(Kind::kTrial, 3);
  coordinator_->Drain();
  EXPECT_EQ(worker.Join(), WorkerExit::kDrained);
  Await(Kind::kWorkerLost, 1);
}

TEST_F(CoordinatorTest, ATwinHasTheTimesOfItsKernelsFirstTrial) {
  Start();
  Propose({"fake{us=100 digest=d}", "fake{us=200 digest=d}", "fake{us=300 digest=d fail=crashed}"});
  WorkerThread worker(address(), FakeWorkerParts(0, &bench_log_));
  const std::vector<TuningEvent> trials = Await(Kind::kTrial, 3);
  ASSERT_EQ(trials.size(), 3u);
  for (const TuningEvent& event : trials) EXPECT_DOUBLE_EQ(event.trial.seconds(), 100e-6);
  EXPECT_EQ(trials[0].trial.same_as(), "");
  EXPECT_EQ(trials[1].trial.same_as(), trials[0].trial.trial_id());
  EXPECT_EQ(trials[2].trial.same_as(), trials[0].trial.trial_id());
  EXPECT_EQ(bench_log_.screens(), 1);
}

TEST_F(CoordinatorTest, FinalsComeBackRoundByRound) {
  Start();
  WorkerThread worker(address(), FakeWorkerParts(0, nullptr));
  v1::Finals finals;
  finals.add_schedules("fake{us=100}");
  finals.add_schedules("fake{us=90 build=build_failed}");
  finals.add_schedules("fake{us=80}");
  finals.set_rounds(6);
  const absl::StatusOr<std::string> id = client_->Finals(kRun, finals);
  ASSERT_TRUE(id.ok()) << id.status();
  const std::vector<TuningEvent> events = Await(Kind::kFinals, 1);
  ASSERT_EQ(events.size(), 1u);
  const v1::FinalsResult& result = events[0].finals;
  EXPECT_EQ(result.trial_id(), *id);
  ASSERT_EQ(result.entrants_size(), 3);
  EXPECT_EQ(result.entrants(0).round_seconds_size(), 6);
  EXPECT_DOUBLE_EQ(result.entrants(0).round_seconds(0), 100e-6);
  EXPECT_EQ(result.entrants(1).failure().kind(), "build failed");
  EXPECT_DOUBLE_EQ(result.entrants(2).round_seconds(5), 80e-6);
}

TEST_F(CoordinatorTest, ARefusedWorkloadIsToldWithItsReason) {
  Start();
  FakeBenchLog refusing;
  refusing.open_session = [](const SessionSpec&) {
    return absl::FailedPreconditionError("no anchor passed: naive: wrong output");
  };
  WorkerThread worker(address(), FakeWorkerParts(0, &refusing));
  Propose(Schedules(3));
  const std::vector<TuningEvent> events = Await(Kind::kSession, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(events[0].session.refusal(), HasSubstr("naive: wrong output"));
  EXPECT_EQ(client_->Stats(kRun)->queued, 3);
  EXPECT_EQ(client_->Stats(kRun)->live_enrolments, 0);  // none that suits
}

TEST_F(CoordinatorTest, SessionsReportEveryTimingOfTheAnchor) {
  Start();
  WorkerThread worker(address(), FakeWorkerParts(0, nullptr));
  Propose(Schedules(65));
  Await(Kind::kTrial, 65);
  const std::map<std::string, v1::SessionReport> sessions = log_.sessions();
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions.begin()->second.anchor_seconds_size(), 3);  // at the start, after 30, after 60
  EXPECT_EQ(sessions.begin()->second.anchor_schedule(), "fake{us=100}");
  EXPECT_FALSE(sessions.begin()->second.anchor_is_fallback());
}

TEST_F(CoordinatorTest, ALostDeviceIsRetriedElsewhere) {
  Start();
  Propose({"fake{us=1 lost=1}", "fake{us=2}"});
  for (int i = 0; i < 3; ++i) {
    WorkerThread worker(address(), FakeWorkerParts(i, &bench_log_));
    EXPECT_EQ(worker.Join(), WorkerExit::kDeviceLost);
  }
  WorkerThread worker(address(), FakeWorkerParts(9, &bench_log_));
  std::map<std::string, std::string> failures;
  for (const TuningEvent& event : Await(Kind::kTrial, 2)) {
    failures[event.trial.schedule()] = event.trial.failure().kind();
  }
  EXPECT_EQ(failures["fake{us=1 lost=1}"], "device lost");
  EXPECT_EQ(failures["fake{us=2}"], "");
  EXPECT_EQ(bench_log_.screens("fake{us=1 lost=1}"), 3);
}

TEST_F(CoordinatorTest, OtherToolchainsAndTargetsWait) {
  Start();
  Propose(Schedules(3));
  WorkerParts other_toolchain = FakeWorkerParts(0, &bench_log_);
  other_toolchain.toolchain_id = "fake toolchain 2";
  WorkerParts other_target = FakeWorkerParts(1, &bench_log_);
  other_target.device.target.cores = 64;
  WorkerThread first(address(), other_toolchain);
  WorkerThread second(address(), other_target);
  for (const TuningEvent& event : Await(Kind::kWorkerJoined, 2)) EXPECT_FALSE(event.suits_run);
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(bench_log_.screens(), 0);
  WorkerThread third(address(), FakeWorkerParts(2, &bench_log_));
  Await(Kind::kTrial, 3);
}

TEST_F(CoordinatorTest, ALaterWorkerOfADeviceSendsTheEarlierOneAway) {
  Start();
  WorkerThread first(address(), FakeWorkerParts(0, nullptr));
  Await(Kind::kWorkerJoined, 1);
  WorkerThread second(address(), FakeWorkerParts(0, nullptr));
  EXPECT_EQ(first.Join(), WorkerExit::kRetry);
  EXPECT_THAT(first.error(), HasSubstr("superseded"));
  Propose(Schedules(3));
  Await(Kind::kTrial, 3);
}

TEST_F(CoordinatorTest, ARowThatCanNeverBeStoredDoesNotHoldUpTheOthers) {
  Start();
  Propose({"poison{}"});
  Propose(Schedules(6));
  WorkerThread first(address(), FakeWorkerParts(0, &bench_log_), 1);
  WorkerThread second(address(), FakeWorkerParts(1, &bench_log_), 1);
  Await(Kind::kTrial, 6);
  EXPECT_EQ(log_.trials().size(), 6u);
  // It is tried three times, then the tuner is told that nothing will come of it.
  Await(Kind::kLate, 1);
  EXPECT_EQ(bench_log_.screens("poison{}"), 3);
}

TEST_F(CoordinatorTest, ACandidateThatTheLogHasATrialOfEndsAsLate) {
  Start();
  {
    WorkerThread worker(address(), FakeWorkerParts(0, nullptr));
    Propose(Schedules(1));
    Await(Kind::kTrial, 1);
  }
  Shutdown();
  Start();  // a tuner that does not know its log
  WorkerThread worker(address(), FakeWorkerParts(0, nullptr));
  Propose(Schedules(1));
  Await(Kind::kLate, 1);
  EXPECT_EQ(log_.trials().size(), 1u);
}

TEST_F(CoordinatorTest, RefusesGarbageAndStoresNothing) {
  Start();
  std::unique_ptr<v1::Coordinator::Stub> stub = Stub();
  v1::EnrolRequest enrol;
  v1::EnrolReply enrolled;
  auto try_enrol = [&] {
    grpc::ClientContext context;
    return stub->Enrol(&context, enrol, &enrolled);
  };
  EXPECT_EQ(try_enrol().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  enrol.set_toolchain_id(kFakeToolchain);
  enrol.set_device_uuid("u");
  enrol.set_target_text(FakeTarget().ToString());
  enrol.set_worker_nonce(std::string(16, 'n'));
  enrol.set_protocol_version(99);
  EXPECT_EQ(try_enrol().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(try_enrol().error_message(), HasSubstr("99"));
  enrol.set_protocol_version(kProtocolVersion);
  enrol.set_device_uuid(std::string(5000, 'u'));
  EXPECT_THAT(try_enrol().error_message(), HasSubstr("device_uuid"));
  enrol.set_device_uuid("u");
  ASSERT_TRUE(try_enrol().ok());

  v1::ReturnRequest request;
  v1::ReturnReply reply;
  auto give_back = [&] {
    grpc::ClientContext context;
    return stub->Return(&context, request, &reply);
  };
  request.set_enrolment_id(std::string(16, '?'));
  EXPECT_EQ(give_back().error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_enrolment_id(enrolled.enrolment_id());
  request.set_run_id(kRun);
  request.mutable_session()->set_session_id(std::string(16, 's'));
  v1::TrialResult* trial = request.add_trials();
  trial->set_trial_id(std::string(16, 't'));
  trial->set_session_id(std::string(16, 's'));
  trial->set_schedule("fake{us=1}");
  trial->set_anchor_seconds(1);
  trial->set_seconds(std::nan(""));
  EXPECT_THAT(give_back().error_message(), HasSubstr("trials[0].seconds"));
  trial->set_seconds(1);
  request.mutable_epoch()->set_generation(coordinator_->generation());
  EXPECT_EQ(give_back().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(give_back().error_message(), HasSubstr("never leased"));
  request.set_run_id(std::string(16, '?'));
  EXPECT_EQ(give_back().error_code(), grpc::StatusCode::ABORTED);
  trial->set_check(std::string(5 << 20, 'x'));
  EXPECT_EQ(give_back().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(log_.trials().empty());
  EXPECT_TRUE(log_.sessions().empty());
  EXPECT_EQ(log_.commits(), 0);
}

TEST_F(CoordinatorTest, RefusesProposalsItCouldNotSend) {
  Start();
  EXPECT_EQ(client_->Propose({kRun, {""}, 0, 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client_->Propose({std::string(16, '?'), {"fake{}"}, 0, 0}).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(client_->NextResults("?", absl::ZeroDuration()).status().code(),
            absl::StatusCode::kNotFound);
  v1::RunSpec spec = FakeRunSpec("short");
  EXPECT_EQ(client_->StartRun(spec, kFakeToolchain, RunRow()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(log_.proposals().empty());
}

TEST_F(CoordinatorTest, ServesOnlyThisMachineInPlaintext) {
  options_.listen = {"0.0.0.0:0"};
  const absl::Status status = Coordinator::Start(options_, NewMemorySink(&log_)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("TLS"));
  options_.listen = {"127.0.0.1:0"};
  absl::StatusOr<std::unique_ptr<Coordinator>> local =
      Coordinator::Start(options_, NewMemorySink(&log_));
  ASSERT_TRUE(local.ok());
  EXPECT_NE((*local)->addresses()[0], "127.0.0.1:0");
}

TEST_F(CoordinatorTest, StopsWithWorkersThatWaitForWork) {
  Start();
  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (int i = 0; i < 5; ++i) {
    workers.push_back(std::make_unique<WorkerThread>(address(), FakeWorkerParts(i, nullptr)));
  }
  Await(Kind::kWorkerJoined, 5);
  Shutdown();  // returns: no call is left open
  for (auto& worker : workers) worker->RequestStop();
  for (auto& worker : workers) EXPECT_EQ(worker->Join(), WorkerExit::kDrained);
}

TEST_F(CoordinatorTest, ASilentWorkersItemsGoToAnother) {
  options_.lease_time = absl::Milliseconds(200);
  Start();
  std::unique_ptr<v1::Coordinator::Stub> stub = Stub();
  v1::EnrolRequest enrol;
  enrol.set_protocol_version(kProtocolVersion);
  enrol.set_toolchain_id(kFakeToolchain);
  enrol.set_device_uuid("silent");
  enrol.set_target_text(FakeTarget().ToString());
  enrol.set_worker_nonce(std::string(16, 'n'));
  v1::EnrolReply enrolled;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->Enrol(&context, enrol, &enrolled).ok());
  }
  Propose(Schedules(3));
  v1::LeaseRequest lease;
  lease.set_enrolment_id(enrolled.enrolment_id());
  lease.set_max_items(8);
  v1::LeaseReply leased;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->Lease(&context, lease, &leased).ok());
  }
  ASSERT_EQ(leased.items_size(), 3);
  WorkerThread worker(address(), FakeWorkerParts(0, &bench_log_));
  Await(Kind::kTrial, 3);
  EXPECT_EQ(bench_log_.screens(), 3);
}

}  // namespace
}  // namespace tilewright
