// The text form that schedules and targets share: `name{key=value key=value}`.
//
//   contraction.tiled{tile_m=6 tile_n=16}
//   cpu:x86-64-v3{backend=host cores=8 features=+avx2,+fma}
//
// A name, key or value is a run of printable ASCII characters other than space, `{`, `}` and `=`;
// only a value may be empty, where the caller says so. Words are separated by spaces.
#ifndef TILEWRIGHT_SCHEDULE_BRACED_TEXT_H_
#define TILEWRIGHT_SCHEDULE_BRACED_TEXT_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tilewright {

struct BracedText {
  std::string name;
  std::vector<std::pair<std::string, std::string>>
      words;  // in the order of the text; keys are distinct
};

// `what` names the text in messages ("schedule"). InvalidArgument: `what`, column (from 1) and what
// was expected there.
absl::StatusOr<BracedText> ParseBracedText(std::string_view what, std::string_view text,
                                           bool empty_values);
// Words separated by one space.
std::string ToString(const BracedText& text);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_BRACED_TEXT_H_
