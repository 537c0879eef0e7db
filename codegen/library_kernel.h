// The recipe of a library's call: no code, but what the runner tells the library.
#ifndef TILEWRIGHT_CODEGEN_LIBRARY_KERNEL_H_
#define TILEWRIGHT_CODEGEN_LIBRARY_KERNEL_H_

#include "absl/status/statusor.h"
#include "codegen/kernel.h"
#include "schedule/library_product.h"
#include "schedule/schedule.h"
#include "schedule/workload.h"

namespace tilewright {

// One object of format `library-NAME` without bytes and one launch whose entry is NAME. It is
// measured by runners and refused by packs. FailedPrecondition as MatchLibraryProduct;
// InvalidArgument: the schedule lacks a name or an algorithm.
absl::StatusOr<Kernel> WriteLibraryKernel(const Workload& workload, const Schedule& schedule);

// What a runner needs of such a recipe. InvalidArgument: it is none.
struct LibraryCall {
  std::string library;
  int algorithm = 0;
  LibraryProduct product;
};
absl::StatusOr<LibraryCall> ReadLibraryKernel(const Kernel& kernel);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_LIBRARY_KERNEL_H_
