// Evolution guided by two models.
//
// First the starts are measured, then the two best of what is transferred from another device or,
// if nothing is, `initial` draws from the variants by turns (variant_turns.h); of a handful of
// draws the surrogate takes the best for every other place, so that the first batch holds both
// promising and unbiased schedules.
//
// From then on batches are planned from a pool made of
//   neighbours of the best measured schedules (one decision changed),
//   walks of two and three changes from them,
//   crosses of two of them, decision by decision,
//   fresh uniform draws.
// Each place of a plan is filled from the pool by one of
//   the expected improvement of a Gaussian process over this run's decisions
//   (expected_improvement.h), which explores: it leads for the first hundred results. It is cheap,
//   so it also looks at `fresh` uniform draws, since a good region that no elite is near is found
//   by them alone;
//   the surrogate's ranking (`model_share` of the places once it is trained), which knows plans and
//   other runs, and follows steps and interactions that a smooth process smears; at most a quarter
//   of them from one parent;
//   what is good on another device, again by expected improvement: its best may be bad here, and
//   then those like it come last; every other place, until it is used up. Once eight in a row
//   brought no improvement every eighth place, and the initial draws are made after all;
//   the whole space, uniformly (`random_share`). The share is the way out when both models are
//   wrong: it grows to one half while `patience` results in a row bring no improvement.
// A plan covers `replan` of the results so far (1/16th), however few are asked for at a time, so
// that planning costs the same for one device as for a fleet.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "search/expected_improvement.h"
#include "search/proposals.h"
#include "search/strategies.h"
#include "search/variant_turns.h"

namespace tilewright {
namespace {

class EvolutionarySearch : public Strategy {
 public:
  explicit EvolutionarySearch(const StrategyContext& context)
      : space_(*context.space),
        surrogate_(context.surrogate),
        random_(context.seed),
        starts_(context.starts.begin(), context.starts.end()),
        transferred_(context.transferred),
        from_elsewhere_(context.transferred.begin(), context.transferred.end()),
        proposals_(context.space),
        initial_(Parameter(context, "initial")),
        elite_(Parameter(context, "elite")),
        pool_size_(Parameter(context, "pool")),
        fresh_(Parameter(context, "fresh")),
        random_share_(context.parameters.at("random_share")),
        model_share_(context.parameters.at("model_share")),
        replan_(context.parameters.at("replan")),
        patience_(Parameter(context, "patience")) {
    if (space_.Count() > 0) improvement_.emplace(&space_, context.seed);
  }

  std::vector<absl::uint128> Propose(int count) override {
    std::vector<absl::uint128> batch = ChooseBatch(count);
    pending_.insert(batch.begin(), batch.end());
    return batch;
  }

