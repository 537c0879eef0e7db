#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "codegen/pack_text.h"

namespace tilewright {
namespace {

// The part of a header that is the same in every pack. A program may include several packs'
// headers: the guard is of this part's own, and raised when it changes.
constexpr char kContextText[] = R"(#ifndef TILEWRIGHT_PACK_CONTEXT_1
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
constexpr char kLauncherTypes[] = R"(
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

typedef struct tw_range {
  int64_t low, high;
} tw_range;

typedef struct tw_kernel {
  int32_t buffer_count, size_count, launch_count;
  const int64_t* alignments;  // one per buffer
  const tw_range* sizes;      // the domain, one per size
  const tw_launch* launches;
  size_t workspace_bytes, workspace_alignment;
  int workspace_zeroed;
} tw_kernel;

// A row of a dispatch list: the first whose condition holds is taken.
typedef struct tw_case {
  const tw_range* condition;  // one per size
  const tw_kernel* kernel;
} tw_case;

typedef struct tw_feature {
  uint32_t leaf, subleaf;
  int register_number, bit;  // 0: eax .. 3: edx
  uint32_t saved_state;
} tw_feature;
)";

constexpr char kLauncherCode[] = R"(
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

static int tw_all_in_range(const tw_range* ranges, const int64_t* sizes, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    if (sizes[i] < ranges[i].low || sizes[i] > ranges[i].high) return 0;
  }
  return 1;
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
  const tw_kernel* kernel = NULL;
  for (int32_t i = 0; i < case_count && kernel == NULL; ++i) {
    const tw_kernel* candidate = cases[i].kernel;
    if (tw_all_in_range(cases[i].condition, sizes, candidate->size_count) &&
        tw_all_in_range(candidate->sizes, sizes, candidate->size_count)) {
      kernel = candidate;
    }
  }
  if (kernel == NULL) return TW_SIZE_OUT_OF_RANGE;
  for (int32_t i = 0; i < kernel->buffer_count; ++i) {
    if (buffers[i] == NULL) return TW_NULL_POINTER;
    if ((uintptr_t)buffers[i] % (uintptr_t)kernel->alignments[i] != 0) return TW_MISALIGNED;
  }
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

struct CType {
  ElementType type;
  std::string_view name;
};
// Types that C17 lacks travel as the integers of their bits.
constexpr CType kCTypes[] = {
    {ElementType::kF64, "double"},   {ElementType::kF32, "float"},
    {ElementType::kF16, "uint16_t"}, {ElementType::kBF16, "uint16_t"},
    {ElementType::kE4M3, "uint8_t"}, {ElementType::kE5M2, "uint8_t"},
    {ElementType::kI8, "int8_t"},    {ElementType::kI32, "int32_t"},
};

std::string CTypeName(ElementType type) {
  const auto* row = std::find_if(std::begin(kCTypes), std::end(kCTypes),
                                 [&](const CType& t) { return t.type == type; });
  return std::string(row->name);
}

// Text that may stand in a `//` comment.
std::string Comment(const std::string& text) {
  std::string line = absl::StrReplaceAll(text, {{"\n", " "}, {"\r", " "}});
  while (!line.empty() && line.back() == '\\') line.pop_back();
  return line;
}

PackSignature Signature(const PackEntry& entry) { return *SignatureOf(entry.item); }

std::string Prototype(const PackEntry& entry, const PackSignature& signature) {
  std::vector<std::string> parameters;
  for (const PackTensor& tensor : signature.tensors) {
    const std::string type = CTypeName(entry.item.workload.layout(tensor.tensor).type);
    parameters.push_back(
        absl::StrCat(tensor.output ? "" : "const ", type, "* ", tensor.identifier));
  }
  for (const PackSize& size : signature.sizes)
    parameters.push_back(absl::StrCat("int64_t ", size.identifier));
  parameters.push_back("const tw_context* context");
  return absl::StrCat("int ", entry.item.name, "(", absl::StrJoin(parameters, ", "), ")");
}

std::string Declaration(const PackEntry& entry) {
  const PackItem& item = entry.item;
  const PackSignature signature = Signature(entry);
  std::string text = absl::StrCat("// ", item.name);
  if (!item.source.empty()) absl::StrAppend(&text, ": ", Comment(item.source));
  absl::StrAppend(
      &text, "\n// Tensors, dense row-major unless strides are given, which must not overlap:\n");
  for (const PackTensor& tensor : signature.tensors) {
    absl::StrAppend(&text, "//   ", tensor.identifier, "  ", tensor.output ? "output" : "input",
                    " ", DescribeTensor(item.workload, item.names, tensor.tensor), ", aligned to ",
                    entry.kernel.domain.alignments[tensor.buffer], " bytes\n");
  }
  for (const PackSize& size : signature.sizes) {
    const SizeRange& range = item.workload.sizes()[size.index];
    absl::StrAppend(&text, "//   ", size.identifier, "  size, ", range.low, " to ", range.high,
                    "\n");
  }
  absl::StrAppend(&text, "// Kernel: ", item.schedule.ToString(), " (",
                  Comment(item.provenance.kind), item.provenance.detail.empty() ? "" : ": ",
                  Comment(item.provenance.detail), ")\n");
  absl::StrAppend(&text, Prototype(entry, signature), ";\n");
  absl::StrAppend(&text, "// Bytes of workspace that a call needs; 0: none.\n");
  absl::StrAppend(&text, "size_t ", item.name, "_workspace_bytes(void);\n");
  return text;
}

// `static const TYPE NAME[] = {rows};`, never empty.
std::string Table(const std::string& type, const std::string& name, std::vector<std::string> rows,
                  const std::string& last_row) {
  rows.push_back(last_row);
  return absl::StrCat("static const ", type, " ", name, "[] = {\n    ",
                      absl::StrJoin(rows, ",\n    "), "};\n");
}

std::string ArgumentRow(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::kBuffer:
      return absl::StrCat("{TW_FROM_BUFFER, ", argument.number, ", 0}");
    case Argument::Kind::kSize:
      return absl::StrCat("{TW_FROM_SIZE, ", argument.number, ", 0}");
    case Argument::Kind::kInteger:
      return absl::StrCat("{TW_FROM_CONSTANT, 0, INT64_C(", argument.value, ")}");
    case Argument::Kind::kTensorMap:
    case Argument::Kind::kWorkspace:
      break;  // of GPUs, whose kernels pack.cc refuses
  }
  return "";
}

