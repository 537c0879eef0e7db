#include "search/lenient_json.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace tilewright {
namespace {

using Json = nlohmann::json;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Blanks commas before closing braces and writes something that is no number for numbers that JSON
// does not have. Outside
// texts only; the length stays the same, so that positions in errors are the file's.
void Blank(std::string* text) {
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
    if (c == '"') quoted = true;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (c != word[0] || text->compare(i, word.size(), word) != 0) continue;
      // `[]` for the one that null does not fit into: no number either.
      std::string instead = word.size() < 4 ? "[]" : "null";
      instead.resize(word.size(), ' ');
      text->replace(i, word.size(), instead);
      i += word.size() - 1;
      break;
    }
  }
}

class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(size_t size) : size_(size) {}

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
    return Put({.kind = JsonValue::Kind::kText, .text = std::move(value)});
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(JsonValue::Kind::kObject); }
  bool start_array(size_t) override { return Open(JsonValue::Kind::kList); }
  bool key(std::string& name) override {
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

  const size_t size_;  // of the text
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
  Blank(&text);
  TreeBuilder builder(text.size());
  Json::sax_parse(text, &builder);
  return builder.Take();
}

}  // namespace tilewright
