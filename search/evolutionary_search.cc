// Evolution guided by a cost model.
//
// First `initial` schedules are measured: the starts, then draws from every variant in equal
// shares; of a handful of draws the surrogate takes the best for every other place, so that the
// first batch holds both promising and unbiased schedules. A variant whose bound is far above
// another's has no share: measuring it once may cost more than the rest of the batch.
//
// From then on each batch is chosen from a pool made of
//   all neighbours of the best measured schedules (one decision changed),
//   walks of two and three changes from them,
//   crosses of two of them, decision by decision,
//   fresh uniform draws.
// The surrogate ranks the pool; the batch takes from the top, at most a quarter of it from one
// parent, and a share
// (`random_share`) uniformly at random from the whole space. The share is the way out when the
// model is wrong: it grows to one half while `patience` results in a row bring no improvement.
// Without a surrogate offspring of better parents are likelier to be taken, which is a plain
// genetic algorithm.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "search/proposals.h"
#include "search/strategies.h"

namespace tilewright {
namespace {

class EvolutionarySearch : public Strategy {
 public:
  explicit EvolutionarySearch(const StrategyContext& context)
      : space_(*context.space),
        surrogate_(context.surrogate),
        random_(context.seed),
        starts_(context.starts.begin(), context.starts.end()),
        proposals_(context.space),
        initial_(Parameter(context, "initial")),
        elite_(std::max(1, Parameter(context, "elite"))),
        pool_size_(std::max(1, Parameter(context, "pool"))),
        random_share_(std::clamp(context.parameters.at("random_share"), 0.0, 1.0)),
        patience_(std::max(1, Parameter(context, "patience"))) {}

  std::vector<absl::uint128> Propose(int count) override {
    std::vector<absl::uint128> batch;
    while (!starts_.empty() && static_cast<int>(batch.size()) < count) {
      if (proposals_.Take(starts_.front())) batch.push_back(starts_.front());
      starts_.pop_front();
    }
    while (static_cast<int>(batch.size()) < count && (measured_.empty() || drawn_ < initial_)) {
      const std::optional<absl::uint128> next = InitialDraw();
      if (!next) break;
      proposals_.Take(*next);
      batch.push_back(*next);
      ++drawn_;
    }
    if (static_cast<int>(batch.size()) < count && !measured_.empty()) Evolve(count, &batch);
    while (static_cast<int>(batch.size()) < count) {
      const std::optional<absl::uint128> next = proposals_.Sample(random_, 0, space_.Count());
      if (!next) break;
      proposals_.Take(*next);
      batch.push_back(*next);
    }
    return batch;
  }

  void Observe(const Observation& observation) override {
    proposals_.Take(observation.index);
    ++since_improvement_;
    if (!observation.ok) return;
    // 1% is the least difference that a verdict calls faster.
    if (measured_.empty() || observation.cost < 0.99 * measured_.front().first)
      since_improvement_ = 0;
    const std::pair<double, absl::uint128> entry(observation.cost, observation.index);
    measured_.insert(std::upper_bound(measured_.begin(), measured_.end(), entry), entry);
  }

 private:
  struct Offspring {
    absl::uint128 index;
    absl::uint128 parent;  // a fresh draw's own index
    int rank;  // the parent's among the elite, 0 the best; a fresh draw's is that of the worst
  };

  static int Parameter(const StrategyContext& context, const char* name) {
    return static_cast<int>(context.parameters.at(name));
  }

  // The next schedule of the first phase: variants take turns; every other draw is the best of
  // several by the surrogate.
  std::optional<absl::uint128> InitialDraw() {
    if (parts_.empty()) ChooseParts();
    const std::vector<Space::Part>& parts = parts_;
    for (size_t tried = 0; tried < parts.size(); ++tried) {
      const Space::Part& part = parts[turn_ % parts.size()];
      const bool guided = surrogate_ != nullptr && (turn_ / parts.size()) % 2 == 0;
      ++turn_;
      std::vector<absl::uint128> draws;
      for (int i = 0; i < (guided ? kGuidedDraws : 1); ++i) {
        if (std::optional<absl::uint128> draw = proposals_.Sample(random_, part.begin, part.end))
          draws.push_back(*draw);
      }
      if (draws.empty()) continue;  // this variant is used up: the next one's turn
      if (!guided) return draws.front();
      const std::vector<double> scores = surrogate_->Score(draws);
      return draws[std::min_element(scores.begin(), scores.end()) - scores.begin()];
    }
    return std::nullopt;
  }

  // The variants that have a share of the first phase.
  void ChooseParts() {
    const absl::Span<const Space::Part> all = space_.Parts();
    std::vector<double> bounds(all.size(), 0);
    if (surrogate_ != nullptr && all.size() > 1) {
      for (size_t p = 0; p < all.size(); ++p) {
        std::vector<absl::uint128> draws;
        for (int i = 0; i < kGuidedDraws; ++i) {
          draws.push_back(all[p].begin + UniformIndex(random_, all[p].end - all[p].begin));
        }
        const std::vector<double> seconds = surrogate_->BoundSeconds(draws);
        bounds[p] = *std::min_element(seconds.begin(), seconds.end());
      }
    }
    const double best = *std::min_element(bounds.begin(), bounds.end());
    for (size_t p = 0; p < all.size(); ++p) {
      if (bounds[p] <= kHopelessBound * best) parts_.push_back(all[p]);
    }
  }

