// Writer of pointwise.vectorised (schedule/pointwise_vectorised.h).
#ifndef TILEWRIGHT_CODEGEN_POINTWISE_VECTORISED_H_
#define TILEWRIGHT_CODEGEN_POINTWISE_VECTORISED_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

absl::Status WritePointwiseVectorised(const Candidate& candidate, const Plan& plan,
                                      KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_POINTWISE_VECTORISED_H_
