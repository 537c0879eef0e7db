// The launch before a contraction on tensor cores that copies operands whose lines TMA cannot
// address (they begin at other than multiples of 16 bytes) to lines that it can.
#ifndef TILEWRIGHT_CODEGEN_WGMMA_PADDING_H_
#define TILEWRIGHT_CODEGEN_WGMMA_PADDING_H_

#include "codegen/kernel_module.h"
#include "schedule/contraction_wgmma.h"

namespace tilewright {

// Writes the entry and its launch if the plan has padded operands. Precondition: the module's
// workspace has the plan's bytes.
void WriteOperandCopies(KernelModule* module, const ContractionWgmmaPlan& plan);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_PADDING_H_
