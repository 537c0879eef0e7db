#include "search/shared_tuning.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/fakes/bowl_variant.h"
#include "tests/fakes/fake_tuning_client.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

FakeMeasurement Bowl(const std::string& schedule) { return {.seconds = BowlSeconds(schedule)}; }

// Three workloads, of which the second runs ten times as often.
class SharedTuningTest : public ::testing::Test {
 protected:
  SharedTuningTest()
      : path_((std::filesystem::temp_directory_path() /
               ("shared_tuning_test_" + Id::Random().ToHex() + ".db"))
                  .string()) {
    for (int n : {16, 32, 64}) {
      Names names;
      absl::StatusOr<Workload> workload =
          Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])",
                         {.sizes = absl::StrCat("m=64 n=", n, " k=64"), .types = "f32"}, &names);
      EXPECT_TRUE(workload.ok()) << workload.status();
      tasks_.push_back({.name = absl::StrCat("n", n),
                        .weight = n == 32 ? 10.0 : 1.0,
                        .workload = *workload,
                        .names = names,
                        .regime = {.at = workload->HighestSizes()}});
    }
    options_.each.trials = 64;
    options_.each.batch = 8;
    options_.each.model = "none";
    options_.each.run_finals = false;
    options_.floor = 16;
  }
  ~SharedTuningTest() override {
    for (const char* suffix : {"", "-wal", "-shm", ".lock"})
      std::filesystem::remove(path_ + suffix);
  }

  std::unique_ptr<FakeTuningClient> Client(
      std::function<FakeMeasurement(const std::string&)> measure = Bowl) {
    absl::StatusOr<std::unique_ptr<Database>> writer = Database::OpenWriter(path_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (const TuneTask& task : tasks_) EXPECT_TRUE(RegisterTask(**writer, task, target_).ok());
    auto client = std::make_unique<FakeTuningClient>(*std::move(writer), std::move(measure));
    absl::StatusOr<std::unique_ptr<Database>> reader = Database::OpenReader(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
    return client;
  }

  void ForgetLog(std::unique_ptr<FakeTuningClient> client) {
    reader_.reset();
    client.reset();
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
  }

  TunerContext Context(FakeTuningClient* client) {
    return {.client = client,
            .log = reader_.get(),
            .target = target_,
            .toolchain = "test",
            .variants = variants_,
            .stop = &stop_,
            .now = [client] { return client->steps ? client->now : absl::Now(); }};
  }

  // What became of each task; NotFound: nothing was said of it.
  std::vector<absl::StatusOr<TuneReport>> Tune(FakeTuningClient* client) {
    std::vector<absl::StatusOr<TuneReport>> reports(tasks_.size(), absl::NotFoundError("silent"));
    order_.clear();
    TuneShared(Context(client), tasks_, options_,
               {.progress = {}, .ended = [&](size_t task, absl::StatusOr<TuneReport> report) {
                  order_.push_back(task);
                  reports[task] = std::move(report);
                }});
    return reports;
  }

  static int64_t Trials(const std::vector<absl::StatusOr<TuneReport>>& reports) {
    int64_t sum = 0;
    for (const auto& report : reports) sum += report.ok() ? report->trials : 0;
    return sum;
  }

  std::string path_;
  Target target_ = *FindTarget("cpu:x86-64-v3");
  std::vector<Variant> variants_ = BowlVariants();
  std::vector<TuneTask> tasks_;
  SharedTuning options_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Database> reader_;
  std::vector<size_t> order_;
};

TEST_F(SharedTuningTest, GivesEachTheFloorAndMoreToWhatRunsMoreOften) {
  std::unique_ptr<FakeTuningClient> client = Client();
  const std::vector<absl::StatusOr<TuneReport>> reports = Tune(client.get());
  for (const auto& report : reports) {
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_TRUE(report->share.has_value());
    const TaskShare& share = *report->share;
    EXPECT_EQ(share.floor, 16);
    EXPECT_EQ(report->trials, share.floor + share.gain + share.patrol);
    EXPECT_EQ(reader_->ListRuns({})->at(0).state, "finished");
  }
  EXPECT_EQ(Trials(reports), 3 * 64);
  EXPECT_GT(reports[1]->trials, reports[0]->trials);
  EXPECT_GT(reports[1]->trials, reports[2]->trials);
  EXPECT_EQ(reports[1]->share->weight, 10);
  EXPECT_THAT(order_, UnorderedElementsAre(0, 1, 2));
}

TEST_F(SharedTuningTest, SharesEquallyIfTheFloorIsEachOnesTrials) {
  options_.floor = 1000;
  std::unique_ptr<FakeTuningClient> client = Client();
  for (const auto& report : Tune(client.get())) {
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->trials, 64);
  }
}

