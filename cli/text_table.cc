#include "cli/text_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace tilewright {
namespace {

// `value` scaled to one of `units` (each 1000 times the one before), with three significant digits.
std::string Scaled(double value, absl::string_view units_separator,
                   const std::vector<std::string>& units) {
  size_t unit = 0;
  while (unit + 1 < units.size() && std::abs(value) >= 999.5) {
    value /= 1000;
    ++unit;
  }
  const int decimals = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f%s%s", decimals, value, units_separator, units[unit]);
}

// Characters, not bytes: a cell may have UTF-8.
size_t Width(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    right_.push_back(!heading.empty() && heading[0] == '>');
    if (right_.back()) heading.erase(0, 1);
  }
  rows_.push_back(std::move(headings));
}

void TextTable::Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string TextTable::ToString() const {
  std::vector<size_t> widths(right_.size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], Width(row[c]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - Width(row[c]), ' ');
      line += (c > 0 ? "  " : "") + (right_[c] ? pad + row[c] : row[c] + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string FormatSpeed(double ratio, double low, double high) {
  if (low == high)
    return absl::StrFormat("%.3f times as fast, too few rounds for an interval", ratio);
  return absl::StrFormat("%.3f times as fast, 95%% interval %.3f-%.3f", ratio, low, high);
}

std::string FormatSeconds(double seconds) {
  return Scaled(seconds * 1e9, " ", {"ns", "us", "ms", "s"});
}

std::string FormatCount(double count) { return Scaled(count, " ", {"", "k", "M", "G", "T", "P"}); }

}  // namespace tilewright
