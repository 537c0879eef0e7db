// A worker that is a process of its own, which dies in all the ways processes do, against the real
// coordinator.
#include "measure/local_worker.h"

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "db/rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "search/coordinator.h"
#include "tests/fakes/fake_workbench.h"
#include "tests/fakes/memory_sink.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

const std::string kRun(16, 'R');

class LocalWorkerTest : public ::testing::Test {
 protected:
  LocalWorkerTest() : directory_(*PrivateDirectory::Make()) {
    absl::StatusOr<std::unique_ptr<Coordinator>> started = Coordinator::Start(
        {.listen = {directory_->socket_address()}, .lease_time = absl::Seconds(2)},
        NewMemorySink(&log_));
    EXPECT_TRUE(started.ok()) << started.status();
    coordinator_ = *std::move(started);
    client_ = NewLocalTuningClient(coordinator_.get());
    EXPECT_TRUE(client_->StartRun(FakeRunSpec(kRun), kFakeToolchain, RunRow()).ok());
  }

  std::unique_ptr<LocalWorker> StartWorker(std::vector<std::string> flags = {}) {
    absl::StatusOr<std::unique_ptr<LocalWorker>> worker =
        LocalWorker::Start({.executable = FAKE_WORKER,
                            .address = directory_->socket_address(),
                            .flags = std::move(flags),
                            .restarts = 3});
    EXPECT_TRUE(worker.ok()) << worker.status();
    return *std::move(worker);
  }
  void Propose(const std::vector<std::string>& schedules) {
    EXPECT_TRUE(client_->Propose({kRun, schedules, 0, 0}).ok());
  }
  // By schedule: the kind of the failure, empty for a time.
  std::map<std::string, std::string> AwaitTrials(size_t count) {
    std::map<std::string, std::string> trials;
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (trials.size() < count && absl::Now() < end) {
      absl::StatusOr<std::vector<TuningEvent>> events =
          client_->NextResults(kRun, absl::Seconds(1));
      EXPECT_TRUE(events.ok()) << events.status();
      for (const TuningEvent& event : *events) {
        if (event.kind != TuningEvent::Kind::kTrial) continue;
        EXPECT_TRUE(trials.emplace(event.trial.schedule(), event.trial.failure().kind()).second);
      }
    }
    EXPECT_EQ(trials.size(), count);
    return trials;
  }
  static bool Await(const std::function<bool()>& condition) {
    for (int i = 0; i < 3000 && !condition(); ++i) absl::SleepFor(absl::Milliseconds(10));
    return condition();
  }

  MemoryLog log_;
  std::unique_ptr<PrivateDirectory> directory_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<TuningClient> client_;
};

TEST_F(LocalWorkerTest, WorksInAProcessOfItsOwn) {
  std::unique_ptr<LocalWorker> worker = StartWorker();
  Propose({"fake{us=1}", "fake{us=2}"});
  AwaitTrials(2);
  EXPECT_TRUE(worker->status().ok());
  EXPECT_EQ(worker->starts(), 1);
  const pid_t pid = worker->pid();
  EXPECT_EQ(getpgid(pid), pid);
  worker.reset();
  EXPECT_NE(kill(pid, 0), 0);
  EXPECT_EQ(client_->Stats(kRun)->live_enrolments, 0);  // it said good-bye
}

TEST_F(LocalWorkerTest, AKilledWorkerIsReplacedAndItsCandidateMeasuredOnce) {
  const std::string mark = directory_->path() + "/died";
  const std::string fatal = absl::StrCat("fake{us=2 die=", mark, "}");
  Propose({"fake{us=1}", fatal, "fake{us=3}", "fake{us=4}"});
  std::unique_ptr<LocalWorker> worker = StartWorker();
  const std::map<std::string, std::string> trials = AwaitTrials(4);
  EXPECT_EQ(trials.at(fatal), "");
  EXPECT_EQ(worker->starts(), 2);
  EXPECT_EQ(log_.trials().size(), 4u);
  EXPECT_TRUE(log_.late().empty());
}

TEST_F(LocalWorkerTest, ACandidateThatAlwaysKillsItsWorkerIsGivenUp) {
  Propose({"fake{us=1 die=always}", "fake{us=2}", "fake{us=3}"});
  std::unique_ptr<LocalWorker> worker = StartWorker();
  const std::map<std::string, std::string> trials = AwaitTrials(3);
  EXPECT_EQ(trials.at("fake{us=1 die=always}"), "worker lost");
  EXPECT_EQ(trials.at("fake{us=2}"), "");
  EXPECT_EQ(trials.at("fake{us=3}"), "");
  EXPECT_TRUE(Await([&] { return worker->starts() == 4; }));
  EXPECT_TRUE(worker->status().ok());
}

TEST_F(LocalWorkerTest, KilledFromOutsideAgainAndAgainNothingIsLostOrDoubled) {
  std::vector<std::string> schedules;
  for (int i = 0; i < 30; ++i)
    schedules.push_back(absl::StrCat("fake{us=", i + 1, " sleep_ms=20}"));
  Propose(schedules);
  std::unique_ptr<LocalWorker> worker = StartWorker();
  for (size_t done = 5; done <= 15; done += 5) {
    ASSERT_TRUE(Await([&] { return log_.trials().size() >= done && worker->pid() != 0; }));
    kill(worker->pid(), SIGKILL);
  }
  AwaitTrials(30);
  EXPECT_EQ(log_.trials().size(), 30u);
  for (const auto& [key, stored] : log_.trials()) EXPECT_FALSE(stored.result.has_failure());
}

TEST_F(LocalWorkerTest, AWorkerThatCanNotWorkIsNotStartedForEver) {
  std::unique_ptr<LocalWorker> worker = StartWorker({"--exit", "1"});
  ASSERT_TRUE(Await([&] { return !worker->status().ok(); }));
  EXPECT_EQ(worker->starts(), 4);
  EXPECT_THAT(std::string(worker->status().message()), HasSubstr("exited with status 1"));
  worker = StartWorker({"--exit", "70"});
  ASSERT_TRUE(Await([&] { return !worker->status().ok(); }));
  EXPECT_EQ(worker->starts(), 1);
}

TEST_F(LocalWorkerTest, SaysIfThereIsNoSuchProgram) {
  EXPECT_FALSE(
      LocalWorker::Start({.executable = "/nonexistent", .address = directory_->socket_address()})
          .ok());
}

TEST(PrivateDirectory, IsForThisUserAlone) {
  std::string path;
  {
    absl::StatusOr<std::unique_ptr<PrivateDirectory>> directory = PrivateDirectory::Make();
    ASSERT_TRUE(directory.ok());
    path = (*directory)->path();
    struct stat facts {};
    ASSERT_EQ(stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0700u);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tilewright
