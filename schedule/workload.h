// A Workload is a tensor program with types and sizes and no hardware in it: what a user asks a
// kernel for.
//
// It is kept in canonical form (DESIGN.md 3): two texts that differ only in names, in the order of
// operands of a chain, or in other ways the language calls equal make the same Workload, the same
// text and the same key. Kernels know canonical numbers; Names maps the caller's names onto them.
//
// Immutable after Make; safe to share between threads.
#ifndef TILEWRIGHT_SCHEDULE_WORKLOAD_H_
#define TILEWRIGHT_SCHEDULE_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/expression.h"

namespace tilewright {

// The canonical form's version; stored beside text and key. A newer one rekeys a database.
inline constexpr int kCanonicalVersion = 1;

// A size is fixed (low == high) or a range, both ends included. 1 <= low <= high.
struct SizeRange {
  int64_t low = 1;
  int64_t high = 1;
  bool fixed() const { return low == high; }
  bool operator==(const SizeRange&) const = default;
};

// One dimension of a tensor: the size of an index, or (index == -1) a fixed number of its own
// (`X.1=224`).
struct Dimension {
  int index = -1;
  int64_t size = 0;
};

// Concrete sizes: one per index of the program, in canonical order.
using Sizes = std::vector<int64_t>;

struct TensorLayout {
  ElementType type = ElementType::kF32;
  std::vector<Dimension> dimensions;
  // In elements, outermost first; empty: dense row-major (then they follow from the sizes).
  std::vector<int64_t> strides;
};

// The caller's names for canonical numbers.
struct Names {
  std::vector<std::string> tensors;
  std::vector<std::string> indices;
};

// What a caller states beside the expression.
struct WorkloadOptions {
  // "m=1024,n=1024 k=1..8192 X.1=224 A.0.stride=2048": separated by spaces or commas.
  std::string sizes;
  // "bf16,bias:f32,Y:f16": one default for parameters and outputs, and exceptions by the caller's
  // names. An intermediate has the accumulator type of the default unless named.
  std::string types;
};

class Workload {
 public:
  // `names` (may be null) receives the caller's names. InvalidArgument: located, one line plus the
  // source line.
  static absl::StatusOr<Workload> Make(std::string_view expression, const WorkloadOptions& options,
                                       Names* names = nullptr);
  static absl::StatusOr<Workload> Make(Program program, const WorkloadOptions& options,
                                       Names* names = nullptr);
  // Reads what canonical_text() wrote. InvalidArgument if it is not canonical text of a known
  // version.
  static absl::StatusOr<Workload> FromCanonicalText(std::string_view text);

  const std::string& canonical_text() const { return canonical_text_; }
  // Lower-case hexadecimal SHA-256 of the canonical text.
  const std::string& key() const { return key_; }

  // The program in canonical numbering: parameters first (in canonical order), then outputs, then
  // intermediates.
  const Program& program() const { return program_; }
  absl::Span<const SizeRange> sizes() const { return sizes_; }  // by index number
  const TensorLayout& layout(int tensor) const { return layouts_[tensor]; }
  // Numbers of the kernel's buffers: parameters, then outputs. This is the order of its arguments.
  absl::Span<const int> parameters() const { return parameters_; }
  absl::Span<const int> outputs() const { return outputs_; }
  // The place of a parameter or an output in that order; `tensor` is one of them.
  int BufferOf(int tensor) const;

  bool has_range() const;
  Sizes LowestSizes() const;
  Sizes HighestSizes() const;
  // OutOfRange names the index and the range if a size is outside.
  absl::Status CheckSizes(absl::Span<const int64_t> sizes) const;

  int64_t DimensionSize(int tensor, int dimension, absl::Span<const int64_t> sizes) const;
  std::vector<int64_t> Shape(int tensor, absl::Span<const int64_t> sizes) const;
  std::vector<int64_t> Strides(int tensor, absl::Span<const int64_t> sizes) const;
  // Elements from the first to the last addressed one: what a buffer must hold.
  int64_t BufferElements(int tensor, absl::Span<const int64_t> sizes) const;
  int64_t BufferBytes(int tensor, absl::Span<const int64_t> sizes) const;

  // Of the elements of the parameters; 8 if there are none.
  int SmallestParameterBytes() const;

  // Arithmetic operations of one call: each +, *, /, comparison and function counts 1 per point; a
  // sum of K terms counts K additions, so a matmul is 2mnk.
  double Operations(absl::Span<const int64_t> sizes) const;
  // Bytes every correct kernel must move: each element of parameters that is read, and of outputs,
  // once.
  double CompulsoryBytes(absl::Span<const int64_t> sizes) const;

  bool operator==(const Workload& other) const { return canonical_text_ == other.canonical_text_; }

 private:
  Workload() = default;
  friend class WorkloadBuilder;  // workload.cc

  Program program_;
  std::vector<SizeRange> sizes_;
  std::vector<TensorLayout> layouts_;
  std::vector<int> parameters_;
  std::vector<int> outputs_;
  std::string canonical_text_;
  std::string key_;
};

// Parses "t=8192 i=64" against the ranges of a workload, by the caller's index names
// (names.indices). Indices not mentioned take the upper end of their range. This is the `--at` of a
// regime.
absl::StatusOr<Sizes> ParseSizesAt(const Workload& workload, const Names& names,
                                   std::string_view text);

// Lower-case hexadecimal SHA-256.
std::string Sha256Hex(std::string_view bytes);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_WORKLOAD_H_
