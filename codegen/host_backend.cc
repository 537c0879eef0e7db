#include "codegen/host_backend.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "codegen/llvm_passes.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/Utils/Cloning.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace tilewright {
namespace {

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

const llvm::Target& X86Target() {
  InitializeLlvm();
  static const llvm::Target* const kTarget = [] {
    std::string error;
    const llvm::Target* found =
        llvm::TargetRegistry::lookupTarget("x86_64-unknown-linux-gnu", error);
    if (found == nullptr)
      llvm::report_fatal_error(llvm::StringRef(error));  // linked in, so always found
    return found;
  }();
  return *kTarget;
}

// What identifies a target machine.
using MachineKey = std::pair<std::string, std::string>;

// One target machine per thread, cpu and features: making one costs about as much as building a
// small kernel.
absl::StatusOr<llvm::TargetMachine*> MachineFor(const Target& target) {
  thread_local std::map<MachineKey, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[{target.llvm_cpu, target.llvm_features}];
  if (machine != nullptr) return machine.get();
  std::unique_ptr<llvm::MCSubtargetInfo> names(
      X86Target().createMCSubtargetInfo("x86_64-unknown-linux-gnu", "", ""));
  if (!names->isCPUStringValid(target.llvm_cpu)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "target ", target.kind, ": llvm_cpu '", target.llvm_cpu, "' is not a cpu of LLVM ",
        LLVM_VERSION_STRING, "; llc -march=x86-64 -mcpu=help lists them"));
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion =
      llvm::FPOpFusion::Standard;  // where the instructions carry the flag `contract`
  machine.reset(X86Target().createTargetMachine(
      "x86_64-unknown-linux-gnu", target.llvm_cpu, target.llvm_features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  return machine.get();
}

// Collects errors and what the register allocator and the frame layout report.
class Collector : public llvm::DiagnosticHandler {
 public:
  struct Report {
    std::string error;
    int64_t stack_bytes = 0;  // the largest frame
    int64_t spills = 0;       // spill stores and reloads, all functions
  };
  explicit Collector(Report* report) : report_(report) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (const auto* frame = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(&info)) {
      report_->stack_bytes = std::max<int64_t>(report_->stack_bytes, frame->getResourceSize());
    } else if (const auto* remark = llvm::dyn_cast<llvm::DiagnosticInfoOptimizationBase>(&info)) {
      if (remark->getRemarkName() != "SpillReloadCopies" &&
          remark->getRemarkName() != "SpillReload")
        return true;
      for (const auto& argument : remark->getArgs()) {
        if (argument.Key == "NumSpills" || argument.Key == "NumReloads")
          report_->spills += std::stoll(argument.Val);
      }
    } else if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream stream(report_->error);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }
  bool isMissedOptRemarkEnabled(llvm::StringRef pass) const override { return pass == "regalloc"; }
  bool isAnalysisRemarkEnabled(llvm::StringRef) const override { return false; }
  bool isPassedOptRemarkEnabled(llvm::StringRef) const override { return false; }
  bool isAnyRemarkEnabled() const override { return true; }

 private:
  Report* report_;
};

// InternalError if the object needs a symbol from elsewhere; adds the size of its code.
absl::Status InspectObject(llvm::StringRef bytes, int64_t* code_bytes) {
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object) return absl::InternalError(llvm::toString(object.takeError()));
  for (const llvm::object::SectionRef& section : (*object)->sections()) {
    if (section.isText()) *code_bytes += static_cast<int64_t>(section.getSize());
  }
  for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
    auto flags = symbol.getFlags();
    if (!flags) return absl::InternalError(llvm::toString(flags.takeError()));
    auto name = symbol.getName();
    if (!name) return absl::InternalError(llvm::toString(name.takeError()));
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) == 0 || name->empty()) continue;
    return absl::InternalError(
        absl::StrCat("the kernel calls ", name->str(), "; kernels must not call libraries"));
  }
  return absl::OkStatus();
}

void ReportFrames(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("warn-stack-size", "0");  // reports every frame to the collector
  }
}

}  // namespace

bool TargetHasFeature(const Target& target, std::string_view feature) {
  thread_local std::map<MachineKey, std::unique_ptr<llvm::MCSubtargetInfo>> subtargets;
  std::unique_ptr<llvm::MCSubtargetInfo>& info =
      subtargets[{target.llvm_cpu, target.llvm_features}];
  if (info == nullptr) {
    info.reset(X86Target().createMCSubtargetInfo("x86_64-unknown-linux-gnu", target.llvm_cpu,
                                                 target.llvm_features));
  }
  return info->checkFeatures("+" + std::string(feature));
}

absl::StatusOr<BuiltObject> BuildHostObject(llvm::Module& module, const Target& target,
                                            const BuildOptions& options) {
  auto machine = MachineFor(target);
  if (!machine.ok()) return machine.status();
  if (absl::Status status = VerifyModule(module); !status.ok()) return status;
  Collector::Report report;
  module.getContext().setDiagnosticHandler(std::make_unique<Collector>(&report));
  RunCleaningPasses(module, *machine);
  ReportFrames(module);
  BuiltObject built;
  if (options.keep) {
    options.keep("ir-after-passes.ll", PrintModule(module));
    const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    auto assembly = GenerateCode(*copy, *machine, llvm::CodeGenFileType::AssemblyFile);
    if (!assembly.ok()) return assembly.status();
    options.keep("assembly.s", *assembly);
    report = {};
  }
  auto bytes = GenerateCode(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!bytes.ok()) return bytes.status();
  if (!report.error.empty())
    return absl::InternalError(absl::StrCat("LLVM's code generator: ", report.error));
  built.object.format = "elf-x86_64";
  built.object.bytes = *std::move(bytes);
  int64_t code_bytes = 0;
  if (absl::Status status = InspectObject(built.object.bytes, &code_bytes); !status.ok()) {
    return status;
  }
  built.resources = {
      {"code_bytes", code_bytes}, {"spills", report.spills}, {"stack_bytes", report.stack_bytes}};
  return built;
}

std::string HostToolchain() { return absl::StrCat("LLVM ", LLVM_VERSION_STRING); }

}  // namespace tilewright
