// Writers of the naive variants (schedule/naive.h), on a CPU and on a GPU.
#ifndef TILEWRIGHT_CODEGEN_NAIVE_H_
#define TILEWRIGHT_CODEGEN_NAIVE_H_

#include "absl/status/status.h"
#include "codegen/writer.h"

namespace tilewright {

absl::Status WriteNaive(const Candidate& candidate, const Plan& plan, KernelModule* module);
absl::Status WriteNaiveOnGpu(const Candidate& candidate, const Plan& plan, KernelModule* module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_NAIVE_H_
