// The reference kernel on a GPU (reference_on_gpu.cc). Called by WriteReferenceKernel (writer.h).
#ifndef TILEWRIGHT_CODEGEN_REFERENCE_ON_GPU_H_
#define TILEWRIGHT_CODEGEN_REFERENCE_ON_GPU_H_

#include "codegen/kernel_module.h"

namespace tilewright {

void WriteReferenceOnGpu(KernelModule* module, double u_acc);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_REFERENCE_ON_GPU_H_
