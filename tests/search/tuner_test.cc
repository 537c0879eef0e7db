#include "search/tuner.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/fakes/bowl_variant.h"
#include "tests/fakes/fake_tuning_client.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

class TunerTest : public ::testing::Test {
 protected:
  TunerTest() {
    path_ =
        (std::filesystem::temp_directory_path() / ("tuner_test_" + Id::Random().ToHex() + ".db"))
            .string();
    absl::StatusOr<Workload> workload = Workload::Make(
        "C[m,n] = sum(k: A[m,k] * B[k,n])", {.sizes = "m=64 n=64 k=64", .types = "f32"}, &names_);
    EXPECT_TRUE(workload.ok()) << workload.status();
    workload_ = *std::move(workload);
  }
  ~TunerTest() override {
    for (const char* suffix : {"", "-wal", "-shm", ".lock"})
      std::filesystem::remove(path_ + suffix);
  }

  TuneTask Task() const {
    return {.name = "mm",
            .source = "matmul",
            .workload = *workload_,
            .names = names_,
            .regime = {.at = workload_->HighestSizes()}};
  }

  // The log's writer belongs to the client, as it does to a coordinator.
  std::unique_ptr<FakeTuningClient> Client(
      std::function<FakeMeasurement(const std::string&)> measure) {
    absl::StatusOr<std::unique_ptr<Database>> writer = Database::OpenWriter(path_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE(RegisterTask(**writer, Task(), target_).ok());
    auto client = std::make_unique<FakeTuningClient>(*std::move(writer), std::move(measure));
    absl::StatusOr<std::unique_ptr<Database>> reader = Database::OpenReader(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
    return client;
  }

  absl::StatusOr<TuneReport> Tune(FakeTuningClient* client, const TuneOptions& options,
                                  const std::optional<Id>& resume = std::nullopt) {
    const TunerContext context{
        .client = client,
        .log = reader_.get(),
        .target = target_,
        .toolchain = "test",
        .variants = variants_,
        .stop = &stop_,
        .now = [client] { return client->steps ? client->now : absl::Now(); }};
    return TuneWorkload(context, Task(), options, resume);
  }

  static TuneOptions Options(int64_t trials) {
    TuneOptions options;
    options.trials = trials;
    options.batch = 8;
    return options;
  }

  std::string path_;
  Names names_;
  std::optional<Workload> workload_;
  Target target_ = *FindTarget("cpu:x86-64-v3");
  std::vector<Variant> variants_ = BowlVariants();
  std::atomic<bool> stop_{false};
  std::unique_ptr<Database> reader_;
};

FakeMeasurement Bowl(const std::string& schedule) { return {.seconds = BowlSeconds(schedule)}; }

TEST_F(TunerTest, FindsTheBottomAndRecordsAVerdictOverTheDefault) {
  std::unique_ptr<FakeTuningClient> client = Client(Bowl);
  const absl::StatusOr<TuneReport> report = Tune(client.get(), Options(200));
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(report->verdict.has_value());
  EXPECT_EQ(report->verdict->winner_schedule, "test.bowl{x=5 y=5 z=5}");
  EXPECT_EQ(report->verdict->rival_schedule, "test.bowl{x=0 y=0 z=0}");
  EXPECT_EQ(report->verdict->outcome, "faster");
  EXPECT_EQ(report->verdict->winner_binary_digest, "binary of test.bowl{x=5 y=5 z=5}");
  EXPECT_EQ(report->trials, 200);
  const absl::StatusOr<BestAnswer> best =
      reader_->Best(workload_->key(), TargetKey(target_), Task().regime.ToString(*workload_));
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->verdicts.at(0).id, report->verdict->id);
}

TEST_F(TunerTest, ReplacesTheVerdictBeforeAndMeasuresRelativeToItsWinner) {
  {
    std::unique_ptr<FakeTuningClient> client = Client(Bowl);
    ASSERT_TRUE(Tune(client.get(), Options(200)).ok());
  }
  std::unique_ptr<FakeTuningClient> client = Client(Bowl);
  const absl::StatusOr<TuneReport> report = Tune(client.get(), Options(16));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(client->proposed.at(0), "test.bowl{x=5 y=5 z=5}");
  EXPECT_EQ(report->verdict->winner_schedule, "test.bowl{x=5 y=5 z=5}");
  EXPECT_EQ(report->verdict->replaces.size(), 1);
}

TEST_F(TunerTest, GoesOnAfterAKillAsIfNothingHadHappened) {
  std::vector<std::string> whole;
  {
    std::unique_ptr<FakeTuningClient> client = Client(Bowl);
    TuneOptions options = Options(96);
    options.run_finals = false;
    options.use_log = false;
    ASSERT_TRUE(Tune(client.get(), options).ok());
    whole = client->proposed;
  }
  std::filesystem::remove(path_);
  for (int killed_after : {1, 7, 8, 30, 64}) {
    std::vector<std::string> proposed;
    TuneOptions options = Options(96);
    options.run_finals = false;
    options.use_log = false;
    {
      std::unique_ptr<FakeTuningClient> client = Client(Bowl);
      client->dies_after = killed_after;
      EXPECT_FALSE(Tune(client.get(), options).ok());
      proposed = client->proposed;
    }
    std::unique_ptr<FakeTuningClient> client = Client(Bowl);
    const absl::StatusOr<std::optional<Id>> unfinished =
        FindUnfinishedRun(*reader_, Task(), target_);
    ASSERT_TRUE(unfinished.ok() && unfinished->has_value());
    const absl::StatusOr<TuneReport> report = Tune(client.get(), options, *unfinished);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->trials, 96);
    proposed.insert(proposed.end(), client->proposed.begin(), client->proposed.end());
    EXPECT_EQ(proposed, whole) << "killed after " << killed_after;
    reader_.reset();
    client.reset();
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
  }
}

