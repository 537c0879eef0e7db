// Checks that subscripts stay where the language lets them: only compound ones may leave their
// tensor, and only inside `sum`.
#ifndef TILEWRIGHT_SCHEDULE_CHECK_SUBSCRIPTS_H_
#define TILEWRIGHT_SCHEDULE_CHECK_SUBSCRIPTS_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "schedule/workload.h"

namespace tilewright {

// Both ends of every size range are examined. A subscript whose bounds can't be told exactly (an
// index in two terms, `%`) is examined point by point up to 2^20 points, and refused beyond.
// InvalidArgument is located in `source`.
absl::Status CheckSubscripts(const Program& program, absl::Span<const SizeRange> sizes,
                             absl::Span<const TensorLayout> layouts, std::string_view source);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CHECK_SUBSCRIPTS_H_
