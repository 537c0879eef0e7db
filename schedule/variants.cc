#include <vector>

#include "schedule/contraction_direct.h"
#include "schedule/contraction_dot.h"
#include "schedule/contraction_mma.h"
#include "schedule/contraction_simt.h"
#include "schedule/contraction_skinny.h"
#include "schedule/contraction_tiled.h"
#include "schedule/contraction_wgmma.h"
#include "schedule/naive.h"
#include "schedule/pointwise_vectorised.h"
#include "schedule/row_reduction_fused.h"
#include "schedule/variant.h"

namespace tilewright {

// The only list of variants: naive ones first within a family, the best last. Command line, tests
// and docs iterate over it.
absl::Span<const Variant> AllVariants() {
  static const auto* const variants = new std::vector<Variant>{
      ContractionNaiveVariant(),    ContractionTiledVariant(),  ContractionDotVariant(),
      ContractionDirectVariant(),   ContractionSimtVariant(),   ContractionMmaVariant(),
      ContractionWgmmaVariant(),    ContractionSkinnyVariant(), PointwiseNaiveVariant(),
      PointwiseVectorisedVariant(), RowReductionNaiveVariant(), RowReductionFusedVariant(),
  };
  return *variants;
}

}  // namespace tilewright
