// Writes contraction.wgmma kernels (schedule/contraction_wgmma.h).
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_WGMMA_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_WGMMA_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

absl::Status WriteContractionWgmma(const Candidate& candidate, const Plan& plan,
                                   KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_WGMMA_H_
