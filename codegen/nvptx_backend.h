// The nvptx backend: an LLVM module to PTX by the shared passes and LLVM's code generator, then to
// a CUDA binary by ptxas.
//
// Without ptxas the code object is the PTX text, and neither spills nor what ptxas would have
// ignored is known. Reads the target's text only, never the machine it runs on. Thread-safe: LLVM's
// target machines are kept per thread.
#ifndef TILEWRIGHT_CODEGEN_NVPTX_BACKEND_H_
#define TILEWRIGHT_CODEGEN_NVPTX_BACKEND_H_

#include <string>

#include "absl/status/statusor.h"
#include "codegen/backends.h"
#include "llvm/IR/Module.h"
#include "schedule/target.h"

namespace tilewright {

// Backend::build of the row "nvptx" (backends.cc).
absl::StatusOr<BuiltObject> BuildNvptxObject(llvm::Module& module, const Target& target,
                                             const BuildOptions& options);
// Backend::toolchain: "LLVM 19.1.7, ptxas 13.0.88", or "LLVM 19.1.7, no ptxas".
std::string NvptxToolchain();

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_NVPTX_BACKEND_H_
