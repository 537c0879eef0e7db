// Runs a GPU kernel on the CPU, from the LLVM IR that its writer made, so that what a kernel
// computes can be tested without a GPU. Kernels with inline PTX, tensor maps or clusters are beyond
// it.
//
// Blocks run one after another; the threads of a block are fibers that run until they wait, in
// ascending or descending order, so a missing barrier shows. An asynchronous copy spoils its
// destination when it starts and arrives when it is waited for: the earliest and the latest that a
// GPU may do. Shared memory and the workspace begin as NaN patterns.
#ifndef TILEWRIGHT_TESTS_CODEGEN_DEVICE_EMULATOR_H_
#define TILEWRIGHT_TESTS_CODEGEN_DEVICE_EMULATOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "codegen/kernel.h"
#include "tests/codegen/host_loader.h"

namespace tilewright {

// `ir` is the dump "ir-before-passes.ll" of the kernel. Internal: LLVM refused it; the kernel uses
// something that the emulator lacks, by name. Run with Order::kBackwards runs threads in descending
// order; it aborts with a message where threads of a block wait for different things.
absl::StatusOr<std::unique_ptr<LoadedKernel>> EmulateDevice(const Kernel& kernel,
                                                            const std::string& ir);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_CODEGEN_DEVICE_EMULATOR_H_
