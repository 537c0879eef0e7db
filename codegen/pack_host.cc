#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "codegen/pack_c.h"
#include "codegen/pack_text.h"

namespace tilewright {
namespace {

constexpr char kHostContextText[] = R"(#ifndef TILEWRIGHT_PACK_CONTEXT_1
#define TILEWRIGHT_PACK_CONTEXT_1

// How a function runs. Null, or all fields zero: threads one after another, workspace from the heap. The functions keep nothing
// of it and write no global state but a cached answer whether this CPU is suited: they may be called from many threads at once,
// each call with a workspace of its own.
typedef struct tw_context {
  // Calls body(data, thread) once for each thread in 0 .. threads-1, in any order or at once, and returns when all have
  // returned. Null: one after another on the calling thread.
  void (*parallel_for)(void* user, int32_t threads, void (*body)(void* data, int32_t thread), void* data);
  void* user;              // handed to parallel_for
  void* workspace;         // aligned to 64 bytes; null: allocated and freed in each call that needs one
  size_t workspace_bytes;  // at least what NAME_workspace_bytes() says
} tw_context;

// What a function returns. Unless it is TW_OK, no output was written.
enum {
  TW_OK = 0,
  TW_NULL_POINTER = 1,       // a tensor is null
  TW_MISALIGNED = 2,         // a tensor is not aligned as its argument's comment says
  TW_SIZE_OUT_OF_RANGE = 3,  // a size is outside its range
  TW_UNSUITED_CPU = 4,       // this CPU, or its operating system, lacks instructions that the kernels use
  TW_BAD_WORKSPACE = 5,      // the given workspace is too small or not aligned to 64 bytes
  TW_OUT_OF_MEMORY = 6       // no workspace was given and none could be allocated
};

static inline const char* tw_status_text(int status) {
  switch (status) {
    case TW_OK: return "ok";
    case TW_NULL_POINTER: return "a tensor is null";
    case TW_MISALIGNED: return "a tensor is not aligned";
    case TW_SIZE_OUT_OF_RANGE: return "a size is outside its range";
    case TW_UNSUITED_CPU: return "this CPU lacks instructions that the kernels use";
    case TW_BAD_WORKSPACE: return "the workspace is too small or not aligned";
    case TW_OUT_OF_MEMORY: return "out of memory";
    default: return "unknown status";
  }
}

#endif  // TILEWRIGHT_PACK_CONTEXT_1
)";

// The launcher's part that is the same in every pack: it interprets the tables that follow it.
constexpr char kHostTypes[] = R"(
#if !defined(__x86_64__)
#error "the kernels of this pack are x86-64 code"
#endif

typedef void tw_entry(const uint64_t* arguments, void* workspace, int32_t thread, int32_t threads);

// Where one 8-byte slot of a launch's arguments comes from.
typedef struct tw_argument {
  enum { TW_FROM_BUFFER, TW_FROM_SIZE, TW_FROM_CONSTANT } source;
  int32_t number;  // of the buffer or size
  int64_t value;   // of the constant
} tw_argument;

typedef struct tw_launch {
  tw_entry* entry;
  int32_t threads;
  int32_t argument_count;
  const tw_argument* arguments;
} tw_launch;

typedef struct tw_kernel {
  tw_domain domain;
  int32_t launch_count;
  const tw_launch* launches;
  size_t workspace_bytes, workspace_alignment;
  int workspace_zeroed;
} tw_kernel;

typedef struct tw_feature {
  uint32_t leaf, subleaf;
  int register_number, bit;  // 0: eax .. 3: edx
  uint32_t saved_state;
} tw_feature;
)";

constexpr char kHostCode[] = R"(
// XCR0: the register state that the operating system saves. Zero without XGETBV.
static uint32_t tw_saved_state(void) {
  uint32_t a, b, c, d;
  if (!__get_cpuid_count(1, 0, &a, &b, &c, &d) || !(c & (1u << 27))) return 0;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return a;
}

static int tw_cpu_has_all(void) {
  const uint32_t saved = tw_saved_state();
  for (size_t i = 0; i < sizeof tw_features / sizeof tw_features[0] - 1; ++i) {
    const tw_feature* feature = &tw_features[i];
    uint32_t r[4] = {0, 0, 0, 0};
    if (!__get_cpuid_count(feature->leaf, feature->subleaf, &r[0], &r[1], &r[2], &r[3])) return 0;
    if (!(r[feature->register_number] >> feature->bit & 1u)) return 0;
    if ((saved & feature->saved_state) != feature->saved_state) return 0;
  }
  return 1;
}

