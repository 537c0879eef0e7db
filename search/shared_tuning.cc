#include "search/shared_tuning.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "search/task_scheduler.h"

namespace tilewright {
namespace {

class SharedRuns {
 public:
  SharedRuns(const TunerContext& context, absl::Span<const TuneTask> tasks,
             const SharedTuning& options, const SharedTuningCalls& calls)
      : context_(context),
        tasks_(tasks),
        options_(options),
        calls_(calls),
        trials_each_(options.each.trials > 0 ? options.each.trials
                                             : (*FindEffort(options.each.effort))->trials),
        floor_(std::min(options.floor, trials_each_)),
        end_(absl::Now() + options.each.time_limit),
        states_(tasks.size()),
        scheduler_(Scheduled(context, tasks),
                   {.floor = floor_, .slice = std::max<int64_t>(32, 2 * options.each.batch)}) {
    // What is kept for the finals is reckoned from a part of the time.
    run_options_ = options.each;
    run_options_.time_limit /= static_cast<int64_t>(tasks.size());
    screening_end_ = end_ - static_cast<int64_t>(tasks.size()) * FinalsTime(run_options_);
  }

  void Run() {
    if (floor_ == trials_each_) return OneByOne();
    if (options_.resume) BeginUnfinished();
    Share();
    BeginTheRest();
    HoldFinals();
  }

 private:
  struct State {
    TunerContext context;  // with its own progress; the run borrows it
    std::unique_ptr<TuningRun> run;
    bool ended = false;
    int64_t trials = 0;
    TaskShare share;
  };

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

  void End(size_t i, absl::StatusOr<TuneReport> report) {
    states_[i].ended = true;
    if (report.ok()) report->share = states_[i].share;
    if (calls_.ended) calls_.ended(i, std::move(report));
  }

  void UseContext(size_t i) {
    State& state = states_[i];
    state.share.weight = tasks_[i].weight;
    state.context = context_;
    state.context.progress = [this, i](const TuneProgress& progress) { Show(i, progress); };
  }

  // A run that cannot begin ends its task.
  void Begin(size_t i, const std::optional<Id>& resume) {
    State& state = states_[i];
    UseContext(i);
    absl::StatusOr<std::unique_ptr<TuningRun>> run =
        TuningRun::Begin(state.context, tasks_[i], run_options_, resume);
    if (!run.ok()) return End(i, run.status());
    state.run = *std::move(run);
    state.share.resumed = state.trials = state.run->trials();
  }

  // The run to go on with, if that is asked for.
  absl::StatusOr<std::optional<Id>> Unfinished(size_t i) const {
    if (!options_.resume) return std::optional<Id>();
    return FindUnfinishedRun(*context_.log, tasks_[i], context_.target);
  }

  // Equal shares: nothing is left to be shared after them, so each run goes to its end, finals
  // included, in one session. What time is left is shared by the workloads that are left.
  void OneByOne() {
    for (size_t i = 0; i < tasks_.size() && !Stopped(); ++i) {
      if (EndIfLate(i)) continue;
      const absl::StatusOr<std::optional<Id>> unfinished = Unfinished(i);
      if (!unfinished.ok()) {
        End(i, unfinished.status());
        continue;
      }
      State& state = states_[i];
      UseContext(i);
      TuneOptions options = options_.each;
      options.time_limit = (end_ - absl::Now()) / static_cast<int64_t>(tasks_.size() - i);
      absl::StatusOr<TuneReport> report =
          TuneWorkload(state.context, tasks_[i], options, *unfinished);
      if (report.ok()) state.share.floor = report->trials;
      End(i, std::move(report));
    }
  }

  bool EndIfLate(size_t i) {
    if (absl::Now() < end_) return false;
    End(i, absl::DeadlineExceededError("not begun, the time limit was over"));
    return true;
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

  void Show(size_t i, TuneProgress progress) {
    if (!calls_.progress) return;
    progress.left.reset();  // of this turn alone
    if (end_ != absl::InfiniteFuture())
      progress.left = std::max(absl::ZeroDuration(), end_ - absl::Now());
    calls_.progress(i, progress);
  }

  // Turns until trials or time are spent.
  void Share() {
    while (!Stopped() && absl::Now() < screening_end_) {
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
    const int64_t before = state.trials;
    if (state.run != nullptr)
      Screen(turn.task, turn.trials,
             turn.reason == TaskTurn::Reason::kFloor ? EndOfFloorTurn() : screening_end_);
    const int64_t brought = state.trials - before;
    (turn.reason == TaskTurn::Reason::kFloor  ? state.share.floor
     : turn.reason == TaskTurn::Reason::kGain ? state.share.gain
                                              : state.share.patrol) += brought;
    TaskProgress progress = ProgressOf(turn.task);
    // Whatever the reason, another turn would bring as little.
    progress.finished = progress.finished || brought == 0;
    scheduler_.Record(turn.task, progress);
  }

  // A run that fails ends its task.
  void Screen(size_t i, int64_t more, absl::Time until) {
    State& state = states_[i];
    // What is with a worker then comes back in the time that one candidate may take.
    const absl::Time give_up = until + run_options_.build_timeout + run_options_.run_timeout;
    const absl::Status screened = state.run->Screen(state.trials + more, until, give_up);
    state.trials = state.run->trials();
    if (!screened.ok()) Finish(i, screened, end_);
  }

  void Finish(size_t i, const absl::Status& screened, absl::Time by) {
    absl::StatusOr<TuneReport> report = states_[i].run->Finish(screened, by);
    states_[i].run.reset();
    End(i, std::move(report));
  }

  // The time that is left is shared by the workloads below the floor.
  absl::Time EndOfFloorTurn() const {
    int64_t below = 0;
    for (const State& state : states_) below += !state.ended && state.trials < floor_;
    const absl::Time now = absl::Now();
    return now + (screening_end_ - now) / std::max<int64_t>(1, below);
  }

  // However short the time, a workload that is begun measures a batch.
  void BeginTheRest() {
    for (size_t i = 0; i < tasks_.size() && !Stopped(); ++i) {
      State& state = states_[i];
      if (state.run != nullptr || state.ended) continue;
      if (EndIfLate(i)) continue;
      Begin(i, std::nullopt);
      if (state.run == nullptr) continue;
      Screen(i, floor_, absl::Now());
      state.share.floor = state.trials;
    }
  }

  void HoldFinals() {
    int64_t left = std::count_if(states_.begin(), states_.end(),
                                 [](const State& state) { return state.run != nullptr; });
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (states_[i].run == nullptr) continue;
      const absl::Time now = absl::Now();
      Finish(i, absl::OkStatus(), now + (end_ - now) / left--);
    }
  }

  const TunerContext& context_;
  const absl::Span<const TuneTask> tasks_;
  const SharedTuning& options_;
  const SharedTuningCalls& calls_;
  TuneOptions run_options_;
  const int64_t trials_each_;
  const int64_t floor_;
  const absl::Time end_;
  absl::Time screening_end_;
  std::vector<State> states_;
  TaskScheduler scheduler_;
};

}  // namespace

void TuneShared(const TunerContext& context, absl::Span<const TuneTask> tasks,
                const SharedTuning& options, const SharedTuningCalls& calls) {
  if (tasks.empty()) return;
  SharedRuns(context, tasks, options, calls).Run();
}

}  // namespace tilewright
