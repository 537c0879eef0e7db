#include <memory>
#include <optional>

#include "search/batch_search.h"
#include "search/strategies.h"

namespace tilewright {
namespace {

class RandomSearch : public BatchSearch {
 public:
  using BatchSearch::BatchSearch;

 private:
  // Nothing in mind: a uniform draw.
  std::optional<absl::uint128> Next() override { return std::nullopt; }
  void Learn(const Observation&) override {}
};

}  // namespace

std::unique_ptr<Strategy> NewRandomSearch(const StrategyContext& context) {
  return std::make_unique<RandomSearch>(context);
}

}  // namespace tilewright
