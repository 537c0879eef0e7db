// Shares one budget among the workloads of a tune: says which one gets the next slice of trials.
//
//   TaskScheduler scheduler({{.weight = 4}, {.weight = 1}}, {.floor = 32});
//   while (std::optional<TaskTurn> turn = scheduler.Next()) {
//     …  // up to turn->trials trials of tasks[turn->task]
//     scheduler.Record(turn->task, {.trials = …, .best_seconds = …, .spent = …});
//   }
//
// What counts is the weighted total time, the sum of weight x best seconds: what a program spends
// in the kernels that it calls. A turn goes, in this order, to
//   floor    of the tasks with fewer trials than the floor, the one whose turn is longest ago:
//            nothing can be said of it before;
//   patrol   every `patrol_every`-th turn after that: of all tasks the one whose turn is longest
//            ago, since an estimate can be wrong by bad luck and must not starve a task;
//   gain     the task with the most expected gain per unit of budget.
// That is the scheme of Ansor (Zheng et al., OSDI 2020): the gradient of the total by a task's
// share, from its recent progress and a guess, with some turns at random. Here no turn is random,
// and progress and guess are put together otherwise:
//
// How far the best of n trials lies above the optimum, relative to it, is taken to fall like 1/n^2:
// with independent draws it falls about like 1/n, and a guided search is faster. So a slice that
// takes a task from n to m trials is expected to save
//
//   weight x best x min(excess x (1 - (n/m)^2), 1 - limit / best)
//   excess = (saved / 3 + 3 x 512 / n^2) / 4,  saved = ln(best after n/2 trials / best after n)
//
// By that law, saved / 3 is what the last doubling says of the excess; earlier trials fall steeply
// whatever follows. The second term is a guess (after 32 trials a half) that counts three times as
// much: whether one doubling found anything is mostly luck. With less of the guess, with 1/n, or
// from more doublings the scheduler clung to few tasks and saved less, or lost, on recorded spaces
// (bench/task_sharing.cc; bench/results/2026-11-30_search.md has the figures). No task is expected
// to save more than the physical limit leaves. One without a success has no time to be improved: it
// gets the floor and the patrols.
//
// A slice is a quarter of what its task has had, at least `slice`: each change of task costs a
// session on the device, and by this rule their number grows with the logarithm of the trials.
//
// A pure function of what was recorded: no clock, no chance. Not thread-safe.
#ifndef TILEWRIGHT_SEARCH_TASK_SCHEDULER_H_
#define TILEWRIGHT_SEARCH_TASK_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tilewright {

struct TaskSchedulerOptions {
  // Trials that every task gets first. With its part of the budget as the floor it is equal shares.
  int64_t floor = 32;
  int64_t slice = 32;  // least trials of a turn after that
  int patrol_every = 8;
};

struct ScheduledTask {
  double weight = 1;         // how often it runs
  double limit_seconds = 0;  // no kernel is faster; 0: not known
};

// Where a task stands after a slice: totals since it began.
struct TaskProgress {
  int64_t trials = 0;
  std::optional<double> best_seconds;  // absent: nothing succeeded yet
  double spent = 0;       // of the budget, in any unit that all tasks share: trials or seconds
  bool finished = false;  // nothing is left to try, or it failed: it gets no turn any more
};

struct TaskTurn {
  enum class Reason { kFloor, kPatrol, kGain };
  size_t task = 0;
  int64_t trials = 0;  // how many more
  Reason reason = Reason::kFloor;
};
std::string_view ToString(TaskTurn::Reason reason);

class TaskScheduler {
 public:
  TaskScheduler(std::vector<ScheduledTask> tasks, const TaskSchedulerOptions& options);

  // Absent: every task is finished. The same until something is recorded.
  std::optional<TaskTurn> Next() const;
  // Once after each turn of `task`.
  void Record(size_t task, const TaskProgress& progress);
  // What a task has from before its first turn here, if it goes on with an earlier run.
  void Resume(size_t task, const TaskProgress& progress);

  // Seconds of weighted total time that `trials` more of a task are expected to save. 0: finished,
  // or nothing succeeded yet.
  double ExpectedGain(size_t task, int64_t trials) const;

 private:
  struct State {
    ScheduledTask task;
    std::vector<TaskProgress> curve;  // by ascending trials
    int64_t last_turn = -1;
    bool finished = false;
    int64_t trials() const { return curve.empty() ? 0 : curve.back().trials; }
  };

  int64_t SliceOf(const State& state) const;
  // Of the tasks with fewer trials than `trials`.
  std::optional<size_t> LongestWaiting(int64_t trials) const;
  TaskTurn Patrol() const;
  TaskTurn BestGain() const;

  const TaskSchedulerOptions options_;
  std::vector<State> states_;
  int64_t turns_ = 0;
  int64_t turns_after_floor_ = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_TASK_SCHEDULER_H_
