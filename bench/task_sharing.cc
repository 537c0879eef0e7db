// What sharing a budget by expected gain is worth against equal shares, on recorded spaces.
//
//   task_sharing STRATEGY TASKS TRIALS,… DRAWS FILE…
//
// A draw is a tune of TASKS workloads that share TASKS x TRIALS trials: each is a recorded space
// (the files in turn) with a search of its own seed, and a weight such that its share of the total
// time at the optimum is drawn log-uniformly from 1 to 100. Both ways to share play the same draw,
// with the same searches, so they are compared draw by draw: how much of the weighted total time
// sharing by gain saves. Equal shares are exact ones. In the second table every weight is 1, so
// that the files' own times decide: one fixed pairing of what a space takes with how hard it is. In
// the third the files exchange these times, another permutation in each draw.
//
// It is a program of its own and no flag of `simulate` since it judges the scheduler, of which
// there is one, and not strategies.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "search/simulate.h"
#include "search/task_scheduler.h"

namespace tilewright {
namespace {

constexpr uint64_t kFirstSeed = 2000001;  // apart from those that anybody compares strategies with
constexpr int kBatch = 16;

// The best milliseconds after each evaluation of one search.
using Curve = std::vector<std::optional<double>>;

struct Task {
  const RecordedSpace* space = nullptr;
  const Curve* curve = nullptr;
  double weight = 1;
};

struct Outcome {
  double excess = 0;  // of the weighted total over that of the optima, relative
  double total = 0;
  int64_t least = 0;  // trials of the task that got the fewest
  int64_t most = 0;
};

int Fail(const std::string& message) {
  std::fprintf(stderr, "task_sharing: %s\n", message.c_str());
  return 2;
}

Curve CurveOf(const SimulatedRun& run) {
  Curve curve;
  std::optional<double> best;
  for (const SimulatedEvaluation& evaluation : run.evaluations) {
    if (evaluation.milliseconds)
      best = std::min(best.value_or(*evaluation.milliseconds), *evaluation.milliseconds);
    curve.push_back(best);
  }
  return curve;
}

Outcome Share(const std::vector<Task>& tasks, int64_t budget, const TaskSchedulerOptions& options) {
  std::vector<ScheduledTask> scheduled;
  for (const Task& task : tasks) scheduled.push_back({.weight = task.weight});
  TaskScheduler scheduler(scheduled, options);
  std::vector<int64_t> trials(tasks.size(), 0);
  while (budget > 0) {
    const std::optional<TaskTurn> turn = scheduler.Next();
    if (!turn) break;
    const Curve& curve = *tasks[turn->task].curve;
    int64_t& done = trials[turn->task];
    const int64_t slice =
        std::min({turn->trials, budget, static_cast<int64_t>(curve.size()) - done});
    done += slice;
    budget -= slice;
    scheduler.Record(turn->task, {.trials = done,
                                  .best_seconds = done > 0 ? curve[done - 1] : std::nullopt,
                                  .spent = static_cast<double>(done),
                                  .finished = done == static_cast<int64_t>(curve.size())});
  }
  Outcome outcome;
  double optimum = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const absl::Span<const double> times = tasks[i].space->ascending_milliseconds();
    const std::optional<double> best =
        trials[i] > 0 ? (*tasks[i].curve)[trials[i] - 1] : std::nullopt;
    outcome.total += tasks[i].weight * best.value_or(times.back());
    optimum += tasks[i].weight * times.front();
  }
  outcome.excess = outcome.total / optimum - 1;
  const auto [least, most] = std::minmax_element(trials.begin(), trials.end());
  outcome.least = *least;
  outcome.most = *most;
  return outcome;
}

enum class Weights { kRandom, kOne, kExchanged };

const char* TitleOf(Weights weights) {
  switch (weights) {
    case Weights::kRandom:
      return "shares of the time from 1 to 100";
    case Weights::kOne:
      return "every weight 1";
    case Weights::kExchanged:
      return "every weight 1, the files' times exchanged";
  }
  return "";
}

// Of each task in a draw.
std::vector<double> DrawWeights(Weights weights, const std::vector<RecordedFile>& spaces, int tasks,
                                int draw) {
  std::mt19937_64 random(kFirstSeed + draw);
  std::uniform_real_distribution<double> exponent(0, std::log(100.0));
  std::vector<double> own;  // optimum of each file
  for (const RecordedFile& file : spaces)
    own.push_back(file.space->ascending_milliseconds().front());
  std::vector<double> given = own;
  if (weights == Weights::kExchanged) std::shuffle(given.begin(), given.end(), random);
  std::vector<double> drawn;
  for (int t = 0; t < tasks; ++t) {
    const size_t file = static_cast<size_t>(t) % spaces.size();
    const double time = weights == Weights::kRandom ? std::exp(exponent(random)) : given[file];
    drawn.push_back(time / own[file]);
  }
  return drawn;
}

// Mean and half the width of its 95% interval.
std::pair<double, double> MeanOf(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  // Student's t of 49 degrees of freedom, which at least 50 draws have.
  return {mean, 2.01 * std::sqrt(squares / (n - 1) / n)};
}

void Compare(const std::vector<std::vector<Task>>& draws, int64_t budget_per_task) {
  const TaskSchedulerOptions gain;
  TaskSchedulerOptions equal;
  equal.floor = budget_per_task;
  std::vector<double> saved, excess_gain, excess_equal;
  int better = 0, worse = 0;
  int64_t least = 0, most = 0;
  for (const std::vector<Task>& tasks : draws) {
    const int64_t budget = budget_per_task * static_cast<int64_t>(tasks.size());
    const Outcome by_gain = Share(tasks, budget, gain);
    const Outcome by_equal = Share(tasks, budget, equal);
    excess_gain.push_back(by_gain.excess);
    excess_equal.push_back(by_equal.excess);
    saved.push_back(1 - by_gain.total / by_equal.total);
    better += by_gain.total < by_equal.total;
    worse += by_gain.total > by_equal.total;
    least = least == 0 ? by_gain.least : std::min(least, by_gain.least);
    most = std::max(most, by_gain.most);
  }
  const auto [mean, half] = MeanOf(saved);
  std::printf(
      "%6lld trials a task: over the optimum by equal shares %5.2f%%, by gain %5.2f%%; time saved "
      "%.2f%% +- %.2f%%, better in %d, worse in %d of %zu; %lld to %lld trials\n",
      static_cast<long long>(budget_per_task), 100 * MeanOf(excess_equal).first,
      100 * MeanOf(excess_gain).first, 100 * mean, 100 * half, better, worse, draws.size(),
      static_cast<long long>(least), static_cast<long long>(most));
}

int Run(int argc, char** argv) {
  if (argc < 6) return Fail("expected STRATEGY TASKS TRIALS,… DRAWS FILE…");
  const absl::StatusOr<StrategyChoice> strategy = ParseStrategy(argv[1]);
  if (!strategy.ok()) return Fail(std::string(strategy.status().message()));
  const int count = std::atoi(argv[2]);
  std::vector<int64_t> budgets;
  for (absl::string_view word : absl::StrSplit(argv[3], ',')) {
    int64_t trials = 0;
    if (!absl::SimpleAtoi(word, &trials) || trials < 1)
      return Fail(absl::StrCat(word, " is no number of trials"));
    budgets.push_back(trials);
  }
  const int draws = std::atoi(argv[4]);
  if (count < 1 || draws < 50) return Fail("expected at least one task and 50 draws");
  const int files = argc - 5;
  const int runs_per_draw = (count + files - 1) / files;
  // What no share exceeds but by rare draws; a search that is there has ended.
  const int64_t longest = 6 * *std::max_element(budgets.begin(), budgets.end());
  std::vector<RecordedFile> spaces;
  std::vector<std::vector<Curve>> curves;
  for (int i = 5; i < argc; ++i) {
    absl::StatusOr<RecordedFile> file = ReadRecordedFile(argv[i], {});
    if (!file.ok()) return Fail(std::string(file.status().message()));
    const absl::StatusOr<std::vector<SimulatedRun>> runs =
        Simulate(*file->space, *strategy,
                 {.trials = static_cast<int>(longest),
                  .seeds = draws * runs_per_draw,
                  .first_seed = kFirstSeed,
                  .batch = kBatch});
    if (!runs.ok()) return Fail(std::string(runs.status().message()));
    std::vector<Curve>& of_file = curves.emplace_back();
    for (const SimulatedRun& run : *runs) of_file.push_back(CurveOf(run));
    spaces.push_back(*std::move(file));
  }
  for (Weights weights : {Weights::kRandom, Weights::kOne, Weights::kExchanged}) {
    std::vector<std::vector<Task>> all;
    for (int draw = 0; draw < draws; ++draw) {
      const std::vector<double> weight = DrawWeights(weights, spaces, count, draw);
      std::vector<Task>& tasks = all.emplace_back();
      for (int t = 0; t < count; ++t) {
        tasks.push_back({spaces[t % files].space.get(),
                         &curves[t % files][draw * runs_per_draw + t / files], weight[t]});
      }
    }
    std::printf("%d tasks, %s\n", count, TitleOf(weights));
    for (int64_t budget : budgets) Compare(all, budget);
  }
  return 0;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) { return tilewright::Run(argc, argv); }
