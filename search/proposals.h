// What strategies share: the set of schedules proposed so far, and uniform sampling that avoids
// them.
#ifndef TILEWRIGHT_SEARCH_PROPOSALS_H_
#define TILEWRIGHT_SEARCH_PROPOSALS_H_

#include <optional>
#include <random>

#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "schedule/space.h"

namespace tilewright {

class Proposals {
 public:
  // Borrows the space.
  explicit Proposals(const Space* space);
  bool Contains(absl::uint128 index) const { return taken_.contains(index); }
  // False if it was taken already.
  bool Take(absl::uint128 index) { return taken_.insert(index).second; }
  size_t size() const { return taken_.size(); }
  bool exhausted() const { return absl::uint128(taken_.size()) >= space_->Count(); }
  // A uniform draw from what is left of [begin, end), without taking it. Absent if nothing is left.
  // Rejection first; when the range is nearly used up, a scan from a random place.
  std::optional<absl::uint128> Sample(std::mt19937_64& random, absl::uint128 begin,
                                      absl::uint128 end) const;

 private:
  const Space* space_;
  absl::flat_hash_set<absl::uint128> taken_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_PROPOSALS_H_
