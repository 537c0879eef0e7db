#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/pack_text.h"
#include "schedule/expression.h"

namespace tilewright {
namespace {

// Keywords of C17 and C++20 and the macros of the headers that a pack's header includes.
constexpr std::string_view kKeywords[] = {
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char8_t",
    "char16_t",
    "char32_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "restrict",
    "return",
    "reinterpret_cast",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "struct",
    "static_cast",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "NULL",
    "offsetof",
    "int8_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "size_t",
};

// External names of the C library that a user might give a workload (C17 7.31.13 reserves them);
// functions of libm and string.h first.
constexpr std::string_view kLibraryNames[] = {
    "abort",  "abs",       "acos",   "asin",     "atan",   "atan2",  "atexit",  "bsearch",
    "calloc", "cbrt",      "ceil",   "copysign", "cos",    "cosh",   "div",     "erf",
    "erfc",   "exit",      "exp",    "exp2",     "expm1",  "fabs",   "fdim",    "floor",
    "fma",    "fmax",      "fmin",   "fmod",     "free",   "frexp",  "getenv",  "hypot",
    "labs",   "ldexp",     "ldiv",   "lgamma",   "log",    "log10",  "log1p",   "log2",
    "logb",   "main",      "malloc", "memchr",   "memcmp", "memcpy", "memmove", "memset",
    "modf",   "nearbyint", "pow",    "printf",   "qsort",  "rand",   "realloc", "remainder",
    "rint",   "round",     "signal", "sin",      "sinh",   "sqrt",   "srand",   "strlen",
    "system", "tan",       "tanh",   "tgamma",   "time",   "trunc",  "select",  "index",
    "read",   "write",     "open",   "close",    "dlopen", "dlsym",  "dlclose", "FILE",
};

// Macros of the C library that are no functions: a parameter of such a name does not compile
// either.
constexpr std::string_view kMacros[] = {"errno", "assert", "stdin", "stdout", "stderr", "EOF"};

// What the headers that launchers include name: cuda.h, pthread.h, stdatomic.h, stdint.h.
bool IsNameOfAHeader(std::string_view name) {
  for (std::string_view prefix : {"CU", "pthread_", "PTHREAD_", "atomic_", "ATOMIC_",
                                  "memory_order", "INT_", "UINT_", "LONG_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name.size() > 2 && name.starts_with("cu") && absl::ascii_isupper(name[2]);
}

template <size_t n>
bool Contains(const std::string_view (&list)[n], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool IsIdentifier(std::string_view name) {
  if (name.empty() || absl::ascii_isdigit(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// The caller's name as a C parameter: never a keyword, a reserved name or one that is taken.
std::string ParameterName(const std::string& name, std::set<std::string>* taken) {
  std::string identifier;
  for (char c : name) identifier += absl::ascii_isalnum(c) ? c : '_';
  if (identifier.empty() || !absl::ascii_isalpha(identifier.front()) ||
      identifier.starts_with("tw_")) {
    identifier = absl::StrCat("x", identifier);
  }
  while (Contains(kKeywords, identifier) || Contains(kMacros, identifier) ||
         !taken->insert(identifier).second)
    identifier += '_';
  return identifier;
}

absl::Status CheckNames(const PackItem& item) {
  const Program& program = item.workload.program();
  if (item.names.tensors.size() != program.tensors.size() ||
      item.names.indices.size() != program.indices.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload '", item.name, "': ", item.names.tensors.size(), " tensor names and ",
        item.names.indices.size(), " index names given, the workload has ", program.tensors.size(),
        " tensors and ", program.indices.size(), " indices"));
  }
  return absl::OkStatus();
}

// Positions of `numbers` (tensors or indices, by `names[number]`) in the order in which `order`
// lists their names; what it does not list keeps its place at the end.
std::vector<int> InOrder(std::vector<int> numbers, const std::vector<std::string>& names,
                         const std::vector<std::string>& order) {
  auto rank = [&](int number) {
    return std::find(order.begin(), order.end(), names[number]) - order.begin();
  };
  std::stable_sort(numbers.begin(), numbers.end(), [&](int a, int b) { return rank(a) < rank(b); });
  return numbers;
}

std::string DescribeSize(const Workload& workload, const Names& names, const Dimension& dimension) {
  if (dimension.index < 0) return absl::StrCat(dimension.size);
  const SizeRange& range = workload.sizes()[dimension.index];
  const std::string& name = names.indices[dimension.index];
  return range.fixed() ? absl::StrCat(name, "=", range.low)
                       : absl::StrCat(name, "=", range.low, "..", range.high);
}

}  // namespace

absl::Status CheckPackSymbol(std::string_view name) {
  const std::string quoted = "'" + std::string(name) + "'";
  if (!IsIdentifier(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        quoted, " is no C identifier: letters, digits and _, not beginning with a digit"));
  }
  if (name.front() == '_' || name.starts_with("tw_") || name.starts_with("TW_") ||
      name.find("__") != name.npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        quoted,
        " is reserved: names of a pack do not begin with _, tw_ or TW_ and do not contain __"));
  }
  if (Contains(kKeywords, name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(quoted, " is a keyword of C or C++; choose another name"));
  }
  if (Contains(kLibraryNames, name) || Contains(kMacros, name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(quoted, " is a name of the C library; choose another name"));
  }
  if (IsNameOfAHeader(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        quoted, " is like names of cuda.h, pthread.h or stdatomic.h; choose another name"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PackSignature> SignatureOf(const PackItem& item) {
  if (absl::Status status = CheckNames(item); !status.ok()) return status;
  std::vector<std::string> tensor_order;
  std::vector<std::string> index_order;
  if (!item.source.empty()) {
    absl::StatusOr<Program> program = ParseProgram(item.source);
    if (!program.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("workload '", item.name, "': ", program.status().message()));
    }
    for (const Tensor& tensor : program->tensors) tensor_order.push_back(tensor.name);
    index_order = program->indices;
  }
  PackSignature signature;
  std::set<std::string> taken = {"context"};
  auto add_tensors = [&](absl::Span<const int> numbers, int first_buffer, bool output) {
    std::vector<int> positions(numbers.size());
    for (int i = 0; i < positions.size(); ++i) positions[i] = i;
    std::vector<std::string> names;
    for (int number : numbers) names.push_back(item.names.tensors[number]);
    for (int position : InOrder(positions, names, tensor_order)) {
      const std::string& name = names[position];
      signature.tensors.push_back(
          {first_buffer + position, numbers[position], output, name, ParameterName(name, &taken)});
    }
  };
  const int inputs = item.workload.parameters().size();
  add_tensors(item.workload.parameters(), 0, /*output=*/false);
  add_tensors(item.workload.outputs(), inputs, /*output=*/true);
  std::vector<int> ranged;
  for (int i = 0; i < item.workload.sizes().size(); ++i) {
    if (!item.workload.sizes()[i].fixed()) ranged.push_back(i);
  }
  for (int index : InOrder(ranged, item.names.indices, index_order)) {
    const std::string& name = item.names.indices[index];
    signature.sizes.push_back({index, name, ParameterName(name, &taken)});
  }
  return signature;
}

std::string DescribeTensor(const Workload& workload, const Names& names, int tensor) {
  const TensorLayout& layout = workload.layout(tensor);
  std::vector<std::string> sizes;
  for (const Dimension& dimension : layout.dimensions)
    sizes.push_back(DescribeSize(workload, names, dimension));
  std::string text =
      absl::StrCat(std::string(Info(layout.type).name), " [", absl::StrJoin(sizes, ", "), "]");
  if (!layout.strides.empty()) {
    absl::StrAppend(&text, ", strides in elements [", absl::StrJoin(layout.strides, ", "), "]");
  }
  return text;
}

}  // namespace tilewright
