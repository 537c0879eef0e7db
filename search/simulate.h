// Replays a strategy on a recorded space: hundreds of runs in seconds, without a device.
//
//   absl::StatusOr<StrategyChoice> strategy = ParseStrategy("genetic{population=32}");
//   absl::StatusOr<std::vector<SimulatedRun>> runs = Simulate(space, *strategy, {.trials = 200});
//   for (const SimulatedRun& run : *runs) out << RunLine(space, "genetic", run) << "\n";
//
// A run is the loop of the tuner (search_state.h), with batches that are answered at once: propose
// a batch, commit all of its results in order, train the surrogate if it is due, propose the next.
// Costs are relative to the anchor, as in a real run; here it is the first schedule of the run that
// did not fail, since a file does not say which is the default. A run ends after `trials`
// evaluations or when nothing is left to propose. It is a function of the space, the strategy and
// the seed alone: the number of threads changes nothing.
#ifndef TILEWRIGHT_SEARCH_SIMULATE_H_
#define TILEWRIGHT_SEARCH_SIMULATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "search/recorded_space.h"
#include "search/search_state.h"
#include "search/strategy.h"

namespace tilewright {

struct SimulateOptions {
  int trials = 400;  // evaluations per run
  int seeds = 50;
  uint64_t first_seed = 1;
  int batch = 1;  // proposals at a time
  int jobs = 0;   // threads, at most one per core; 0: one per core
  // What learns in a run, made anew for each; empty, or null when called: no surrogate. Called by
  // several threads at once.
  std::function<absl::StatusOr<std::unique_ptr<LearningSurrogate>>(const RecordedSpace& space,
                                                                   uint64_t seed)>
      make_surrogate;
  // What every run begins from.
  SearchBeginning beginning;
  // What the search sees of a configuration that did not fail, in milliseconds; empty: its time.
  // Lets a noisy reading stand for it.
  std::function<double(const RecordedConfiguration&, std::mt19937_64&)> reading;
};

struct SimulatedEvaluation {
  absl::uint128 index = 0;
  std::optional<double> milliseconds;  // as the search saw it; absent: it failed
};

struct SimulatedRun {
  uint64_t seed = 0;
  std::vector<SimulatedEvaluation> evaluations;  // in order
};

// Runs of seeds first_seed, first_seed + 1, …, in this order. InvalidArgument: an option out of
// range; else what a surrogate's making or training failed with.
absl::StatusOr<std::vector<SimulatedRun>> Simulate(const RecordedSpace& space,
                                                   const StrategyChoice& strategy,
                                                   const SimulateOptions& options);

// One line of a log of runs, without its end (docs/formats/recorded_space.md):
//   {"strategy":"random","seed":1,"evals":[[3.875,"16,1,0"],[null,"16,2,0"]]}
std::string RunLine(const RecordedSpace& space, const std::string& strategy,
                    const SimulatedRun& run);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_SIMULATE_H_
