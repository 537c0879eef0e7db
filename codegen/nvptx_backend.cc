#include "codegen/nvptx_backend.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "codegen/llvm_passes.h"
#include "codegen/ptxas.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tilewright {
namespace {

constexpr char kNvptxTriple[] = "nvptx64-nvidia-cuda";

const llvm::Target& NvptxTarget() {
  static const llvm::Target* const kTarget = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    std::string error;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kNvptxTriple, error);
    if (found == nullptr)
      llvm::report_fatal_error(llvm::StringRef(error));  // linked in, so always found
    return found;
  }();
  return *kTarget;
}

// One target machine per thread, architecture and features.
absl::StatusOr<llvm::TargetMachine*> NvptxMachineFor(const Target& target) {
  thread_local std::map<std::pair<std::string, std::string>, std::unique_ptr<llvm::TargetMachine>>
      machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[{target.llvm_cpu, target.llvm_features}];
  if (machine != nullptr) return machine.get();
  std::unique_ptr<llvm::MCSubtargetInfo> names(
      NvptxTarget().createMCSubtargetInfo(kNvptxTriple, "", ""));
  if (!names->isCPUStringValid(target.llvm_cpu)) {
    return absl::InvalidArgumentError(
        absl::StrCat("target ", target.kind, ": llvm_cpu '", target.llvm_cpu,
                     "' is not a GPU architecture of LLVM ", LLVM_VERSION_STRING,
                     "; llc -march=nvptx64 -mcpu=help lists them"));
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion =
      llvm::FPOpFusion::Standard;  // where the instructions carry the flag `contract`
  machine.reset(NvptxTarget().createTargetMachine(kNvptxTriple, target.llvm_cpu,
                                                  target.llvm_features, options, llvm::Reloc::PIC_,
                                                  std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  return machine.get();
}

// Collects errors of the code generator.
class NvptxErrors : public llvm::DiagnosticHandler {
 public:
  explicit NvptxErrors(std::string* error) : error_(error) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    llvm::raw_string_ostream stream(*error_);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return true;
  }

 private:
  std::string* error_;
};

}  // namespace

absl::StatusOr<BuiltObject> BuildNvptxObject(llvm::Module& module, const Target& target,
                                             const BuildOptions& options) {
  auto machine = NvptxMachineFor(target);
  if (!machine.ok()) return machine.status();
  if (absl::Status status = VerifyModule(module); !status.ok()) return status;
  std::string error;
  module.getContext().setDiagnosticHandler(std::make_unique<NvptxErrors>(&error));
  RunCleaningPasses(module, *machine);
  if (options.keep) options.keep("ir-after-passes.ll", PrintModule(module));
  auto ptx = GenerateCode(module, *machine, llvm::CodeGenFileType::AssemblyFile);
  if (!ptx.ok()) return ptx.status();
  if (!error.empty()) return absl::InternalError(absl::StrCat("LLVM's code generator: ", error));
  if (options.keep) options.keep("kernel.ptx", *ptx);
  BuiltObject built;
  built.assembly_digest = Sha256Hex(*ptx);

  const absl::StatusOr<Ptxas> ptxas = FindPtxas();
  if (!ptxas.ok()) return ptxas.status();
  if (ptxas->path.empty()) {
    built.object = {absl::StrCat("ptx-", target.llvm_cpu), *std::move(ptx)};
    return built;
  }
  auto assembled = AssemblePtx(*ptxas, *ptx, target.llvm_cpu, options.compiler_deadline);
  if (options.keep) {
    options.keep("ptxas.log",
                 assembled.ok() ? assembled->log : std::string(assembled.status().message()));
  }
  if (!assembled.ok()) return assembled.status();
  const PtxasReport& report = assembled->report;
  if (absl::Status status = CheckPtxasReport(report, options.allow_spills); !status.ok())
    return status;
  built.object = {absl::StrCat("cubin-", target.llvm_cpu), std::move(assembled->cubin)};
  built.resources = {{"registers", report.registers},
                     {"shared_bytes", report.shared_bytes},
                     {"spill_bytes", report.spill_bytes},
                     {"stack_bytes", report.stack_bytes}};
  return built;
}

std::string NvptxToolchain() {
  const absl::StatusOr<Ptxas> ptxas = FindPtxas();
  const std::string assembler = !ptxas.ok()           ? std::string(ptxas.status().message())
                                : ptxas->path.empty() ? "no ptxas"
                                                      : absl::StrCat("ptxas ", ptxas->version);
  return absl::StrCat("LLVM ", LLVM_VERSION_STRING, ", ", assembler);
}

}  // namespace tilewright
