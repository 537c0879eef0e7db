// Writer of contraction.simt (schedule/contraction_simt.h).
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_SIMT_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_SIMT_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

absl::Status WriteContractionSimt(const Candidate& candidate, const Plan& plan,
                                  KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_SIMT_H_