// CPUID costs a microsecond and more on a virtual machine: asked once, by whichever thread comes first.
static int tw_cpu_is_suited(void) {
  static atomic_int answer;  // 0: not asked yet, 1: no, 2: yes
  int known = atomic_load_explicit(&answer, memory_order_relaxed);
  if (known == 0) {
    known = 1 + tw_cpu_has_all();
    atomic_store_explicit(&answer, known, memory_order_relaxed);
  }
  return known == 2;
}

typedef struct tw_body {
  const tw_launch* launch;
  const uint64_t* arguments;
  void* workspace;
} tw_body;

static void tw_run_thread(void* data, int32_t thread) {
  const tw_body* body = (const tw_body*)data;
  body->launch->entry(body->arguments, body->workspace, thread, body->launch->threads);
}

// The end of a launch is the only barrier.
static void tw_run(const tw_launch* launch, void* const* buffers, const int64_t* sizes, void* workspace,
                   const tw_context* context) {
  uint64_t arguments[TW_MOST_ARGUMENTS];
  for (int32_t i = 0; i < launch->argument_count; ++i) {
    const tw_argument* argument = &launch->arguments[i];
    switch (argument->source) {
      case TW_FROM_BUFFER: arguments[i] = (uint64_t)(uintptr_t)buffers[argument->number]; break;
      case TW_FROM_SIZE: arguments[i] = (uint64_t)sizes[argument->number]; break;
      case TW_FROM_CONSTANT: arguments[i] = (uint64_t)argument->value; break;
    }
  }
  tw_body body = {launch, arguments, workspace};
  if (context != NULL && context->parallel_for != NULL && launch->threads > 1) {
    context->parallel_for(context->user, launch->threads, tw_run_thread, &body);
    return;
  }
  for (int32_t thread = 0; thread < launch->threads; ++thread) tw_run_thread(&body, thread);
}

static int tw_call(const tw_case* cases, int32_t case_count, void* const* buffers, const int64_t* sizes,
                   const tw_context* context) {
  if (!tw_cpu_is_suited()) return TW_UNSUITED_CPU;
  const tw_kernel* kernel = tw_choose(cases, case_count, sizes);
  if (kernel == NULL) return TW_SIZE_OUT_OF_RANGE;
  const int status = tw_check_buffers(&kernel->domain, buffers);
  if (status != TW_OK) return status;
  void* workspace = NULL;
  void* allocated = NULL;
  if (kernel->workspace_bytes != 0) {
    const size_t alignment = kernel->workspace_alignment;
    if (context != NULL && context->workspace != NULL) {
      workspace = context->workspace;
      if (context->workspace_bytes < kernel->workspace_bytes || (uintptr_t)workspace % alignment != 0) {
        return TW_BAD_WORKSPACE;
      }
    } else {
      // aligned_alloc wants a multiple of the alignment.
      allocated = aligned_alloc(alignment, (kernel->workspace_bytes + alignment - 1) / alignment * alignment);
      if (allocated == NULL) return TW_OUT_OF_MEMORY;
      workspace = allocated;
    }
    if (kernel->workspace_zeroed) memset(workspace, 0, kernel->workspace_bytes);
  }
  for (int32_t i = 0; i < kernel->launch_count; ++i) tw_run(&kernel->launches[i], buffers, sizes, workspace, context);
  free(allocated);
  return TW_OK;
}
)";

// The tables of one kernel, named after the function.
std::string HostKernelTables(const PackEntry& entry) {
  const std::string& name = entry.item.name;
  const Kernel& kernel = entry.kernel;
  std::string own;
  std::vector<std::string> launches;
  for (int i = 0; i < kernel.launches.size(); ++i) {
    const Launch& launch = kernel.launches[i];
    std::vector<std::string> arguments;
    for (const Argument& argument : launch.arguments) arguments.push_back(ArgumentRow(argument));
    const std::string table = absl::StrCat("tw_arguments_", name, "_", i);
    absl::StrAppend(&own, CTable("tw_argument", table, arguments, "{TW_FROM_CONSTANT, 0, 0}"));
    launches.push_back(absl::StrCat("{", launch.entry, ", ", launch.threads, ", ",
                                    launch.arguments.size(), ", ", table, "}"));
  }
  absl::StrAppend(
      &own, CTable("tw_launch", absl::StrCat("tw_launches_", name), launches, "{0, 0, 0, 0}"));
  return absl::StrCat(BeginKernelTable(entry, own), kernel.launches.size(), ", tw_launches_", name,
                      ", ", kernel.workspace.bytes, ", ", kernel.workspace.alignment, ", ",
                      kernel.workspace.zeroed ? 1 : 0, "};\n", CaseTable(entry));
}

