// Iterated local search (Lourenço, Martin, Stützle, Handbook of Metaheuristics, 2003).
//
// From the best of the first schedules, neighbours are measured in random order; the first faster
// one is moved to. When none is left, or `tries` in a row were no faster, it is kicked: walks of
// `kick` changes from one of the `elite` best schedules known are measured, and the search goes on
// from the first of them that is not slower than `tolerance` times where it stood, else from the
// best of a round of them.
//
// Batches: the rest of a batch goes on with neighbours of where the search stands; of several
// faster ones it moves to the fastest. While it waits for kicks, more kicks fill the batch.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "search/batch_search.h"
#include "search/strategies.h"

namespace tilewright {
namespace {

class LocalSearch : public BatchSearch {
 public:
  explicit LocalSearch(const StrategyContext& context)
      : BatchSearch(context),
        initial_(IntegerParameter(context, "initial", 1)),
        tries_(IntegerParameter(context, "tries", 1)),
        kick_(IntegerParameter(context, "kick", 1)),
        elite_(IntegerParameter(context, "elite", 1)),
        tolerance_(context.parameters.at("tolerance")) {}

 private:
  using Point = std::pair<double, absl::uint128>;  // cost, index

  std::optional<absl::uint128> Next() override {
    if (results_ < initial_ || best_.empty()) return std::nullopt;
    if (!at_) MoveTo(best_.front());
    if (!neighbours_.empty() && misses_ < tries_) {
      const absl::uint128 next = neighbours_.back();
      neighbours_.pop_back();
      return next;
    }
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const Point& from = best_[Below(std::min<size_t>(elite_, best_.size()))];
      const std::optional<absl::uint128> next = Walk(from.second, kick_ + attempt / 4);
      if (!next) continue;
      kicks_.insert(*next);
      return next;
    }
    return std::nullopt;
  }

  void Learn(const Observation& observation) override {
    ++results_;
    const bool kicked = kicks_.erase(observation.index) > 0;
    const Point point(observation.cost, observation.index);
    if (observation.ok) {
      best_.insert(std::upper_bound(best_.begin(), best_.end(), point), point);
      if (static_cast<int>(best_.size()) > elite_) best_.pop_back();
    }
    if (!at_) return;
    if (observation.ok && point.first < at_->first) {
      MoveTo(point);
    } else if (kicked) {
      if (observation.ok && (!kick_best_ || point < *kick_best_)) kick_best_ = point;
      ++kicks_done_;
      const bool enough = kick_best_ && kick_best_->first <= tolerance_ * at_->first;
      if (kick_best_ && (enough || kicks_done_ >= kKicks)) MoveTo(*kick_best_);
    } else {
      ++misses_;
    }
  }

  void MoveTo(const Point& point) {
    at_ = point;
    neighbours_ = NewNeighbours(point.second);
    misses_ = 0;
    kicks_done_ = 0;
    kick_best_.reset();
  }

  static constexpr int kAttempts = 16;
  static constexpr int kKicks = 8;

  const int initial_;
  const int tries_;
  const int kick_;
  const int elite_;
  const double tolerance_;
  std::optional<Point> at_;
  std::vector<absl::uint128> neighbours_;     // of where it stands, not proposed yet
  int misses_ = 0;                            // neighbours in a row that were no faster
  std::vector<Point> best_;                   // best first, at most elite_
  absl::flat_hash_set<absl::uint128> kicks_;  // without a result
  int kicks_done_ = 0;
  std::optional<Point> kick_best_;
  int results_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> NewLocalSearch(const StrategyContext& context) {
  return std::make_unique<LocalSearch>(context);
}

}  // namespace tilewright
