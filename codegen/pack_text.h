// The texts of a pack's files: header, launcher, CMake package; and what they need to know of an
// entry. What differs from one backend to the next is a row of PackKind. Only pack.cc and the
// pack's own sources include it. Deterministic, no input or output. Thread-safe.
#ifndef TILEWRIGHT_CODEGEN_PACK_TEXT_H_
#define TILEWRIGHT_CODEGEN_PACK_TEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/pack.h"

namespace tilewright {

// One tensor argument of a pack's function.
struct PackTensor {
  int buffer = 0;  // position in the kernel's buffers: parameters, then outputs
  int tensor = 0;  // number in the workload's program
  bool output = false;
  std::string name;  // as the caller wrote it
  std::string
      identifier;  // in C: the name, or with underscores appended where it is a keyword or taken
};

// One ranged size, which is an int64_t argument after the tensors.
struct PackSize {
  int index = 0;  // canonical number
  std::string name;
  std::string identifier;
};

struct PackSignature {
  std::vector<PackTensor> tensors;  // in argument order
  std::vector<PackSize> sizes;
};

// The arguments of an item's function, in the order in which its source names them (canonical order
// if it has no source). InvalidArgument: names and workload do not fit, or the source does not
// parse.
absl::StatusOr<PackSignature> SignatureOf(const PackItem& item);

// A feature that a kernel's instructions need and how a program finds out: bit `bit` of register
// `cpuid_register` of CPUID leaf `leaf`, subleaf `subleaf`; and the state that the operating system
// must save, as XGETBV(0) bits.
struct CpuFeature {
  std::string_view name;  // LLVM's
  uint32_t leaf;
  uint32_t subleaf;
  char cpuid_register;  // 'a', 'b', 'c' or 'd'
  int bit;
  uint32_t saved_state;
};
// Those of the list in pack_cpu.cc that LLVM's code for this target may use, in the list's order.
std::vector<CpuFeature> RequiredCpuFeatures(const Target& target);

// `f32 [t=1..8192, i=4096]`, with the strides where they are not dense.
std::string DescribeTensor(const Workload& workload, const Names& names, int tensor);

struct PackFile {
  std::string path;  // in the pack's directory
  std::string bytes;
};

// A function of the pack beside those of its workloads.
struct PackFunction {
  std::string name;
  std::string declaration;  // with its comment, for the header
};

// How packs for the targets of one backend are written. Manifest, header and objects are alike; a
// row says the rest.
struct PackKind {
  std::string_view backend;
  int manifest_version;           // that it was new in
  std::string_view context_type;  // the last argument of every function
  // The part of a header that is the same in every pack: the context and the status codes. A
  // program may include several packs' headers, so it has a guard of its own, which is raised when
  // it changes.
  std::string_view context_text;
  std::string_view tensors_where;  // " in device memory"; empty: in memory
  std::string_view how_to_build;   // without CMake
  std::function<std::vector<PackFunction>(const std::string& pack_name)> own_functions;
  // What the launcher relies on. A kernel of this program's own meets it; one that was read from a
  // file may not. InvalidArgument; FailedPrecondition: a tool that makes packs is missing.
  std::function<absl::Status(const Target&, const Workload&, const Kernel&)> check;
  // The launcher and the CMake package. Precondition: `check` has passed every kernel.
  std::function<std::vector<PackFile>(const Pack&)> files;
};
// The only list (pack_kinds.cc).
absl::Span<const PackKind> AllPackKinds();
// Unimplemented: there are no packs for that backend.
absl::StatusOr<const PackKind*> FindPackKind(const Target& target);
// Precondition: BuildPack made or ReadPack read the pack.
const PackKind& KindOf(const Pack& pack);

// The rows' own texts, of the backends `host` and `nvptx`.
PackKind HostPackKind();
PackKind CudaPackKind();

// Precondition: as KindOf, so every signature is valid.
std::string PackHeader(const Pack& pack);

// Where an object lies in the directory: `kernels/`, the SHA-256 of its bytes, and `.o`, `.cubin`
// or
// `.ptx` by its format.
std::string ObjectPath(const CodeObject& object);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_PACK_TEXT_H_
