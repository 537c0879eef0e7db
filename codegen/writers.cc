#include <vector>

#include "codegen/writer.h"

namespace tilewright {

// The only list of kernel writers: one row per variant and backend.
absl::Span<const Writer> AllWriters() {
  static const auto* const kWriters = new std::vector<Writer>{};
  return *kWriters;
}

}  // namespace tilewright
