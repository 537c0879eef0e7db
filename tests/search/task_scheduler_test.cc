#include "search/task_scheduler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;

// Best seconds of a task after a number of trials; absent: nothing succeeded.
using Curve = std::function<std::optional<double>(int64_t trials)>;

Curve PowerLaw(double seconds, double slope) {
  return
      [=](int64_t trials) { return seconds * std::pow(static_cast<double>(trials) / 32, -slope); };
}
std::optional<double> Never(int64_t) { return std::nullopt; }

struct Simulated {
  ScheduledTask task;
  Curve curve;
  int64_t size = 1000000;  // trials until nothing is left
  double spent_per_trial = 1;
};

struct Played {
  std::vector<int64_t> trials;
  std::vector<size_t> order;
  std::map<TaskTurn::Reason, int> reasons;
};

Played Play(const std::vector<Simulated>& tasks, int64_t budget,
            const TaskSchedulerOptions& options = {}) {
  std::vector<ScheduledTask> scheduled;
  for (const Simulated& task : tasks) scheduled.push_back(task.task);
  TaskScheduler scheduler(scheduled, options);
  Played played{.trials = std::vector<int64_t>(tasks.size(), 0), .order = {}, .reasons = {}};
  while (budget > 0) {
    const std::optional<TaskTurn> turn = scheduler.Next();
    if (!turn) break;
    const Simulated& task = tasks[turn->task];
    int64_t& trials = played.trials[turn->task];
    const int64_t slice = std::min({turn->trials, budget, task.size - trials});
    trials += slice;
    budget -= slice;
    played.order.push_back(turn->task);
    ++played.reasons[turn->reason];
    scheduler.Record(turn->task, {.trials = trials,
                                  .best_seconds = task.curve(trials),
                                  .spent = task.spent_per_trial * static_cast<double>(trials),
                                  .finished = trials == task.size});
  }
  return played;
}

TEST(TaskScheduler, GivesEveryTaskTheFloorFirst) {
  const Played played = Play({{{.weight = 1e6}, PowerLaw(1, 1)},
                              {{.weight = 1e-6}, PowerLaw(1e-6, 0.01)},
                              {{.weight = 1}, Never}},
                             3 * 48, {.floor = 48});
  EXPECT_THAT(played.trials, Each(48));
  EXPECT_THAT(played.order, ElementsAre(0, 1, 2));
}

TEST(TaskScheduler, GivesMoreToTheTaskThatRunsMoreOften) {
  const Played played = Play({{{.weight = 1}, PowerLaw(1e-3, 0.1)},
                              {{.weight = 10}, PowerLaw(1e-3, 0.1)},
                              {{.weight = 3}, PowerLaw(1e-3, 0.1)}},
                             3 * 400);
  EXPECT_GT(played.trials[1], 2 * played.trials[2]);
  EXPECT_GT(played.trials[2], played.trials[0]);
}

TEST(TaskScheduler, GivesMoreToTheTaskThatTakesLongerAtEqualWeights) {
  const Played played = Play({{{}, PowerLaw(1e-3, 0.1)}, {{}, PowerLaw(5e-3, 0.1)}}, 2 * 400);
  EXPECT_GT(played.trials[1], 2 * played.trials[0]);
}

TEST(TaskScheduler, ExpectsMoreOfTheTaskThatStillImproves) {
  TaskScheduler scheduler({{}, {}}, {});
  for (int64_t trials : {32, 64}) {
    scheduler.Record(0, {.trials = trials, .best_seconds = 1, .spent = 1});
    scheduler.Record(1, {.trials = trials, .best_seconds = trials == 32 ? 2 : 1, .spent = 1});
  }
  EXPECT_GT(scheduler.ExpectedGain(1, 32), 1.5 * scheduler.ExpectedGain(0, 32));
  EXPECT_GT(scheduler.ExpectedGain(0, 32), 0);
  ASSERT_TRUE(scheduler.Next().has_value());
  EXPECT_EQ(scheduler.Next()->task, 1);
}

TEST(TaskScheduler, CountsWhatATrialCosts) {
  const Played played = Play({{{}, PowerLaw(1, 0.1), 1000000, /*spent_per_trial=*/10},
                              {{}, PowerLaw(1, 0.1), 1000000, /*spent_per_trial=*/1}},
                             2 * 400);
  EXPECT_GT(played.trials[1], 2 * played.trials[0]);
}

