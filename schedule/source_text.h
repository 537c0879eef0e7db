// Errors that point into a text: line, column, the offending line and a caret under the place.
//
//   1:14: unknown function 'exq'; functions are abs, cast, …
//     Y[i] = exp(exq(X[i]))
//                ^
#ifndef TILEWRIGHT_SCHEDULE_SOURCE_TEXT_H_
#define TILEWRIGHT_SCHEDULE_SOURCE_TEXT_H_

#include <string_view>

#include "absl/status/status.h"

namespace tilewright {

// InvalidArgument with the message, located at byte `offset` of `text`; lines and columns (bytes)
// count from 1. `label` names the text where it isn't the expression ("sizes"): the place then
// reads `sizes:1:5:`. The first line of the message is complete by itself; long source lines are
// cut around the caret.
absl::Status ErrorAt(std::string_view text, int offset, std::string_view message,
                     std::string_view label = "");

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_SOURCE_TEXT_H_
