#include "search/shared_tuning.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "search/run_finals.h"
#include "search/task_scheduler.h"

namespace tilewright {
namespace {

// First turns, one run after another, until trials or time are spent; then each run to its end.
//
// A time limit is held by keeping, at every moment, what the runs must still do (Need), each step
// slower by kSlack than this tune's pace lets expect. What is left beside that is the room for
// further turns. Where there is none, the run at work is ended, while its session is open.
class SharedRuns {
 public:
  SharedRuns(const TunerContext& context, absl::Span<const TuneTask> tasks,
             const SharedTuning& options, const SharedTuningCalls& calls)
      : context_(context),
        tasks_(tasks),
        options_(options),
        calls_(calls),
        run_options_(OptionsOfOne(options.each, tasks.size())),
        trials_each_(TrialsOf(options.each)),
        floor_(std::min(options.floor, trials_each_)),
        end_(context.now() + options.each.time_limit),
        states_(tasks.size()),
        scheduler_(Scheduled(context, tasks),
                   {.floor = floor_, .slice = std::max<int64_t>(32, 2 * options.each.batch)}) {}

  void Run() {
    // Equal shares leave nothing to be shared after them: each run goes to its end in one session.
    if (floor_ < trials_each_) {
      if (options_.resume) BeginUnfinished();
      Share();
    }
    for (size_t i : EndingOrder()) EndRun(i);
  }

 private:
  struct State {
    TunerContext context;  // with its own progress; the run borrows it
    std::unique_ptr<TuningRun> run;
    bool ended = false;
    int64_t trials = 0;
    TaskShare share;
  };

  // What is kept for the finals is reckoned from a part of the time.
  static TuneOptions OptionsOfOne(TuneOptions options, size_t tasks) {
    options.time_limit /= static_cast<int64_t>(tasks);
    return options;
  }

  static std::vector<ScheduledTask> Scheduled(const TunerContext& context,
                                              absl::Span<const TuneTask> tasks) {
    std::vector<ScheduledTask> scheduled;
    for (const TuneTask& task : tasks)
      scheduled.push_back({task.weight, TaskLimitSeconds(task, context.target)});
    return scheduled;
  }

  bool Stopped() const { return context_.stop != nullptr && context_.stop->load(); }

  int64_t TrialsLeft() const {
    int64_t left = trials_each_ * static_cast<int64_t>(tasks_.size());
    for (const State& state : states_) left -= state.trials;
    return left;
  }

  int64_t Unended() const {
    return std::count_if(states_.begin(), states_.end(),
                         [](const State& state) { return !state.ended; });
  }

  // ---- The plan

  absl::Duration Reserve(size_t i, absl::Duration burst) const {
    const TuningRun* run = states_[i].run.get();
    return FinalsReserve(run_options_, burst,
                         run != nullptr ? run->least_entrants() : kMostLeastEntrants);
  }

  // What a task must still do: a first batch, finals, and a session for them.
  absl::Duration Need(size_t i) const {
    const State& state = states_[i];
    if (state.ended) return absl::ZeroDuration();
    const bool measured = state.run != nullptr && state.run->best_seconds().has_value();
    const StepTimes step = measured ? state.run->steps() : longest_;
    absl::Duration need = Reserve(i, step.burst);
    if (!measured) need += kSlack * LeastFirstBatch(run_options_) * step.trial;
    if (at_work_ != i) need += kSlack * step.opening;
    return need;
  }

  absl::Duration NeedOfAll() const {
    absl::Duration need;
    for (size_t i = 0; i < states_.size(); ++i) need += Need(i);
    return need;
  }

  // What no run must have.
  absl::Duration Room() const { return end_ - context_.now() - NeedOfAll(); }

  // Its finals get what is kept for them, or their part where the time is short, and an equal part
  // of the room; the last run's get all that is left.
  absl::Time EndOfFinals(size_t i) const {
    if (Unended() == 1 || end_ == absl::InfiniteFuture()) return end_;
    const absl::Time now = context_.now();
    const absl::Duration left = std::max(end_ - now, absl::ZeroDuration());
    const absl::Duration all = NeedOfAll();
    const double part = all > left ? absl::FDivDuration(left, all) : 1;
    return now + part * Need(i) + std::max(Room(), absl::ZeroDuration()) / Unended();
  }

