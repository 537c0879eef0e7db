#include "codegen/pack_c.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace tilewright {
namespace {

// $ stands for the prefix of the kind's status codes.
constexpr char kDomainTypesAndChecks[] = R"(
typedef struct tw_range {
  int64_t low, high;
} tw_range;

// What a kernel is valid for.
typedef struct tw_domain {
  int32_t buffer_count, size_count;
  const int64_t* alignments;  // one per buffer
  const tw_range* sizes;      // one per size
} tw_domain;

static int tw_all_in_range(const tw_range* ranges, const int64_t* sizes, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    if (sizes[i] < ranges[i].low || sizes[i] > ranges[i].high) return 0;
  }
  return 1;
}

static int tw_check_buffers(const tw_domain* domain, void* const* buffers) {
  for (int32_t i = 0; i < domain->buffer_count; ++i) {
    if (buffers[i] == NULL) return $NULL_POINTER;
    if ((uintptr_t)buffers[i] % (uintptr_t)domain->alignments[i] != 0) return $MISALIGNED;
  }
  return $OK;
}
)";

constexpr char kDispatchText[] = R"(
// A row of a dispatch list: the first whose condition holds is taken.
typedef struct tw_case {
  const tw_range* condition;  // one per size
  const tw_kernel* kernel;
} tw_case;

// Null: no kernel is valid for these sizes.
static const tw_kernel* tw_choose(const tw_case* cases, int32_t case_count, const int64_t* sizes) {
  for (int32_t i = 0; i < case_count; ++i) {
    const tw_domain* domain = &cases[i].kernel->domain;
    if (tw_all_in_range(cases[i].condition, sizes, domain->size_count) &&
        tw_all_in_range(domain->sizes, sizes, domain->size_count)) {
      return cases[i].kernel;
    }
  }
  return NULL;
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

std::string Prototype(const PackEntry& entry, const PackSignature& signature,
                      const PackKind& kind) {
  std::vector<std::string> parameters;
  for (const PackTensor& tensor : signature.tensors) {
    const std::string type = CTypeName(entry.item.workload.layout(tensor.tensor).type);
    parameters.push_back(
        absl::StrCat(tensor.output ? "" : "const ", type, "* ", tensor.identifier));
  }
  for (const PackSize& size : signature.sizes)
    parameters.push_back(absl::StrCat("int64_t ", size.identifier));
  parameters.push_back(absl::StrCat("const ", std::string(kind.context_type), "* context"));
  return absl::StrCat("int ", entry.item.name, "(", absl::StrJoin(parameters, ", "), ")");
}

std::string Declaration(const PackEntry& entry, const PackKind& kind) {
  const PackItem& item = entry.item;
  const PackSignature signature = Signature(entry);
  std::string text = absl::StrCat("// ", item.name);
  if (!item.source.empty()) absl::StrAppend(&text, ": ", Comment(item.source));
  absl::StrAppend(&text, "\n// Tensors", std::string(kind.tensors_where),
                  ", dense row-major unless strides are given, which must not overlap:\n");
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
  absl::StrAppend(&text, Prototype(entry, signature, kind), ";\n");
  absl::StrAppend(&text, "// Bytes of workspace that a call needs; 0: none.\n");
  absl::StrAppend(&text, "size_t ", item.name, "_workspace_bytes(void);\n");
  return text;
}

std::vector<std::string> RangeRows(absl::Span<const SizeRange> sizes) {
  std::vector<std::string> rows;
  for (const SizeRange& range : sizes) {
    rows.push_back(absl::StrCat("{INT64_C(", range.low, "), INT64_C(", range.high, ")}"));
  }
  return rows;
}

}  // namespace

std::string ArgumentRow(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::kBuffer:
      return absl::StrCat("{TW_FROM_BUFFER, ", argument.number, ", 0}");
    case Argument::Kind::kSize:
      return absl::StrCat("{TW_FROM_SIZE, ", argument.number, ", 0}");
    case Argument::Kind::kInteger:
      return absl::StrCat("{TW_FROM_CONSTANT, 0, INT64_C(", argument.value, ")}");
    case Argument::Kind::kTensorMap:
      return absl::StrCat("{TW_FROM_TENSOR_MAP, ", argument.number, ", 0}");
    case Argument::Kind::kWorkspace:
      return absl::StrCat("{TW_FROM_WORKSPACE, 0, INT64_C(", argument.value, ")}");
  }
  return "";
}