std::string HostLauncher(const Pack& pack) {
  std::string text = absl::StrCat(
      "// Launcher of the pack ", pack.name, " for ", pack.target.kind,
      ": C11 and nothing else. Written by `tilewright build`; do not edit.\n#include \"", pack.name,
      ".h\"\n\n#include <cpuid.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n"
      "#include <string.h>\n",
      DomainText("TW_"), kHostTypes, DispatchText(), "\n// What the kernels' instructions need.\n");
  std::vector<std::string> rows;
  for (const CpuFeature& feature : RequiredCpuFeatures(pack.target)) {
    rows.push_back(absl::StrCat("{", feature.leaf, "u, ", feature.subleaf, "u, ",
                                feature.cpuid_register - 'a', ", ", feature.bit, ", ",
                                feature.saved_state, "u} /* ", std::string(feature.name), " */"));
  }
  absl::StrAppend(&text, CTable("tw_feature", "tw_features", rows, "{0, 0, 0, 0, 0}"));
  size_t most_arguments = 1;
  std::set<std::string> symbols;
  for (const PackEntry& entry : pack.entries) {
    for (const Launch& launch : entry.kernel.launches) {
      most_arguments = std::max(most_arguments, launch.arguments.size());
      symbols.insert(launch.entry);
    }
  }
  absl::StrAppend(&text, "\nenum { TW_MOST_ARGUMENTS = ", most_arguments, " };\n", kHostCode, "\n");
  for (const std::string& symbol : symbols)
    absl::StrAppend(&text, "extern tw_entry ", symbol, ";\n");
  for (const PackEntry& entry : pack.entries)
    absl::StrAppend(&text, HostKernelTables(entry), FunctionBody(entry, KindOf(pack)));
  return text;
}

std::string HostCMakeConfig(const Pack& pack) {
  std::set<std::string> objects;
  for (const PackEntry& entry : pack.entries) {
    for (const CodeObject& object : entry.kernel.objects) objects.insert(ObjectPath(object));
  }
  std::string list;
  for (const std::string& object : objects)
    absl::StrAppend(&list, "\n  \"${CMAKE_CURRENT_LIST_DIR}/", object, "\"");
  // $ stands for the pack's name.
  return absl::StrReplaceAll(
      R"cmake(# find_package($ CONFIG) gives the library $::$. Written by `tilewright build`; do not edit.
get_property($_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "C" IN_LIST $_languages)
  set($_FOUND FALSE)
  set($_NOT_FOUND_MESSAGE "the launcher is C: add C to the languages of project()")
  return()
endif()
if(NOT TARGET $::$)
  set($_objects@)
  set_source_files_properties(${$_objects} PROPERTIES EXTERNAL_OBJECT TRUE)
  add_library($ STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/launcher.c" ${$_objects})
  set_target_properties($ PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
  target_include_directories($ PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
  add_library($::$ ALIAS $)
endif()
)cmake",
      {{"${", "${"}, {"@", list}, {"$", pack.name}});
}

absl::Status CheckHostKernel(const Target&, const Workload& workload, const Kernel& kernel) {
  const int buffers = workload.parameters().size() + workload.outputs().size();
  const int sizes = workload.sizes().size();
  const int64_t alignment = kernel.workspace.alignment;
  if (alignment < 1 || alignment > 64 || (alignment & (alignment - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel's workspace is aligned to ", alignment,
                     " bytes; a pack for CPUs gives powers of 2 up to 64"));
  }
  for (const Launch& launch : kernel.launches) {
    if (launch.on_gpu())
      return absl::InvalidArgumentError(absl::StrCat(
          "launch '", launch.entry, "' is one on a GPU; the launcher calls CPU kernels"));
    if (launch.threads < 1)
      return absl::InvalidArgumentError(absl::StrCat("a launch has ", launch.threads, " threads"));
    for (const Argument& argument : launch.arguments) {
      if (argument.kind == Argument::Kind::kInteger) continue;
      if (argument.kind == Argument::Kind::kTensorMap ||
          argument.kind == Argument::Kind::kWorkspace) {
        return absl::InvalidArgumentError(
            absl::StrCat("launch '", launch.entry, "' has an argument of GPU kernels"));
      }
      const int count = argument.kind == Argument::Kind::kBuffer ? buffers : sizes;
      if (argument.number < 0 || argument.number >= count) {
        return absl::InvalidArgumentError(
            absl::StrCat("a launch's argument has number ", argument.number, " of ", count));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

PackKind HostPackKind() {
  return {.backend = "host",
          .manifest_version = 1,
          .context_type = "tw_context",
          .context_text = kHostContextText,
          .tensors_where = "",
          .how_to_build = "Compile launcher.c and link it with kernels/*.o",
          .own_functions = [](const std::string&) { return std::vector<PackFunction>{}; },
          .check = CheckHostKernel,
          .files =
              [](const Pack& pack) {
                return std::vector<PackFile>{
                    {"launcher.c", HostLauncher(pack)},
                    {absl::StrCat(pack.name, "Config.cmake"), HostCMakeConfig(pack)}};
              }};
}

}  // namespace tilewright
