// How well strategies searched a recorded space, in the terms of the literature.
//
//   absl::StatusOr<std::vector<StrategyScore>> scores = ScoreRuns(space, {{"random", runs}});
//   scores->front().pcal;   // 0: no better than random search; 1: the optimum at once
//
// A run is judged by its best recorded time after each evaluation. An evaluation of what failed
// costs as much as any; one of what the run had already evaluated is free and ignored. Before the
// first success the best is the worst time of the space; after the last evaluation it stays.
//
//   P(k) = (R(k) - S(k)) / (R(k) - optimum), averaged over k = 1 … used
//     p      S the median over runs, R the calculated random search of "A methodology for comparing
//            optimization algorithms for auto-tuning" (Willemsen et al., FGCS 2024): the value at
//            the mean rank among what did not fail. Random search scores above 0.
//     pmean  the same R, S the mean over runs
//     pcal   S the mean over runs, R the exact expectation of random search without repeats over
//            all configurations, those that fail included: random search scores 0
//   budget: the evaluations after which that random search is expected 96% of the way from the
//   median to the optimum; `used` is the lesser of it and the cap.
#ifndef TILEWRIGHT_SEARCH_SCORE_H_
#define TILEWRIGHT_SEARCH_SCORE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "search/recorded_space.h"
#include "search/simulate.h"

namespace tilewright {

inline constexpr std::array<int, 5> kScoredEvaluations = {25, 50, 100, 200, 400};
inline constexpr std::array<int, 2> kScoredPercents = {5, 1};

// The runs of one strategy on one space, as what was evaluated in order. An absent index is a key
// that the space does not have; it counts as a failure.
struct StrategyRuns {
  std::string strategy;
  std::vector<std::vector<std::optional<absl::uint128>>> runs;
  int64_t differing_times = 0;  // evaluations whose logged time is not the recorded one
};
StrategyRuns RunsOf(const std::string& strategy, absl::Span<const SimulatedRun> runs);

struct StrategyScore {
  std::string strategy;
  int seeds = 0;
  double evaluations = 0;  // median over runs, without repeats
  int budget = 0;
  int used = 0;
  double p = 0;
  double pmean = 0;
  double pcal = 0;
  std::optional<double> pcal_error;  // standard error of pcal over runs; absent for one run
  // Optimum / best after each of kScoredEvaluations, 0 before the first success; mean over runs and
  // half the width of its 95% interval (absent for one run).
  std::array<double, kScoredEvaluations.size()> at{};
  std::array<std::optional<double>, kScoredEvaluations.size()> at_interval;
  // By kScoredPercents: the evaluations until a time within that of the optimum, median over runs
  // (absent: half of them never got there), and the share of runs that did.
  std::array<std::optional<double>, kScoredPercents.size()> to_within;
  std::array<double, kScoredPercents.size()> share_within{};
  double failed_share = 0;  // of evaluations
  int64_t unknown_keys = 0;
  int64_t differing_times = 0;
};

// `cap`: evaluations that count at most; 0: those of the longest run. InvalidArgument: nothing
// succeeded in the space, or there is no run, or an empty one.
absl::StatusOr<std::vector<StrategyScore>> ScoreRuns(const RecordedSpace& space,
                                                     absl::Span<const StrategyRuns> strategies,
                                                     int cap = 0);

// Reads a log of runs (see RunLine), strategies in order of first appearance. InvalidArgument names
// the line.
absl::StatusOr<std::vector<StrategyRuns>> ReadRuns(const RecordedSpace& space,
                                                   const std::string& path);

// Unweighted means over spaces of one strategy's scores, and the least.
struct AggregateScore {
  std::string strategy;
  int spaces = 0;
  double p = 0;
  double least_p = 0;
  double pcal = 0;
  double least_pcal = 0;
  std::array<double, kScoredEvaluations.size()> at{};
  std::array<double, kScoredPercents.size()> share_within{};
  double failed_share = 0;
};
// One per strategy, in order of first appearance.
std::vector<AggregateScore> Aggregate(absl::Span<const std::vector<StrategyScore>> spaces);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_SCORE_H_
