// What the strategies without a model share: starts first, then the strategy's own proposals, and a
// uniform draw wherever it has none in mind, so that a batch is full as long as anything is left.
//
// Batches: results of a batch come after the whole of it was proposed, so a strategy proposes from
// what it knew before, as often as it is asked. Each of them says in its file what that means.
#ifndef TILEWRIGHT_SEARCH_BATCH_SEARCH_H_
#define TILEWRIGHT_SEARCH_BATCH_SEARCH_H_

#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "search/proposals.h"
#include "search/strategy.h"

namespace tilewright {

class BatchSearch : public Strategy {
 public:
  explicit BatchSearch(const StrategyContext& context);
  std::vector<absl::uint128> Propose(int count) final;
  void Observe(const Observation& observation) final;

 protected:
  // A schedule to measure, or absent. One that was proposed before counts as absent.
  virtual std::optional<absl::uint128> Next() = 0;
  // A result of any schedule: of Next(), a uniform draw, a start, or one that others chose.
  virtual void Learn(const Observation& observation) = 0;

  const Space& space() const { return space_; }
  bool Proposed(absl::uint128 index) const { return proposals_.Contains(index); }
  // Uniform below `bound` (> 0), and in [0, 1).
  uint64_t Below(uint64_t bound);
  double Uniform01();
  template <typename T>
  void Shuffle(std::vector<T>* values) {
    for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[Below(i)]);
  }
  // A uniform draw from what is left of the space.
  std::optional<absl::uint128> UniformDraw();
  // The neighbours of `index` that were not proposed, in random order.
  std::vector<absl::uint128> NewNeighbours(absl::uint128 index);
  // A walk of `steps` changes from `index`; absent if it ends at what was proposed.
  std::optional<absl::uint128> Walk(absl::uint128 index, int steps);
  // Each decision of `a`, or with chance `share` the value that `b` has for it. Absent if they are
  // of two variants, or the child is illegal.
  std::optional<absl::uint128> Cross(absl::uint128 a, absl::uint128 b, double share);

 private:
  const Space& space_;
  std::mt19937_64 random_;
  std::deque<absl::uint128> starts_;
  Proposals proposals_;
};

// A parameter of the row, as an integer of at least `least`.
int IntegerParameter(const StrategyContext& context, const char* name, int least);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_BATCH_SEARCH_H_
