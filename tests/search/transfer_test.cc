#include "search/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "search/simulate.h"

namespace tilewright {
namespace {

// d = 0 … count - 1 with time(d); absent: it failed.
template <typename Time>
std::unique_ptr<RecordedSpace> Line(int count, Time time) {
  std::vector<RecordedConfiguration> all;
  for (int d = 0; d < count; ++d) {
    RecordedConfiguration one{.schedule = {"line", {{"d", absl::StrCat(d)}}},
                              .key = absl::StrCat(d)};
    one.milliseconds = time(d);
    if (!one.milliseconds) one.failure = "CompilationFailedConfig";
    all.push_back(std::move(one));
  }
  absl::StatusOr<std::unique_ptr<RecordedSpace>> space = RecordedSpace::Make(std::move(all));
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

TEST(Transfer, TakesTheBestOfTheOtherDeviceThatExistHereTheBestFirst) {
  const auto from = Line(20, [](int d) -> std::optional<double> {
    if (d == 12) return std::nullopt;
    return 1.0 + std::abs(d - 13);
  });
  const auto to = Line(14, [](int) { return std::optional<double>(1.0); });
  const absl::StatusOr<Transfer> transfer = TransferBetween(*from, *to, {.best = 3});
  ASSERT_TRUE(transfer.ok()) << transfer.status();
  std::vector<std::string> keys;
  for (absl::uint128 index : transfer->best) keys.push_back(to->configuration(index).key);
  EXPECT_THAT(keys, ::testing::ElementsAre("13", "11", "10"));
  EXPECT_EQ(transfer->known.size(), 14);
  for (const Result& result : transfer->known)
    EXPECT_EQ(result.cost.has_value(), result.index != *to->IndexOfKey("12"));
}

TEST(Transfer, SaysWhenTheSpacesHaveNothingInCommon) {
  const auto from = Line(3, [](int) { return std::optional<double>(1.0); });
  std::vector<RecordedConfiguration> other = {
      {.schedule = {"line", {{"e", "1"}}}, .key = "1", .milliseconds = 1.0},
      {.schedule = {"line", {{"e", "2"}}}, .key = "2", .milliseconds = 2.0}};
  const auto to = RecordedSpace::Make(std::move(other));
  ASSERT_TRUE(to.ok());
  EXPECT_THAT(std::string(TransferBetween(*from, **to, {}).status().message()),
              ::testing::HasSubstr("nothing to transfer: none of the other space's 3"));
}

TEST(Transfer, OpensEveryStrategyAndIsMeasuredOnlyOnce) {
  const auto to = Line(40, [](int d) { return std::optional<double>(1.0 + std::abs(d - 30)); });
  const auto from = Line(40, [](int d) { return std::optional<double>(1.0 + std::abs(d - 28)); });
  const absl::StatusOr<Transfer> transfer = TransferBetween(*from, *to, {.best = 5});
  ASSERT_TRUE(transfer.ok());
  for (const StrategyRow& row : AllStrategies()) {
    SimulateOptions options{.trials = 40, .seeds = 1};
    options.beginning.transferred = transfer->best;
    const auto runs = Simulate(*to, *ParseStrategy(row.name), options);
    ASSERT_TRUE(runs.ok()) << runs.status();
    ASSERT_EQ(runs->front().evaluations.size(), 40) << row.name;
    EXPECT_EQ(runs->front().evaluations[0].index, transfer->best[0]) << row.name;
  }
}

}  // namespace
}  // namespace tilewright
