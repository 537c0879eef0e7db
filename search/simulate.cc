#include "search/simulate.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace tilewright {
namespace {

// One run, on a thread of its own choice.
absl::StatusOr<SimulatedRun> SimulateOne(const RecordedSpace& space, const StrategyChoice& strategy,
                                         uint64_t seed, const SimulateOptions& options) {
  std::unique_ptr<LearningSurrogate> surrogate;
  if (options.make_surrogate) {
    absl::StatusOr<std::unique_ptr<LearningSurrogate>> made = options.make_surrogate(space, seed);
    if (!made.ok()) return made.status();
    surrogate = *std::move(made);
  }
  const std::unique_ptr<SearchState> search =
      SearchState::Make(&space, strategy, seed, options.beginning, surrogate.get());
  // Noise is no part of the strategy: it has a stream of its own.
  std::mt19937_64 noise(~seed);
  SimulatedRun run{.seed = seed};
  std::optional<double> anchor;
  while (static_cast<int>(run.evaluations.size()) < options.trials) {
    const int left = options.trials - static_cast<int>(run.evaluations.size());
    const Batch batch = search->Propose(std::min(options.batch, left));
    if (!search->training_status().ok()) return search->training_status();
    if (batch.indices.empty()) break;
    for (absl::uint128 index : batch.indices) {
      const RecordedConfiguration& configuration = space.configuration(index);
      SimulatedEvaluation evaluation{.index = index, .milliseconds = configuration.milliseconds};
      if (evaluation.milliseconds && options.reading)
        evaluation.milliseconds = options.reading(configuration, noise);
      Result result{.index = index, .session = "recorded"};
      if (evaluation.milliseconds) {
        if (!anchor) anchor = *evaluation.milliseconds;
        result.cost = *evaluation.milliseconds / *anchor;
      }
      search->Commit(result);
      run.evaluations.push_back(evaluation);
    }
  }
  return run;
}

// Leaves `run` absent and returns false where there is not enough memory.
bool TrySimulateOne(const RecordedSpace& space, const StrategyChoice& strategy, uint64_t seed,
                    const SimulateOptions& options,
                    std::optional<absl::StatusOr<SimulatedRun>>* run) {
  try {
    *run = SimulateOne(space, strategy, seed, options);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

absl::Status CheckSimulateOptions(const SimulateOptions& options) {
  if (options.trials < 1 || options.seeds < 1 || options.batch < 1 || options.jobs < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "simulate: trials (", options.trials, "), seeds (", options.seeds, ") and batch (",
        options.batch, ") must be at least 1, jobs (", options.jobs, ") at least 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<SimulatedRun>> Simulate(const RecordedSpace& space,
                                                   const StrategyChoice& strategy,
                                                   const SimulateOptions& options) {
  if (absl::Status checked = CheckSimulateOptions(options); !checked.ok()) return checked;
  std::vector<std::optional<absl::StatusOr<SimulatedRun>>> runs(options.seeds);
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < options.seeds; i = next++) {
      if (!TrySimulateOne(space, strategy, options.first_seed + i, options, &runs[i])) return;
    }
  };
  // A run never waits, so that more threads than cores take memory and nothing else.
  int wanted = std::min(static_cast<int>(std::thread::hardware_concurrency()), options.seeds);
  if (options.jobs > 0) wanted = std::min(wanted, options.jobs);
  std::vector<std::thread> threads;
  try {
    for (int t = 1; t < wanted; ++t) threads.emplace_back(work);
  } catch (const std::exception&) {
    // No more threads or memory: those that there are do all the work.
  }
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<SimulatedRun> finished;
  for (int i = 0; i < options.seeds; ++i) {
    // What had no memory beside the others.
    if (!runs[i]) TrySimulateOne(space, strategy, options.first_seed + i, options, &runs[i]);
    if (!runs[i]) {
      return absl::ResourceExhaustedError(
          "simulate: there is not enough memory for a run; fewer --trials or a smaller pool of the "
          "strategy take less");
    }
    if (!runs[i]->ok()) return runs[i]->status();
    finished.push_back(**std::move(runs[i]));
  }
  return finished;
}

std::string RunLine(const RecordedSpace& space, const std::string& strategy,
                    const SimulatedRun& run) {
  nlohmann::ordered_json evaluations = nlohmann::ordered_json::array();
  for (const SimulatedEvaluation& evaluation : run.evaluations) {
    nlohmann::ordered_json pair = nlohmann::ordered_json::array({nullptr, nullptr});
    if (evaluation.milliseconds) pair[0] = *evaluation.milliseconds;
    pair[1] = space.configuration(evaluation.index).key;
    evaluations.push_back(std::move(pair));
  }
  nlohmann::ordered_json line;
  line["strategy"] = strategy;
  line["seed"] = run.seed;
  line["evals"] = std::move(evaluations);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tilewright
