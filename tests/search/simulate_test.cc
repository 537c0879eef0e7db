#include "search/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "search/model_surrogate.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kCache[] = TILEWRIGHT_TEST_DATA "/recorded_cache.json";

const RecordedSpace& Space() {
  static const auto* file = new absl::StatusOr<RecordedFile>(ReadRecordedFile(kCache, {}));
  return *(*file)->space;
}

std::vector<SimulatedRun> RunsWith(const std::string& strategy, const SimulateOptions& options) {
  const absl::StatusOr<std::vector<SimulatedRun>> runs =
      Simulate(Space(), *ParseStrategy(strategy), options);
  EXPECT_TRUE(runs.ok()) << runs.status();
  return runs.ok() ? *runs : std::vector<SimulatedRun>();
}

std::string Lines(const std::vector<SimulatedRun>& runs) {
  std::string lines;
  for (const SimulatedRun& run : runs) lines += RunLine(Space(), "s", run) + "\n";
  return lines;
}

class EveryStrategyOnRecords : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryStrategyOnRecords, EvaluatesTheWholeSpaceOnceAndStops) {
  for (const SimulatedRun& run : RunsWith(GetParam(), {.trials = 1000, .seeds = 2})) {
    std::set<absl::uint128> seen;
    for (const SimulatedEvaluation& evaluation : run.evaluations) {
      EXPECT_TRUE(seen.insert(evaluation.index).second);
      EXPECT_EQ(evaluation.milliseconds, Space().configuration(evaluation.index).milliseconds);
    }
    EXPECT_EQ(seen.size(), 304);
  }
}

TEST_P(EveryStrategyOnRecords, RunsAlikeForTheSameSeedWhateverTheThreads) {
  const std::string once = Lines(RunsWith(GetParam(), {.trials = 70, .seeds = 5, .jobs = 1}));
  EXPECT_EQ(once, Lines(RunsWith(GetParam(), {.trials = 70, .seeds = 5, .jobs = 3})));
  EXPECT_THAT(once,
              HasSubstr(Lines(RunsWith(GetParam(), {.trials = 70, .seeds = 1, .first_seed = 3}))));
  EXPECT_NE(once, Lines(RunsWith(GetParam(), {.trials = 70, .seeds = 5, .first_seed = 6})));
}

TEST_P(EveryStrategyOnRecords, TakesBatchesOfAnySizeAndStopsAtTheTrials) {
  for (int batch : {1, 7, 16, 100}) {
    for (const SimulatedRun& run : RunsWith(GetParam(), {.trials = 50, .seeds = 1, .batch = batch}))
      EXPECT_EQ(run.evaluations.size(), 50) << batch;
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const StrategyRow& row : AllStrategies()) names.push_back(row.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, EveryStrategyOnRecords, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

TEST(Simulate, WritesALineOfTimesAndKeysInOrder) {
  SimulatedRun run{.seed = 7};
  for (const char* key : {"16,1,False,row,0.5", "16,8,True,row,0.5"}) {
    const absl::uint128 index = *Space().IndexOfKey(key);
    run.evaluations.push_back({index, Space().configuration(index).milliseconds});
  }
  EXPECT_EQ(RunLine(Space(), "random", run),
            R"({"strategy":"random","seed":7,"evals":[[2.458682,"16,1,False,row,0.5"],)"
            R"([null,"16,8,True,row,0.5"]]})");
}

// Remembers what it was trained on.
class RememberingSurrogate : public LearningSurrogate {
 public:
  explicit RememberingSurrogate(std::vector<Result>* seen) : seen_(seen) {}
  absl::Status Train(absl::Span<const Result> results) override {
    seen_->assign(results.begin(), results.end());
    return absl::OkStatus();
  }
  std::vector<double> Score(absl::Span<const absl::uint128> indices) override {
    return std::vector<double>(indices.size(), 0);
  }
  std::vector<double> BoundSeconds(absl::Span<const absl::uint128> indices) override {
    return std::vector<double>(indices.size(), 1);
  }
  bool trained() const override { return !seen_->empty(); }

 private:
  std::vector<Result>* seen_;
};

TEST(Simulate, CostsAreRelativeToTheFirstThatDidNotFail) {
  std::vector<Result> seen;
  SimulateOptions options{.trials = 64, .seeds = 1, .batch = 16};
  options.make_surrogate = [&](const RecordedSpace&, uint64_t) {
    return std::make_unique<RememberingSurrogate>(&seen);
  };
  options.beginning.starts = {*Space().IndexOfKey("16,8,True,row,0.5"),
                              *Space().IndexOfKey("16,1,False,row,0.5")};
  const std::vector<SimulatedRun> runs = RunsWith("evolutionary", options);
  ASSERT_EQ(seen.size(), 48);  // the last batch teaches nobody
  EXPECT_EQ(seen[0].cost, std::nullopt);
  EXPECT_EQ(seen[1].cost, 1);
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].index, runs[0].evaluations[i].index);
    if (seen[i].cost) {
      EXPECT_DOUBLE_EQ(*seen[i].cost, *runs[0].evaluations[i].milliseconds / 2.458682);
    }
  }
}

