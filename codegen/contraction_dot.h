// Writes contraction.dot (schedule/contraction_dot.h) as LLVM IR for CPUs.
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_DOT_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_DOT_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

// The function of the row of writers.cc. `plan` is a ContractionDotPlan.
absl::Status WriteContractionDot(const Candidate& candidate, const Plan& plan,
                                 KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_DOT_H_
