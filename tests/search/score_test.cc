#include "search/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "search/strategy.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// A space and runs on it, with repeats, a key that is not in it, a time that is not its, and runs
// that begin with failures.
constexpr char kCache[] = TILEWRIGHT_TEST_DATA "/recorded_cache.json";
constexpr char kRuns[] = TILEWRIGHT_TEST_DATA "/recorded_runs.jsonl";

const RecordedSpace& Space() {
  static const auto* file = new absl::StatusOr<RecordedFile>(ReadRecordedFile(kCache, {}));
  return *(*file)->space;
}

// What an independent program, written in another language, prints for these files.
struct Expected {
  const char* strategy;
  int seeds;
  double evaluations, p, pmean, pcal, at25, interval25, at50, interval50, failed;
  double hit5, hit1;
  std::optional<double> to5, to1;
  int64_t unknown, differing;
};
constexpr Expected kExpected60[] = {
    {"walk",
     5,
     56,
     0.26787330945849297,
     0.2693497590082435,
     0.3151722974412298,
     0.8859672052548934,
     0.1333169175200357,
     0.9494218864367323,
     0.04681358311764789,
     0.13818181818181818,
     0.4,
     0.2,
     {},
     {},
     1,
     1},
    {"late",
     4,
     34,
     -0.16327227322123966,
     -0.2654143323984985,
     -0.1827011020549599,
     0.918420309885198,
     0.12585937721543924,
     0.918420309885198,
     0.12585937721543924,
     0.27007299270072993,
     0.5,
     0.25,
     {},
     {},
     0,
     0},
    {"single", 1, 25, 0.47826524962209493, 0.47826524962209493, 0.4818286783910318, 1, -1, 1, -1,
     0.16, 1, 1, 20, 20, 0, 0},
};

void ExpectScore(const StrategyScore& score, const Expected& expected) {
  SCOPED_TRACE(expected.strategy);
  EXPECT_EQ(score.strategy, expected.strategy);
  EXPECT_EQ(score.seeds, expected.seeds);
  EXPECT_EQ(score.evaluations, expected.evaluations);
  EXPECT_EQ(score.budget, 85);
  EXPECT_NEAR(score.p, expected.p, 1e-11);
  EXPECT_NEAR(score.pmean, expected.pmean, 1e-11);
  EXPECT_NEAR(score.pcal, expected.pcal, 1e-11);
  EXPECT_NEAR(score.at[0], expected.at25, 1e-12);
  EXPECT_NEAR(score.at[1], expected.at50, 1e-12);
  EXPECT_NEAR(score.at[4], expected.at50, 1e-12);  // stays after the last evaluation
  EXPECT_EQ(score.at_interval[0].has_value(), expected.seeds > 1);
  EXPECT_NEAR(score.at_interval[0].value_or(-1), expected.interval25, 1e-12);
  EXPECT_NEAR(score.at_interval[1].value_or(-1), expected.interval50, 1e-12);
  EXPECT_NEAR(score.failed_share, expected.failed, 1e-12);
  EXPECT_NEAR(score.share_within[0], expected.hit5, 1e-12);
  EXPECT_NEAR(score.share_within[1], expected.hit1, 1e-12);
  EXPECT_EQ(score.to_within[0], expected.to5);
  EXPECT_EQ(score.to_within[1], expected.to1);
  EXPECT_EQ(score.unknown_keys, expected.unknown);
  EXPECT_EQ(score.differing_times, expected.differing);
}

TEST(ScoreRuns, AgreesWithAnIndependentProgram) {
  const absl::StatusOr<std::vector<StrategyRuns>> runs = ReadRuns(Space(), kRuns);
  ASSERT_TRUE(runs.ok()) << runs.status();
  const absl::StatusOr<std::vector<StrategyScore>> scores = ScoreRuns(Space(), *runs);
  ASSERT_TRUE(scores.ok()) << scores.status();
  ASSERT_EQ(scores->size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    ExpectScore((*scores)[i], kExpected60[i]);
    EXPECT_EQ((*scores)[i].used, 60);
  }
}

