// What contraction.wgmma moves by TMA: the tensor maps of both operands and of the output, and the
// producer's copies.
#ifndef TILEWRIGHT_CODEGEN_WGMMA_COPIES_H_
#define TILEWRIGHT_CODEGEN_WGMMA_COPIES_H_

#include <vector>

#include "codegen/kernel.h"
#include "codegen/wgmma_kernel.h"
#include "codegen/wgmma_pipeline.h"
#include "codegen/wgmma_tiles.h"

namespace tilewright {

// Which map is which. Output maps exist where plan.tma_store; the second one, for the columns left
// over by whole store units, only if there are some.
enum WgmmaMap { kRowsMap = 0, kColumnsMap = 1, kOutputMap = 2, kOutputTailMap = 3 };
std::vector<TensorMap> MakeWgmmaMaps(const Workload& workload, const ContractionWgmmaPlan& plan);
// Raises the alignment that the domain demands of the buffers that maps point to: 16 bytes
// (cuTensorMapEncodeTiled).
void DemandMapAlignment(const std::vector<TensorMap>& maps, KernelModule* module);

// All copies of one stage: k block `k_block` of a tile. One thread.
void EmitStageCopies(WgmmaKernel& kernel, const StageRing& ring, const RingPosition& at,
                     const WgmmaTile& tile, llvm::Value* k_block);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_COPIES_H_
