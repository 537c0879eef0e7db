// Matching names what a family's variants need to know about a program, once: which index plays
// which role, and which expression each role computes. Spaces, plans and writers read the result
// and never look at the program again.
//
//   Y[t,o] = gelu(sum(i: X[t,i] * W[o,i]) + bias[o])
//     m = t, n = o, k = i, a = X[t,i], b = W[o,i], epilogue = gelu(SUM + bias[o])
#ifndef TILEWRIGHT_SCHEDULE_MATCH_H_
#define TILEWRIGHT_SCHEDULE_MATCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/workload.h"

namespace tilewright {

// A distance in elements that holds at every size of a workload: a sum of coefficient * product of
// sizes of ranged indices.
struct Stride {
  struct Term {
    int64_t coefficient = 0;
    std::vector<int> sizes;  // index numbers, sorted
    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms;  // sorted by `sizes`, no zero coefficients; empty: 0

  int64_t Evaluate(absl::Span<const int64_t> sizes) const;
  // True if it is that number whatever the sizes.
  bool Is(int64_t value) const;
  bool operator==(const Stride&) const = default;
};

// From one position of a tensor's dimension to the next.
Stride DimensionStride(const Workload& workload, int tensor, int dimension);
// How far the address of tensor[subscripts] moves when `index` grows by one. Nothing if that
// differs from place to place (the index stands under `/` or `%`).
std::optional<Stride> StrideAlong(const Workload& workload, int tensor,
                                  absl::Span<const AffineIndex> subscripts, int index);
// True if the read stays inside its tensor at every size: every subscript is a bare index or
// bounded by the sizes.
bool StaysInside(const Workload& workload, int tensor, absl::Span<const AffineIndex> subscripts);

// One or more indices run over as one number: position = ((i0 * size(i1)) + i1) * size(i2) + ...
// Indices are fused only where every tensor that has them moves by the same stride per position, so
// the last index, the lead, may carry the whole position while the others stay 0: addresses come
// out right.
struct Axis {
  std::vector<int> indices;  // outermost first; empty: one position

  int lead() const { return indices.empty() ? -1 : indices.back(); }
  int64_t Extent(absl::Span<const int64_t> sizes) const;
  bool operator==(const Axis&) const = default;
};

// One factor of the sum. `row` is the axis m for a, n for b; `depth` is k.
struct ContractionOperand {
  ExprPtr value;           // of batch, row and k indices; has no reduction
  std::vector<int> batch;  // numbers in Contraction::batch of the axes that the elements depend on
  // Linear: the value is computed from one read (casts, constants and functions of one element may
  // surround it), which moves by fixed strides along row and depth and never leaves its tensor.
  // Else elements are computed one by one.
  bool linear = false;
  const Expr* read = nullptr;  // the only read, if linear; owned by `value`
  Stride row_stride;           // if linear
  Stride depth_stride;         // if linear; along the flattened k
  // Linear, and the value is the stored element itself, already of the accumulator's type: it can
  // be used where it lies.
  bool plain = false;
};

// out[batch, m, n] = epilogue(sum(k: a[batch, m, k] * b[batch, n, k]))
//
// n is the axis along which the output is contiguous, if it has one, so vector lanes run along it;
// operands are swapped to make it so. Either m or n may have no index (a matrix times a vector).
// Further indices of m and n that could not be fused are run over as batch axes, on which only one
// operand depends.
struct Contraction {
  std::vector<Axis> batch;
  Axis m;
  Axis n;
  std::vector<Axis> k;  // not empty; run over as one flattened number, the last fastest
  ContractionOperand a;
  ContractionOperand b;
  ElementType accumulator = ElementType::kF32;  // f32, f64 or i32
  ElementType compute = ElementType::kF32;      // what the epilogue is computed in
  int output = -1;
  std::vector<AffineIndex> output_subscripts;
  Stride output_row_stride;
  Stride output_column_stride;
  ExprPtr epilogue;             // every kReduce in it is the sum
  bool plain_epilogue = false;  // the sum itself: nothing to compute

  int64_t Batches(absl::Span<const int64_t> sizes) const;
  int64_t K(absl::Span<const int64_t> sizes) const;
};

// Statements that compute operands or finish the sum point by point are folded into it.
// FailedPrecondition: the statement and the reason why the program is no contraction.
absl::StatusOr<Contraction> MatchContraction(const Workload& workload);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_MATCH_H_
