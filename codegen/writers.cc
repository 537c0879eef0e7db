#include <vector>

#include "codegen/contraction_direct.h"
#include "codegen/contraction_dot.h"
#include "codegen/contraction_mma.h"
#include "codegen/contraction_simt.h"
#include "codegen/contraction_skinny.h"
#include "codegen/contraction_tiled.h"
#include "codegen/contraction_wgmma.h"
#include "codegen/naive.h"
#include "codegen/pointwise_vectorised.h"
#include "codegen/row_reduction_fused.h"
#include "codegen/writer.h"

namespace tilewright {

// The only list of kernel writers: one row per variant and backend.
absl::Span<const Writer> AllWriters() {
  static const auto* const kWriters = new std::vector<Writer>{
      {"contraction.naive", "host", WriteNaive},
      {"contraction.naive", "nvptx", WriteNaiveOnGpu},
      {"contraction.tiled", "host", WriteContractionTiled},
      {"contraction.dot", "host", WriteContractionDot},
      {"contraction.direct", "nvptx", WriteContractionDirect},
      {"contraction.simt", "nvptx", WriteContractionSimt},
      {"contraction.mma", "nvptx", WriteContractionMma},
      {"contraction.wgmma", "nvptx", WriteContractionWgmma},
      {"contraction.skinny", "nvptx", WriteContractionSkinny},
      {"pointwise.naive", "host", WriteNaive},
      {"pointwise.naive", "nvptx", WriteNaiveOnGpu},
      {"pointwise.vectorised", "host", WritePointwiseVectorised},
      {"row_reduction.naive", "host", WriteNaive},
      {"row_reduction.naive", "nvptx", WriteNaiveOnGpu},
      {"row_reduction.fused", "host", WriteRowReductionFused},
  };
  return *kWriters;
}

}  // namespace tilewright