std::vector<std::string> RangeRows(absl::Span<const SizeRange> sizes) {
  std::vector<std::string> rows;
  for (const SizeRange& range : sizes) {
    rows.push_back(absl::StrCat("{INT64_C(", range.low, "), INT64_C(", range.high, ")}"));
  }
  return rows;
}

// The tables of one kernel, named after the function. Each ends in an unused row, since C has no
// empty tables.
std::string KernelTables(const PackEntry& entry) {
  const std::string& name = entry.item.name;
  const Kernel& kernel = entry.kernel;
  std::string text = absl::StrCat("\n// ", name, ": ", entry.item.schedule.ToString(), "\n");
  std::vector<std::string> launches;
  for (int i = 0; i < kernel.launches.size(); ++i) {
    const Launch& launch = kernel.launches[i];
    std::vector<std::string> arguments;
    for (const Argument& argument : launch.arguments) arguments.push_back(ArgumentRow(argument));
    const std::string table = absl::StrCat("tw_arguments_", name, "_", i);
    absl::StrAppend(&text, Table("tw_argument", table, arguments, "{TW_FROM_CONSTANT, 0, 0}"));
    launches.push_back(absl::StrCat("{", launch.entry, ", ", launch.threads, ", ",
                                    launch.arguments.size(), ", ", table, "}"));
  }
  std::vector<std::string> alignments;
  for (int64_t alignment : kernel.domain.alignments)
    alignments.push_back(absl::StrCat("INT64_C(", alignment, ")"));
  absl::StrAppend(&text, Table("int64_t", absl::StrCat("tw_alignments_", name), alignments, "1"));
  absl::StrAppend(&text, Table("tw_range", absl::StrCat("tw_domain_", name),
                               RangeRows(kernel.domain.sizes), "{0, 0}"));
  absl::StrAppend(&text, Table("tw_range", absl::StrCat("tw_condition_", name),
                               RangeRows(entry.item.workload.sizes()), "{0, 0}"));
  absl::StrAppend(&text,
                  Table("tw_launch", absl::StrCat("tw_launches_", name), launches, "{0, 0, 0, 0}"));
  absl::StrAppend(&text, "static const tw_kernel tw_kernel_", name, " = {\n    ",
                  kernel.domain.alignments.size(), ", ", kernel.domain.sizes.size(), ", ",
                  kernel.launches.size(), ", tw_alignments_", name, ", tw_domain_", name,
                  ", tw_launches_", name, ",\n    ", kernel.workspace.bytes, ", ",
                  kernel.workspace.alignment, ", ", kernel.workspace.zeroed ? 1 : 0, "};\n");
  absl::StrAppend(&text, "static const tw_case tw_cases_", name, "[] = {{tw_condition_", name,
                  ", &tw_kernel_", name, "}};\n");
  return text;
}