TEST_F(TunerTest, PausesWhenTheFirstTwentyTrialsFailForOneReason) {
  std::unique_ptr<FakeTuningClient> client = Client(
      [](const std::string&) { return FakeMeasurement{.seconds = 1, .failure = "wrong output"}; });
  const absl::StatusOr<TuneReport> report = Tune(client.get(), Options(200));
  EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("wrong output: as the test says"));
  EXPECT_LE(client->proposed.size(), 24);
  EXPECT_EQ(reader_->ListRuns({})->at(0).state, "paused");
}

TEST_F(TunerTest, CountsFailuresByKindAndGoesOnAroundThem) {
  std::unique_ptr<FakeTuningClient> client = Client([](const std::string& schedule) {
    return FakeMeasurement{.seconds = BowlSeconds(schedule),
                           .failure = absl::StrContains(schedule, "x=5") ? "crashed" : ""};
  });
  const absl::StatusOr<TuneReport> report = Tune(client.get(), Options(200));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->failures.at("crashed"), 0);
  EXPECT_THAT(report->verdict->winner_schedule,
              ::testing::AnyOf("test.bowl{x=4 y=5 z=5}", "test.bowl{x=6 y=5 z=5}"));
}

TEST_F(TunerTest, EndsEarlyWhenTheSpaceIsUsedUp) {
  std::unique_ptr<FakeTuningClient> client = Client(Bowl);
  const absl::StatusOr<TuneReport> report = Tune(client.get(), Options(100000));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->exhausted);
  EXPECT_EQ(report->trials, 512);
}

TEST_F(TunerTest, MeasuresABatchAndDecidesHoweverShortTheTimeLimit) {
  std::unique_ptr<FakeTuningClient> client = Client(Bowl);
  TuneOptions options = Options(200);
  options.time_limit = absl::Nanoseconds(1);
  const absl::StatusOr<TuneReport> report = Tune(client.get(), options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GE(report->trials, 1);
  EXPECT_LE(report->trials, options.batch);
  EXPECT_TRUE(report->verdict.has_value());
}

TEST_F(TunerTest, HoldsTheTimeLimitThoughEveryStepSlowsDown) {
  TuneOptions options = Options(100000);
  options.strategy = "random";
  for (int limit : {40, 100}) {
    for (int slow_after : {5, 15, 30, 60, 80}) {
      if (slow_after >= limit) continue;
      std::unique_ptr<FakeTuningClient> client = Client(Bowl);
      const absl::Time began = client->now;
      client->steps = [&] {
        const int slower = client->now - began >= absl::Seconds(slow_after) ? kSlack : 1;
        return StepTimes{slower * absl::Seconds(2), slower * absl::Milliseconds(300),
                         slower * absl::Milliseconds(120)};
      };
      options.time_limit = absl::Seconds(limit);
      const absl::StatusOr<TuneReport> report = Tune(client.get(), options);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_TRUE(report->verdict.has_value());
      EXPECT_LE(client->now - began, options.time_limit)
          << "limit " << limit << ", slow after " << slow_after;
      reader_.reset();
      client.reset();
      for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
    }
  }
}

TEST_F(TunerTest, TheTimeLimitEndsARunWithoutAWorker) {
  std::unique_ptr<FakeTuningClient> client = Client(Bowl);
  client->has_worker = false;
  TuneOptions options = Options(200);
  options.time_limit = options.build_timeout = options.run_timeout = absl::Milliseconds(1);
  const absl::StatusOr<TuneReport> report = Tune(client.get(), options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->trials, 0);
  EXPECT_FALSE(report->verdict.has_value());
}

TEST_F(TunerTest, EndsWithTheBestSoFarWhenStopped) {
  std::unique_ptr<FakeTuningClient> client = Client([&](const std::string& schedule) {
    if (reader_ != nullptr && reader_->HighestTrialRow().value_or(0) >= 20) stop_ = true;
    return FakeMeasurement{.seconds = BowlSeconds(schedule)};
  });
  const absl::StatusOr<TuneReport> report = Tune(client.get(), Options(200));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->interrupted);
  EXPECT_LT(report->trials, 40);
  EXPECT_FALSE(report->verdict.has_value());
  EXPECT_EQ(reader_->ListRuns({})->at(0).state, "interrupted");
}

TEST_F(TunerTest, StartsFromNothingWhenAskedTo) {
  std::unique_ptr<FakeTuningClient> client = Client(Bowl);
  TuneOptions options = Options(16);
  options.use_starts = false;
  options.run_finals = false;
  ASSERT_TRUE(Tune(client.get(), options).ok());
  EXPECT_NE(client->proposed.at(0), "test.bowl{x=0 y=0 z=0}");
}

TEST(TuneOptions, ComeBackFromTheirJson) {
  TuneOptions options;
  options.strategy = "random";
  options.batch = 5;
  options.use_starts = false;
  options.run_timeout = absl::Seconds(3);
  const absl::StatusOr<TuneOptions> again = TuneOptions::FromJson(options.ToJson());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToJson(), options.ToJson());
  EXPECT_FALSE(TuneOptions::FromJson("{}").ok());
  EXPECT_FALSE(TuneOptions::FromJson("nonsense").ok());
}

}  // namespace
}  // namespace tilewright