  // ---- Runs

  TaskProgress ProgressOf(size_t i) const {
    const TuningRun* run = states_[i].run.get();
    if (run == nullptr) return {.finished = states_[i].ended};
    const bool by_time = options_.each.time_limit != absl::InfiniteDuration();
    return {.trials = run->trials(),
            .best_seconds = run->best_seconds(),
            .spent = by_time ? absl::ToDoubleSeconds(run->elapsed())
                             : static_cast<double>(run->trials()),
            .finished = run->exhausted()};
  }

  void Show(size_t i, TuneProgress progress) {
    if (!calls_.progress) return;
    progress.left.reset();  // of this turn alone
    if (end_ != absl::InfiniteFuture())
      progress.left = std::max(absl::ZeroDuration(), end_ - context_.now());
    calls_.progress(i, progress);
  }

  void End(size_t i, absl::StatusOr<TuneReport> report) {
    states_[i].run.reset();
    states_[i].ended = true;
    if (report.ok()) report->share = states_[i].share;
    if (calls_.ended) calls_.ended(i, std::move(report));
  }

  // The run to go on with, if that is asked for.
  absl::StatusOr<std::optional<Id>> Unfinished(size_t i) const {
    if (!options_.resume) return std::optional<Id>();
    return FindUnfinishedRun(*context_.log, tasks_[i], context_.target);
  }

  // A run that cannot begin ends its task.
  void Begin(size_t i, const std::optional<Id>& resume) {
    State& state = states_[i];
    state.share.weight = tasks_[i].weight;
    state.context = context_;
    state.context.progress = [this, i](const TuneProgress& progress) { Show(i, progress); };
    absl::StatusOr<std::unique_ptr<TuningRun>> run =
        TuningRun::Begin(state.context, tasks_[i], run_options_, resume);
    if (!run.ok()) return End(i, run.status());
    state.run = *std::move(run);
    state.share.resumed = state.trials = state.run->trials();
  }

  void BeginUnfinished() {
    for (size_t i = 0; i < tasks_.size() && !Stopped(); ++i) {
      const absl::StatusOr<std::optional<Id>> unfinished = Unfinished(i);
      if (!unfinished.ok()) {
        End(i, unfinished.status());
      } else if (unfinished->has_value()) {
        Begin(i, *unfinished);
      }
      scheduler_.Resume(i, ProgressOf(i));
    }
  }

  // The devices are this run's from now on.
  void PutToWork(size_t i) {
    if (at_work_ && at_work_ != i && states_[*at_work_].run != nullptr)
      states_[*at_work_].run->Suspend();
    at_work_ = i;
  }

  // Up to `more` trials, in one of `parts` equal parts of the room that there is, at least till
  // `surely`. Returns how many it brought. A run that fails ends its task.
  int64_t Screen(size_t i, int64_t more, int64_t parts,
                 const std::function<absl::Time()>& surely = absl::InfinitePast) {
    State& state = states_[i];
    const int64_t before = state.trials;
    const absl::Time began = context_.now();
    PutToWork(i);
    state.run->Expect(longest_);
    const auto until = [&] {
      return std::max(surely(), began + (context_.now() - began + Room()) / parts);
    };
    const absl::Status screened = state.run->Screen(state.trials + more, until);
    state.trials = state.run->trials();
    longest_.RaiseTo(state.run->steps());
    if (!screened.ok()) End(i, state.run->Finish(screened, end_));
    return state.trials - before;
  }

  // ---- Turns

  void Share() {
    while (!Stopped() && Room() > absl::ZeroDuration()) {
      std::optional<TaskTurn> turn = scheduler_.Next();
      if (!turn) return;
      // The floor holds whatever resumed runs have spent.
      if (turn->reason != TaskTurn::Reason::kFloor)
        turn->trials = std::min(turn->trials, TrialsLeft());
      if (turn->trials <= 0) return;
      TakeTurn(*turn);
    }
  }

