#include "schedule/space.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

int BitWidth(absl::uint128 x) {
  const uint64_t high = absl::Uint128High64(x);
  return high != 0 ? 64 + static_cast<int>(absl::bit_width(high))
                   : static_cast<int>(absl::bit_width(absl::Uint128Low64(x)));
}

class UnionSpace : public Space {
 public:
  explicit UnionSpace(std::vector<std::shared_ptr<const Space>> spaces)
      : spaces_(std::move(spaces)) {
    for (size_t i = 0; i < spaces_.size(); ++i) {
      begins_.push_back(count_);
      if (spaces_[i]->Count() == 0) continue;
      for (const Part& part : spaces_[i]->Parts()) {
        parts_.push_back({part.variant, count_ + part.begin, count_ + part.end});
      }
      count_ += spaces_[i]->Count();
    }
  }

  absl::uint128 Count() const override { return count_; }

  Schedule At(absl::uint128 index) const override {
    const size_t space = SpaceOf(index);
    return spaces_[space]->At(index - begins_[space]);
  }

  absl::StatusOr<absl::uint128> IndexOf(const Schedule& schedule) const override {
    // An empty space is asked too: it knows which constraint the schedule breaks.
    std::vector<std::string> known;
    for (size_t i = 0; i < spaces_.size(); ++i) {
      for (const Part& part : spaces_[i]->Parts()) {
        known.push_back(part.variant);
        if (part.variant != schedule.variant) continue;
        absl::StatusOr<absl::uint128> index = spaces_[i]->IndexOf(schedule);
        if (!index.ok()) return index.status();
        return begins_[i] + *index;
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat("variant '", schedule.variant,
                     "' is not in this space; it has: ", absl::StrJoin(known, ", ")));
  }

  std::vector<absl::uint128> Neighbours(absl::uint128 index) const override {
    const size_t space = SpaceOf(index);
    std::vector<absl::uint128> result = spaces_[space]->Neighbours(index - begins_[space]);
    for (absl::uint128& neighbour : result) neighbour += begins_[space];
    return result;
  }

  absl::Span<const Part> Parts() const override { return parts_; }

 private:
  // The last space that begins at or before `index`: an empty one begins where its successor does.
  size_t SpaceOf(absl::uint128 index) const {
    return std::upper_bound(begins_.begin(), begins_.end(), index) - begins_.begin() - 1;
  }

  const std::vector<std::shared_ptr<const Space>> spaces_;
  std::vector<absl::uint128> begins_;
  std::vector<Part> parts_;
  absl::uint128 count_ = 0;
};

}  // namespace

absl::uint128 UniformIndex(std::mt19937_64& random, absl::uint128 bound) {
  // Draws as many bits as bound - 1 has until they are below the bound: twice on average at the
  // worst.
  const int bits = BitWidth(bound - 1);
  if (bits == 0) return 0;
  const absl::uint128 mask = absl::Uint128Max() >> (128 - bits);
  while (true) {
    const uint64_t low = random();
    const uint64_t high = bits > 64 ? random() : 0;
    const absl::uint128 drawn = absl::MakeUint128(high, low) & mask;
    if (drawn < bound) return drawn;
  }
}

std::vector<DecisionValue> IntegerValues(absl::Span<const int64_t> numbers) {
  std::vector<DecisionValue> values;
  for (int64_t number : numbers) values.push_back({number, absl::StrCat(number)});
  return values;
}

std::unique_ptr<Space> NewUnionSpace(std::vector<std::shared_ptr<const Space>> parts) {
  return std::make_unique<UnionSpace>(std::move(parts));
}

}  // namespace tilewright