  void Evolve(int count, std::vector<absl::uint128>* batch) {
    const double share =
        since_improvement_ >= patience_ ? std::max(0.5, random_share_) : random_share_;
    const int wanted = count - static_cast<int>(batch->size());
    // Stochastic rounding, so that a share is kept with batches of one as well.
    int uniform = static_cast<int>(std::floor(share * wanted + Uniform01()));
    std::vector<Offspring> pool = MakePool();
    std::vector<double> scores;
    if (surrogate_ != nullptr) {
      std::vector<absl::uint128> indices;
      for (const Offspring& offspring : pool) indices.push_back(offspring.index);
      scores = surrogate_->Score(indices);
    } else {
      for (const Offspring& offspring : pool) scores.push_back(Uniform01() * (1 + offspring.rank));
    }
    std::vector<int> order(pool.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return scores[a] < scores[b]; });
    const int most_per_parent = std::max(1, (wanted + 3) / 4);
    absl::flat_hash_map<absl::uint128, int> per_parent;
    for (int i : order) {
      if (static_cast<int>(batch->size()) + uniform >= count) break;
      if (per_parent[pool[i].parent] >= most_per_parent || !proposals_.Take(pool[i].index))
        continue;
      ++per_parent[pool[i].parent];
      batch->push_back(pool[i].index);
    }
  }

  std::vector<Offspring> MakePool() {
    std::vector<Offspring> pool;
    absl::flat_hash_set<absl::uint128> seen;
    const int elites = std::min<int>(elite_, measured_.size());
    const auto add = [&](absl::uint128 index, int parent) {
      if (proposals_.Contains(index) || !seen.insert(index).second) return;
      pool.push_back({index, parent < elites ? measured_[parent].second : index, parent});
    };
    std::vector<std::vector<absl::uint128>> neighbours;
    for (int e = 0; e < elites; ++e) neighbours.push_back(space_.Neighbours(measured_[e].second));
    // Half of the pool at most are neighbours, the better parents first.
    for (int e = 0; e < elites; ++e) {
      std::vector<absl::uint128> shuffled = neighbours[e];
      Shuffle(&shuffled);
      for (absl::uint128 index : shuffled) {
        if (static_cast<int>(pool.size()) >= pool_size_ / 2) break;
        add(index, e);
      }
    }
    for (int i = 0; i < pool_size_ / 6; ++i) {
      const int e = PickElite(elites);
      absl::uint128 index = measured_[e].second;
      const int steps = 2 + static_cast<int>(Below(2));
      for (int step = 0; step < steps; ++step) {
        const std::vector<absl::uint128> around =
            step == 0 ? neighbours[e] : space_.Neighbours(index);
        if (around.empty()) break;
        index = around[Below(around.size())];
      }
      add(index, e);
    }
    for (int i = 0; i < pool_size_ / 6 && elites > 1; ++i) {
      const int a = PickElite(elites);
      const int b = PickElite(elites);
      if (const std::optional<absl::uint128> child =
              Cross(measured_[a].second, measured_[b].second)) {
        add(*child, a);
      }
    }
    for (int i = 0; i < pool_size_ / 6; ++i) {
      if (std::optional<absl::uint128> draw = proposals_.Sample(random_, 0, space_.Count()))
        add(*draw, elites);
    }
    return pool;
  }

  // The better an elite, the likelier: rank r with probability proportional to 1 / (r + 1).
  int PickElite(int elites) {
    double total = 0;
    for (int e = 0; e < elites; ++e) total += 1.0 / (e + 1);
    double left = Uniform01() * total;
    for (int e = 0; e < elites; ++e) {
      left -= 1.0 / (e + 1);
      if (left <= 0) return e;
    }
    return elites - 1;
  }

  // Each decision of `a`, or `b`'s value for it where it has one, with equal chance. Absent if the
  // child is illegal or of two variants.
  std::optional<absl::uint128> Cross(absl::uint128 a, absl::uint128 b) {
    Schedule child = space_.At(a);
    const Schedule other = space_.At(b);
    if (child.variant != other.variant) return std::nullopt;
    for (auto& [name, token] : child.decisions) {
      const std::string* theirs = other.Find(name);
      if (theirs != nullptr && Below(2) == 1) token = *theirs;
    }
    const absl::StatusOr<absl::uint128> index = space_.IndexOf(child);
    if (!index.ok()) return std::nullopt;
    return *index;
  }

  uint64_t Below(uint64_t bound) { return absl::Uint128Low64(UniformIndex(random_, bound)); }
  double Uniform01() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  void Shuffle(std::vector<absl::uint128>* values) {
    for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[Below(i)]);
  }

  static constexpr int kGuidedDraws = 16;
  // The bound may be wrong by a small factor, not by this one.
  static constexpr double kHopelessBound = 16;

  const Space& space_;
  Surrogate* surrogate_;
  std::mt19937_64 random_;
  std::deque<absl::uint128> starts_;
  Proposals proposals_;
  const int initial_;
  const int elite_;
  const int pool_size_;
  const double random_share_;
  const int patience_;
  std::vector<Space::Part> parts_;                          // those with a share of the first phase
  std::vector<std::pair<double, absl::uint128>> measured_;  // cost, index; best first
  int since_improvement_ = 0;
  int drawn_ = 0;
  size_t turn_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> NewEvolutionarySearch(const StrategyContext& context) {
  return std::make_unique<EvolutionarySearch>(context);
}

}  // namespace tilewright
