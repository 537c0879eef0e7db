// contraction.dot: few rows times a matrix whose k is contiguous, as in a linear layer for one
// token. Nothing is packed: every element of b is used `rows` times at most, so copying it would
// cost as much as the product. Vector lanes run along k; each output element is a dot product whose
// lanes are added up at the end.
//
//   each thread owns columns of the output     threads_batch, threads_n
//     tiles of rows x columns                  rows, columns
//       k by `unroll_k` vectors at a time
#ifndef TILEWRIGHT_SCHEDULE_CONTRACTION_DOT_H_
#define TILEWRIGHT_SCHEDULE_CONTRACTION_DOT_H_

#include <memory>

#include "schedule/match.h"
#include "schedule/variant.h"

namespace tilewright {

struct ContractionDotPlan : Plan {
  std::shared_ptr<const Contraction> contraction;
  int lanes = 1;
  int threads_batch = 1;
  int threads_n = 1;
  int rows = 1;     // of a in a tile
  int columns = 1;  // of b in a tile: streams read side by side
  int unroll_k = 1;
};

// The row of variants.cc.
Variant ContractionDotVariant();

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CONTRACTION_DOT_H_
