// Differential evolution (Storn and Price, Journal of Global Optimization 11, 1997) on decisions.
//
// Each member of a population is challenged in turn by a trial schedule: the member, with each
// decision replaced, with chance `crossover`, by the donor's. The donor is the best member or
// another one (`greed` is the chance of the best) to which the difference of two further members
// is added: values have no arithmetic, so "adding b - c" takes b's value, with chance `factor`, of
// those decisions in which b and c differ. The trial takes the member's place if it is no slower.
// A trial that is illegal or was measured is tried again and becomes a neighbour of what it was.
//
// Batches: challenges of a batch are independent; one whose member was replaced meanwhile meets its
// successor.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "search/batch_search.h"
#include "search/strategies.h"

namespace tilewright {
namespace {

class DifferentialSearch : public BatchSearch {
 public:
  explicit DifferentialSearch(const StrategyContext& context)
      : BatchSearch(context),
        size_(IntegerParameter(context, "population", 4)),
        factor_(context.parameters.at("factor")),
        crossover_(context.parameters.at("crossover")),
        greed_(context.parameters.at("greed")) {}

 private:
  using Member = std::pair<double, absl::uint128>;  // cost, index

  std::optional<absl::uint128> Next() override {
    if (population_.size() < size_) return std::nullopt;
    const size_t target = turn_++ % population_.size();
    std::optional<absl::uint128> trial;
    for (int attempt = 0; attempt < kAttempts && !trial; ++attempt) {
      trial = Trial(target);
      if (trial && Proposed(*trial)) trial = Walk(*trial, 1);
    }
    if (!trial) {
      const std::vector<absl::uint128> neighbours = NewNeighbours(population_[target].second);
      if (!neighbours.empty()) trial = neighbours.front();
    }
    if (trial) challenged_[*trial] = target;
    return trial;
  }

  std::optional<absl::uint128> Trial(size_t target) {
    Schedule trial = space().At(population_[target].second);
    const Schedule base = space().At(
        Uniform01() < greed_ ? std::min_element(population_.begin(), population_.end())->second
                             : Any());
    const Schedule plus = space().At(Any());
    const Schedule minus = space().At(Any());
    if (base.variant != trial.variant) return std::nullopt;
    for (auto& [name, token] : trial.decisions) {
      if (Uniform01() >= crossover_) continue;
      const std::string* value = base.Find(name);
      const std::string* to = plus.Find(name);
      const std::string* from = minus.Find(name);
      if (to != nullptr && from != nullptr && *to != *from && Uniform01() < factor_) value = to;
      if (value != nullptr) token = *value;
    }
    const absl::StatusOr<absl::uint128> index = space().IndexOf(trial);
    if (!index.ok()) return std::nullopt;
    return *index;
  }

  absl::uint128 Any() { return population_[Below(population_.size())].second; }

  void Learn(const Observation& observation) override {
    const auto found = challenged_.find(observation.index);
    std::optional<size_t> target;
    if (found != challenged_.end()) {
      target = found->second;
      challenged_.erase(found);
    }
    if (!observation.ok) return;
    const Member member(observation.cost, observation.index);
    if (!target && population_.size() < size_) {
      population_.push_back(member);
    } else {
      // What nobody was challenged by (a start, a uniform draw) challenges the slowest.
      Member& other =
          target ? population_[*target] : *std::max_element(population_.begin(), population_.end());
      if (member.first <= other.first) other = member;
    }
  }

  static constexpr int kAttempts = 8;

  const size_t size_;
  const double factor_;
  const double crossover_;
  const double greed_;
  std::vector<Member> population_;
  absl::flat_hash_map<absl::uint128, size_t> challenged_;  // by trials without a result
  size_t turn_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> NewDifferentialSearch(const StrategyContext& context) {
  return std::make_unique<DifferentialSearch>(context);
}

}  // namespace tilewright
