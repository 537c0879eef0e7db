// The family of programs without reductions: every element of every output is computed from single
// elements. Elementwise chains, broadcasts, gated activations, transposes, casts.
#ifndef TILEWRIGHT_SCHEDULE_MATCH_POINTWISE_H_
#define TILEWRIGHT_SCHEDULE_MATCH_POINTWISE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/workload.h"

namespace tilewright {

// Output indices that are run over as one number, outermost first: every access moves by the same
// distance per position, so the last of them carries the whole position while the others stay 0.
struct FusedAxis {
  std::vector<int> indices;
  int lead() const { return indices.back(); }
  int64_t Extent(absl::Span<const int64_t> sizes) const;
};

// Neighbouring ones of `indices` (outermost first) fused where `accesses` (kRead expressions) and
// the output, whose dimensions are `indices`, allow it. Indices whose values the expression uses,
// or that stand in compound subscripts, stay alone.
std::vector<FusedAxis> FuseAxes(const Workload& workload, int output, absl::Span<const int> indices,
                                const Expr& value);

// How far tensor[subscripts] moves, in elements, when `index` grows by one, where that is one
// number at every size and place.
std::optional<int64_t> FixedStride(const Workload& workload, int tensor,
                                   absl::Span<const AffineIndex> subscripts, int index);

// The subscripts of a statement's own tensor.
std::vector<AffineIndex> SubscriptsOf(const Statement& statement);

struct Pointwise {
  std::vector<const Statement*> statements;  // in order; owned by the workload
  // Of the only statement; empty if there are several.
  std::vector<FusedAxis> axes;  // outermost first
  int lane_axis = -1;  // the axis along which the output is contiguous; the last if it is not
  // An axis along which some read is contiguous that is not so along the lane axis (a transpose);
  // -1: none.
  int row_axis = -1;
};

// FailedPrecondition: the statement that reduces.
absl::StatusOr<Pointwise> MatchPointwise(const Workload& workload);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_MATCH_POINTWISE_H_
