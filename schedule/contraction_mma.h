// contraction.mma: a contraction by a GPU's tensor cores one warp at a time (mma.sync), from sm_80
// on, for f16, bf16, i8 and tf32 in f32 or i32. (The structure is that of CUTLASS' multistage
// kernels for Ampere: "Efficient GEMM in CUDA", media/docs/efficient_gemm.md.)
//
//   a grid of blocks takes tiles of the output in turn     tile_m, tile_n, group_m, blocks_per_core
//     k in steps of tile_k: both operands' parts are
//     copied to shared memory, `stages` of them at once    tile_k, stages
//       warps share the tile; each multiplies blocks of
//       16 x 8 outputs and 32 bytes of k                   warps_m, warps_n
//     the epilogue, from registers or by way of shared
//     memory                                               epilogue
//
// Operands get to shared memory as schedule/shared_operand.h says; those that go through registers
// keep their stored type and lie along depth.
#ifndef TILEWRIGHT_SCHEDULE_CONTRACTION_MMA_H_
#define TILEWRIGHT_SCHEDULE_CONTRACTION_MMA_H_

#include <cstdint>
#include <memory>

#include "schedule/match.h"
#include "schedule/shared_operand.h"
#include "schedule/variant.h"

namespace tilewright {

struct ContractionMmaPlan : Plan {
  std::shared_ptr<const Contraction> contraction;
  ElementType type = ElementType::kBF16;  // of the operands' elements in shared memory
  bool tf32 = false;                      // f32 elements, rounded to tf32 before multiplying
  int64_t tile_m = 128;
  int64_t tile_n = 128;
  int64_t tile_k = 32;
  int warps_m = 2;
  int warps_n = 2;
  int stages = 3;
  bool staged_epilogue = false;
  int group_m = 1;
  int blocks_per_core = 1;

  int block = 128;
  int grid = 1;
  // A warp's blocks of 16 rows and of 8 columns.
  int blocks_m = 4;
  int blocks_n = 8;
  int64_t block_k = 16;  // elements in 32 bytes
  SharedOperand a;
  SharedOperand b;
  int64_t shared_bytes = 0;
};

// The row of variants.cc.
Variant ContractionMmaVariant();

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CONTRACTION_MMA_H_
