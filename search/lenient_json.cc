#include "search/lenient_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace tilewright {
namespace {

using Json = nlohmann::json;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// A number that the parser refuses, and the text that stands in for it: which of all texts, names
// among them, in the order of the file.
struct StandIn {
  int64_t place;
  double number;
};

struct OddWord {
  std::string_view text;
  double number;
};
constexpr OddWord kOddWords[] = {{"NaN", std::numeric_limits<double>::quiet_NaN()},
                                 {"Infinity", std::numeric_limits<double>::infinity()},
                                 {"-Infinity", -std::numeric_limits<double>::infinity()}};

// How many bytes at `at` are one of those or a number, and which; absent for one that the parser
// takes. Sizes of 0: there is none.
std::pair<size_t, std::optional<double>> NumberAt(const std::string& text, size_t at) {
  for (const OddWord& word : kOddWords) {
    if (text.compare(at, word.text.size(), word.text) == 0) return {word.text.size(), word.number};
  }
  if (text[at] != '-' && !absl::ascii_isdigit(text[at])) return {0, std::nullopt};
  const size_t end = std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
  const absl::string_view digits(text.data() + at, end - at);
  double number = 0;
  if (absl::SimpleAtod(digits, &number) && std::isinf(number)) return {digits.size(), number};
  return {digits.size(), std::nullopt};
}

// Blanks commas before closing braces, and writes texts for the numbers that the parser refuses.
// Outside texts only; the length stays the same, so that positions in errors are the file's.
std::vector<StandIn> Blank(std::string* text) {
  std::vector<StandIn> stand_ins;
  int64_t texts = 0;
  bool quoted = false;
  size_t comma = std::string::npos;  // the last one, if only blanks follow it
  for (size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (IsSpace(c)) continue;
    if ((c == '}' || c == ']') && comma != std::string::npos) (*text)[comma] = ' ';
    comma = c == ',' ? i : std::string::npos;
    if (c == '"') {
      quoted = true;
      ++texts;
      continue;
    }
    const auto [size, odd] = NumberAt(*text, i);
    if (size == 0) continue;
    if (odd) {
      text->replace(i, size, absl::StrCat("\"", std::string(size - 2, '*'), "\""));
      stand_ins.push_back({texts++, *odd});
    }
    i += size - 1;
  }
  return stand_ins;
}

class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  // Of a text of `size` bytes with these stand-ins.
  TreeBuilder(size_t size, std::vector<StandIn> stand_ins)
      : size_(size), stand_ins_(std::move(stand_ins)) {}

  bool null() override { return Put({}); }
  bool boolean(bool value) override {
    return Put({.kind = JsonValue::Kind::kBoolean, .boolean = value});
  }
  bool number_integer(number_integer_t value) override {
    return PutNumber(static_cast<double>(value), absl::StrCat(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return PutNumber(static_cast<double>(value), absl::StrCat(value));
  }
  bool number_float(number_float_t value, const std::string& text) override {
    return PutNumber(value, text);
  }
  bool string(std::string& value) override {
    if (IsStandIn()) return PutNumber(stand_ins_[next_stand_in_ - 1].number, "");
    return Put({.kind = JsonValue::Kind::kText, .text = std::move(value)});
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(JsonValue::Kind::kObject); }
  bool start_array(size_t) override { return Open(JsonValue::Kind::kList); }
  bool key(std::string& name) override {
    if (IsStandIn()) {
      error_ = "NaN, Infinity or a number stands where a name is expected";
      return false;
    }
    open_.back().members.emplace_back(std::move(name), JsonValue());
    has_name_ = true;
    return true;
  }
  bool end_object() override { return Close(true); }
  bool end_array() override { return Close(true); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    if (open_.empty() && done_) {
      result_.text_follows = true;
    } else if (position >= size_ && !open_.empty()) {
      result_.ended_early = true;
      while (!open_.empty()) Close(false);
    } else {
      error_ = error.what();
      // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
      const size_t start = error_.find("] ");
      if (start != std::string::npos) error_.erase(0, start + 2);
    }
    return false;
  }

  absl::StatusOr<LenientJson> Take() {
    if (!error_.empty()) return absl::InvalidArgumentError(error_);
    return std::move(result_);
  }

 private:
  // Whether the text that comes next in the file stands in for a number.
  bool IsStandIn() {
    const bool is =
        next_stand_in_ < stand_ins_.size() && stand_ins_[next_stand_in_].place == texts_;
    ++texts_;
    next_stand_in_ += is;
    return is;
  }
  bool PutNumber(double number, std::string text) {
    return Put({.kind = JsonValue::Kind::kNumber, .number = number, .text = std::move(text)});
  }
  bool Put(JsonValue value) {
    if (open_.empty()) {
      result_.value = std::move(value);
      done_ = true;
      return true;
    }
    JsonValue& parent = open_.back();
    if (parent.kind == JsonValue::Kind::kList) {
      parent.items.push_back(std::move(value));
    } else {
      parent.members.back().second = std::move(value);
      has_name_ = false;
    }
    return true;
  }
  bool Open(JsonValue::Kind kind) {
    if (open_.size() >= kMostLevels) {
      error_ = absl::StrCat("more than ", kMostLevels, " levels of lists and objects");
      return false;
    }
    has_name_ = false;
    open_.emplace_back();
    open_.back().kind = kind;
    return true;
  }
  bool Close(bool complete) {
    JsonValue value = std::move(open_.back());
    open_.pop_back();
    value.complete = complete;
    if (has_name_) value.members.pop_back();  // a name without its value
    has_name_ = false;
    return Put(std::move(value));
  }

  // No tuner's file has ten; values are taken apart by recursion.
  static constexpr size_t kMostLevels = 100;

  const size_t size_;
  const std::vector<StandIn> stand_ins_;
  size_t next_stand_in_ = 0;
  int64_t texts_ = 0;  // seen so far
  LenientJson result_;
  std::vector<JsonValue> open_;  // outermost first
  bool has_name_ = false;        // the innermost object's last member has no value yet
  bool done_ = false;
  std::string error_;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view name) const {
  const auto found = std::find_if(members.rbegin(), members.rend(),
                                  [&](const auto& member) { return member.first == name; });
  return found == members.rend() ? nullptr : &found->second;
}

absl::StatusOr<LenientJson> ParseLenientJson(std::string text) {
  while (!text.empty() && IsSpace(text.back())) text.pop_back();
  std::vector<StandIn> stand_ins = Blank(&text);
  TreeBuilder builder(text.size(), std::move(stand_ins));
  Json::sax_parse(text, &builder);
  return builder.Take();
}

}  // namespace tilewright
