// Writer of row_reduction.fused (schedule/row_reduction_fused.h).
#ifndef TILEWRIGHT_CODEGEN_ROW_REDUCTION_FUSED_H_
#define TILEWRIGHT_CODEGEN_ROW_REDUCTION_FUSED_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

absl::Status WriteRowReductionFused(const Candidate& candidate, const Plan& plan,
                                    KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_ROW_REDUCTION_FUSED_H_