std::string FunctionBody(const PackEntry& entry) {
  const PackItem& item = entry.item;
  const PackSignature signature = Signature(entry);
  std::vector<std::string> buffers(signature.tensors.size());
  for (const PackTensor& tensor : signature.tensors) {
    buffers[tensor.buffer] = absl::StrCat("(void*)", tensor.identifier);
  }
  std::vector<std::string> sizes;
  for (const SizeRange& range : item.workload.sizes())
    sizes.push_back(absl::StrCat("INT64_C(", range.low, ")"));
  for (const PackSize& size : signature.sizes) sizes[size.index] = size.identifier;
  sizes.push_back("0");
  return absl::StrCat("\n", Prototype(entry, signature), " {\n  void* const tw_buffers[] = {",
                      absl::StrJoin(buffers, ", "), "};\n  const int64_t tw_sizes[] = {",
                      absl::StrJoin(sizes, ", "), "};\n  return tw_call(tw_cases_", item.name,
                      ", 1, tw_buffers, tw_sizes, context);\n}\n\nsize_t ", item.name,
                      "_workspace_bytes(void) { return tw_kernel_", item.name,
                      ".workspace_bytes; }\n");
}

}  // namespace

std::string PackHeader(const Pack& pack) {
  const std::string guard = absl::StrCat("TILEWRIGHT_PACK_", pack.name, "_H_");
  std::string text =
      absl::StrCat("// The kernels of the pack ", pack.name, " for ", pack.target.kind,
                   ". Written by `tilewright build`; do not edit.\n// Compile launcher.c and link "
                   "it with kernels/*.o, or use "
                   "the CMake package: find_package(",
                   pack.name, " CONFIG) and ", pack.name, "::", pack.name, ".\n#ifndef ", guard,
                   "\n#define ", guard,
                   "\n\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern "
                   "\"C\" {\n#endif\n\n",
                   kContextText);
  for (const PackEntry& entry : pack.entries) absl::StrAppend(&text, "\n", Declaration(entry));
  absl::StrAppend(&text, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif  // ", guard, "\n");
  return text;
}

std::string PackLauncher(const Pack& pack, const std::vector<CpuFeature>& features) {
  std::string text = absl::StrCat(
      "// Launcher of the pack ", pack.name, " for ", pack.target.kind,
      ": C11 and nothing else. Written by `tilewright build`; do not edit.\n#include \"", pack.name,
      ".h\"\n\n#include <cpuid.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n"
      "#include <string.h>\n",
      kLauncherTypes, "\n// What the kernels' instructions need.\n");
  std::vector<std::string> rows;
  for (const CpuFeature& feature : features) {
    rows.push_back(absl::StrCat("{", feature.leaf, "u, ", feature.subleaf, "u, ",
                                feature.cpuid_register - 'a', ", ", feature.bit, ", ",
                                feature.saved_state, "u} /* ", std::string(feature.name), " */"));
  }
  absl::StrAppend(&text, Table("tw_feature", "tw_features", rows, "{0, 0, 0, 0, 0}"));
  size_t most_arguments = 1;
  std::set<std::string> symbols;
  for (const PackEntry& entry : pack.entries) {
    for (const Launch& launch : entry.kernel.launches) {
      most_arguments = std::max(most_arguments, launch.arguments.size());
      symbols.insert(launch.entry);
    }
  }
  absl::StrAppend(&text, "\nenum { TW_MOST_ARGUMENTS = ", most_arguments, " };\n", kLauncherCode,
                  "\n");
  for (const std::string& symbol : symbols)
    absl::StrAppend(&text, "extern tw_entry ", symbol, ";\n");
  for (const PackEntry& entry : pack.entries)
    absl::StrAppend(&text, KernelTables(entry), FunctionBody(entry));
  return text;
}

std::string PackCMakeConfig(const Pack& pack) {
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

std::string ObjectPath(const CodeObject& object) {
  return absl::StrCat("kernels/", Sha256Hex(object.bytes), ".o");
}

}  // namespace tilewright
