// Writer of contraction.mma (schedule/contraction_mma.h).
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_MMA_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_MMA_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

absl::Status WriteContractionMma(const Candidate& candidate, const Plan& plan,
                                 KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_MMA_H_
