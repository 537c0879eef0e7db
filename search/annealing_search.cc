// Simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983) on the logarithm of the
// cost.
//
// Some chains walk from schedule to neighbouring schedule. A move to a faster one is always made,
// to one that is slower by the factor 1 + x with chance exp(-ln(1 + x) / temperature). The
// temperature falls by a constant factor with every result. A chain that has not moved for
// `patience` results of its own goes back to the best known schedule, and its temperature to the
// initial one.
//
// Batches: chains take turns; a chain that is asked several times in a batch proposes several
// neighbours of where it stands, and answers their results one after the other.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "search/batch_search.h"
#include "search/strategies.h"

namespace tilewright {
namespace {

class AnnealingSearch : public BatchSearch {
 public:
  explicit AnnealingSearch(const StrategyContext& context)
      : BatchSearch(context),
        initial_(IntegerParameter(context, "initial", 1)),
        patience_(IntegerParameter(context, "patience", 1)),
        hot_(context.parameters.at("temperature")),
        cooling_(std::clamp(context.parameters.at("cooling"), 0.0, 1.0)),
        chains_(IntegerParameter(context, "chains", 1)) {}

 private:
  struct Chain {
    std::optional<absl::uint128> at;
    double cost = 0;
    double temperature = 0;
    int unmoved = 0;  // results since the last move
  };

  std::optional<absl::uint128> Next() override {
    if (results_ < initial_ || !best_) return std::nullopt;
    const size_t c = turn_++ % chains_.size();
    Chain& chain = chains_[c];
    if (!chain.at) Restart(&chain);
    const std::vector<absl::uint128> neighbours = NewNeighbours(*chain.at);
    std::optional<absl::uint128> next;
    if (!neighbours.empty()) {
      next = neighbours.front();
    } else {
      for (int steps = 2; !next && steps < 6; ++steps) next = Walk(*chain.at, steps);
    }
    if (next) chain_of_[*next] = c;
    return next;
  }

  void Learn(const Observation& observation) override {
    ++results_;
    if (observation.ok && (!best_ || observation.cost < best_cost_)) {
      best_ = observation.index;
      best_cost_ = observation.cost;
    }
    const auto found = chain_of_.find(observation.index);
    if (found == chain_of_.end()) return;
    Chain& chain = chains_[found->second];
    chain_of_.erase(found);
    chain.temperature *= cooling_;
    ++chain.unmoved;
    const double uphill = observation.ok ? std::log(observation.cost / chain.cost) : 0;
    if (observation.ok &&
        (uphill <= 0 || Uniform01() < std::exp(-uphill / std::max(1e-9, chain.temperature)))) {
      chain.at = observation.index;
      chain.cost = observation.cost;
      chain.unmoved = 0;
    } else if (chain.unmoved >= patience_) {
      Restart(&chain);
    }
  }

  void Restart(Chain* chain) { *chain = {.at = best_, .cost = best_cost_, .temperature = hot_}; }

  const int initial_;
  const int patience_;
  const double hot_;
  const double cooling_;
  std::vector<Chain> chains_;
  absl::flat_hash_map<absl::uint128, size_t> chain_of_;  // of proposals without a result
  std::optional<absl::uint128> best_;
  double best_cost_ = 0;
  int results_ = 0;
  size_t turn_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> NewAnnealingSearch(const StrategyContext& context) {
  return std::make_unique<AnnealingSearch>(context);
}

}  // namespace tilewright
