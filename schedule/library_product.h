// The libraries that compete with our kernels. A library's call is measured as a candidate is, in
// the finals and beside ours, under a schedule of its own:
//
//   contraction.library{name=cublaslt algo=3}
//
// It has no space, plan or writer: searches do not propose it, records show it, packs never hold
// it.
#ifndef TILEWRIGHT_SCHEDULE_LIBRARY_PRODUCT_H_
#define TILEWRIGHT_SCHEDULE_LIBRARY_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/element_type.h"
#include "schedule/schedule.h"
#include "schedule/target.h"
#include "schedule/workload.h"

namespace tilewright {

// c[m, n] = sum(k: a[m, k] * b[n, k]), each operand contiguous along one of its axes and c along n.
struct LibraryProduct {
  struct Operand {
    int buffer = 0;                // as Argument::number of a kBuffer
    bool depth_contiguous = true;  // along k; else along m (n)
    int64_t stride = 0;            // elements, along the other axis
    bool operator==(const Operand&) const = default;
  };
  ElementType operand_type = ElementType::kF32;  // of both
  ElementType output_type = ElementType::kF32;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Operand a;
  Operand b;
  Operand c;  // depth_contiguous: along n, always
  bool operator==(const LibraryProduct&) const = default;
};
// FailedPrecondition: the workload is not such a product, or of types that libraries differ on.
absl::StatusOr<LibraryProduct> MatchLibraryProduct(const Workload& workload, const Sizes& sizes);

// What to measure against on a target: one schedule for each algorithm. Empty: no library competes.
std::vector<Schedule> LibrarySchedules(const Workload& workload, const Target& target,
                                       const Sizes& sizes);
bool IsLibrary(const Schedule& schedule);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_LIBRARY_PRODUCT_H_
