// Whether the verdict of a run can be trusted when every reading is noisy.
//
//   absl::StatusOr<NoiseReport> report = SimulateNoise(space, *strategy, {.trials = 400});
//   double trusted = report->share_within(); // of runs whose verdict names a schedule truly near
//   the best
//
// On a recorded space with raw samples, runs are simulated as they are on a device: screening sees
// one sample of each configuration, drawn from those recorded; then the finals are held by their
// own rules (finals.h), one freshly drawn sample per entrant and round. What is true is the median
// of all recorded samples. The anchor, which is also the incumbent, is the run's first schedule
// that did not fail.
#ifndef TILEWRIGHT_SEARCH_NOISE_H_
#define TILEWRIGHT_SEARCH_NOISE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "search/finals.h"
#include "search/simulate.h"

namespace tilewright {

// Of a verdict's schedule against the best of the run: how much slower it may truly be.
inline constexpr double kNearTheBest = 0.01;

struct NoiseReport {
  // For each run that had a verdict: the true time of the winner / the best true time of all
  // schedules that the run evaluated, minus one.
  std::vector<double> losses;
  int runs = 0;
  // Schedules compared with themselves, by the verdict's rounds: how often they were called faster
  // or slower.
  int self_comparisons = 0;
  int self_differences = 0;

  double share_within() const;  // of runs: those whose loss is at most kNearTheBest
  double share_self_different() const;
};

// Options as for Simulate; `reading` is set here. InvalidArgument: the space has no samples, or an
// option is out of range.
absl::StatusOr<NoiseReport> SimulateNoise(const RecordedSpace& space,
                                          const StrategyChoice& strategy, SimulateOptions options,
                                          const FinalsRules& rules = {});

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_NOISE_H_
