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
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "codegen/kernel.h"
#include "llvm/IR/Module.h"
#include "schedule/target.h"

namespace tilewright {

struct BuildOptions {
  // Called with a file name and a text of each stage as soon as it is there, so that dumps of a
  // build that fails have what came before: "ir-after-passes.ll", "assembly.s", "kernel.ptx",
  // "ptxas.log". Null: nothing is kept; on a CPU it costs a second code generation.
  std::function<void(std::string_view name, const std::string& text)> keep;
  // GPU: registers that live in memory, or a stack, are no failure.
  bool allow_spills = false;
  // How long a compiler that runs as a child process may take.
  absl::Duration compiler_deadline = absl::Seconds(60);
};

struct BuiltObject {
  CodeObject object;
  std::vector<std::pair<std::string, int64_t>> resources;  // sorted by name
  // SHA-256 of the PTX; empty where the backend has no such stage.
  std::string assembly_digest;
};

struct Backend {
  std::string name;
  std::string help;
  // Internal: LLVM's verifier or code generator, or the child, refused, with its text.
  // ResourceExhausted: registers or shared memory ran out. DeadlineExceeded: the child's deadline.
  // The module is changed.
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
