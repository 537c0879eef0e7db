#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/kernel_module.h"
#include "codegen/pack_text.h"

namespace tilewright {

absl::Span<const PackKind> AllPackKinds() {
  static const auto* const kKinds = new std::vector<PackKind>{HostPackKind(), CudaPackKind()};
  return *kKinds;
}

absl::StatusOr<const PackKind*> FindPackKind(const Target& target) {
  std::vector<std::string> known;
  for (const PackKind& kind : AllPackKinds()) {
    if (kind.backend == target.backend) return &kind;
    known.emplace_back(kind.backend);
  }
  return absl::UnimplementedError(
      absl::StrCat("a pack for ", target.kind, ": there are launchers for the backends ",
                   absl::StrJoin(known, " and "), " only, not for ", target.backend));
}

const PackKind& KindOf(const Pack& pack) { return **FindPackKind(pack.target); }

std::string ObjectPath(const CodeObject& object) {
  const char* suffix = absl::StartsWith(object.format, "cubin-") ? ".cubin"
                       : absl::StartsWith(object.format, "ptx-") ? ".ptx"
                                                                 : ".o";
  return absl::StrCat("kernels/", Sha256Hex(object.bytes), suffix);
}

}  // namespace tilewright
