#include "schedule/resolve.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/check_subscripts.h"
#include "schedule/lexer.h"
#include "schedule/source_text.h"

namespace tilewright {
namespace {

// Constraints of a space are held at every combination of the ends of the ranges: 2^12 of them.
constexpr int kMostRanges = 12;

// A decimal integer in 0 … kMaxElements; nullopt else.
std::optional<int64_t> ParseCount(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || !absl::ascii_isdigit(text[0]) || error != std::errc() ||
      end != text.data() + text.size() || value > kMaxElements) {
    return std::nullopt;
  }
  return value;
}

// The left side of a word of the sizes: an index, a dimension or a dimension's stride.
struct SizeName {
  std::string_view name;
  std::optional<int64_t> dimension;
  bool is_stride = false;
};

std::optional<SizeName> ParseSizeName(std::string_view text) {
  SizeName result;
  const size_t dot = text.find('.');
  result.name = text.substr(0, dot);
  if (dot == std::string_view::npos) return result;
  std::string_view rest = text.substr(dot + 1);
  constexpr std::string_view kStride = ".stride";
  if (rest.size() > kStride.size() && rest.substr(rest.size() - kStride.size()) == kStride) {
    result.is_stride = true;
    rest.remove_suffix(kStride.size());
  }
  result.dimension = ParseCount(rest);
  if (!result.dimension.has_value()) return std::nullopt;
  return result;
}

class Resolver {
 public:
  Resolver(Program program, std::string_view source, const WorkloadOptions& options)
      : source_(source), options_(options) {
    result_.program = std::move(program);
    const size_t indices = result_.program.indices.size();
    result_.sizes.resize(indices);
    result_.layouts.resize(result_.program.tensors.size());
    link_.resize(indices);
    std::iota(link_.begin(), link_.end(), 0);
    has_size_.resize(indices, false);
  }

  absl::StatusOr<ResolvedProgram> Run() {
    CollectDimensions();
    for (auto step : {&Resolver::ReadSizes, &Resolver::FillSizes, &Resolver::ReadTypes,
                      &Resolver::FillStrides, &Resolver::CheckElements}) {
      const absl::Status status = (this->*step)();
      if (!status.ok()) return status;
    }
    const absl::Status status =
        CheckSubscripts(result_.program, result_.sizes, result_.layouts, source_);
    if (!status.ok()) return status;
    return std::move(result_);
  }

 private:
  const Program& program() const { return result_.program; }

  void CollectDimensions();
  absl::Status ReadSizes();
  absl::Status ReadIndexSize(const ListWord& word, std::string_view name, std::string_view value);
  absl::Status ReadDimension(const ListWord& word, const SizeName& name, std::string_view value);
  absl::Status FillSizes();
  absl::Status ReadTypes();
  absl::Status FillStrides();
  absl::Status CheckElements();

  // The index that stands for all those linked with `index`.
  int Representative(int index) const {
    while (link_[index] != index) index = link_[index];
    return index;
  }
  int FindTensor(std::string_view name) const {
    const auto& tensors = program().tensors;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }
  std::string TensorNames() const {
    return absl::StrJoin(program().tensors, ", ",
                         [](std::string* out, const Tensor& tensor) { out->append(tensor.name); });
  }
  int64_t HighSize(const Dimension& dimension) const {
    return dimension.index >= 0 ? result_.sizes[dimension.index].high : dimension.size;
  }
  // An error at the first appearance of an index (`bracket` false) or a tensor in the source.
  absl::Status ErrorAtName(std::string_view name, bool bracket, std::string_view message) const {
    int offset = 0;
    const absl::StatusOr<std::vector<Token>> tokens = Lex(source_);
    for (size_t i = 0; tokens.ok() && i + 1 < tokens->size(); ++i) {
      const std::string_view next = (*tokens)[i + 1].text;
      if ((*tokens)[i].text == name && (bracket ? next == "[" : next != "[" && next != "(")) {
        offset = (*tokens)[i].span.begin;
        break;
      }
    }
    return ErrorAt(source_, offset, message);
  }

