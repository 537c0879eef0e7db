#include "schedule/match.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "schedule/affine.h"

namespace tilewright {
namespace {

// Adds coefficient * (product of the sizes of `factors`), with fixed sizes folded into the
// coefficient.
void AddTerm(const Workload& workload, int64_t coefficient, const std::vector<int>& factors,
             Stride* stride) {
  Stride::Term term;
  term.coefficient = coefficient;
  for (int index : factors) {
    const SizeRange& range = workload.sizes()[index];
    if (range.fixed()) {
      term.coefficient *= range.low;
    } else {
      term.sizes.push_back(index);
    }
  }
  std::sort(term.sizes.begin(), term.sizes.end());
  auto at = std::lower_bound(
      stride->terms.begin(), stride->terms.end(), term,
      [](const Stride::Term& x, const Stride::Term& y) { return x.sizes < y.sizes; });
  if (at != stride->terms.end() && at->sizes == term.sizes) {
    at->coefficient += term.coefficient;
  } else {
    at = stride->terms.insert(at, term);
  }
  if (at->coefficient == 0) stride->terms.erase(at);
}

bool Mentions(const AffineIndex& affine, int index) {
  for (const AffineTerm& term : affine.terms) {
    if (term.kind == AffineTerm::Kind::kIndex ? term.index == index
                                              : Mentions(*term.operand, index))
      return true;
  }
  return false;
}

}  // namespace

int64_t Stride::Evaluate(absl::Span<const int64_t> sizes) const {
  int64_t sum = 0;
  for (const Term& term : terms) {
    int64_t product = term.coefficient;
    for (int index : term.sizes) product *= sizes[index];
    sum += product;
  }
  return sum;
}

bool Stride::Is(int64_t value) const {
  if (terms.empty()) return value == 0;
  return terms.size() == 1 && terms[0].sizes.empty() && terms[0].coefficient == value;
}

Stride DimensionStride(const Workload& workload, int tensor, int dimension) {
  const TensorLayout& layout = workload.layout(tensor);
  Stride stride;
  if (!layout.strides.empty()) {
    AddTerm(workload, layout.strides[dimension], {}, &stride);
    return stride;
  }
  int64_t coefficient = 1;
  std::vector<int> factors;
  for (size_t d = dimension + 1; d < layout.dimensions.size(); ++d) {
    if (layout.dimensions[d].index < 0) {
      coefficient *= layout.dimensions[d].size;
    } else {
      factors.push_back(layout.dimensions[d].index);
    }
  }
  AddTerm(workload, coefficient, factors, &stride);
  return stride;
}

std::optional<Stride> StrideAlong(const Workload& workload, int tensor,
                                  absl::Span<const AffineIndex> subscripts, int index) {
  Stride sum;
  for (size_t d = 0; d < subscripts.size(); ++d) {
    for (const AffineTerm& term : subscripts[d].terms) {
      if (term.kind != AffineTerm::Kind::kIndex) {
        if (Mentions(*term.operand, index)) return std::nullopt;
        continue;
      }
      if (term.index != index) continue;
      for (const Stride::Term& part :
           DimensionStride(workload, tensor, static_cast<int>(d)).terms) {
        AddTerm(workload, part.coefficient * term.coefficient, part.sizes, &sum);
      }
    }
  }
  return sum;
}

bool StaysInside(const Workload& workload, int tensor, absl::Span<const AffineIndex> subscripts) {
  std::vector<IndexInterval> indices;
  for (const SizeRange& range : workload.sizes()) indices.push_back({0, range.high - 1});
  for (size_t d = 0; d < subscripts.size(); ++d) {
    if (subscripts[d].BareIndex() >= 0) continue;
    const Dimension& dimension = workload.layout(tensor).dimensions[d];
    const int64_t size =
        dimension.index < 0 ? dimension.size : workload.sizes()[dimension.index].low;
    const std::optional<IndexInterval> bounds = Bounds(subscripts[d], indices);
    if (!bounds.has_value() || bounds->low < 0 || bounds->high >= size) return false;
  }
  return true;
}

int64_t Axis::Extent(absl::Span<const int64_t> sizes) const {
  int64_t extent = 1;
  for (int index : indices) extent *= sizes[index];
  return extent;
}

int64_t Contraction::Batches(absl::Span<const int64_t> sizes) const {
  int64_t count = 1;
  for (const Axis& axis : batch) count *= axis.Extent(sizes);
  return count;
}

int64_t Contraction::K(absl::Span<const int64_t> sizes) const {
  int64_t count = 1;
  for (const Axis& axis : k) count *= axis.Extent(sizes);
  return count;
}

}  // namespace tilewright
