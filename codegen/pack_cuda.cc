// Packs for CUDA: the tables by which the launcher interprets the recipes, the code as arrays, and
// the CMake package.
//
// The code lies in the pack twice: as kernels/*.cubin, which the manifest names and other tools
// read, and in kernels.inc as arrays that launcher.c includes, so that a program needs no file at
// run time and a build no tool but a C compiler.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "codegen/pack_c.h"
#include "codegen/pack_cuda_launcher.h"
#include "codegen/pack_text.h"

namespace tilewright {
namespace {

// What cuMemAlloc and cuMemAllocAsync align to (CUDA C++ Programming Guide, "Device Memory
// Accesses").
constexpr int64_t kDeviceAlignment = 256;

// The workspace's first bytes that a call must find at zero. Calls share no memory that the
// launcher knows of, so flags are cleared before each.
int64_t ZeroedBytes(const Workspace& workspace) {
  return workspace.zeroed ? workspace.bytes : workspace.flag_bytes;
}

struct ComputeCapability {
  int major;
  int minor;
};
// "sm_90a" is 9.0, "sm_120" 12.0.
std::optional<ComputeCapability> CapabilityOf(std::string_view arch) {
  int number = 0;
  if (!arch.starts_with("sm_")) return std::nullopt;
  arch.remove_prefix(3);
  if (arch.ends_with('a') || arch.ends_with('f')) arch.remove_suffix(1);
  if (!absl::SimpleAtoi(std::string(arch), &number) || number < 10) return std::nullopt;
  return ComputeCapability{number / 10, number % 10};
}

// Instructions that exist in one architecture only (PTX ISA: target notes "sm_90a" of wgmma.* and
// setmaxnreg). What the driver's own compiler makes of them is not checked as ptxas' output is (it
// may serialise them), so a pack has them as a cubin.
constexpr std::string_view kArchitectureOwn[] = {"wgmma.", "setmaxnreg."};

absl::Status CheckObject(const CodeObject& object, const Target& target) {
  const bool ptx = object.format == absl::StrCat("ptx-", target.llvm_cpu);
  if (!ptx && object.format != absl::StrCat("cubin-", target.llvm_cpu)) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel's object is '", object.format,
                                                   "'; a pack for ", target.kind, " holds cubin-",
                                                   target.llvm_cpu, " and ptx-", target.llvm_cpu));
  }
  if (!ptx) return absl::OkStatus();
  for (std::string_view instruction : kArchitectureOwn) {
    if (object.bytes.find(instruction) == std::string::npos) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the kernel has instructions of ", target.llvm_cpu, " alone (", std::string(instruction),
        "*), of which a pack holds the cubin, and no ptxas was found; it is looked for in "
        "$TILEWRIGHT_PTXAS, PATH and /usr/local/cuda/bin"));
  }
  return absl::OkStatus();
}

