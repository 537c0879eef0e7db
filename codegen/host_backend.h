// The host backend: an LLVM module to an x86-64 relocatable ELF object, by a lean list of passes
// and LLVM's code generator.
//
// Reads the target's text only, never the machine it runs on. Thread-safe: LLVM's target machines
// are kept per thread.
#ifndef TILEWRIGHT_CODEGEN_HOST_BACKEND_H_
#define TILEWRIGHT_CODEGEN_HOST_BACKEND_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/backends.h"
#include "llvm/IR/Module.h"
#include "schedule/target.h"

namespace tilewright {

// True if the target's cpu or features have `feature`, by LLVM's name ("f16c", "fma", "avx512bw").
// Precondition: a target of the backend `host`.
bool TargetHasFeature(const Target& target, std::string_view feature);

// Backend::build of the row "host" (backends.cc).
absl::StatusOr<BuiltObject> BuildHostObject(llvm::Module& module, const Target& target,
                                            const BuildOptions& options);
// Backend::toolchain: "LLVM 19.1.7".
std::string HostToolchain();

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_HOST_BACKEND_H_