  void Observe(const Observation& observation) override {
    proposals_.Take(observation.index);
    pending_.erase(observation.index);
    ++observed_;
    improvement_->Observe(observation);
    if (turns_) turns_->Observe(observation);
    ++since_improvement_;
    const bool transferred = from_elsewhere_.contains(observation.index);
    barren_ += transferred;
    if (!observation.ok) return;
    // 1% is the least difference that a verdict calls faster.
    if (measured_.empty() || observation.cost < 0.99 * measured_.front().first) {
      since_improvement_ = 0;
      if (transferred) barren_ = 0;
    }
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

  std::vector<absl::uint128> ChooseBatch(int count) {
    std::vector<absl::uint128> batch;
    while (!starts_.empty() && static_cast<int>(batch.size()) < count) {
      if (proposals_.Take(starts_.front())) batch.push_back(starts_.front());
      starts_.pop_front();
    }
    // The two that are best elsewhere open; what they cost here orders the rest.
    for (; opened_ < 2 && !transferred_.empty() && static_cast<int>(batch.size()) < count;
         ++opened_) {
      if (proposals_.Take(transferred_.front())) batch.push_back(transferred_.front());
      transferred_.erase(transferred_.begin());
    }
    while (static_cast<int>(batch.size()) < count &&
           (measured_.empty() || (drawn_ < initial_ && (opened_ == 0 || barren_ >= kBarren)))) {
      const std::optional<absl::uint128> next = InitialDraw();
      if (!next) break;
      proposals_.Take(*next);
      batch.push_back(*next);
      ++drawn_;
    }
    while (static_cast<int>(batch.size()) < count && !measured_.empty()) {
      if (plan_.empty() || observed_ >= planned_at_ + PlanLength()) {
        MakePlan(std::max(count - static_cast<int>(batch.size()), PlanLength()));
        if (plan_.empty()) break;
      }
      if (proposals_.Take(plan_.front())) batch.push_back(plan_.front());
      plan_.pop_front();
    }
    while (static_cast<int>(batch.size()) < count) {
      const std::optional<absl::uint128> next = proposals_.Sample(random_, 0, space_.Count());
      if (!next) break;
      proposals_.Take(*next);
      batch.push_back(*next);
    }
    return batch;
  }

  // The next schedule of the first phase; every other draw is the best of several by the surrogate.
  std::optional<absl::uint128> InitialDraw() {
    if (!turns_) StartTurns();
    while (const Space::Part* part = turns_->Next()) {
      const bool guided = surrogate_ != nullptr && drawn_ % 2 == 0;
      std::vector<absl::uint128> draws;
      for (int i = 0; i < (guided ? kGuidedDraws : 1); ++i) {
        if (std::optional<absl::uint128> draw = proposals_.Sample(random_, part->begin, part->end))
          draws.push_back(*draw);
      }
      if (draws.empty()) {
        turns_->RemoveLast();
        continue;
      }
      if (!guided) return draws.front();
      const std::vector<double> scores = surrogate_->Score(draws);
      return draws[std::min_element(scores.begin(), scores.end()) - scores.begin()];
    }
    return std::nullopt;
  }

  void StartTurns() {
    const absl::Span<const Space::Part> parts = space_.Parts();
    std::vector<double> bounds(parts.size(), std::numeric_limits<double>::infinity());
    for (size_t p = 0; p < parts.size() && surrogate_ != nullptr && parts.size() > 1; ++p) {
      std::vector<absl::uint128> draws;
      for (int i = 0; i < kGuidedDraws; ++i) {
        draws.push_back(parts[p].begin + UniformIndex(random_, parts[p].end - parts[p].begin));
      }
      const std::vector<double> seconds = surrogate_->BoundSeconds(draws);
      bounds[p] = *std::min_element(seconds.begin(), seconds.end());
    }
    turns_.emplace(parts, bounds);
  }

  int PlanLength() const { return std::max(1, static_cast<int>(std::ceil(replan_ * observed_))); }

  // The schedules to propose next, in order.
  void MakePlan(int length) {
    plan_.clear();
    planned_at_ = observed_;
    const double share =
        since_improvement_ >= patience_ ? std::max(0.5, random_share_) : random_share_;
    const std::deque<absl::uint128>& fresh = FreshDraws();
    const std::vector<Offspring> pool = MakePool(fresh);
    // What is proposed and not measured, in a fixed order.
    improvement_->Learn(std::vector<absl::uint128>(pending_.begin(), pending_.end()));
    std::erase_if(transferred_, [&](absl::uint128 i) { return proposals_.Contains(i); });
    std::deque<absl::uint128> transferred = Explore(transferred_, length);
    std::deque<absl::uint128> explored = Explore(WithFresh(Indices(pool), fresh), length);
    std::deque<absl::uint128> ranked = Rank(pool, length);
    absl::flat_hash_set<absl::uint128> planned;
    const auto take = [&](std::deque<absl::uint128>& from) {
      while (!from.empty()) {
        const absl::uint128 index = from.front();
        from.pop_front();
        if (planned.insert(index).second) return plan_.push_back(index), true;
      }
      return false;
    };
    const bool trained = surrogate_ != nullptr && surrogate_->trained();
    for (int place = 0; place < length; ++place) {
      if ((observed_ + place) % (barren_ < kBarren ? 2 : 8) == 0 && take(transferred)) continue;
      if (Uniform01() < share) {
        const std::optional<absl::uint128> draw = proposals_.Sample(random_, 0, space_.Count());
        if (draw && planned.insert(*draw).second) plan_.push_back(*draw);
        continue;
      }
      const bool by_model = Uniform01() < (trained ? model_share_ : 0);
      if (!take(by_model ? ranked : explored) && !take(by_model ? explored : ranked)) break;
    }
    if (plan_.empty()) {
      if (const std::optional<absl::uint128> draw = proposals_.Sample(random_, 0, space_.Count()))
        plan_.push_back(*draw);
    }
  }

  static std::vector<absl::uint128> Indices(const std::vector<Offspring>& pool) {
    std::vector<absl::uint128> indices;
    for (const Offspring& offspring : pool) indices.push_back(offspring.index);
    return indices;
  }

  // Uniform draws, not proposed yet, each once, the latest first. A part of them is drawn anew for
  // each plan: to look at a schedule for the first time costs more than to predict its cost.
  const std::deque<absl::uint128>& FreshDraws() {
    std::erase_if(fresh_draws_, [&](absl::uint128 i) { return proposals_.Contains(i); });
    const int most = std::max(fresh_, FreshInPool());
    absl::flat_hash_set<absl::uint128> seen(fresh_draws_.begin(), fresh_draws_.end());
    const int missing = most - static_cast<int>(fresh_draws_.size());
    for (int i = 0; i < std::max(missing, most / kFreshPlans); ++i) {
      const std::optional<absl::uint128> draw = proposals_.Sample(random_, 0, space_.Count());
      if (draw && seen.insert(*draw).second) fresh_draws_.push_front(*draw);
    }
    while (static_cast<int>(fresh_draws_.size()) > most) fresh_draws_.pop_back();
    return fresh_draws_;
  }
  int FreshInPool() const { return pool_size_ / 6; }

  // Each once: some of the fresh draws are in the pool.
  static std::vector<absl::uint128> WithFresh(std::vector<absl::uint128> pool,
                                              const std::deque<absl::uint128>& fresh) {
    absl::flat_hash_set<absl::uint128> seen(pool.begin(), pool.end());
    for (absl::uint128 index : fresh) {
      if (seen.insert(index).second) pool.push_back(index);
    }
    return pool;
  }

  // The best of `candidates` by expected improvement; as they come where nothing is expected yet.
  std::deque<absl::uint128> Explore(const std::vector<absl::uint128>& candidates, int length) {
    std::deque<absl::uint128> chosen;
    for (int i : improvement_->Choose(candidates, length)) chosen.push_back(candidates[i]);
    if (chosen.empty()) chosen.assign(candidates.begin(), candidates.end());
    return chosen;
  }

  // By the surrogate; without one offspring of better parents are likelier to come first, which is
  // a plain genetic algorithm.
  std::deque<absl::uint128> Rank(const std::vector<Offspring>& pool, int length) {
    std::vector<double> scores;
    if (surrogate_ != nullptr) {
      scores = surrogate_->Score(Indices(pool));
    } else {
      for (const Offspring& offspring : pool) scores.push_back(Uniform01() * (1 + offspring.rank));
    }
    std::vector<int> order(pool.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return scores[a] < scores[b]; });
    const int most_per_parent = std::max(1, (length + 3) / 4);
    absl::flat_hash_map<absl::uint128, int> per_parent;
    std::deque<absl::uint128> chosen;
    for (int i : order) {
      if (static_cast<int>(chosen.size()) >= 2 * length) break;
      if (per_parent[pool[i].parent]++ < most_per_parent) chosen.push_back(pool[i].index);
    }
    return chosen;
  }