TEST_F(SharedTuningTest, HoldsTheFinalsOfEveryWorkload) {
  options_.each.run_finals = true;
  std::unique_ptr<FakeTuningClient> client = Client();
  for (const auto& report : Tune(client.get())) {
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->verdict.has_value());
  }
}

TEST_F(SharedTuningTest, EndsWhenEverySpaceIsUsedUp) {
  options_.each.trials = 600;
  std::unique_ptr<FakeTuningClient> client = Client();
  for (const auto& report : Tune(client.get())) {
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->trials, 512);
    EXPECT_TRUE(report->exhausted);
  }
}

TEST_F(SharedTuningTest, GivesTheTrialsOfOneThatFailsToTheOthers) {
  const std::string refused = tasks_[1].workload.key();
  variants_[0].applies = [refused](const Workload& workload, const Target&) {
    return workload.key() == refused ? absl::UnimplementedError("not this one") : absl::OkStatus();
  };
  std::unique_ptr<FakeTuningClient> client = Client();
  const std::vector<absl::StatusOr<TuneReport>> reports = Tune(client.get());
  EXPECT_FALSE(reports[1].ok());
  EXPECT_NE(reports[1].status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Trials(reports), 3 * 64);
}

TEST_F(SharedTuningTest, GoesOnWithEveryRunAfterAKill) {
  {
    std::unique_ptr<FakeTuningClient> client = Client();
    client->dies_after = 60;
    for (const auto& report : Tune(client.get())) EXPECT_FALSE(report.ok());
  }
  options_.resume = true;
  std::unique_ptr<FakeTuningClient> client = Client();
  const std::vector<absl::StatusOr<TuneReport>> reports = Tune(client.get());
  int64_t resumed = 0;
  for (const auto& report : reports) {
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_GT(report->share->resumed, 0);
    resumed += report->share->resumed;
  }
  EXPECT_EQ(resumed, 60);
  EXPECT_EQ(Trials(reports), 3 * 64);
  EXPECT_EQ(reader_->ListRuns({})->size(), 3);
}

