// Row reductions in one launch: a thread takes whole rows and makes one pass over a row per
// reduction and per output, so that a row is read from memory once and then from cache; what
// belongs to a row stays in registers.
#ifndef TILEWRIGHT_SCHEDULE_ROW_REDUCTION_FUSED_H_
#define TILEWRIGHT_SCHEDULE_ROW_REDUCTION_FUSED_H_

#include <cstdint>

#include "schedule/match_row_reduction.h"
#include "schedule/variant.h"

namespace tilewright {

struct RowReductionFusedPlan : Plan {
  RowReduction match;
  int vector_bits = 128;  // of a register used; 0: none
  int unroll = 1;         // vectors per step, each with its own accumulator
  bool keep = false;      // the costly subexpression that several passes share is kept per row, not
                          // computed again
  int64_t kept_row_bytes = 0;  // of one thread's row in the workspace

  int Lanes(ElementType compute) const;  // elements of one vector of a compute type
};

// The row `row_reduction.fused` of variants.cc.
Variant RowReductionFusedVariant();

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_ROW_REDUCTION_FUSED_H_
