#include "codegen/finish_kernel.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "codegen/llvm_passes.h"

namespace tilewright {
namespace {

// What the backend needs to know of the target stands in the IR text, so the text alone decides the
// bytes.
void SetTargetAttributes(KernelModule* module) {
  const Target& target = module->target();
  const std::string width = absl::StrCat(target.vector_bits);
  for (llvm::Function& function : module->module()) {
    if (function.isDeclaration()) continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("target-cpu", target.llvm_cpu);
    if (!target.llvm_features.empty()) function.addFnAttr("target-features", target.llvm_features);
    if (!target.is_gpu() && target.vector_bits > 0) {
      function.addFnAttr("prefer-vector-width", width);
      function.addFnAttr("min-legal-vector-width", width);
    }
  }
}

// What entries could have used and did not: dynamic shared memory.
void DropUnusedDeclarations(llvm::Module* module) {
  for (llvm::GlobalVariable& global : llvm::make_early_inc_range(module->globals())) {
    if (global.isDeclaration() && global.use_empty()) global.eraseFromParent();
  }
}

// Gives launches whose entries have no final symbol yet theirs.
void NameEntries(KernelModule* module) {
  std::vector<llvm::Function*> entries;
  for (const Launch& launch : module->launches())
    entries.push_back(module->module().getFunction(launch.entry));
  for (size_t i = 0; i < entries.size(); ++i) entries[i]->setName(absl::StrFormat("tw_%016d", i));
  const std::string blanked = PrintModule(module->module());
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string hash = Sha256Hex(i == 0 ? blanked : absl::StrCat(blanked, "entry ", i));
    module->launches()[i].entry = absl::StrCat("tw_", hash.substr(0, 16));
    entries[i]->setName(module->launches()[i].entry);
  }
}

}  // namespace

DumpFiles::DumpFiles(std::string directory) : directory_(std::move(directory)) {
  if (!wanted()) return;
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error)
    status_ =
        absl::InternalError(absl::StrCat("dump directory ", directory_, ": ", error.message()));
}

void DumpFiles::Add(std::string_view name, std::string_view text) {
  if (!wanted() || !status_.ok()) return;
  const std::string path = absl::StrFormat("%s/%02d-%s", directory_, ++count_,
                                           absl::string_view(name.data(), name.size()));
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) status_ = absl::InternalError(absl::StrCat("dump file ", path, " cannot be written"));
}

absl::StatusOr<Kernel> FinishKernel(KernelModule* module, const BuildOptions& options,
                                    DumpFiles* dump) {
  auto backend = FindBackend(module->target().backend);
  if (!backend.ok()) return backend.status();
  DropUnusedDeclarations(&module->module());
  SetTargetAttributes(module);
  NameEntries(module);
  const std::string ir = PrintModule(module->module());
  dump->Add("ir-before-passes.ll", ir);

  BuildOptions build_options = options;
  build_options.allow_spills |= module->spills_allowed();
  if (dump->wanted()) {
    build_options.keep = [dump](std::string_view name, const std::string& text) {
      dump->Add(name, text);
    };
  }
  auto built = (*backend)->build(module->module(), module->target(), build_options);
  if (!built.ok()) return built.status();

  Kernel kernel;
  kernel.launches = module->launches();
  kernel.tensor_maps = module->tensor_maps();
  kernel.workspace = module->workspace();
  const Workload& workload = module->workload();
  kernel.domain.sizes.assign(workload.sizes().begin(), workload.sizes().end());
  kernel.domain.alignments = module->alignments();
  kernel.digests.ir = Sha256Hex(ir);
  kernel.digests.assembly = built->assembly_digest;
  kernel.digests.binary = Sha256Hex(built->object.bytes);
  kernel.objects.push_back(std::move(built->object));
  kernel.resources = std::move(built->resources);
  dump->Add("recipe.json", kernel.RecipeJson());
  if (!dump->status().ok()) return dump->status();
  return kernel;
}

}  // namespace tilewright
