// Any bytes as an expression: parsing ends with a program or an error of one message; what parses
// prints and parses back to the same text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "schedule/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<tilewright::Program> program = tilewright::ParseProgram(text);
  if (!program.ok()) {
    if (program.status().message().empty()) std::abort();  // an error that says nothing
    return 0;
  }
  const std::string printed = tilewright::ToString(*program);
  const absl::StatusOr<tilewright::Program> again = tilewright::ParseProgram(printed);
  if (!again.ok() || tilewright::ToString(*again) != printed) std::abort();
  return 0;
}
