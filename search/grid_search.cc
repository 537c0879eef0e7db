// Every schedule once, in an order whose every beginning is spread evenly over the space.
//
// The k-th proposal is start + k * stride modulo the size of the space, with a stride that has no
// divisor in common with the size, near the golden section of it: the one for which any number of
// consecutive multiples leaves the most even gaps (Knuth, The Art of Computer Programming, volume
// 3, section 6.4, theorem S). The seed chooses the start. A full enumeration if it is left to
// finish; results do not change it.
#include <memory>
#include <numeric>
#include <optional>

#include "search/batch_search.h"
#include "search/strategies.h"

namespace tilewright {
namespace {

absl::uint128 GreatestCommonDivisor(absl::uint128 a, absl::uint128 b) {
  while (b != 0) {
    const absl::uint128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// About 0.618 of `size`, without a divisor in common with it.
absl::uint128 GoldenStride(absl::uint128 size) {
  // 0.618… in 64 binary digits, times the upper and the lower half of the size.
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  absl::uint128 stride = absl::uint128(absl::Uint128High64(size)) * kGolden +
                         ((absl::uint128(absl::Uint128Low64(size)) * kGolden) >> 64);
  while (stride < 1 || GreatestCommonDivisor(stride, size) != 1) ++stride;
  return stride;
}

class GridSearch : public BatchSearch {
 public:
  explicit GridSearch(const StrategyContext& context)
      : BatchSearch(context),
        size_(context.space->Count()),
        stride_(GoldenStride(size_)),
        left_(size_) {
    std::mt19937_64 random(context.seed);
    if (size_ > 0) at_ = UniformIndex(random, size_);
  }

 private:
  std::optional<absl::uint128> Next() override {
    while (left_ > 0) {
      const absl::uint128 index = at_;
      at_ = at_ >= size_ - stride_ ? at_ - (size_ - stride_) : at_ + stride_;
      --left_;
      if (!Proposed(index)) return index;
    }
    return std::nullopt;
  }
  void Learn(const Observation&) override {}

  const absl::uint128 size_;
  const absl::uint128 stride_;
  absl::uint128 at_ = 0;
  absl::uint128 left_;
};

}  // namespace

std::unique_ptr<Strategy> NewGridSearch(const StrategyContext& context) {
  return std::make_unique<GridSearch>(context);
}

}  // namespace tilewright