TEST(TaskScheduler, GivesNothingButPatrolsToATaskAtItsLimit) {
  const Played played = Play(
      {{{.weight = 100, .limit_seconds = 1}, PowerLaw(1, 0)}, {{.weight = 1}, PowerLaw(1, 0.1)}},
      2 * 400);
  EXPECT_GT(played.trials[1], 4 * played.trials[0]);
}

TEST(TaskScheduler, LetsNoTaskStarve) {
  const Played played = Play({{{.weight = 1e9}, PowerLaw(1, 0.5)},
                              {{.weight = 1}, PowerLaw(1e-9, 0)},
                              {{.weight = 1}, Never}},
                             20000);
  EXPECT_THAT(played.trials, Each(Ge(64)));
  EXPECT_GE(played.reasons.at(TaskTurn::Reason::kPatrol), 2);
}

TEST(TaskScheduler, GivesNothingToAFinishedTaskAndEndsWhenAllAre) {
  const Played played = Play({{{.weight = 100}, PowerLaw(1, 0.5), /*size=*/40},
                              {{.weight = 100}, PowerLaw(1, 0.5), /*size=*/7},
                              {{}, PowerLaw(1, 0.1), /*size=*/500}},
                             100000);
  EXPECT_THAT(played.trials, ElementsAre(40, 7, 500));
}

TEST(TaskScheduler, HasNoTurnForTasksThatAllFailedBeforeAnyTrial) {
  TaskScheduler scheduler({{}, {}}, {});
  scheduler.Record(0, {.finished = true});
  ASSERT_TRUE(scheduler.Next().has_value());
  EXPECT_EQ(scheduler.Next()->task, 1);
  scheduler.Record(1, {.finished = true});
  EXPECT_FALSE(scheduler.Next().has_value());
}

TEST(TaskScheduler, GoesOnInTurnsWhereNothingEverSucceeds) {
  const Played played = Play({{{}, Never}, {{}, Never}}, 400);
  EXPECT_EQ(played.trials[0] + played.trials[1], 400);
  EXPECT_LE(std::abs(played.trials[0] - played.trials[1]), 64);
}

TEST(TaskScheduler, SharesEquallyIfTheFloorLeavesNothing) {
  const Played played =
      Play({{{.weight = 100}, PowerLaw(1, 0.5)}, {{}, PowerLaw(1, 0)}}, 400, {.floor = 200});
  EXPECT_THAT(played.trials, ElementsAre(200, 200));
}

TEST(TaskScheduler, CountsWhatAResumedTaskHasForTheFloor) {
  TaskScheduler scheduler({{}, {}}, {.floor = 32});
  scheduler.Resume(0, {.trials = 30, .best_seconds = 1, .spent = 30});
  ASSERT_TRUE(scheduler.Next().has_value());
  EXPECT_EQ(scheduler.Next()->task, 0);
  EXPECT_EQ(scheduler.Next()->trials, 2);
}

TEST(TaskScheduler, DecidesTheSameFromTheSame) {
  const std::vector<Simulated> tasks = {{{.weight = 3}, PowerLaw(2e-3, 0.2)},
                                        {{.weight = 1}, PowerLaw(7e-3, 0.1)},
                                        {{.weight = 9}, PowerLaw(1e-3, 0.4)}};
  EXPECT_EQ(Play(tasks, 5000).order, Play(tasks, 5000).order);
}

TEST(TaskScheduler, TakesLongerTurnsTheLongerATaskHasHad) {
  const Played played = Play({{{}, PowerLaw(1, 0.1)}}, 32 * 1000);
  EXPECT_LT(played.order.size(), 40);
}

TEST(TaskScheduler, SavesWeightedTimeAgainstEqualShares) {
  const std::vector<Simulated> tasks = {{{.weight = 1}, PowerLaw(1e-3, 0.1)},
                                        {{.weight = 30}, PowerLaw(1e-3, 0.3)},
                                        {{.weight = 3}, PowerLaw(4e-3, 0.05)},
                                        {{.weight = 10}, PowerLaw(2e-3, 0.2)}};
  const auto total = [&](const Played& played) {
    double sum = 0;
    for (size_t i = 0; i < tasks.size(); ++i)
      sum += tasks[i].task.weight * *tasks[i].curve(played.trials[i]);
    return sum;
  };
  EXPECT_LT(total(Play(tasks, 400)), total(Play(tasks, 400, {.floor = 100})));
}

}  // namespace
}  // namespace tilewright
