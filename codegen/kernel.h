// A Kernel is what codegen makes of a candidate: code objects and the recipe that says how to call
// them. Runners and pack launchers interpret the same serialised recipe (docs/FORMATS.md,
// "Recipe"), so a kernel is measured as it ships.
//
// On a CPU a launch is `entry(args, workspace, thread, threads)`, called once for each thread 0 …
// threads-1, in any order or at once; the end of a launch is the only barrier. `args` is a table of
// 8-byte slots in the order of Launch::arguments.
//
// On a GPU a launch is a grid of blocks of the entry, whose parameters are Launch::arguments in
// order; launches follow one another in a stream.
#ifndef TILEWRIGHT_CODEGEN_KERNEL_H_
#define TILEWRIGHT_CODEGEN_KERNEL_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/match.h"
#include "schedule/workload.h"

namespace tilewright {

// The newest version of the serialised recipe. Recipes of CPU kernels say 1, of GPU kernels 2, or 3
// where the workspace has flags.
inline constexpr int kRecipeVersion = 3;

// The C signature of a CPU entry.
using HostEntry = void (*)(const uint64_t* args, void* workspace, int32_t thread, int32_t threads);

struct Argument {
  enum class Kind {
    kBuffer,     // pointer to buffer number `number`: workload.parameters() then workload.outputs()
    kSize,       // the size of index `number` (canonical), a 64-bit integer
    kInteger,    // the constant `value`, a 64-bit integer
    kTensorMap,  // GPU: Kernel::tensor_maps[number], encoded: 128 bytes by value, aligned to 64
    kWorkspace,  // GPU: pointer to the workspace + `value` bytes
  };
  Kind kind = Kind::kBuffer;
  int number = 0;
  int64_t value = 0;
  bool operator==(const Argument&) const = default;
};

struct Launch {
  std::string entry;  // symbol in one of the objects
  int threads = 1;    // CPU
  std::vector<Argument> arguments;

  // GPU. The grid is constant: kernels loop over what there is to do, so ranges of sizes need no
  // expressions here.
  std::array<int, 3> grid = {1, 1, 1};  // blocks, cluster and all
  int block = 0;                        // threads of a block, along x; 0: a launch on a CPU
  int cluster = 1;                      // blocks of a cluster, along x; 1: none
  int64_t shared_memory_bytes = 0;      // dynamic, of a block; above 48 KiB it must be opted in
  // The code has griddepcontrol, so it may be launched with programmatic stream serialization.
  bool dependent_launch = false;

  bool on_gpu() const { return block > 0; }
  bool operator==(const Launch&) const = default;
};

// What cuTensorMapEncodeTiled must be told (CUDA driver API, "Tensor Map Object Management").
// Interleave is none, element strides are 1 and what lies outside reads as 0.
struct TensorMap {
  struct Dim {
    Stride extent;  // elements, at the sizes of a call
    Stride stride;  // elements; that of dimension 0 is 1
    bool operator==(const Dim&) const = default;
  };
  static constexpr int kWorkspace = -1;
  int buffer = 0;            // as Argument::number of a kBuffer, or kWorkspace
  int64_t offset_bytes = 0;  // from its start to element 0 of the map: a multiple of 16
  ElementType type = ElementType::kF32;
  std::vector<Dim> dims;       // innermost first, 1 to 5
  std::vector<int> box;        // elements of each dimension in a copy, 1 to 256
  int swizzle_bytes = 0;       // 0, 32, 64 or 128
  int l2_promotion_bytes = 0;  // 0, 64, 128 or 256
  bool operator==(const TensorMap&) const = default;
};

struct Workspace {
  int64_t bytes = 0;
  int alignment = 64;
  bool zeroed = false;  // must be zero before every call
  // GPU. The workspace's first bytes, through which blocks tell each other what is done: zero
  // before a call, and zero again when it has ended. So whoever calls clears them once, or before a
  // call whenever something else has used that memory.
  int64_t flag_bytes = 0;
  bool operator==(const Workspace&) const = default;
};

// Where the kernel is valid. Strides are those of the workload.
struct Domain {
  std::vector<SizeRange> sizes;     // by canonical index number
  std::vector<int64_t> alignments;  // bytes, one per buffer
  bool operator==(const Domain&) const = default;
};

struct CodeObject {
  // "elf-x86_64": a relocatable object. "cubin-sm_90a": a CUDA binary. "ptx-sm_90a": PTX text,
  // where no ptxas was found; the driver compiles it.
  std::string format;
  std::string bytes;
  bool operator==(const CodeObject&) const = default;
};

// Lower-case hexadecimal SHA-256 each; empty where the backend has no such stage.
struct Digests {
  std::string ir;        // LLVM IR text before passes, symbols final
  std::string assembly;  // PTX
  std::string binary;    // the objects' bytes, concatenated
  bool operator==(const Digests&) const = default;
};

struct Kernel {
  std::vector<CodeObject> objects;
  std::vector<Launch> launches;  // in order
  std::vector<TensorMap> tensor_maps;
  Workspace workspace;
  Domain domain;
  Digests digests;
  // Measured by the build, never features: "stack_bytes", "code_bytes", "spills"; on a GPU
  // "registers" of a thread, "spill_bytes", "stack_bytes" and "shared_bytes", the largest of the
  // entries.
  std::vector<std::pair<std::string, int64_t>> resources;

  // Everything but the objects' bytes, as one line of JSON with sorted keys.
  std::string RecipeJson() const;
  bool operator==(const Kernel&) const = default;
};

// Reads RecipeJson(); `objects` come back with format only. InvalidArgument names the field.
absl::StatusOr<Kernel> ParseRecipe(std::string_view json);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_KERNEL_H_
