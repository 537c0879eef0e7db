// Which of a pool of schedules to measure next, by how much each is expected to better the best.
//
//   ExpectedImprovement improvement(&space, seed);
//   improvement.Observe(observation);
//   improvement.Learn(pending);
//   for (int i : improvement.Choose(pool, 16)) propose(pool[i]);
//
// A Gaussian process (costmodel/gaussian_process.h) over the encoded decisions
// (decision_encoding.h) predicts log(cost) with a deviation; the acquisition is the expectation of
// max(0, best - 1% - cost): it takes a promising schedule and an uncertain one for what each may
// bring, with no weight to set, and 1% is the least difference that counts as faster. A batch is
// chosen one after another, each time as if those before it (and the schedules that are proposed
// but not measured) had come out at their mean (the "Kriging believer": Ginsbourger, Le Riche,
// Carraro, 2010), so that it spreads.
//
// What is much slower than most tells only that it is: costs are cut off at a quantile of those
// seen, and a failure counts as somewhat slower than that. Not thread-safe.
#ifndef TILEWRIGHT_SEARCH_EXPECTED_IMPROVEMENT_H_
#define TILEWRIGHT_SEARCH_EXPECTED_IMPROVEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "costmodel/gaussian_process.h"
#include "schedule/space.h"
#include "search/decision_encoding.h"
#include "search/strategy.h"

namespace tilewright {

class ExpectedImprovement {
 public:
  // Borrows the space.
  ExpectedImprovement(const Space* space, uint64_t seed);
  void Observe(const Observation& observation);
  // Learns from what was observed. `pending`: proposed and not yet observed.
  void Learn(absl::Span<const absl::uint128> pending);
  // Places in `pool`, the best first, at most `count`, by what was learned last. Empty if nothing
  // can be predicted: fewer than two successes then, or a pool without entries.
  std::vector<int> Choose(absl::Span<const absl::uint128> pool, int count);

 private:
  struct Target {
    std::vector<absl::uint128> indices;
    std::vector<double> values;
  };
  Target MakeTarget() const;
  bool Fit(absl::Span<const absl::uint128> pending);

  DecisionEncoding encoding_;
  GaussianProcess process_;
  std::vector<Observation> observations_;
  int successes_ = 0;
  bool fitted_ = false;
  double best_ = 0;      // log of the least cost
  size_t tuned_at_ = 0;  // observations when lengths and noise were last searched for
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_EXPECTED_IMPROVEMENT_H_
