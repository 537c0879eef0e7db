#include "codegen/backends.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/host_backend.h"
#include "codegen/nvptx_backend.h"

namespace tilewright {

absl::Span<const Backend> AllBackends() {
  static const auto* const kBackends = new std::vector<Backend>{
      {"host", "x86-64 relocatable ELF through LLVM's code generator", BuildHostObject,
       HostToolchain},
      {"nvptx", "CUDA: PTX through LLVM's code generator, then a cubin by ptxas where it is found",
       BuildNvptxObject, NvptxToolchain},
  };
  return *kBackends;
}

absl::StatusOr<const Backend*> FindBackend(std::string_view name) {
  for (const Backend& backend : AllBackends()) {
    if (backend.name == name) return &backend;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "backend '", absl::string_view(name.data(), name.size()), "' does not exist; accepted: ",
      absl::StrJoin(AllBackends(), ", ",
                    [](std::string* out, const Backend& b) { absl::StrAppend(out, b.name); })));
}

}  // namespace tilewright
