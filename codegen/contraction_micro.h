// The micro-kernel of contraction.tiled: a tile of micro_m rows by vectors_n vectors stays in
// registers while k runs.
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_MICRO_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_MICRO_H_

#include "codegen/kernel_module.h"
#include "schedule/contraction_tiled.h"

namespace tilewright {

// One call's values. Strides and distances in elements of the accumulator's type.
struct MicroCall {
  llvm::Value* a;      // row 0 at the block's first step
  llvm::Value* a_row;  // strides of a; ignored where a is packed
  llvm::Value* a_depth;
  llvm::Value* rows;     // rows that a has here (edge function only)
  llvm::Value* b;        // column 0 at the first step; columns are adjacent
  llvm::Value* b_depth;  // ignored where b is packed
  llvm::Value* steps;
  llvm::Value* sums;  // where partial sums wait, or where the tile will go: fetched ahead
  llvm::Value* sums_row;
  llvm::Value* start;  // i1: the sums that wait are added
  llvm::Value* result;
  llvm::Value* result_row;
};

// The functions of one kernel.
class MicroKernel {
 public:
  // `edge`: for tiles with fewer rows, where a is used in place; missing rows repeat the last one.
  enum class Kind { kFull, kEdge };
  static MicroKernel Emit(KernelModule& module, const ContractionTiledPlan& plan);
  void Call(KernelModule& module, const MicroCall& call, Kind kind) const;
  // False: the full function does for edges as well.
  bool has_edge() const { return edge_ != nullptr; }

 private:
  llvm::Function* full_ = nullptr;
  llvm::Function* edge_ = nullptr;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_MICRO_H_