  void TakeTurn(const TaskTurn& turn) {
    State& state = states_[turn.task];
    if (state.run == nullptr) Begin(turn.task, std::nullopt);
    int64_t brought = 0;
    if (state.run != nullptr) {
      const bool floor = turn.reason == TaskTurn::Reason::kFloor;
      brought = Screen(turn.task, turn.trials, floor ? BelowFloor() : 1);
    }
    (turn.reason == TaskTurn::Reason::kFloor  ? state.share.floor
     : turn.reason == TaskTurn::Reason::kGain ? state.share.gain
                                              : state.share.patrol) += brought;
    TaskProgress progress = ProgressOf(turn.task);
    // Whatever the reason, another turn would bring as little.
    progress.finished = progress.finished || brought == 0;
    scheduler_.Record(turn.task, progress);
  }

  int64_t BelowFloor() const {
    return std::count_if(states_.begin(), states_.end(), [this](const State& state) {
      return !state.ended && state.trials < floor_;
    });
  }

  // ---- The end

  // First the run whose session is open, last those that have most to gain from time that the
  // others leave: those not begun.
  std::vector<size_t> EndingOrder() const {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < states_.size(); ++i) {
      const double last = states_[i].run == nullptr ? std::numeric_limits<double>::infinity()
                                                    : scheduler_.ExpectedGain(i, 1);
      order.emplace_back(at_work_ == i ? -1 : last, i);
    }
    std::stable_sort(order.begin(), order.end());
    std::vector<size_t> tasks;
    for (const auto& [gain, i] : order) tasks.push_back(i);
    return tasks;
  }

  // Screens in its part of the room, if there is any, and holds the finals.
  void EndRun(size_t i) {
    State& state = states_[i];
    if (state.ended || (state.run == nullptr && Stopped())) return;
    if (state.run == nullptr) {
      if (context_.now() >= end_)
        return End(i, absl::DeadlineExceededError("not begun, the time limit was over"));
      const absl::StatusOr<std::optional<Id>> unfinished = Unfinished(i);
      if (!unfinished.ok()) return End(i, unfinished.status());
      Begin(i, *unfinished);
      if (state.run == nullptr) return;
    }
    const int64_t to_floor = std::max<int64_t>(0, floor_ - state.trials);
    const int64_t more = floor_ == trials_each_ ? to_floor : std::max(to_floor, TrialsLeft());
    if (more > 0) {
      // However much the others may come to need, an equal part of the time is its own.
      const absl::Time end = context_.now() + (end_ - context_.now()) / Unended();
      const int64_t brought =
          Screen(i, more, Unended(), [&] { return end - Reserve(i, state.run->steps().burst); });
      state.share.floor += std::min(brought, to_floor);
      state.share.gain += brought - std::min(brought, to_floor);
    }
    if (state.run == nullptr) return;
    PutToWork(i);
    absl::StatusOr<TuneReport> report = state.run->Finish(absl::OkStatus(), EndOfFinals(i));
    longest_.RaiseTo(state.run->steps());
    End(i, std::move(report));
  }

  const TunerContext& context_;
  const absl::Span<const TuneTask> tasks_;
  const SharedTuning& options_;
  const SharedTuningCalls& calls_;
  const TuneOptions run_options_;
  const int64_t trials_each_;
  const int64_t floor_;
  const absl::Time end_;
  std::vector<State> states_;
  TaskScheduler scheduler_;
  std::optional<size_t> at_work_;  // whose session is open
  StepTimes longest_;              // that steps took in this tune
};

}  // namespace

void TuneShared(const TunerContext& context, absl::Span<const TuneTask> tasks,
                const SharedTuning& options, const SharedTuningCalls& calls) {
  if (tasks.empty()) return;
  SharedRuns(context, tasks, options, calls).Run();
}

}  // namespace tilewright
