// Writer of the naive variants (schedule/naive.h).
#ifndef TILEWRIGHT_CODEGEN_NAIVE_H_
#define TILEWRIGHT_CODEGEN_NAIVE_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

absl::Status WriteNaive(const Candidate& candidate, const Plan& plan, KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_NAIVE_H_
