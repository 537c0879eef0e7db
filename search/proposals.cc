#include "search/proposals.h"

namespace tilewright {

Proposals::Proposals(const Space* space) : space_(space) {}

std::optional<absl::uint128> Proposals::Sample(std::mt19937_64& random, absl::uint128 begin,
                                               absl::uint128 end) const {
  if (begin >= end) return std::nullopt;
  const absl::uint128 size = end - begin;
  for (int attempt = 0; attempt < 64; ++attempt) {
    const absl::uint128 index = begin + UniformIndex(random, size);
    if (!Contains(index)) return index;
  }
  // 64 misses: more than nine tenths are surely taken, so the range is at most about taken_.size()
  // long.
  const absl::uint128 first = UniformIndex(random, size);
  for (absl::uint128 step = 0; step < size; ++step) {
    const absl::uint128 index = begin + (first + step) % size;
    if (!Contains(index)) return index;
  }
  return std::nullopt;
}

}  // namespace tilewright
