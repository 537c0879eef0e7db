// A table for people: columns as wide as their widest cell, numbers to the right.
#ifndef TILEWRIGHT_CLI_TEXT_TABLE_H_
#define TILEWRIGHT_CLI_TEXT_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tilewright {

class TextTable {
 public:
  // A column whose heading begins with '>' is set to the right; the sign is not printed.
  explicit TextTable(std::vector<std::string> headings);
  void Add(std::vector<std::string> cells);  // as many as there are headings
  std::string ToString() const;              // lines end with '\n', no trailing blanks

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// 0.0153 -> "15.3 ms", with three significant digits.
std::string FormatSeconds(double seconds);
// 1.2e11 -> "120 G", with three significant digits.
std::string FormatCount(double count);
// A ratio of speeds: "1.310 times as fast, 95% interval 1.280-1.340".
std::string FormatSpeed(double ratio, double low, double high);

}  // namespace tilewright

#endif  // TILEWRIGHT_CLI_TEXT_TABLE_H_
