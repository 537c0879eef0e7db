#include "search/task_scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/types/span.h"

namespace tilewright {
namespace {

constexpr int64_t kAnyTrials = std::numeric_limits<int64_t>::max();
// A search is expected to be kPriorExcess / trials^2 above the optimum, relative to it: after 32
// trials, half of it.
constexpr double kPriorExcess = 512;
constexpr double kPriorWeight = 3;  // against what the last doubling of the trials saved

// ln(best at half of the trials / best now). The first success stands for what is before it.
double SavedByLastDoubling(absl::Span<const TaskProgress> curve) {
  const TaskProgress& now = curve.back();
  const TaskProgress* before = nullptr;
  for (const TaskProgress& point : curve) {
    if (!point.best_seconds) continue;
    if (before == nullptr || 2 * point.trials <= now.trials) before = &point;
  }
  return std::max(0.0, std::log(*before->best_seconds / *now.best_seconds));
}

}  // namespace

std::string_view ToString(TaskTurn::Reason reason) {
  switch (reason) {
    case TaskTurn::Reason::kFloor:
      return "floor";
    case TaskTurn::Reason::kPatrol:
      return "patrol";
    case TaskTurn::Reason::kGain:
      return "gain";
  }
  return "";
}

TaskScheduler::TaskScheduler(std::vector<ScheduledTask> tasks, const TaskSchedulerOptions& options)
    : options_(options) {
  for (const ScheduledTask& task : tasks) states_.push_back({.task = task});
}

void TaskScheduler::Resume(size_t task, const TaskProgress& progress) {
  State& state = states_[task];
  state.curve.push_back(progress);
  state.finished = progress.finished;
}

void TaskScheduler::Record(size_t task, const TaskProgress& progress) {
  const bool after_floor = states_[task].trials() >= options_.floor;
  Resume(task, progress);
  states_[task].last_turn = turns_++;
  if (after_floor) ++turns_after_floor_;
}

int64_t TaskScheduler::SliceOf(const State& state) const {
  return std::max<int64_t>({1, options_.slice, state.trials() / 4});
}

std::optional<TaskTurn> TaskScheduler::Next() const {
  if (const std::optional<size_t> task = LongestWaiting(options_.floor))
    return TaskTurn{*task, options_.floor - states_[*task].trials(), TaskTurn::Reason::kFloor};
  if (!LongestWaiting(kAnyTrials)) return std::nullopt;
  const bool patrol =
      options_.patrol_every > 0 && (turns_after_floor_ + 1) % options_.patrol_every == 0;
  return patrol ? Patrol() : BestGain();
}

std::optional<size_t> TaskScheduler::LongestWaiting(int64_t trials) const {
  std::optional<size_t> found;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].finished || states_[i].trials() >= trials) continue;
    if (!found || states_[i].last_turn < states_[*found].last_turn) found = i;
  }
  return found;
}

TaskTurn TaskScheduler::Patrol() const {
  const size_t task = *LongestWaiting(kAnyTrials);
  return {task, SliceOf(states_[task]), TaskTurn::Reason::kPatrol};
}

TaskTurn TaskScheduler::BestGain() const {
  std::optional<size_t> found;
  double most = 0;
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    const int64_t trials = SliceOf(state);
    const double gain = ExpectedGain(i, trials);
    if (gain <= 0) continue;
    const double spent = state.curve.back().spent;
    const double per_trial = spent > 0 ? spent / static_cast<double>(state.trials()) : 1;
    const double rate = gain / (per_trial * static_cast<double>(trials));
    if (!found || rate > most) {
      found = i;
      most = rate;
    }
  }
  // Nobody has anything to gain: nothing succeeded, or all are at their limits.
  if (!found) return Patrol();
  return {*found, SliceOf(states_[*found]), TaskTurn::Reason::kGain};
}

double TaskScheduler::ExpectedGain(size_t task, int64_t trials) const {
  const State& state = states_[task];
  if (state.finished || state.trials() <= 0 || !state.curve.back().best_seconds) return 0;
  const double best = *state.curve.back().best_seconds;
  const double now = static_cast<double>(state.trials());
  const double share = now / (now + static_cast<double>(trials));
  const double excess =
      (SavedByLastDoubling(state.curve) / 3 + kPriorWeight * kPriorExcess / (now * now)) /
      (1 + kPriorWeight);
  const double left = std::max(0.0, 1 - state.task.limit_seconds / best);
  return state.task.weight * best * std::min(excess * (1 - share * share), left);
}

}  // namespace tilewright
