// contraction.direct: a contraction by a GPU's ordinary arithmetic whose operands go from memory to
// registers, for outputs that are small, for few rows, and for a short k: where tiles in shared
// memory would be copied and waited for, and hardly be reused.
//
//   a grid of blocks takes tiles of the output             block, threads_n, blocks
//     threads share a sum's k: each takes every so-manieth
//     piece of it                                          threads_k, vector_k
//       a thread has rows x columns sums, and loads the
//       pieces of several rounds before it multiplies      rows, columns, unroll
//     the threads' parts of a sum meet by shuffles, those
//     of different warps in shared memory
//
// With threads_k = 1 it is a loop over outputs that reads each element of the smaller operand once
// for all of a thread's rows. Any type, layout and shape; what lies outside is not added.
#ifndef TILEWRIGHT_SCHEDULE_CONTRACTION_DIRECT_H_
#define TILEWRIGHT_SCHEDULE_CONTRACTION_DIRECT_H_

#include <cstdint>
#include <memory>

#include "schedule/match.h"
#include "schedule/variant.h"

namespace tilewright {

// How a thread loads its rows of an operand.
struct DirectOperand {
  // Depths that one load brings: vector_k, or 1.
  int depth_lanes = 1;
  // Neighbouring rows (columns of the output for b) that one load brings; they are then the same
  // thread's. One of the two is 1.
  int row_lanes = 1;
};

struct ContractionDirectPlan : Plan {
  std::shared_ptr<const Contraction> contraction;
  int block = 128;      // threads: threads_k * threads_n * threads_m
  int threads_k = 1;    // that share a sum
  int threads_n = 32;   // side by side along the columns
  int threads_m = 4;    // along the rows
  bool k_first = true;  // neighbouring threads share a sum; else they have neighbouring columns
  int rows = 1;         // of a thread's sums
  int columns = 1;
  int vector_k = 1;  // depths of a piece
  int unroll = 1;    // rounds whose loads are issued together
  DirectOperand a;
  DirectOperand b;

  int grid = 1;  // blocks
  bool several_tiles = false;
  int lanes_k = 1;  // threads of a warp that share a sum
  // Warps' parts of a sum that meet in shared memory, as [part][row of the tile][column of it]; 1:
  // none do.
  int parts = 1;
  int64_t shared_bytes = 0;

  int64_t tile_m() const { return int64_t{threads_m} * rows; }
  int64_t tile_n() const { return int64_t{threads_n} * columns; }
};

// The row of variants.cc.
Variant ContractionDirectVariant();

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CONTRACTION_DIRECT_H_
