// A consumer's part of a tile: its k blocks, multiplied as the ring brings them.
#ifndef TILEWRIGHT_CODEGEN_WGMMA_MAINLOOP_H_
#define TILEWRIGHT_CODEGEN_WGMMA_MAINLOOP_H_

#include <vector>

#include "codegen/wgmma_kernel.h"
#include "codegen/wgmma_pipeline.h"

namespace tilewright {

// The sums of this thread: for each block of 64 rows, for each 8 columns, two of row lane / 4 and
// two of row lane / 4 + 8 (PTX ISA 9.7.15.5.1, "Register Fragments", matrix D). `blocks` k
// blocks, at least one; the ring moves on by as many, and every stage has been given back.
std::vector<llvm::Value*> EmitMainloop(WgmmaKernel& kernel, StageRing& ring, llvm::Value* blocks);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_MAINLOOP_H_
