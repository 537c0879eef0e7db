// Writes contraction.skinny kernels (schedule/contraction_skinny.h).
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_SKINNY_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_SKINNY_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

absl::Status WriteContractionSkinny(const Candidate& candidate, const Plan& plan,
                                    KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_SKINNY_H_
