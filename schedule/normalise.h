// The rewrites of the canonical form that need no choice: constants are folded, size() of fixed
// sizes becomes a number, chains become one list, and a comparison whose sides are index arithmetic
// compares integers. Names and free orders are chosen later (canonical.h).
#ifndef TILEWRIGHT_SCHEDULE_NORMALISE_H_
#define TILEWRIGHT_SCHEDULE_NORMALISE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/expression.h"
#include "schedule/workload.h"

namespace tilewright {

// `sizes` by index of `program`. InvalidArgument, located in `source`, if constants fold to NaN.
absl::StatusOr<Program> Normalise(Program program, absl::Span<const SizeRange> sizes,
                                  std::string_view source);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_NORMALISE_H_