  std::vector<Offspring> MakePool(const std::deque<absl::uint128>& fresh) {
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
    for (int i = 0; i < std::min<int>(FreshInPool(), fresh.size()); ++i) add(fresh[i], elites);
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
  // A fresh draw is looked at in so many plans.
  static constexpr int kFreshPlans = 4;
  // So many schedules from another device without an improvement say that it differs.
  static constexpr int kBarren = 8;

  const Space& space_;
  Surrogate* surrogate_;
  std::mt19937_64 random_;
  std::deque<absl::uint128> starts_;
  std::vector<absl::uint128> transferred_;                   // not proposed yet, the best first
  const absl::flat_hash_set<absl::uint128> from_elsewhere_;  // all that was transferred
  Proposals proposals_;
  const int initial_;
  const int elite_;
  const int pool_size_;
  const int fresh_;
  const double random_share_;
  const double model_share_;
  const double replan_;
  const int patience_;
  std::optional<ExpectedImprovement> improvement_;          // absent: an empty space
  std::optional<VariantTurns> turns_;                       // once the first phase has begun
  std::vector<std::pair<double, absl::uint128>> measured_;  // cost, index; best first
  std::deque<absl::uint128> plan_;
  std::deque<absl::uint128> fresh_draws_;
  std::set<absl::uint128> pending_;  // proposed, not observed
  int observed_ = 0;
  int planned_at_ = 0;  // observed_ when plan_ was made
  int since_improvement_ = 0;
  int drawn_ = 0;
  int barren_ = 0;  // of from_elsewhere_, observed since the last improvement by one of them
  int opened_ = 0;  // of from_elsewhere_, proposed without a prediction
};

}  // namespace

std::unique_ptr<Strategy> NewEvolutionarySearch(const StrategyContext& context) {
  return std::make_unique<EvolutionarySearch>(context);
}

}  // namespace tilewright
