#include <vector>

#include "codegen/contraction_dot.h"
#include "codegen/contraction_tiled.h"
#include "codegen/writer.h"

namespace tilewright {

// The only list of kernel writers: one row per variant and backend.
absl::Span<const Writer> AllWriters() {
  static const auto* const kWriters = new std::vector<Writer>{
      {"contraction.tiled", "host", WriteContractionTiled},
      {"contraction.dot", "host", WriteContractionDot},
  };
  return *kWriters;
}

}  // namespace tilewright
