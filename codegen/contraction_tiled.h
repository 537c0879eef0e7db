// Writes contraction.tiled (schedule/contraction_tiled.h) as LLVM IR for CPUs.
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_TILED_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_TILED_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

// The function of the row of writers.cc. `plan` is a ContractionTiledPlan.
absl::Status WriteContractionTiled(const Candidate& candidate, const Plan& plan,
                                   KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_TILED_H_
