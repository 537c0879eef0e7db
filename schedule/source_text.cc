#include "schedule/source_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace tilewright {

absl::Status ErrorAt(std::string_view text, int offset, std::string_view message,
                     std::string_view label) {
  constexpr size_t kWidth = 100;
  const size_t at = std::min<size_t>(std::max(offset, 0), text.size());
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_begin =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const size_t line_end = std::min(text.find('\n', at), text.size());
  const size_t column = at - line_begin;
  // A window of the line that contains the caret.
  const size_t window_begin = column < kWidth ? 0 : column - kWidth / 2;
  std::string window(
      text.substr(line_begin + window_begin,
                  std::min(kWidth + kWidth / 2, line_end - line_begin - window_begin)));
  std::string caret;
  for (size_t i = 0; i < column - window_begin; ++i) caret += window[i] == '\t' ? '\t' : ' ';
  for (char& c : window) {
    if (c != '\t' && (c < ' ' || c > '~')) c = '?';
  }
  return absl::InvalidArgumentError(absl::StrCat(std::string(label), label.empty() ? "" : ":", line,
                                                 ":", column + 1, ": ", std::string(message),
                                                 "\n  ", window, "\n  ", caret, "^"));
}

}  // namespace tilewright
