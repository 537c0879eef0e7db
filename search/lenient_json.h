// JSON as other tuners leave it behind: read as far as it goes, members in the order of the file.
//
// Accepted beyond the standard: a text that ends early (a tuner that was killed), commas before a
// closing brace, NaN, Infinity and numbers that no double holds (which are infinite), and text
// after the end.
#ifndef TILEWRIGHT_SEARCH_LENIENT_JSON_H_
#define TILEWRIGHT_SEARCH_LENIENT_JSON_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tilewright {

struct JsonValue {
  enum class Kind { kNull, kBoolean, kNumber, kText, kList, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  double number = 0;
  std::string text;  // of a text; of a finite number, as the file writes it
  std::vector<JsonValue> items;
  std::vector<std::pair<std::string, JsonValue>> members;
  bool complete = true;  // false: the text ended inside

  // Null if this is no object or has no such member. Of several, the last.
  const JsonValue* Find(std::string_view name) const;
};

struct LenientJson {
  JsonValue value;
  bool ended_early = false;   // containers open at the end have `complete` false
  bool text_follows = false;  // after the value; ignored
};

// InvalidArgument: neither JSON nor the beginning of it; says where and what was expected.
absl::StatusOr<LenientJson> ParseLenientJson(std::string text);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_LENIENT_JSON_H_
