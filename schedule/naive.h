// The naive method: each statement becomes a loop nest over its output points, split evenly between
// threads, with reductions as inner loops; intermediates live in the workspace; one launch per
// statement. On a GPU every thread of a grid takes every so-manieth point. It writes any program,
// so every family has it as the first of its variants: the baseline, and the last resort as an
// anchor.
#ifndef TILEWRIGHT_SCHEDULE_NAIVE_H_
#define TILEWRIGHT_SCHEDULE_NAIVE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/variant.h"

namespace tilewright {

struct NaivePlan : Plan {
  // A tensor that later statements read and that has no buffer of sufficient precision: its copy in
  // the workspace.
  struct Placement {
    int tensor = -1;
    int64_t offset_bytes = 0;
    ElementType type = ElementType::kF32;
  };
  std::vector<Placement> placements;
  // GPU: threads of a block, and the blocks of each statement's launch, at most as many as the
  // device holds at once.
  int block = 0;
  std::vector<int> grids;
};

// The rows `contraction.naive`, `pointwise.naive` and `row_reduction.naive`, which differ in the
// family they apply to.
Variant ContractionNaiveVariant();
Variant PointwiseNaiveVariant();
Variant RowReductionNaiveVariant();

// The values of the decision `threads` that all CPU variants share: powers of two below the number
// of cores, and it.
std::vector<int64_t> ThreadValues(const Target& target);
extern const char kThreadsHelp[];

// What the loads of naive loops cost, for plans: bytes from L1, and bytes that come from beyond it
// if nothing stays there but what the innermost loop reuses (a strided read moves a whole line).
struct LoadTraffic {
  double l1_bytes = 0;
  double l2_bytes = 0;
};
LoadTraffic CountNaiveLoads(const Workload& workload, const Target& target,
                            absl::Span<const int64_t> sizes);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_NAIVE_H_
