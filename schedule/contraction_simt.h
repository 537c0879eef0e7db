// contraction.simt: a contraction by a GPU's ordinary arithmetic, for every type, shape and layout.
// (The structure is that of the SGEMM kernels of MAGMA and of CUTLASS' SIMT kernels: Nath, Tomov,
// Dongarra, "An Improved MAGMA GEMM for Fermi GPUs", 2010.)
//
//   a grid of blocks takes tiles of the output in turn     tile_m, tile_n, group_m, blocks_per_core
//     k in steps of tile_k: both operands' parts are
//     copied to shared memory, `stages` of them at once    tile_k, stages
//       each thread adds products to its own sums          thread_m, thread_n
//     the epilogue, from registers or by way of shared     epilogue
//     memory, where neighbouring threads have neighbours
//
// Operands get to shared memory as schedule/shared_operand.h says; those that go through registers
// become the accumulator's type.
#ifndef TILEWRIGHT_SCHEDULE_CONTRACTION_SIMT_H_
#define TILEWRIGHT_SCHEDULE_CONTRACTION_SIMT_H_

#include <cstdint>
#include <memory>

#include "schedule/match.h"
#include "schedule/shared_operand.h"
#include "schedule/variant.h"

namespace tilewright {

struct ContractionSimtPlan : Plan {
  std::shared_ptr<const Contraction> contraction;
  int64_t tile_m = 64;
  int64_t tile_n = 64;
  int64_t tile_k = 16;
  int thread_m = 4;  // rows and columns of a thread's sums
  int thread_n = 4;
  int stages = 2;  // 1: nothing is copied while sums are added
  bool staged_epilogue = false;
  int group_m = 1;  // rows of tiles that are taken together, column by column
  int blocks_per_core = 1;

  int block = 256;  // threads
  int grid = 1;     // blocks
  // A warp's lanes: warp_m x warp_n; threads_n threads of the block along n.
  int warp_m = 4;
  int warp_n = 8;
  int threads_m = 16;
  int threads_n = 16;
  // Depths whose products are added between two rounds of loads from shared memory.
  int step_k = 1;
  SharedOperand a;
  SharedOperand b;
  int64_t shared_bytes = 0;
};

// The row of variants.cc.
Variant ContractionSimtVariant();

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CONTRACTION_SIMT_H_
