// Backends turn a module that a writer has filled into a code object. One row each in backends.cc;
// Target::backend names a row.
#ifndef TILEWRIGHT_CODEGEN_BACKENDS_H_
#define TILEWRIGHT_CODEGEN_BACKENDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/kernel.h"
#include "llvm/IR/Module.h"
#include "schedule/target.h"

namespace tilewright {

struct BuildOptions {
  // Fills BuiltObject::ir_after_passes and ::assembly, for dumps; costs a second code generation.
  bool keep_texts = false;
};

struct BuiltObject {
  CodeObject object;
  std::vector<std::pair<std::string, int64_t>> resources;  // sorted by name
  std::string ir_after_passes;
  std::string assembly;
};

struct Backend {
  std::string name;
  std::string help;
  // Internal: LLVM's verifier or code generator refused, with its text. The module is changed.
  std::function<absl::StatusOr<BuiltObject>(llvm::Module&, const Target&, const BuildOptions&)>
      build;
  // Versions of what decides the bytes: "LLVM 19.1.7".
  std::function<std::string()> toolchain;
};

// The only list.
absl::Span<const Backend> AllBackends();
// InvalidArgument lists the backends that exist.
absl::StatusOr<const Backend*> FindBackend(std::string_view name);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_BACKENDS_H_