std::string CTable(const std::string& type, const std::string& name, std::vector<std::string> rows,
                   const std::string& last_row) {
  rows.push_back(last_row);
  return absl::StrCat("static const ", type, " ", name, "[] = {\n    ",
                      absl::StrJoin(rows, ",\n    "), "};\n");
}

std::string BeginKernelTable(const PackEntry& entry, const std::string& own_tables) {
  const std::string& name = entry.item.name;
  const Domain& domain = entry.kernel.domain;
  std::string text =
      absl::StrCat("\n// ", name, ": ", entry.item.schedule.ToString(), "\n", own_tables);
  std::vector<std::string> alignments;
  for (int64_t alignment : domain.alignments)
    alignments.push_back(absl::StrCat("INT64_C(", alignment, ")"));
  absl::StrAppend(&text, CTable("int64_t", absl::StrCat("tw_alignments_", name), alignments, "1"));
  absl::StrAppend(&text, CTable("tw_range", absl::StrCat("tw_domain_", name),
                                RangeRows(domain.sizes), "{0, 0}"));
  absl::StrAppend(&text, CTable("tw_range", absl::StrCat("tw_condition_", name),
                                RangeRows(entry.item.workload.sizes()), "{0, 0}"));
  absl::StrAppend(&text, "static const tw_kernel tw_kernel_", name, " = {\n    {",
                  domain.alignments.size(), ", ", domain.sizes.size(), ", tw_alignments_", name,
                  ", tw_domain_", name, "},\n    ");
  return text;
}

std::string CaseTable(const PackEntry& entry) {
  const std::string& name = entry.item.name;
  return absl::StrCat("static const tw_case tw_cases_", name, "[] = {{tw_condition_", name,
                      ", &tw_kernel_", name, "}};\n");
}

std::string FunctionBody(const PackEntry& entry, const PackKind& kind) {
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
  return absl::StrCat("\n", Prototype(entry, signature, kind), " {\n  void* const tw_buffers[] = {",
                      absl::StrJoin(buffers, ", "), "};\n  const int64_t tw_sizes[] = {",
                      absl::StrJoin(sizes, ", "), "};\n  return tw_call(tw_cases_", item.name,
                      ", 1, tw_buffers, tw_sizes, context);\n}\n\nsize_t ", item.name,
                      "_workspace_bytes(void) { return tw_kernel_", item.name,
                      ".workspace_bytes; }\n");
}

std::string DomainText(std::string_view code_prefix) {
  return absl::StrReplaceAll(kDomainTypesAndChecks, {{"$", std::string(code_prefix)}});
}

std::string DispatchText() { return kDispatchText; }

std::string PackHeader(const Pack& pack) {
  const PackKind& kind = KindOf(pack);
  const std::string guard = absl::StrCat("TILEWRIGHT_PACK_", pack.name, "_H_");
  std::string text = absl::StrCat(
      "// The kernels of the pack ", pack.name, " for ", pack.target.kind,
      ". Written by `tilewright build`; do not edit.\n// ", std::string(kind.how_to_build),
      ", or use the CMake package: find_package(", pack.name, " CONFIG) and ", pack.name,
      "::", pack.name, ".\n#ifndef ", guard, "\n#define ", guard,
      "\n\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern "
      "\"C\" {\n#endif\n\n",
      std::string(kind.context_text));
  for (const PackFunction& function : kind.own_functions(pack.name))
    absl::StrAppend(&text, "\n", function.declaration);
  for (const PackEntry& entry : pack.entries)
    absl::StrAppend(&text, "\n", Declaration(entry, kind));
  absl::StrAppend(&text, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif  // ", guard, "\n");
  return text;
}

}  // namespace tilewright
