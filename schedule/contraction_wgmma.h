// contraction.wgmma: a contraction on Hopper's tensor cores (sm_90a), f16, bf16 or e4m3 with f32
// sums.
//
//   persistent CTAs walk the output's tiles          group, raster, cluster
//     a producer warpgroup copies tiles of both      tile_m, tile_n, tile_k, stages
//       operands to a ring of stages by TMA
//     consumer warpgroups multiply them by wgmma     mode, consumers, in_flight, producer_registers
//     and finish their part of the output            store, store_columns, store_buffers
//   the last waves' tiles are split along k          stream_k
//   with dependent launch, L2 fetches rows of the first
//     tiles while earlier grids end                  ahead
//
// `cooperative` consumers share one tile by rows; with `pingpong` two consumers take turns with
// whole tiles, so that one's epilogue hides behind the other's multiplications. The instruction has
// 64 rows and 8 … 256 columns; `swap` gives the rows to n and the columns to m, so that a short m
// is padded to 8 and not to 64.
//
// Names elsewhere: the warp-specialised kernels of CUTLASS 3 (KernelTmaWarpSpecializedCooperative,
// …Pingpong); tile_m x tile_n x tile_k is its CTA tile.
#ifndef TILEWRIGHT_SCHEDULE_CONTRACTION_WGMMA_H_
#define TILEWRIGHT_SCHEDULE_CONTRACTION_WGMMA_H_

#include <cstdint>
#include <memory>

#include "schedule/contraction_wgmma_space.h"
#include "schedule/match.h"
#include "schedule/variant.h"

namespace tilewright {

// One operand as the producer loads it. A stage holds `atoms` pieces of 128 bytes of k, each all
// rows of the tile; a piece comes in `boxes` boxes.
struct WgmmaOperandPlan {
  bool is_a = true;         // Contraction::a, else b
  bool transposed = false;  // MN-major
  // Read from a copy in the workspace, at `workspace_offset` bytes: lines of `pitch` elements (of
  // the operand's contiguous dimension, rows or k), for each line of the other, for each of its
  // batches, all at the highest sizes.
  bool padded = false;
  int64_t workspace_offset = 0;
  int64_t pitch = 0;
  int64_t lines = 0;
  int64_t rows = 0;          // of the tile
  int64_t stage_offset = 0;  // bytes from the stage's start
  int64_t stage_bytes = 0;
  int64_t atom_bytes = 0;  // of one piece of 128 bytes of k
  int boxes = 1;           // that this CTA loads of each piece (a multicast half: half of them)
  int64_t box_bytes = 0;
  int box_rows = 0;        // extent of a box along the operand's rows
  int box_depth = 0;       // and along k, elements
  bool multicast = false;  // each CTA of the pair loads half for both
};

struct ContractionWgmmaPlan : Plan {
  std::shared_ptr<const Contraction> contraction;
  ElementType type = ElementType::kBF16;
  bool swap = false;
  bool pingpong = false;
  int consumers = 2;  // warpgroups
  int tile_m = 128;   // rows of the instruction's side, see ConsumerRows
  int tile_n = 128;
  int tile_k = 64;  // elements
  int stages = 4;
  // Sums of each stage are added to others in f32: tensor cores keep 8-bit products to fewer bits.
  bool promote = false;
  int in_flight = 0;           // wgmma groups unfinished while the next is issued
  int producer_registers = 0;  // 0: no setmaxnreg
  int consumer_registers = 0;
  WgmmaCluster cluster = WgmmaCluster::kNone;
  WgmmaStreamK stream_k = WgmmaStreamK::kOff;
  int group = 8;            // tiles side by side along the raster axis
  bool raster_rows = true;  // that axis is the rows'
  bool tma_store = true;    // through shared memory and TMA
  bool row_store = false;   // through shared memory, by rows; neither: each thread its own elements
  int store_columns = 64;   // columns staged at once
  int store_buffers = 2;

  // Of each row of the first tile of one operand, from where the CTA begins: asked of L2 before
  // earlier grids have ended.
  int64_t ahead_bytes = 0;
  bool ahead_rows = true;  // the rows' operand, else the columns'

  WgmmaOperandPlan rows_operand;     // on the instruction's rows
  WgmmaOperandPlan columns_operand;  // on its columns
  int consumer_rows = 64;            // rows of one consumer
  int64_t stage_bytes = 0;
  int64_t staging_offset = 0;  // bytes from the start of shared memory
  int64_t staging_bytes = 0;   // of one consumer and buffer
  int64_t full_offset = 0;     // mbarriers: `stages` full ones, then `stages` empty ones
  int64_t empty_offset = 0;
  int64_t shared_memory_bytes = 0;
  int64_t tiles_at_highest = 0;  // of CTAs, padding of pairs included
  int grid = 1;                  // CTAs
  int output_bytes = 2;
  // Stream-K, in the workspace: a flag of 4 bytes of each CTA's consumers from its start, and at
  // `partials_offset` the f32 sums of a tile of each CTA.
  int64_t flag_bytes = 0;
  int64_t partials_offset = 0;

  // contraction.skinny: CTAs of a cluster that share one tile's k (schedule/contraction_skinny.h).
  int splits = 1;

  // CTAs that load operands for each other.
  int pair_size() const { return cluster == WgmmaCluster::kNone ? 1 : 2; }
  int cluster_size() const { return pair_size() * splits; }
  // Columns that one TMA store takes: a row of it is at most 128 bytes where columns lie side by
  // side, at most 256 rows where they do not (swap).
  int store_unit() const;
};

// How one operand comes into shared memory: the part of a plan that is the same in
// contraction.skinny. `plan` has its tile, cluster and swap.
WgmmaOperandPlan PlanWgmmaOperand(const WgmmaProblem& problem, const ContractionWgmmaPlan& plan,
                                  bool is_rows);
// Gives padded operands their place in the workspace, after its flags; returns the bytes taken.
int64_t PlaceCopies(const WgmmaProblem& problem, ContractionWgmmaPlan* plan);

// The row of variants.cc.
Variant ContractionWgmmaVariant();

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CONTRACTION_WGMMA_H_
