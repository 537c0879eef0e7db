#include "schedule/workload.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/affine.h"
#include "schedule/canonical.h"
#include "schedule/normalise.h"
#include "schedule/resolve.h"
#include "schedule/source_text.h"

namespace tilewright {
namespace {

// The program with its indices and tensors renumbered and reordered to match.
Program RenumberProgram(const Program& program, const std::vector<int>& tensors,
                        const std::vector<int>& indices) {
  Program result;
  result.tensors.resize(program.tensors.size());
  result.indices.resize(program.indices.size());
  for (size_t i = 0; i < tensors.size(); ++i) result.tensors[tensors[i]] = program.tensors[i];
  for (size_t i = 0; i < indices.size(); ++i) result.indices[indices[i]] = program.indices[i];
  struct Rewriter {
    const std::vector<int>& tensors;
    const std::vector<int>& indices;
    ExprPtr Tree(const Expr& expr) const {
      Expr copy = expr;
      if (copy.tensor >= 0) copy.tensor = tensors[copy.tensor];
      if (copy.index >= 0) copy.index = indices[copy.index];
      copy.index_value = Renumber(copy.index_value, indices);
      for (AffineIndex& subscript : copy.subscripts) subscript = Renumber(subscript, indices);
      for (int& index : copy.reduce_indices) index = indices[index];
      for (ExprPtr& operand : copy.operands) operand = Tree(*operand);
      return std::make_shared<const Expr>(std::move(copy));
    }
  };
  const Rewriter rewriter{tensors, indices};
  for (const Statement& statement : program.statements) {
    Statement copy = statement;
    copy.tensor = tensors[copy.tensor];
    for (int& index : copy.indices) index = indices[index];
    copy.value = rewriter.Tree(*statement.value);
    result.statements.push_back(std::move(copy));
  }
  return result;
}

// The numbers in "t0", "i12": the names that canonical text gives. Empty unless they are 0 … n-1,
// each once.
template <typename Named>
std::vector<int> CanonicalNumbers(const std::vector<Named>& named, char letter) {
  std::vector<int> numbers;
  std::vector<bool> seen(named.size(), false);
  for (const Named& entry : named) {
    std::string_view name;
    if constexpr (std::is_same_v<Named, Tensor>) {
      name = entry.name;
    } else {
      name = entry;
    }
    int number = -1;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (name[0] != letter || error != std::errc() || end != name.data() + name.size() ||
        number < 0 || number >= static_cast<int>(named.size()) || seen[number]) {
      return {};
    }
    seen[number] = true;
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

class WorkloadBuilder {
 public:
  static absl::StatusOr<Workload> Make(std::string_view expression, const WorkloadOptions& options,
                                       Names* names) {
    absl::StatusOr<Program> program = ParseProgram(expression);
    if (!program.ok()) return program.status();
    absl::StatusOr<ResolvedProgram> resolved = Resolve(*std::move(program), expression, options);
    if (!resolved.ok()) return resolved.status();
    absl::StatusOr<Program> normal = Normalise(resolved->program, resolved->sizes, expression);
    if (!normal.ok()) return normal.status();
    resolved->program = *std::move(normal);
    const absl::StatusOr<CanonicalForm> form = Canonicalise(*resolved);
    if (!form.ok()) return form.status();
    if (names != nullptr) {
      names->tensors.resize(form->tensor_numbers.size());
      names->indices.resize(form->index_numbers.size());
      for (size_t i = 0; i < form->tensor_numbers.size(); ++i) {
        names->tensors[form->tensor_numbers[i]] = resolved->program.tensors[i].name;
      }
      for (size_t i = 0; i < form->index_numbers.size(); ++i) {
        names->indices[form->index_numbers[i]] = resolved->program.indices[i];
      }
    }
    return Build(form->text);
  }

  static absl::StatusOr<Workload> Build(const std::string& canonical_text) {
    const absl::StatusOr<CanonicalParts> parts = SplitCanonicalText(canonical_text);
    if (!parts.ok()) return parts.status();
    absl::StatusOr<Program> program = ParseProgram(parts->expression);
    if (!program.ok()) return program.status();
    const std::vector<int> tensors = CanonicalNumbers(program->tensors, 't');
    const std::vector<int> indices = CanonicalNumbers(program->indices, 'i');
    if (tensors.empty() || (indices.empty() && !program->indices.empty())) {
      return absl::InvalidArgumentError(
          "not canonical text: its names are not t0, t1, … and i0, i1, …");
    }
    absl::StatusOr<ResolvedProgram> resolved =
        Resolve(RenumberProgram(*program, tensors, indices), parts->expression, parts->options);
    if (!resolved.ok()) return resolved.status();
    Workload workload;
    workload.program_ = std::move(resolved->program);
    workload.sizes_ = std::move(resolved->sizes);
    workload.layouts_ = std::move(resolved->layouts);
    const std::vector<Tensor>& all = workload.program_.tensors;
    for (size_t t = 0; t < all.size(); ++t) {
      if (all[t].is_parameter) workload.parameters_.push_back(static_cast<int>(t));
      if (all[t].is_output) workload.outputs_.push_back(static_cast<int>(t));
    }
    workload.canonical_text_ = canonical_text;
    workload.key_ = Sha256Hex(canonical_text);
    return workload;
  }
};

absl::StatusOr<Workload> Workload::Make(std::string_view expression, const WorkloadOptions& options,
                                        Names* names) {
  return WorkloadBuilder::Make(expression, options, names);
}

absl::StatusOr<Workload> Workload::Make(Program program, const WorkloadOptions& options,
                                        Names* names) {
  // Errors then point into the program's text.
  return WorkloadBuilder::Make(ToString(program), options, names);
}

absl::StatusOr<Workload> Workload::FromCanonicalText(std::string_view text) {
  const absl::StatusOr<CanonicalParts> parts = SplitCanonicalText(text);
  if (!parts.ok()) return parts.status();
  absl::StatusOr<Workload> workload =
      WorkloadBuilder::Make(parts->expression, parts->options, nullptr);
  if (!workload.ok()) return workload.status();
  if (workload->canonical_text() != text) {
    return absl::InvalidArgumentError(
        absl::StrCat("not canonical text; that of this workload is: ", workload->canonical_text()));
  }
  return workload;
}

int Workload::BufferOf(int tensor) const {
  const auto parameter = std::find(parameters_.begin(), parameters_.end(), tensor);
  if (parameter != parameters_.end()) return static_cast<int>(parameter - parameters_.begin());
  const auto output = std::find(outputs_.begin(), outputs_.end(), tensor);
  return static_cast<int>(parameters_.size() + (output - outputs_.begin()));
}

bool Workload::has_range() const {
  return std::any_of(sizes_.begin(), sizes_.end(), [](const SizeRange& s) { return !s.fixed(); });
}

Sizes Workload::LowestSizes() const {
  Sizes sizes;
  for (const SizeRange& range : sizes_) sizes.push_back(range.low);
  return sizes;
}

Sizes Workload::HighestSizes() const {
  Sizes sizes;
  for (const SizeRange& range : sizes_) sizes.push_back(range.high);
  return sizes;
}

absl::Status Workload::CheckSizes(absl::Span<const int64_t> sizes) const {
  if (sizes.size() != sizes_.size()) {
    return absl::OutOfRangeError(
        absl::StrCat(sizes.size(), " sizes for a workload of ", sizes_.size(), " indices"));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < sizes_[i].low || sizes[i] > sizes_[i].high) {
      return absl::OutOfRangeError(absl::StrCat("size ", sizes[i], " of index '",
                                                program_.indices[i], "' is outside ", sizes_[i].low,
                                                "..", sizes_[i].high));
    }
  }
  return absl::OkStatus();
}

int64_t Workload::DimensionSize(int tensor, int dimension, absl::Span<const int64_t> sizes) const {
  const Dimension& entry = layouts_[tensor].dimensions[dimension];
  return entry.index >= 0 ? sizes[entry.index] : entry.size;
}

std::vector<int64_t> Workload::Shape(int tensor, absl::Span<const int64_t> sizes) const {
  std::vector<int64_t> shape(layouts_[tensor].dimensions.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    shape[d] = DimensionSize(tensor, static_cast<int>(d), sizes);
  }
  return shape;
}

std::vector<int64_t> Workload::Strides(int tensor, absl::Span<const int64_t> sizes) const {
  const std::vector<int64_t>& strides = layouts_[tensor].strides;
  return strides.empty() ? DenseStrides(Shape(tensor, sizes)) : strides;
}

int64_t Workload::BufferElements(int tensor, absl::Span<const int64_t> sizes) const {
  const std::vector<int64_t> shape = Shape(tensor, sizes);
  const std::vector<int64_t> strides = Strides(tensor, sizes);
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) last += (shape[d] - 1) * strides[d];
  return last + 1;
}

int64_t Workload::BufferBytes(int tensor, absl::Span<const int64_t> sizes) const {
  return BufferElements(tensor, sizes) * Info(layouts_[tensor].type).bytes;
}

int Workload::SmallestParameterBytes() const {
  int bytes = 8;
  for (int tensor : parameters_) bytes = std::min(bytes, Info(layouts_[tensor].type).bytes);
  return bytes;
}

absl::StatusOr<Sizes> ParseSizesAt(const Workload& workload, const Names& names,
                                   std::string_view text) {
  Sizes sizes = workload.HighestSizes();
  std::vector<bool> is_given(sizes.size(), false);
  for (const ListWord& word : SplitList(text)) {
    const std::string_view name = word.text.substr(0, word.text.find('='));
    const auto found = std::find(names.indices.begin(), names.indices.end(), name);
    if (name.size() == word.text.size() || found == names.indices.end()) {
      std::string known;
      for (const std::string& index : names.indices) {
        absl::StrAppend(&known, known.empty() ? "" : ", ", index);
      }
      return ErrorAt(text, word.offset,
                     absl::StrCat("expected `index=size`, with an index of ", known), "at");
    }
    const int index = static_cast<int>(found - names.indices.begin());
    const int value_at = word.offset + static_cast<int>(name.size()) + 1;
    const absl::StatusOr<SizeRange> size = ParseSizeRange(word.text.substr(name.size() + 1));
    if (!size.ok()) return ErrorAt(text, value_at, std::string(size.status().message()), "at");
    const SizeRange& range = workload.sizes()[index];
    if (!size->fixed() || size->low < range.low || size->low > range.high) {
      return ErrorAt(
          text, value_at,
          absl::StrCat("'", *found, "' takes one size within ", range.low, "..", range.high), "at");
    }
    if (is_given[index]) {
      return ErrorAt(text, word.offset, absl::StrCat("'", *found, "' is given twice"), "at");
    }
    is_given[index] = true;
    sizes[index] = size->low;
  }
  return sizes;
}

}  // namespace tilewright
