// Writer of contraction.direct (schedule/contraction_direct.h).
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_DIRECT_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_DIRECT_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

absl::Status WriteContractionDirect(const Candidate& candidate, const Plan& plan,
                                    KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_DIRECT_H_