absl::Status CheckNumber(const char* what, int number, size_t count) {
  if (number >= 0 && number < static_cast<int>(count)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the recipe's ", what, " ", number, " of ", count, " does not exist"));
}

absl::Status CheckSizes(const Stride& stride, size_t sizes) {
  for (const Stride::Term& term : stride.terms) {
    for (int size : term.sizes) {
      if (absl::Status status = CheckNumber("size", size, sizes); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCudaKernel(const Target& target, const Workload& workload, const Kernel& kernel) {
  const size_t buffers = workload.parameters().size() + workload.outputs().size();
  const size_t sizes = workload.sizes().size();
  if (!CapabilityOf(target.llvm_cpu)) {
    return absl::InvalidArgumentError(absl::StrCat("the target's architecture '", target.llvm_cpu,
                                                   "' is not of the form sm_90 or sm_90a"));
  }
  const int64_t alignment = kernel.workspace.alignment;
  if (alignment < 1 || alignment > kDeviceAlignment || (alignment & (alignment - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel's workspace is aligned to ", alignment,
                     " bytes; a pack for GPUs gives powers of 2 up to ", kDeviceAlignment));
  }
  for (const CodeObject& object : kernel.objects) {
    if (absl::Status status = CheckObject(object, target); !status.ok()) return status;
  }
  if (kernel.objects.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel has ", kernel.objects.size(),
                                                   " objects; a pack for GPUs takes one"));
  }
  for (const TensorMap& map : kernel.tensor_maps) {
    absl::Status status = map.buffer == TensorMap::kWorkspace
                              ? absl::OkStatus()
                              : CheckNumber("buffer", map.buffer, buffers);
    for (const TensorMap::Dim& dim : map.dims) {
      if (status.ok()) status = CheckSizes(dim.extent, sizes);
      if (status.ok()) status = CheckSizes(dim.stride, sizes);
    }
    if (!status.ok()) return status;
  }
  for (const Launch& launch : kernel.launches) {
    if (!launch.on_gpu()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "launch '", launch.entry, "' is one on a CPU; the launcher calls GPU kernels"));
    }
    for (const Argument& argument : launch.arguments) {
      absl::Status status;
      if (argument.kind == Argument::Kind::kBuffer) {
        status = CheckNumber("buffer", argument.number, buffers);
      } else if (argument.kind == Argument::Kind::kSize) {
        status = CheckNumber("size", argument.number, sizes);
      } else if (argument.kind == Argument::Kind::kTensorMap) {
        status = CheckNumber("tensor map", argument.number, kernel.tensor_maps.size());
      }
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// ---- tables

struct MapType {
  ElementType type;
  std::string_view name;  // of cuda.h
};
constexpr MapType kMapTypes[] = {
    {ElementType::kF64, "FLOAT64"}, {ElementType::kF32, "FLOAT32"},
    {ElementType::kF16, "FLOAT16"}, {ElementType::kBF16, "BFLOAT16"},
    {ElementType::kE4M3, "UINT8"},  {ElementType::kE5M2, "UINT8"},
    {ElementType::kI8, "UINT8"},    {ElementType::kI32, "INT32"},
};

std::string MapTypeName(ElementType type) {
  const auto* row = std::find_if(std::begin(kMapTypes), std::end(kMapTypes),
                                 [&](const MapType& t) { return t.type == type; });
  return absl::StrCat("CU_TENSOR_MAP_DATA_TYPE_", std::string(row->name));
}

// "CU_TENSOR_MAP_SWIZZLE_128B", "…_NONE".
std::string WidthName(const char* kind, const char* before_width, int bytes) {
  return absl::StrCat("CU_TENSOR_MAP_", kind, "_",
                      bytes == 0 ? "NONE" : absl::StrCat(before_width, bytes, "B"));
}

// Adds the terms' rows; returns the tw_sum that means them.
std::string AddTerms(const Stride& stride, std::vector<std::string>* terms) {
  const size_t first = terms->size();
  for (const Stride::Term& term : stride.terms) {
    terms->push_back(absl::StrCat("{INT64_C(", term.coefficient, "), ", term.sizes.size(), ", {",
                                  term.sizes.empty() ? "0" : absl::StrJoin(term.sizes, ", "),
                                  "}}"));
  }
  return absl::StrCat("{", first, ", ", stride.terms.size(), "}");
}

// The tensor maps of one kernel and what they are made of.
std::string MapTables(const std::string& name, const Kernel& kernel) {
  std::string text;
  std::vector<std::string> terms;
  std::vector<std::string> maps;
  for (const TensorMap& map : kernel.tensor_maps) {
    std::vector<std::string> dimensions;
    for (size_t d = 0; d < map.dims.size(); ++d) {
      const std::string extent = AddTerms(map.dims[d].extent, &terms);
      const std::string stride = AddTerms(map.dims[d].stride, &terms);
      dimensions.push_back(absl::StrCat("{", extent, ", ", stride, ", ", map.box[d], "}"));
    }
    const std::string table = absl::StrCat("tw_dimensions_", name, "_", maps.size());
    absl::StrAppend(&text, CTable("tw_dimension", table, dimensions, "{{0, 0}, {0, 0}, 0}"));
    maps.push_back(absl::StrCat("{", map.buffer, ", INT64_C(", map.offset_bytes, "), ",
                                MapTypeName(map.type), ", ", Info(map.type).bytes, ", ",
                                map.dims.size(), ", ", table, ", ",
                                WidthName("SWIZZLE", "", map.swizzle_bytes), ", ",
                                WidthName("L2_PROMOTION", "L2_", map.l2_promotion_bytes), "}"));
  }
  absl::StrAppend(&text, CTable("tw_term", absl::StrCat("tw_terms_", name), terms, "{0, 0, {0}}"));
  absl::StrAppend(&text, CTable("tw_map", absl::StrCat("tw_maps_", name), maps,
                                "{0, 0, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, 0, 0, "
                                "CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE}"));
  return text;
}

// The code objects and entries of a pack, each once, numbered in the order of the entries.
struct Code {
  struct Function {
    int object;
    std::string entry;
    int64_t shared_memory_bytes;
    int cluster;
  };
  std::vector<const CodeObject*> objects;
  std::vector<Function> functions;
  std::map<std::pair<std::string, std::string>, int> function_of;  // path of the object, entry

  int FunctionOf(const CodeObject& object, const std::string& entry) const {
    return function_of.at({ObjectPath(object), entry});
  }
};

Code CodeOf(const Pack& pack) {
  Code code;
  std::map<std::string, int> object_of;
  for (const PackEntry& entry : pack.entries) {
    const CodeObject& object = entry.kernel.objects.front();
    const std::string path = ObjectPath(object);
    if (object_of.emplace(path, code.objects.size()).second) code.objects.push_back(&object);
    for (const Launch& launch : entry.kernel.launches) {
      const auto [found, added] =
          code.function_of.emplace(std::pair(path, launch.entry), code.functions.size());
      if (added) code.functions.push_back({object_of[path], launch.entry, 0, 1});
      Code::Function& function = code.functions[found->second];
      function.shared_memory_bytes =
          std::max(function.shared_memory_bytes, launch.shared_memory_bytes);
      function.cluster = std::max(function.cluster, launch.cluster);
    }
  }
  return code;
}

std::string CudaKernelTables(const PackEntry& entry, const Code& code) {
  const std::string& name = entry.item.name;
  const Kernel& kernel = entry.kernel;
  std::string own = MapTables(name, kernel);
  std::vector<std::string> launches;
  for (size_t i = 0; i < kernel.launches.size(); ++i) {
    const Launch& launch = kernel.launches[i];
    std::vector<std::string> arguments;
    for (const Argument& argument : launch.arguments) arguments.push_back(ArgumentRow(argument));
    const std::string table = absl::StrCat("tw_arguments_", name, "_", i);
    absl::StrAppend(&own, CTable("tw_argument", table, arguments, "{TW_FROM_CONSTANT, 0, 0}"));
    launches.push_back(absl::StrCat("{", code.FunctionOf(kernel.objects.front(), launch.entry),
                                    ", {", absl::StrJoin(launch.grid, ", "), "}, ", launch.block,
                                    ", ", launch.cluster, ", ", launch.shared_memory_bytes, ", ",
                                    entry.item.dependent_launch && launch.dependent_launch ? 1 : 0,
                                    ", ", launch.arguments.size(), ", ", table, "}"));
  }
  absl::StrAppend(&own, CTable("tw_launch", absl::StrCat("tw_launches_", name), launches,
                               "{0, {0, 0, 0}, 0, 0, 0, 0, 0, 0}"));
  return absl::StrCat(BeginKernelTable(entry, own), kernel.launches.size(), ", tw_launches_", name,
                      ", tw_maps_", name, ", tw_terms_", name, ",\n    ", kernel.workspace.bytes,
                      ", ", kernel.workspace.alignment, ", ", ZeroedBytes(kernel.workspace), "};\n",
                      CaseTable(entry));
}

// ---- files

// Words of 8 bytes: an eighth of the tokens that bytes would be. At least one zero byte follows the
// object's bytes, which PTX must end with.
std::string ObjectArray(const CodeObject& object, size_t number) {
  std::string text = absl::StrCat("// ", ObjectPath(object), "\nstatic const uint64_t tw_object_",
                                  number, "[] = {");
  for (size_t at = 0; at <= object.bytes.size(); at += 8) {
    uint64_t word = 0;
    const size_t count = std::min<size_t>(8, object.bytes.size() - at);
    for (size_t i = 0; i < count; ++i)
      word |= uint64_t{static_cast<unsigned char>(object.bytes[at + i])} << (8 * i);
    absl::StrAppendFormat(&text, "%s0x%x", at % 64 == 0 ? "\n" : "", word);
    text += ',';
  }
  return absl::StrCat(text, "\n};\n");
}

std::string CodeArrays(const Pack& pack, const Code& code) {
  std::string text =
      absl::StrCat("// The code of the pack ", pack.name, " for ", pack.target.kind,
                   ", as little-endian words. Written by `tilewright build`; do not edit.\n");
  std::vector<std::string> objects;
  for (size_t i = 0; i < code.objects.size(); ++i) {
    absl::StrAppend(&text, ObjectArray(*code.objects[i], i));
    objects.push_back(absl::StrCat("tw_object_", i));
  }
  absl::StrAppend(&text, CTable("void* const", "tw_objects", objects, "0"));
  return text;
}

// The driver compiles PTX for its device, and every later one has what an architecture that is not
// an "a" of its own has.
bool RunsOnLaterOnes(const Pack& pack) {
  return std::all_of(pack.entries.begin(), pack.entries.end(), [](const PackEntry& entry) {
    const std::string& format = entry.kernel.objects.front().format;
    return absl::StartsWith(format, "ptx-") && absl::ascii_isdigit(format.back());
  });
}

std::string CudaLauncher(const Pack& pack, const Code& code) {
  size_t most_arguments = 1;
  size_t most_factors = 1;
  for (const PackEntry& entry : pack.entries) {
    for (const Launch& launch : entry.kernel.launches)
      most_arguments = std::max(most_arguments, launch.arguments.size());
    for (const TensorMap& map : entry.kernel.tensor_maps) {
      for (const TensorMap::Dim& dim : map.dims) {
        for (const Stride* stride : {&dim.extent, &dim.stride}) {
          for (const Stride::Term& term : stride->terms)
            most_factors = std::max(most_factors, term.sizes.size());
        }
      }
    }
  }
  std::vector<std::string> functions;
  for (const Code::Function& function : code.functions) {
    functions.push_back(absl::StrCat("{", function.object, ", \"", function.entry, "\", ",
                                     function.shared_memory_bytes, ", ", function.cluster, "}"));
  }
  const ComputeCapability capability = *CapabilityOf(pack.target.llvm_cpu);
  std::string text = absl::StrCat(
      "// Launcher of the pack ", pack.name, " for ", pack.target.kind,
      ": C11 or C++11 over the CUDA driver API. Written by `tilewright build`; do not edit.\n"
      "#include \"",
      pack.name,
      ".h\"\n\n#include <cuda.h>\n#include <dlfcn.h>\n#include <pthread.h>\n#include <string.h>\n\n"
      "#if CUDA_VERSION < 12000\n#error \"cuda.h of CUDA 12.0 or newer is needed\"\n#endif\n\n"
      "#include \"kernels.inc\"\n\nenum {\n  TW_COMPUTE_MAJOR = ",
      capability.major, ",\n  TW_COMPUTE_MINOR = ", capability.minor,
      ",\n  TW_LATER_ONES_TOO = ", RunsOnLaterOnes(pack) ? 1 : 0,
      ",\n  TW_MULTIPROCESSORS = ", pack.target.cores,
      ",\n  TW_OBJECT_COUNT = ", code.objects.size(),
      ",\n  TW_FUNCTION_COUNT = ", code.functions.size(),
      ",\n  TW_MOST_ARGUMENTS = ", most_arguments, ",\n  TW_MOST_FACTORS = ", most_factors,
      "\n};\n", DomainText("TW_CUDA_"), std::string(kCudaTypesText), DispatchText(), "\n",
      CTable("tw_function", "tw_functions", functions, "{0, 0, 0, 0}"), std::string(kCudaCodeText));
  for (const PackEntry& entry : pack.entries)
    absl::StrAppend(&text, CudaKernelTables(entry, code), FunctionBody(entry, KindOf(pack)));
  for (const PackFunction& function : KindOf(pack).own_functions(pack.name))
    absl::StrAppend(&text, "\nint ", function.name, "(void) { return tw_make_ready(); }\n");
  return text;
}

std::string CudaCMakeConfig(const Pack& pack) {
  // $ stands for the pack's name.
  return absl::StrReplaceAll(
      R"cmake(# find_package($ CONFIG) gives the library $::$. Written by `tilewright build`; do not edit.
# It needs cuda.h and nothing else of CUDA: the driver is looked for at run time.
get_property($_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "C" IN_LIST $_languages)
  set($_FOUND FALSE)
  set($_NOT_FOUND_MESSAGE "the launcher is C: add C to the languages of project()")
  return()
endif()
find_path($_CUDA_INCLUDE cuda.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
  PATH_SUFFIXES include)
if(NOT $_CUDA_INCLUDE)
  set($_FOUND FALSE)
  set($_NOT_FOUND_MESSAGE "cuda.h was not found: set CUDA_HOME, or $_CUDA_INCLUDE to its directory")
  return()
endif()
if(NOT TARGET $::$)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  add_library($ STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/launcher.c")
  set_target_properties($ PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
  target_include_directories($ PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
  target_include_directories($ SYSTEM PRIVATE "${$_CUDA_INCLUDE}")
  target_link_libraries($ PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  add_library($::$ ALIAS $)
endif()
)cmake",
      {{"${", "${"}, {"$", pack.name}});
}

std::vector<PackFunction> CudaFunctions(const std::string& pack_name) {
  const std::string name = absl::StrCat(pack_name, "_load");
  return {{name, absl::StrCat(
                     "// Loads the code of all functions for the current context's device now and "
                     "not in the first call. It takes\n// milliseconds; functions call it by "
                     "themselves.\nint ",
                     name, "(void);\n")}};
}

}  // namespace

PackKind CudaPackKind() {
  return {.backend = "nvptx",
          .manifest_version = 2,
          .context_type = "tw_cuda_context",
          .context_text = kCudaContextText,
          .tensors_where = " in device memory",
          .how_to_build =
              "Compile launcher.c with the directory of cuda.h among the includes, and "
              "link -ldl and -pthread where the C library wants them",
          .own_functions = CudaFunctions,
          .check = CheckCudaKernel,
          .files = [](const Pack& pack) {
            const Code code = CodeOf(pack);
            return std::vector<PackFile>{
                {"launcher.c", CudaLauncher(pack, code)},
                {"kernels.inc", CodeArrays(pack, code)},
                {absl::StrCat(pack.name, "Config.cmake"), CudaCMakeConfig(pack)}};
          }};
}

}  // namespace tilewright