TEST(ScoreRuns, AgreesWithItUnderACap) {
  const absl::StatusOr<std::vector<StrategyScore>> scores =
      ScoreRuns(Space(), *ReadRuns(Space(), kRuns), 40);
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ((*scores)[0].used, 40);
  EXPECT_NEAR((*scores)[0].p, 0.31045341556024186, 1e-11);
  EXPECT_NEAR((*scores)[0].pmean, 0.18681051844524707, 1e-11);
  EXPECT_NEAR((*scores)[0].pcal, 0.2167744705580354, 1e-11);
  EXPECT_NEAR((*scores)[1].p, -0.35065591798388734, 1e-11);
  EXPECT_NEAR((*scores)[1].pcal, -0.34194099945087286, 1e-11);
  EXPECT_NEAR((*scores)[2].pcal, 0.22274301758654777, 1e-11);
}

TEST(ScoreRuns, RandomSearchScoresNothing) {
  const absl::StatusOr<std::vector<SimulatedRun>> runs =
      Simulate(Space(), *ParseStrategy("random"), {.trials = 85, .seeds = 4000});
  ASSERT_TRUE(runs.ok()) << runs.status();
  const absl::StatusOr<std::vector<StrategyScore>> scores =
      ScoreRuns(Space(), {RunsOf("random", *runs)});
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_NEAR((*scores)[0].pcal, 0, 0.02);
  EXPECT_LT(*(*scores)[0].pcal_error, 0.012);
}

TEST(ScoreRuns, TheOptimumAtOnceScoresOne) {
  absl::uint128 best = 0;
  for (absl::uint128 i = 0; i < Space().Count(); ++i) {
    if (Space().configuration(i).milliseconds == Space().ascending_milliseconds().front()) best = i;
  }
  const absl::StatusOr<std::vector<StrategyScore>> scores =
      ScoreRuns(Space(), {{"oracle", {{best}, {best, best}}}}, 50);
  EXPECT_DOUBLE_EQ((*scores)[0].p, 1);
  EXPECT_DOUBLE_EQ((*scores)[0].pcal, 1);
  EXPECT_EQ((*scores)[0].to_within[1], 1);
  EXPECT_EQ((*scores)[0].evaluations, 1);
}

TEST(ScoreRuns, RefusesWhatCannotBeScored) {
  EXPECT_FALSE(ScoreRuns(Space(), {}).ok());
  EXPECT_FALSE(ScoreRuns(Space(), {{"nothing", {}}}).ok());
  EXPECT_FALSE(ScoreRuns(Space(), {{"nothing", {}}}, 10).ok());
}

TEST(ReadRuns, NamesTheLineThatIsNoRun) {
  const std::string path = testing::TempDir() + "/runs.jsonl";
  const auto message = [&](const std::string& text) {
    std::ofstream(path) << text;
    return std::string(ReadRuns(Space(), path).status().message());
  };
  const std::string good = R"({"strategy":"s","seed":1,"evals":[[null,"x"]]})";
  EXPECT_THAT(message(good + "\n\n{\"strategy\":\"s\"}\n"),
              HasSubstr("runs.jsonl:3: not an object"));
  EXPECT_THAT(message(good + "\n" + good + "x\n"), HasSubstr("runs.jsonl:2: not JSON"));
  EXPECT_THAT(message(R"({"strategy":"s","seed":1,"evals":[[null,"x"],[1,2]]})"),
              HasSubstr("runs.jsonl:1: evaluation 2 is not"));
  EXPECT_THAT(message("\n"), HasSubstr("has no runs"));
  EXPECT_TRUE(absl::IsNotFound(ReadRuns(Space(), path + ".none").status()));
}

TEST(Aggregate, AveragesOverTheSpacesThatHaveTheStrategy) {
  StrategyScore a{.strategy = "a", .p = 0.5, .pcal = 0.25};
  StrategyScore b{.strategy = "a", .p = 0.75, .pcal = 0.75};
  StrategyScore c{.strategy = "c", .p = 1};
  const std::vector<AggregateScore> aggregates =
      Aggregate(std::vector<std::vector<StrategyScore>>{{a, c}, {b}});
  ASSERT_EQ(aggregates.size(), 2);
  EXPECT_EQ(aggregates[0].spaces, 2);
  EXPECT_DOUBLE_EQ(aggregates[0].p, 0.625);
  EXPECT_DOUBLE_EQ(aggregates[0].least_p, 0.5);
  EXPECT_DOUBLE_EQ(aggregates[0].pcal, 0.5);
  EXPECT_DOUBLE_EQ(aggregates[0].least_pcal, 0.25);
  EXPECT_EQ(aggregates[1].spaces, 1);
}

}  // namespace
}  // namespace tilewright
