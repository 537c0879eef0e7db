// contraction.tiled: a contraction on CPU cores, after the loop structure of GotoBLAS and BLIS (Van
// Zee, van de Geijn: "BLIS: A Framework for Rapidly Instantiating BLAS Functionality", section 3).
//
//   each thread owns a rectangle of the output          threads_batch, threads_m, threads_n
//     blocks of n, k and m in a chosen order             tile_n, tile_k, tile_m, order
//       operands copied to strips where that pays        pack_a, pack_b
//         micro-tiles of micro_m rows x vectors_n vectors  inner (which runs fastest), micro_m,
//         vectors_n, unroll_k
//
// The micro-tile stays in vector registers while k runs over one block. Between blocks of k partial
// sums wait in the output itself where it holds the accumulator's type contiguously, else in the
// workspace; the epilogue is computed after the last one.
#ifndef TILEWRIGHT_SCHEDULE_CONTRACTION_TILED_H_
#define TILEWRIGHT_SCHEDULE_CONTRACTION_TILED_H_

#include <cstdint>
#include <memory>

#include "schedule/match.h"
#include "schedule/variant.h"

namespace tilewright {

enum class Packing {
  kNone,     // used where it lies
  kPrivate,  // each thread copies the block it is about to use
  kShared,   // a launch before copies all of it, once, for all threads
};

// Loops over blocks, outermost first. An operand packed privately is packed as soon as both its
// block numbers are known.
enum class BlockOrder {
  kNKM,  // BLIS: b is packed once per block of n and k, a for each of them
  kMKN,  // mirrored
  kNMK,  // a block of the output is finished before the next begins: the least room for partial
         // sums
};

// What a schedule comes to. Sizes in elements are at the highest sizes of the workload; a "strip"
// is micro_m rows of a or vectors_n * lanes columns of b over one block of k, stored k-major:
// [strip][k][row].
struct ContractionTiledPlan : Plan {
  std::shared_ptr<const Contraction> contraction;
  int lanes = 1;  // of one vector, in accumulators
  int accumulator_bytes = 4;
  int threads_batch = 1;
  int threads_m = 1;
  int threads_n = 1;
  int micro_m = 1;
  int vectors_n = 1;
  int unroll_k = 1;
  int64_t tile_m = 1;  // whole strips
  int64_t tile_n = 1;  // whole strips
  int64_t tile_k = 1;
  BlockOrder order = BlockOrder::kNKM;
  bool inner_m = true;  // m strips run fastest inside a block, so a strip of b stays in L1
  Packing pack_a = Packing::kPrivate;
  Packing pack_b = Packing::kPrivate;
  bool one_k_block = true;     // at every size
  bool sums_in_output = true;  // where partial sums wait; else in c_block

  int64_t micro_n() const { return int64_t{vectors_n} * lanes; }

  // Workspace map, bytes. Areas of a thread repeat at every thread_bytes from threads_offset.
  int64_t shared_a_offset = 0;
  int64_t shared_b_offset = 0;
  int64_t threads_offset = 0;
  int64_t thread_bytes = 0;
  int64_t private_a_offset = 0;  // in the thread's area
  int64_t private_b_offset =
      0;  // a block, or one strip where b is used in place (for the last, partial strip)
  int64_t c_block_offset = 0;
  int64_t c_block_columns = 0;  // elements from a row of c_block to the next
};

// The row of variants.cc.
Variant ContractionTiledVariant();

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CONTRACTION_TILED_H_