TEST(Simulate, AGuidedRunOpensWithEveryVariantThoughARecordedSpaceHasNoBound) {
  std::vector<RecordedConfiguration> configurations;
  for (int i = 0; i < 400; ++i) {
    const std::string variant = i < 300 ? "many" : "few";
    configurations.push_back({.schedule = {variant, {{"d", absl::StrCat(i)}}},
                              .key = absl::StrCat(i),
                              .milliseconds = 1.0 + i % 7});
  }
  const absl::StatusOr<std::unique_ptr<RecordedSpace>> space =
      RecordedSpace::Make(std::move(configurations));
  ASSERT_TRUE(space.ok()) << space.status();
  const std::unique_ptr<LearningSurrogate> surrogate =
      *NewDecisionSurrogate(space->get(), 1, "xgboost");
  EXPECT_THAT(surrogate->BoundSeconds(std::vector<absl::uint128>{0, 399}),
              ::testing::Each(std::numeric_limits<double>::infinity()));
  SimulateOptions options{.trials = 8, .seeds = 1};
  options.make_surrogate = [](const RecordedSpace& recorded, uint64_t seed) {
    return NewDecisionSurrogate(&recorded, seed, "xgboost");
  };
  const auto runs = Simulate(**space, *ParseStrategy("evolutionary{initial=8}"), options);
  ASSERT_TRUE(runs.ok()) << runs.status();
  int few = 0;
  for (const SimulatedEvaluation& evaluation : runs->front().evaluations)
    few += (*space)->At(evaluation.index).variant == "few";
  EXPECT_EQ(few, 4);  // log2(101) of log2(301) + log2(101) parts of 8 are 3.6
}

TEST(Simulate, EachSeedHasASurrogateOfItsOwnAndItsFailureIsTheRuns) {
  std::mutex mutex;
  std::set<uint64_t> seeds;
  SimulateOptions options{.trials = 20, .seeds = 3, .first_seed = 5};
  options.make_surrogate =
      [&](const RecordedSpace&,
          uint64_t seed) -> absl::StatusOr<std::unique_ptr<LearningSurrogate>> {
    const std::lock_guard<std::mutex> lock(mutex);
    seeds.insert(seed);
    if (seed == 6) return absl::InternalError("no model today");
    return std::unique_ptr<LearningSurrogate>();
  };
  const auto runs = Simulate(Space(), *ParseStrategy("random"), options);
  EXPECT_THAT(std::string(runs.status().message()), StartsWith("no model today"));
  EXPECT_EQ(seeds, (std::set<uint64_t>{5, 6, 7}));
}

TEST(Simulate, TheSearchSeesTheReadings) {
  SimulateOptions options{.trials = 30, .seeds = 1};
  options.reading = [](const RecordedConfiguration& configuration, std::mt19937_64&) {
    return 2 * *configuration.milliseconds;
  };
  const std::vector<SimulatedRun> runs = RunsWith("random", options);
  for (const SimulatedEvaluation& evaluation : runs[0].evaluations) {
    const std::optional<double> recorded = Space().configuration(evaluation.index).milliseconds;
    EXPECT_EQ(evaluation.milliseconds.has_value(), recorded.has_value());
    EXPECT_EQ(evaluation.milliseconds.value_or(0), 2 * recorded.value_or(0));
  }
}

TEST(Simulate, RefusesOptionsThatMakeNoSense) {
  EXPECT_FALSE(Simulate(Space(), *ParseStrategy("random"), {.trials = 0}).ok());
  EXPECT_FALSE(Simulate(Space(), *ParseStrategy("random"), {.seeds = 0}).ok());
  EXPECT_FALSE(Simulate(Space(), *ParseStrategy("random"), {.batch = 0}).ok());
  EXPECT_FALSE(Simulate(Space(), *ParseStrategy("random"), {.jobs = -1}).ok());
}

}  // namespace
}  // namespace tilewright
