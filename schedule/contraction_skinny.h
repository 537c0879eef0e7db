// contraction.skinny: few columns times a long matrix, as in a linear layer for one to 128 tokens,
// on Hopper's tensor cores. Time is the matrix' way from memory, so the kernel is one wave that
// keeps many bytes in flight:
//
//   each CTA (or cluster of `split` CTAs) owns `rows` rows of the matrix and all columns
//     a producer warp copies the rows to a deep ring   tile_k, stages, occupancy
//     one consumer warpgroup multiplies                in_flight
//       and before that, with dependent launch, has L2
//       fetch rows while earlier grids end             ahead, later
//     the cluster's partial sums meet in shared memory split
//   with `groups` shares of k a second launch adds up their sums
//
// The matrix rides the instruction's rows and the tokens its columns, padded to 8. `rows` need not
// be a multiple of the instruction's 64: the instruction then reads past the tile, and what it
// makes of that is dropped. So tiles can be cut that just fill the device.
#ifndef TILEWRIGHT_SCHEDULE_CONTRACTION_SKINNY_H_
#define TILEWRIGHT_SCHEDULE_CONTRACTION_SKINNY_H_

#include "schedule/contraction_wgmma.h"

namespace tilewright {

// When later grids may start (dependent launch).
enum class LaterGrids {
  kBegin,   // at once
  kCopied,  // when this CTA's copies are all asked for
  kHalf,    // when no more than half a ring of them is still to be used
};

// Of ContractionWgmmaPlan it uses: tile_m (`rows`), tile_n (all columns), tile_k, stages,
// in_flight, swap, splits, the operands, the map of shared memory (no staging) and the grid.
struct ContractionSkinnyPlan : ContractionWgmmaPlan {
  // Shares of k beside those of a cluster. With more than one a second launch adds up what they
  // leave in the workspace: f32 [group][batch][column, tile_n of them][row, padded to whole tiles].
  int groups = 1;
  int64_t sums_offset = 0;    // bytes in the workspace, after copies of operands
  int occupancy = 1;          // CTAs of an SM
  int64_t partial_bytes = 0;  // f32 of one CTA's tile, over the ring once that is done with
  int partial_pitch = 0;      // elements from one column of it to the next
  bool turned = false;        // each tile begins its k elsewhere
  LaterGrids later = LaterGrids::kBegin;
};

// Columns at most.
inline constexpr int64_t kSkinnyColumns = 128;

// Rows of `tile_rows` that the instruction's blocks of 64 read beyond the tile.
int64_t OverreadRows(int64_t tile_rows);
// Registers of a thread when `occupancy` CTAs of the kernel's 160 threads share 64K: warps get them
// in units of 256.
int64_t SkinnyRegisters(int64_t occupancy);

// The row of variants.cc.
Variant ContractionSkinnyVariant();

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CONTRACTION_SKINNY_H_
