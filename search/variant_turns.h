// Which variant of a union the next uniform draw comes from, while little is known.
//
// Uniform draws over the whole would nearly all fall into the largest variant, though a small one
// may hold the best schedule; equal turns would waste many on a variant of a handful of schedules.
// Turns are shared by log2(1 + schedules): the bits that choosing a schedule takes, which is how
// much there is to learn about the variant. A variant has no turn
//   if the best bound among a few of its schedules is 16 times another's: the bound may be wrong by
//   a small factor, not by this one, and measuring such a kernel may cost more than the rest of the
//   batch;
//   once its best result is 4 times slower than the best of all: one draw may be that far from what
//   its variant can do, and then evolution finds the way back, from what random draws it makes of
//   everything.
// Not thread-safe.
#ifndef TILEWRIGHT_SEARCH_VARIANT_TURNS_H_
#define TILEWRIGHT_SEARCH_VARIANT_TURNS_H_

#include <vector>

#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "schedule/space.h"
#include "search/strategy.h"

namespace tilewright {

class VariantTurns {
 public:
  // `bounds`: the least known bound of each part in seconds, infinite where unknown.
  VariantTurns(absl::Span<const Space::Part> parts, absl::Span<const double> bounds);
  // Of any schedule, whoever proposed it.
  void Observe(const Observation& observation);
  // Takes a turn. Null: no variant is left.
  const Space::Part* Next();
  // What Next gave last has no more to draw.
  void RemoveLast();

 private:
  struct Variant {
    Space::Part part;
    double share;
    double credit = 0;          // turns that it is owed, times the sum of the shares
    double best = kUnmeasured;  // cost
  };
  static constexpr double kUnmeasured = -1;
  bool MayDraw(const Variant& variant) const;

  std::vector<Variant> variants_;
  size_t last_ = 0;
  double best_ = kUnmeasured;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_VARIANT_TURNS_H_
