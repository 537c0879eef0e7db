// A genetic algorithm without generations: the population is the best schedules measured so far.
//
// A child has two parents, each the best of `tournament` drawn from the population, and takes each
// decision from either with equal chance; with chance `mutation` it then goes on to a neighbour. A
// child that is illegal or was measured is tried again; if that goes on, it becomes a neighbour of
// a parent. (Steady-state replacement: Syswerda, Foundations of Genetic Algorithms, 1991.)
//
// Batches: the children of a batch have the parents known before it; a larger batch is a larger
// brood.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "search/batch_search.h"
#include "search/strategies.h"

namespace tilewright {
namespace {

class GeneticSearch : public BatchSearch {
 public:
  explicit GeneticSearch(const StrategyContext& context)
      : BatchSearch(context),
        initial_(IntegerParameter(context, "initial", 1)),
        most_(IntegerParameter(context, "population", 2)),
        tournament_(IntegerParameter(context, "tournament", 1)),
        mutation_(context.parameters.at("mutation")) {}

 private:
  std::optional<absl::uint128> Next() override {
    if (results_ < initial_ || population_.empty()) return std::nullopt;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      std::optional<absl::uint128> child = Cross(Parent(), Parent(), 0.5);
      if (child && Uniform01() < mutation_) child = Walk(*child, 1);
      if (child && !Proposed(*child)) return child;
    }
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::vector<absl::uint128> neighbours = NewNeighbours(Parent());
      if (!neighbours.empty()) return neighbours.front();
    }
    return std::nullopt;
  }

  void Learn(const Observation& observation) override {
    ++results_;
    if (!observation.ok) return;
    const std::pair<double, absl::uint128> entry(observation.cost, observation.index);
    population_.insert(std::upper_bound(population_.begin(), population_.end(), entry), entry);
    if (static_cast<int>(population_.size()) > most_) population_.pop_back();
  }

  absl::uint128 Parent() {
    size_t best = population_.size();
    for (int i = 0; i < tournament_; ++i) best = std::min<size_t>(best, Below(population_.size()));
    return population_[best].second;
  }

  static constexpr int kAttempts = 12;

  const int initial_;
  const int most_;
  const int tournament_;
  const double mutation_;
  std::vector<std::pair<double, absl::uint128>> population_;  // cost, index; best first
  int results_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> NewGeneticSearch(const StrategyContext& context) {
  return std::make_unique<GeneticSearch>(context);
}

}  // namespace tilewright
