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

// c[m, n] = activation(scale * sum(k: a[m, k] * b[n, k]) + bias[n] + residual[m, n]), once or for
// each of a batch; each operand contiguous along one of its axes, the rest along n.
struct LibraryProduct {
  struct Operand {
    int buffer = 0;                // as Argument::number of a kBuffer
    bool depth_contiguous = true;  // along k; else along m (n)
    int64_t stride = 0;            // elements, along the other axis
    int64_t batch_stride = 0;      // elements, from one of the batch to the next
    bool operator==(const Operand&) const = default;
  };
  enum class Activation { kNone, kRelu, kGelu };

  ElementType operand_type = ElementType::kF32;  // of both
  ElementType output_type = ElementType::kF32;   // of the residual too
  ElementType bias_type = ElementType::kF32;     // if there is a bias
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batches = 1;
  Operand a;
  Operand b;
  Operand c;         // depth_contiguous: along n, always
  Operand residual;  // likewise
  int bias = -1;     // the buffer; -1: none
  bool has_residual = false;
  double scale = 1;
  Activation activation = Activation::kNone;

  bool has_epilogue() const {
    return bias >= 0 || has_residual || scale != 1 || activation != Activation::kNone;
  }
  bool operator==(const LibraryProduct&) const = default;
};
// FailedPrecondition: the workload is not such a product; says what of it libraries do not write.
absl::StatusOr<LibraryProduct> MatchLibraryProduct(const Workload& workload, const Sizes& sizes);

struct Library {
  const char* name;     // as schedules say it
  const char* backend;  // whose targets it competes on
  int algorithms;       // that it is asked for
  int64_t workspace_bytes;
  // Whether it writes such a product.
  bool (*takes)(const LibraryProduct&);
};
// The only list. Who calls a library: measure/cublaslt.cc, measure/host_library.cc.
absl::Span<const Library> AllLibraries();

// What to measure against on a target: one schedule for each algorithm of each library that takes
// such a product. Empty: no library competes. Whether a library is installed is seen when it is
// called.
std::vector<Schedule> LibrarySchedules(const Workload& workload, const Target& target,
                                       const Sizes& sizes,
                                       absl::Span<const Library> libraries = AllLibraries());
bool IsLibrary(const Schedule& schedule);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_LIBRARY_PRODUCT_H_
