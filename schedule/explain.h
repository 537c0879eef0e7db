// The text of `tilewright explain`: what a space has to choose from, how its constraints shrink it,
// and what a schedule comes to.
//
// Pure functions of their arguments; lines end with '\n'.
#ifndef TILEWRIGHT_SCHEDULE_EXPLAIN_H_
#define TILEWRIGHT_SCHEDULE_EXPLAIN_H_

#include <string>

#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "schedule/variant.h"

namespace tilewright {

// Decimal digits of a count, in groups of three: "1,048,576".
std::string CountText(absl::uint128 count);

// For each variant of the space: its decisions with values and help, the count after each
// constraint, the total; then the total of all variants and the default schedule. Recounts once per
// constraint: seconds for a space of 10^12.
std::string ExplainSpace(const ScheduleSpace& space);

// A legal schedule: its index, the number of its neighbours and its plan's quantities at `sizes`.
// An illegal one: the constraint it breaks with the numbers, or what is wrong with its text.
// OutOfRange sizes are told as such.
std::string ExplainSchedule(const ScheduleSpace& space, const Schedule& schedule,
                            absl::Span<const int64_t> sizes);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_EXPLAIN_H_
