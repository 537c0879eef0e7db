#include "schedule/match_pointwise.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/match.h"

namespace tilewright {
namespace {

// Indices whose positions the expression computes with: they can't be fused.
std::set<int> UnfusableIndices(const Expr& value) {
  std::vector<int> found;
  Walk(value, [&](const Expr& e) {
    e.index_value.CollectIndices(&found);
    for (const AffineIndex& subscript : e.subscripts) {
      if (subscript.BareIndex() < 0) subscript.CollectIndices(&found);
    }
  });
  return std::set<int>(found.begin(), found.end());
}

struct Access {
  int tensor;
  std::vector<AffineIndex> subscripts;
};

bool CanFuse(const Workload& workload, const std::vector<Access>& accesses, const FusedAxis& outer,
             const FusedAxis& inner) {
  int64_t extent = 1;
  for (int index : inner.indices) {
    if (!workload.sizes()[index].fixed()) return false;
    extent *= workload.sizes()[index].low;
  }
  for (const Access& access : accesses) {
    const auto wide = FixedStride(workload, access.tensor, access.subscripts, outer.lead());
    const auto narrow = FixedStride(workload, access.tensor, access.subscripts, inner.lead());
    if (!wide.has_value() || !narrow.has_value() || *wide != *narrow * extent) return false;
  }
  return true;
}

}  // namespace

int64_t FusedAxis::Extent(absl::Span<const int64_t> sizes) const {
  int64_t extent = 1;
  for (int index : indices) extent *= sizes[index];
  return extent;
}

std::optional<int64_t> FixedStride(const Workload& workload, int tensor,
                                   absl::Span<const AffineIndex> subscripts, int index) {
  const std::optional<Stride> stride = StrideAlong(workload, tensor, subscripts, index);
  if (!stride.has_value() || stride->terms.size() > 1) return std::nullopt;
  if (stride->terms.empty()) return 0;
  if (!stride->terms[0].sizes.empty()) return std::nullopt;
  return stride->terms[0].coefficient;
}

std::vector<AffineIndex> SubscriptsOf(const Statement& statement) {
  std::vector<AffineIndex> subscripts;
  for (int index : statement.indices) {
    AffineIndex subscript;
    AffineTerm term;
    term.index = index;
    subscript.terms.push_back(term);
    subscripts.push_back(subscript);
  }
  return subscripts;
}

std::vector<FusedAxis> FuseAxes(const Workload& workload, int output, absl::Span<const int> indices,
                                const Expr& value) {
  const std::set<int> unfusable = UnfusableIndices(value);
  std::vector<Access> accesses;
  Walk(value, [&](const Expr& e) {
    if (e.kind == Expr::Kind::kRead) accesses.push_back({e.tensor, e.subscripts});
  });
  Statement own;
  own.tensor = output;
  own.indices.assign(indices.begin(), indices.end());
  accesses.push_back({output, SubscriptsOf(own)});
  std::vector<FusedAxis> axes;
  for (int index : indices) {
    FusedAxis axis{{index}};
    const bool fusable = !axes.empty() && !unfusable.contains(axes.back().lead()) &&
                         !unfusable.contains(index) &&
                         CanFuse(workload, accesses, axes.back(), axis);
    if (fusable) {
      axes.back().indices.push_back(index);
    } else {
      axes.push_back(std::move(axis));
    }
  }
  return axes;
}

absl::StatusOr<Pointwise> MatchPointwise(const Workload& workload) {
  const Program& program = workload.program();
  Pointwise result;
  for (const Statement& statement : program.statements) {
    bool reduces = false;
    Walk(*statement.value, [&](const Expr& e) { reduces |= e.kind == Expr::Kind::kReduce; });
    if (reduces) {
      return absl::FailedPreconditionError(absl::StrCat(program.tensors[statement.tensor].name,
                                                        " = ", ToString(program, *statement.value),
                                                        ": has a reduction"));
    }
    result.statements.push_back(&statement);
  }
  if (result.statements.size() != 1) return result;
  const Statement& statement = *result.statements[0];
  const std::vector<AffineIndex> own = SubscriptsOf(statement);
  result.axes = FuseAxes(workload, statement.tensor, statement.indices, *statement.value);
  if (result.axes.empty()) return result;  // a scalar
  result.lane_axis = static_cast<int>(result.axes.size()) - 1;
  for (size_t i = 0; i < result.axes.size(); ++i) {
    if (FixedStride(workload, statement.tensor, own, result.axes[i].lead()) == 1)
      result.lane_axis = static_cast<int>(i);
  }
  const int lane_index = result.axes[result.lane_axis].lead();
  Walk(*statement.value, [&](const Expr& e) {
    if (e.kind != Expr::Kind::kRead || result.row_axis >= 0) return;
    const auto along_lanes = FixedStride(workload, e.tensor, e.subscripts, lane_index);
    if (along_lanes == 0 || along_lanes == 1) return;
    for (size_t i = 0; i < result.axes.size(); ++i) {
      const auto stride = FixedStride(workload, e.tensor, e.subscripts, result.axes[i].lead());
      if (static_cast<int>(i) != result.lane_axis && stride == 1)
        result.row_axis = static_cast<int>(i);
    }
  });
  return result;
}

}  // namespace tilewright
