// Arithmetic on affine index expressions: building, comparing, bounding.
#ifndef TILEWRIGHT_SCHEDULE_AFFINE_H_
#define TILEWRIGHT_SCHEDULE_AFFINE_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "schedule/expression.h"

namespace tilewright {

// Constants, coefficients and divisors stay within +-2^40, so that sums of a few of them fit in 64
// bits.
inline constexpr int64_t kMaxAffineNumber = int64_t{1} << 40;

bool operator==(const AffineTerm& a, const AffineTerm& b);
bool operator==(const AffineIndex& a, const AffineIndex& b);

AffineIndex AffineOfIndex(int index);
// floor(operand / divisor) or operand mod divisor as an affine index of one term; of a constant
// operand, the constant.
AffineIndex AffineOfDivision(AffineTerm::Kind kind, AffineIndex operand, int64_t divisor);
// Adds factor * other to *affine; like terms merge, vanished ones go. False if a number leaves
// +-kMaxAffineNumber.
bool AddScaled(const AffineIndex& other, int64_t factor, AffineIndex* affine);

// The affine index that a value expression of index values, integers, +, -, * is; nullopt if it is
// not one.
std::optional<AffineIndex> ToAffine(const Expr& expr);

// Both ends included.
struct IndexInterval {
  int64_t low = 0;
  int64_t high = 0;
};
// Bounds of `affine` when index i takes values in indices[i]. Exact while no index stands in two
// terms; else wide. nullopt if a value on the way may leave +-2^60.
std::optional<IndexInterval> Bounds(const AffineIndex& affine,
                                    absl::Span<const IndexInterval> indices);

// The same with index i renamed to numbers[i].
AffineIndex Renumber(const AffineIndex& affine, absl::Span<const int> numbers);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_AFFINE_H_
