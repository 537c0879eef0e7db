#include "schedule/braced_text.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

bool IsTokenCharacter(char c) { return c > ' ' && c < 0x7f && c != '{' && c != '}' && c != '='; }

class BracedTextParser {
 public:
  BracedTextParser(std::string_view what, std::string_view text, bool empty_values)
      : what_(what), text_(text), empty_values_(empty_values) {}

  absl::StatusOr<BracedText> Parse() {
    BracedText result;
    SkipSpaces();
    result.name = Token();
    if (result.name.empty()) return Error("expected a name");
    if (!Take('{')) return Error("expected '{'");
    SkipSpaces();
    while (!Take('}')) {
      const size_t start = at_;
      std::string key = Token();
      if (key.empty()) return Error("expected name=value or '}'");
      if (!Take('=')) return Error(absl::StrCat("expected '=' after '", key, "'"));
      std::string value = Token();
      if (value.empty() && !empty_values_) {
        return Error(absl::StrCat("expected a value of '", key, "'"));
      }
      if (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '}') {
        return Error("expected a space or '}'");
      }
      const bool seen = std::any_of(result.words.begin(), result.words.end(),
                                    [&](const auto& word) { return word.first == key; });
      if (seen) {
        at_ = start;
        return Error(absl::StrCat("'", key, "' is given twice"));
      }
      result.words.emplace_back(std::move(key), std::move(value));
      SkipSpaces();
    }
    SkipSpaces();
    if (at_ != text_.size()) return Error("expected nothing after '}'");
    return result;
  }

 private:
  void SkipSpaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string Token() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsTokenCharacter(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  absl::Status Error(const std::string& expected) const {
    const std::string found =
        at_ < text_.size() ? "'" + std::string(1, text_[at_]) + "'" : "the end of the text";
    return absl::InvalidArgumentError(
        absl::StrCat(what_, " text, column ", at_ + 1, ": ", expected, "; found ", found));
  }

  const std::string what_;
  const std::string_view text_;
  const bool empty_values_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<BracedText> ParseBracedText(std::string_view what, std::string_view text,
                                           bool empty_values) {
  return BracedTextParser(what, text, empty_values).Parse();
}

std::string ToString(const BracedText& text) {
  std::string result = absl::StrCat(text.name, "{");
  for (size_t i = 0; i < text.words.size(); ++i) {
    absl::StrAppend(&result, i == 0 ? "" : " ", text.words[i].first, "=", text.words[i].second);
  }
  result += "}";
  return result;
}

}  // namespace tilewright
