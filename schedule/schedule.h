// A Schedule is a variant with every present decision fixed: `contraction.tiled{tile_m=6 tile_n=16
// pack_b=1}`.
//
// Text form (docs/FORMATS.md, "Schedule text"): variant, `{`, name=value words in the space's
// order, separated by one space,
// `}`. It parses back to itself. A value is a token: an integer or a label.
#ifndef TILEWRIGHT_SCHEDULE_SCHEDULE_H_
#define TILEWRIGHT_SCHEDULE_SCHEDULE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tilewright {

struct Schedule {
  std::string variant;
  std::vector<std::pair<std::string, std::string>> decisions;  // name, token; in the space's order

  // Null if the decision is absent.
  const std::string* Find(std::string_view name) const;
  std::string ToString() const;
  bool operator==(const Schedule&) const = default;
};

// InvalidArgument says at which column and what was expected.
absl::StatusOr<Schedule> ParseSchedule(std::string_view text);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_SCHEDULE_H_
