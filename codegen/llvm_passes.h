// What backends share of LLVM: the passes that clean up a writer's module, and code generation into
// a string.
#ifndef TILEWRIGHT_CODEGEN_LLVM_PASSES_H_
#define TILEWRIGHT_CODEGEN_LLVM_PASSES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Target/TargetMachine.h"

namespace tilewright {

// Internal: LLVM's verifier refused the module, with its text.
absl::Status VerifyModule(const llvm::Module& module);

// The passes. Writers choose loops, vectors and unrolling themselves, so what is left is cleaning
// up: stack slots to registers, common subexpressions, loop-invariant code, the unrolling that
// loops ask for. No call to a library is ever recognised or made.
void RunCleaningPasses(llvm::Module& module, llvm::TargetMachine* machine);

// The module as assembly or object code; changes it. Internal: LLVM cannot write this file type.
absl::StatusOr<std::string> GenerateCode(llvm::Module& module, llvm::TargetMachine* machine,
                                         llvm::CodeGenFileType type);

// The module as LLVM's assembly language.
std::string PrintModule(const llvm::Module& module);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_LLVM_PASSES_H_