  std::string_view source_;
  const WorkloadOptions& options_;
  ResolvedProgram result_;
  std::vector<int> link_;  // union-find: indices that name one dimension
  std::vector<bool> has_size_;
  // [tensor][dimension]: the indices that stand there alone, the writing statement's first.
  std::vector<std::vector<std::vector<int>>> bare_;
  std::map<std::pair<int, int>, int64_t> strides_;  // (tensor, dimension)
};

void Resolver::CollectDimensions() {
  for (const Tensor& tensor : program().tensors) bare_.emplace_back(tensor.rank);
  auto add = [&](int tensor, size_t dimension, int index) {
    std::vector<int>& known = bare_[tensor][dimension];
    if (!known.empty()) link_[Representative(index)] = Representative(known[0]);
    if (std::find(known.begin(), known.end(), index) == known.end()) known.push_back(index);
  };
  for (const Statement& statement : program().statements) {
    for (size_t i = 0; i < statement.indices.size(); ++i) {
      add(statement.tensor, i, statement.indices[i]);
    }
    Walk(*statement.value, [&](const Expr& expr) {
      for (size_t i = 0; i < expr.subscripts.size(); ++i) {
        const int index = expr.subscripts[i].BareIndex();
        if (index >= 0) add(expr.tensor, i, index);
      }
    });
  }
  for (size_t t = 0; t < bare_.size(); ++t) {
    for (const std::vector<int>& known : bare_[t]) {
      Dimension dimension;
      // All of them have one size; a written tensor's own statement names it, else the lowest
      // number.
      if (!known.empty()) {
        dimension.index = program().tensors[t].is_parameter
                              ? *std::min_element(known.begin(), known.end())
                              : known[0];
      }
      result_.layouts[t].dimensions.push_back(dimension);
    }
  }
}

absl::Status Resolver::ReadSizes() {
  for (const ListWord& word : SplitList(options_.sizes)) {
    const size_t equals = word.text.find('=');
    std::optional<SizeName> name;
    if (equals != std::string_view::npos) name = ParseSizeName(word.text.substr(0, equals));
    if (!name.has_value()) {
      return ErrorAt(options_.sizes, word.offset,
                     "expected `index=size`, `index=low..high`, `tensor.dimension=size` or "
                     "`tensor.dimension.stride=elements`",
                     "sizes");
    }
    const std::string_view value = word.text.substr(equals + 1);
    const absl::Status status = name->dimension.has_value()
                                    ? ReadDimension(word, *name, value)
                                    : ReadIndexSize(word, name->name, value);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Resolver::ReadIndexSize(const ListWord& word, std::string_view name,
                                     std::string_view value) {
  const auto& indices = program().indices;
  const auto found = std::find(indices.begin(), indices.end(), name);
  if (found == indices.end()) {
    return ErrorAt(options_.sizes, word.offset,
                   absl::StrCat("unknown index '", std::string(name), "'; ",
                                indices.empty() ? "the program has no indices" : "indices are ",
                                absl::StrJoin(indices, ", ")),
                   "sizes");
  }
  const absl::StatusOr<SizeRange> size = ParseSizeRange(value);
  if (!size.ok()) {
    return ErrorAt(options_.sizes, word.offset + static_cast<int>(name.size()) + 1,
                   std::string(size.status().message()), "sizes");
  }
  const int index = static_cast<int>(found - indices.begin());
  if (has_size_[index]) {
    return ErrorAt(options_.sizes, word.offset,
                   absl::StrCat("the size of '", *found, "' is given twice"), "sizes");
  }
  has_size_[index] = true;
  result_.sizes[index] = *size;
  return absl::OkStatus();
}

absl::Status Resolver::ReadDimension(const ListWord& word, const SizeName& name,
                                     std::string_view value) {
  const int tensor = FindTensor(name.name);
  if (tensor < 0) {
    return ErrorAt(
        options_.sizes, word.offset,
        absl::StrCat("unknown tensor '", std::string(name.name), "'; tensors are ", TensorNames()),
        "sizes");
  }
  const int rank = program().tensors[tensor].rank;
  const std::string text(word.text.substr(0, word.text.find('=')));
  if (*name.dimension >= rank) {
    return ErrorAt(
        options_.sizes, word.offset,
        absl::StrCat("'", std::string(name.name), "' has ", rank, " dimensions, counted from 0"),
        "sizes");
  }
  const int dimension = static_cast<int>(*name.dimension);
  const std::optional<int64_t> count = ParseCount(value);
  if (!count.has_value() || *count < 1) {
    return ErrorAt(options_.sizes, word.offset + static_cast<int>(text.size()) + 1,
                   absl::StrCat(text, " takes one number from 1 to 2^48"), "sizes");
  }
  if (name.is_stride) {
    if (!strides_.emplace(std::make_pair(tensor, dimension), *count).second) {
      return ErrorAt(options_.sizes, word.offset, absl::StrCat(text, " is given twice"), "sizes");
    }
    const Tensor& info = program().tensors[tensor];
    if (!info.is_parameter && !info.is_output) {
      return ErrorAt(options_.sizes, word.offset,
                     absl::StrCat("'", info.name,
                                  "' is an intermediate; only parameters and outputs have strides"),
                     "sizes");
    }
    return absl::OkStatus();
  }
  Dimension& entry = result_.layouts[tensor].dimensions[dimension];
  if (entry.index >= 0) {
    return ErrorAt(
        options_.sizes, word.offset,
        absl::StrCat("index '", program().indices[entry.index], "' names this dimension; give ",
                     program().indices[entry.index], "=", std::string(value)),
        "sizes");
  }
  if (entry.size != 0) {
    return ErrorAt(options_.sizes, word.offset, absl::StrCat(text, " is given twice"), "sizes");
  }
  entry.size = *count;
  return absl::OkStatus();
}

absl::Status Resolver::FillSizes() {
  const auto& indices = program().indices;
  const int n = static_cast<int>(indices.size());
  std::vector<int> known(n, -1);  // by representative: an index whose size is given
  std::vector<int> members(n, 0);
  for (int i = 0; i < n; ++i) {
    const int r = Representative(i);
    ++members[r];
    if (!has_size_[i]) continue;
    if (known[r] < 0) known[r] = i;
    if (result_.sizes[i] != result_.sizes[known[r]]) {
      return ErrorAtName(indices[i], false,
                         absl::StrCat("indices '", indices[known[r]], "' and '", indices[i],
                                      "' name one dimension but have different sizes"));
    }
  }
  for (int i = 0; i < n; ++i) {
    const int r = Representative(i);
    if (known[r] < 0) {
      return ErrorAtName(indices[i], false,
                         absl::StrCat("no size for index '", indices[i], "'; add ", indices[i],
                                      "=… to the sizes"));
    }
    result_.sizes[i] = result_.sizes[known[r]];
    if (!result_.sizes[i].fixed() && members[r] > 1 && known[r] != i) {
      return ErrorAtName(indices[i], false,
                         absl::StrCat("indices '", indices[known[r]], "' and '", indices[i],
                                      "' name one dimension whose size is a range; give them one "
                                      "name or a fixed size"));
    }
  }
  const auto ranges = std::count_if(result_.sizes.begin(), result_.sizes.end(),
                                    [](const SizeRange& size) { return !size.fixed(); });
  if (ranges > kMostRanges) {
    return ErrorAt(options_.sizes, 0,
                   absl::StrCat(ranges, " sizes are ranges; at most ", kMostRanges, " may be"),
                   "sizes");
  }
  for (size_t t = 0; t < result_.layouts.size(); ++t) {
    const std::vector<Dimension>& dimensions = result_.layouts[t].dimensions;
    for (size_t d = 0; d < dimensions.size(); ++d) {
      if (dimensions[d].index >= 0 || dimensions[d].size > 0) continue;
      const std::string name = absl::StrCat(program().tensors[t].name, ".", d);
      return ErrorAtName(
          program().tensors[t].name, true,
          absl::StrCat("no size for dimension ", name, ", which no index alone names; add ", name,
                       "=… to the sizes"));
    }
  }
  return absl::OkStatus();
}

absl::Status Resolver::ReadTypes() {
  const auto& tensors = program().tensors;
  std::optional<ElementType> common;
  std::vector<std::optional<ElementType>> own(tensors.size());
  for (const ListWord& word : SplitList(options_.types)) {
    const size_t colon = word.text.find(':');
    const bool is_exception = colon != std::string_view::npos;
    const size_t type_at = is_exception ? colon + 1 : 0;
    const absl::StatusOr<ElementType> type = ParseElementType(word.text.substr(type_at));
    if (!type.ok()) {
      return ErrorAt(options_.types, word.offset + static_cast<int>(type_at),
                     std::string(type.status().message()), "types");
    }
    std::optional<ElementType>* entry = &common;
    const std::string name(word.text.substr(0, is_exception ? colon : 0));
    if (is_exception) {
      const int tensor = FindTensor(name);
      if (tensor < 0) {
        return ErrorAt(options_.types, word.offset,
                       absl::StrCat("unknown tensor '", name, "'; tensors are ", TensorNames()),
                       "types");
      }
      entry = &own[tensor];
    }
    if (entry->has_value()) {
      return ErrorAt(options_.types, word.offset,
                     is_exception ? absl::StrCat("the type of '", name, "' is given twice")
                                  : "a second default type; write exceptions as `tensor:type`",
                     "types");
    }
    *entry = *type;
  }
  for (size_t t = 0; t < tensors.size(); ++t) {
    const bool is_buffer = tensors[t].is_parameter || tensors[t].is_output;
    if (own[t].has_value()) {
      result_.layouts[t].type = *own[t];
    } else if (common.has_value()) {
      result_.layouts[t].type = is_buffer ? *common : Info(*common).accumulator;
    } else {
      return ErrorAtName(
          tensors[t].name, true,
          absl::StrCat("no type for tensor '", tensors[t].name,
                       "'; give a default such as `f32`, or `", tensors[t].name, ":f32`"));
    }
  }
  return absl::OkStatus();
}

// Strides left out are those of a dense tensor inside the next outer one.
absl::Status Resolver::FillStrides() {
  for (size_t t = 0; t < result_.layouts.size(); ++t) {
    TensorLayout& layout = result_.layouts[t];
    const int rank = static_cast<int>(layout.dimensions.size());
    const std::string& name = program().tensors[t].name;
    bool any_given = false;
    bool is_dense = true;
    // The dense stride of dimension d, while the dimensions inside are fixed.
    std::optional<int64_t> dense = 1;
    std::optional<int64_t> next = 1;
    std::vector<int64_t> strides(rank);
    std::vector<std::pair<int64_t, int64_t>> extents;  // (stride, size)
    for (int d = rank - 1; d >= 0; --d) {
      const auto given = strides_.find({static_cast<int>(t), d});
      any_given = any_given || given != strides_.end();
      const std::optional<int64_t> stride =
          given != strides_.end() ? std::optional(given->second) : next;
      const Dimension& dimension = layout.dimensions[d];
      const bool is_fixed = dimension.index < 0 || result_.sizes[dimension.index].fixed();
      const int64_t size = HighSize(dimension);
      is_dense = is_dense && stride == dense;
      strides[d] = stride.value_or(-1);
      extents.emplace_back(strides[d], size);
      __int128 product = stride.has_value() ? static_cast<__int128>(*stride) * size : 0;
      next = stride.has_value() && is_fixed && product <= kMaxElements
                 ? std::optional(static_cast<int64_t>(product))
                 : std::nullopt;
      product = dense.has_value() ? static_cast<__int128>(*dense) * size : 0;
      dense = dense.has_value() && is_fixed && product <= kMaxElements
                  ? std::optional(static_cast<int64_t>(product))
                  : std::nullopt;
    }
    if (!any_given || is_dense) continue;
    for (int d = 0; d < rank; ++d) {
      if (strides[d] > 0) continue;
      return ErrorAtName(name, true,
                         absl::StrCat("give ", name, ".", d,
                                      ".stride too: dimensions inside it "
                                      "have a range of sizes"));
    }
    // No two elements may share an address: each stride passes everything that smaller strides
    // reach.
    std::sort(extents.begin(), extents.end());
    __int128 reach = 0;
    for (const auto& [stride, size] : extents) {
      if (size == 1) continue;
      if (stride <= reach) {
        return ErrorAtName(
            name, true,
            absl::StrCat("the strides of '", name, "' (", absl::StrJoin(strides, ", "),
                         ") make elements share an address"));
      }
      reach += static_cast<__int128>(stride) * (size - 1);
    }
    if (reach >= kMaxElements) {
      return ErrorAtName(name, true,
                         absl::StrCat("tensor '", name, "' spans more than 2^48 elements"));
    }
    layout.strides = std::move(strides);
  }
  return absl::OkStatus();
}

absl::Status Resolver::CheckElements() {
  for (size_t t = 0; t < result_.layouts.size(); ++t) {
    __int128 elements = 1;
    for (const Dimension& dimension : result_.layouts[t].dimensions) {
      elements *= HighSize(dimension);
      if (elements > kMaxElements) {
        const std::string& name = program().tensors[t].name;
        return ErrorAtName(name, true,
                           absl::StrCat("tensor '", name, "' has more than 2^48 elements"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<ListWord> SplitList(std::string_view list) {
  auto is_separator = [](char c) { return c == ',' || absl::ascii_isspace(c); };
  std::vector<ListWord> words;
  size_t at = 0;
  while (at < list.size()) {
    if (is_separator(list[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < list.size() && !is_separator(list[end])) ++end;
    words.push_back({list.substr(at, end - at), static_cast<int>(at)});
    at = end;
  }
  return words;
}

absl::StatusOr<SizeRange> ParseSizeRange(std::string_view text) {
  const size_t dots = text.find("..");
  const std::optional<int64_t> low = ParseCount(text.substr(0, dots));
  const std::optional<int64_t> high =
      dots == std::string_view::npos ? low : ParseCount(text.substr(dots + 2));
  if (!low.has_value() || !high.has_value() || *low < 1 || *high < *low) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text),
                     "' is no size; sizes are numbers from 1 to 2^48 or ranges such as 1..8192"));
  }
  return SizeRange{*low, *high};
}

std::vector<int64_t> DenseStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

absl::StatusOr<ResolvedProgram> Resolve(Program program, std::string_view source,
                                        const WorkloadOptions& options) {
  return Resolver(std::move(program), source, options).Run();
}

}  // namespace tilewright
