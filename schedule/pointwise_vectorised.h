// Pointwise programs of one statement with vectors along the output's contiguous axis. A transposed
// read is walked in tiles, so that the cache lines it touches are used whole, and may be transposed
// in registers.
#ifndef TILEWRIGHT_SCHEDULE_POINTWISE_VECTORISED_H_
#define TILEWRIGHT_SCHEDULE_POINTWISE_VECTORISED_H_

#include <cstdint>
#include <memory>

#include "schedule/match_pointwise.h"
#include "schedule/variant.h"

namespace tilewright {

struct PointwiseVectorisedPlan : Plan {
  Pointwise match;
  int lanes = 1;             // elements of one vector register
  int unroll = 1;            // vectors per step of the inner loop
  int64_t tile_columns = 0;  // elements of the lane axis that a thread takes at once
  int64_t tile_rows = 1;     // with a transposed read: positions of the row axis in a tile
  bool shuffle = false;      // lanes x lanes blocks of transposed reads are transposed in registers
};

// The row `pointwise.vectorised` of variants.cc.
Variant PointwiseVectorisedVariant();

// Vector widths worth offering, in bits: 128, 256, 512 up to the target's; {0} if it has no
// vectors.
std::vector<int64_t> VectorValues(const Target& target);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_POINTWISE_VECTORISED_H_