TEST_F(SharedTuningTest, ReportsWhatWasBegunWhenStopped) {
  std::unique_ptr<FakeTuningClient> client = Client([&](const std::string& schedule) {
    stop_ = reader_ != nullptr && reader_->HighestTrialRow().value_or(0) >= 20;
    return Bowl(schedule);
  });
  const std::vector<absl::StatusOr<TuneReport>> reports = Tune(client.get());
  ASSERT_TRUE(reports[0].ok()) << reports[0].status();
  EXPECT_TRUE(reports[0]->interrupted);
  EXPECT_EQ(reports[0]->trials, 16);
  EXPECT_EQ(reports[2].status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SharedTuningTest, SaysWhatWasNotBegunWhenTheTimeWasOver) {
  options_.each.time_limit = absl::Nanoseconds(1);
  std::unique_ptr<FakeTuningClient> client = Client();
  for (const auto& report : Tune(client.get())) {
    EXPECT_EQ(report.status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(report.status().message()), HasSubstr("not begun"));
  }
}

TEST_F(SharedTuningTest, EndsInTimeWithoutAWorker) {
  std::unique_ptr<FakeTuningClient> client = Client();
  client->has_worker = false;
  options_.each.time_limit = absl::Milliseconds(200);
  options_.each.build_timeout = options_.each.run_timeout = absl::Milliseconds(1);
  for (const auto& report : Tune(client.get())) {
    EXPECT_TRUE(!report.ok() || report->trials == 0);
  }
  EXPECT_THAT(order_, UnorderedElementsAre(0, 1, 2));
}

// Steps as on a CPU: kSlack times as long from `slow_after` on.
std::function<StepTimes()> Steps(const FakeTuningClient* client, absl::Time slow_after) {
  return [=] {
    const int slower = client->now >= slow_after ? kSlack : 1;
    return StepTimes{slower * absl::Seconds(2), slower * absl::Milliseconds(300),
                     slower * absl::Milliseconds(120)};
  };
}

TEST_F(SharedTuningTest, HoldsTheTimeLimitThoughEveryStepSlowsDown) {
  options_.each.run_finals = true;
  options_.each.strategy = "random";
  options_.each.trials = 100000;
  for (int limit : {60, 150}) {
    for (int slow_after : {5, 15, 40, 55, 90, 120}) {
      if (slow_after >= limit) continue;
      std::unique_ptr<FakeTuningClient> client = Client();
      client->steps = Steps(client.get(), client->now + absl::Seconds(slow_after));
      options_.each.time_limit = absl::Seconds(limit);
      const absl::Time end = client->now + options_.each.time_limit;
      for (const auto& report : Tune(client.get())) {
        ASSERT_TRUE(report.ok()) << report.status() << ", limit " << limit;
        EXPECT_TRUE(report->verdict.has_value());
      }
      EXPECT_LE(client->now, end) << "limit " << limit << ", slow after " << slow_after;
      ForgetLog(std::move(client));
    }
  }
}

TEST_F(SharedTuningTest, UsesTheTimeLimitWhereNothingSlowsDown) {
  options_.each.run_finals = true;
  options_.each.strategy = "random";
  options_.each.trials = 100000;
  options_.each.time_limit = absl::Seconds(200);
  std::unique_ptr<FakeTuningClient> client = Client();
  client->steps = Steps(client.get(), absl::InfiniteFuture());
  const absl::Time began = client->now;
  const std::vector<absl::StatusOr<TuneReport>> reports = Tune(client.get());
  EXPECT_GT(Trials(reports), 250);  // of 666 without finals and sessions
  EXPECT_LE(client->now - began, options_.each.time_limit);
}

TEST_F(SharedTuningTest, HoldsWholeFinalsWhereTrialsLeaveTheTimeForThem) {
  options_.each.run_finals = true;
  options_.each.trials = options_.floor = 32;
  std::vector<std::string> unlimited;
  for (const absl::Duration limit : {absl::InfiniteDuration(), absl::Seconds(90)}) {
    options_.each.time_limit = limit;
    std::unique_ptr<FakeTuningClient> client = Client();
    client->steps = Steps(client.get(), absl::InfiniteFuture());
    for (const auto& report : Tune(client.get())) ASSERT_TRUE(report.ok()) << report.status();
    std::vector<std::string> finals;
    for (const v1::Finals& request : client->finals) {
      finals.push_back(absl::StrCat(request.schedules_size(), " schedules, ", request.rounds(),
                                    " rounds, idle ", request.idle_ms(), " ms"));
    }
    if (unlimited.empty()) unlimited = finals;
    EXPECT_EQ(finals, unlimited);
    ForgetLog(std::move(client));
  }
}

TEST_F(SharedTuningTest, EndsEachRunInItsFirstSessionWhereTheTimeIsShort) {
  options_.each.run_finals = true;
  options_.each.effort = "quick";
  options_.each.time_limit = absl::Seconds(20);
  std::unique_ptr<FakeTuningClient> client = Client();
  client->steps = Steps(client.get(), absl::InfiniteFuture());
  for (const auto& report : Tune(client.get())) {
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_GE(report->trials, LeastFirstBatch(options_.each));
    EXPECT_TRUE(report->verdict.has_value());
  }
  EXPECT_EQ(client->openings, 3);
}

TEST_F(SharedTuningTest, ARunInPartsProposesWhatItDoesInOne) {
  options_.each.model = TuneOptions{}.model;
  options_.each.use_log = false;
  std::vector<std::string> whole;
  {
    std::unique_ptr<FakeTuningClient> client = Client();
    ASSERT_TRUE(TuneWorkload(Context(client.get()), tasks_[0], options_.each).ok());
    whole = client->proposed;
  }
  std::filesystem::remove(path_);
  std::unique_ptr<FakeTuningClient> client = Client();
  const TunerContext context = Context(client.get());
  absl::StatusOr<std::unique_ptr<TuningRun>> run =
      TuningRun::Begin(context, tasks_[0], options_.each, std::nullopt);
  ASSERT_TRUE(run.ok()) << run.status();
  for (int64_t trials : {8, 40, 40, 64}) {
    ASSERT_TRUE((*run)->Screen(trials, absl::InfiniteFuture).ok());
    EXPECT_EQ((*run)->trials(), trials);
  }
  const absl::StatusOr<TuneReport> report =
      (*run)->Finish(absl::OkStatus(), absl::InfiniteFuture());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->trials, 64);
  EXPECT_EQ(report->phases.size(), 2);
  EXPECT_EQ(client->proposed, whole);
}

}  // namespace
}  // namespace tilewright
