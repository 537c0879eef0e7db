// What a contraction on wgmma does before earlier grids have ended (dependent launch). It may not
// read yet, but it may ask L2 for lines that it will read, so that memory does not rest between
// two grids: a line that an earlier grid still writes is brought up to date in L2.
#ifndef TILEWRIGHT_CODEGEN_WGMMA_AHEAD_H_
#define TILEWRIGHT_CODEGEN_WGMMA_AHEAD_H_

#include <vector>

#include "codegen/wgmma_kernel.h"

namespace tilewright {

// The first bytes of each of a tile's rows of an operand that is contiguous along k and read where
// it lies. i32, all values.
struct AheadLines {
  bool rows_operand = true;  // else the columns'
  llvm::Value* first_row = nullptr;
  std::vector<llvm::Value*> batch_positions;  // by Contraction::batch
  llvm::Value* first_depth = nullptr;         // where in k the tile begins
  // Where k goes on with `wrap_depth` fewer; null: at its end there is nothing more.
  llvm::Value* end_depth = nullptr;
  llvm::Value* wrap_depth = nullptr;
  int64_t bytes_of_row = 0;  // a multiple of kLineBytes
};

// Asks for them, by the threads of one warpgroup, each its own lines.
void EmitAskAhead(WgmmaKernel& kernel, const AheadLines& lines);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_AHEAD_H_
