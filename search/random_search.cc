#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "search/proposals.h"
#include "search/strategies.h"

namespace tilewright {
namespace {

class RandomSearch : public Strategy {
 public:
  explicit RandomSearch(const StrategyContext& context)
      : space_(*context.space),
        random_(context.seed),
        starts_(context.starts.begin(), context.starts.end()),
        proposals_(context.space) {}

  std::vector<absl::uint128> Propose(int count) override {
    std::vector<absl::uint128> batch;
    while (static_cast<int>(batch.size()) < count) {
      std::optional<absl::uint128> next;
      if (!starts_.empty()) {
        next = starts_.front();
        starts_.pop_front();
      } else {
        next = proposals_.Sample(random_, 0, space_.Count());
        if (!next) break;
      }
      if (proposals_.Take(*next)) batch.push_back(*next);
    }
    return batch;
  }

  void Observe(const Observation& observation) override { proposals_.Take(observation.index); }

 private:
  const Space& space_;
  std::mt19937_64 random_;
  std::deque<absl::uint128> starts_;
  Proposals proposals_;
};

}  // namespace

std::unique_ptr<Strategy> NewRandomSearch(const StrategyContext& context) {
  return std::make_unique<RandomSearch>(context);
}

}  // namespace tilewright
