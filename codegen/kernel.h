// A Kernel is what codegen makes of a candidate: code objects and the recipe that says how to call
// them. Runners and pack launchers interpret the same serialised recipe (docs/FORMATS.md,
// "Recipe"), so a kernel is measured as it ships.
//
// On a CPU a launch is `entry(args, workspace, thread, threads)`, called once for each thread 0 …
// threads-1, in any order or at once; the end of a launch is the only barrier. `args` is a table of
// 8-byte slots in the order of Launch::arguments.
#ifndef TILEWRIGHT_CODEGEN_KERNEL_H_
#define TILEWRIGHT_CODEGEN_KERNEL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/workload.h"

namespace tilewright {

// Version of the serialised recipe.
inline constexpr int kRecipeVersion = 1;

// The C signature of a CPU entry.
using HostEntry = void (*)(const uint64_t* args, void* workspace, int32_t thread, int32_t threads);

struct Argument {
  enum class Kind {
    kBuffer,   // pointer to buffer number `number`: workload.parameters() then workload.outputs()
    kSize,     // the size of index `number` (canonical), a 64-bit integer
    kInteger,  // the constant `value`
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
  bool operator==(const Launch&) const = default;
};

struct Workspace {
  int64_t bytes = 0;
  int alignment = 64;
  bool zeroed = false;  // must be zero before every call
  bool operator==(const Workspace&) const = default;
};

// Where the kernel is valid. Strides are those of the workload.
struct Domain {
  std::vector<SizeRange> sizes;     // by canonical index number
  std::vector<int64_t> alignments;  // bytes, one per buffer
  bool operator==(const Domain&) const = default;
};

struct CodeObject {
  std::string format;  // "elf-x86_64": a relocatable object
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
  Workspace workspace;
  Domain domain;
  Digests digests;
  // Measured by the build, never features: "stack_bytes", "code_bytes", "spills".
  std::vector<std::pair<std::string, int64_t>> resources;

  // Everything but the objects' bytes, as one line of JSON with sorted keys.
  std::string RecipeJson() const;
  bool operator==(const Kernel&) const = default;
};

// Reads RecipeJson(); `objects` come back with format only. InvalidArgument names the field.
absl::StatusOr<Kernel> ParseRecipe(std::string_view json);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_KERNEL_H_
