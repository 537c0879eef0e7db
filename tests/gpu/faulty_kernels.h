// A zoo of wrong tensor-core kernels of a product C[m,n] = sum(k: A[m,k] * B[n,k]), each made of a
// right one: the kernel of a slightly different product called on this one's buffers, or the same
// kernel with one edit in the PTX that was written for it. What is left is a real kernel, pipeline
// and all, so what catches it would catch the fault in production.
#ifndef TILEWRIGHT_TESTS_GPU_FAULTY_KERNELS_H_
#define TILEWRIGHT_TESTS_GPU_FAULTY_KERNELS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/kernel.h"
#include "schedule/schedule.h"
#include "schedule/target.h"
#include "schedule/variant.h"
#include "schedule/workload.h"

namespace tilewright {

struct ProductShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

// A right kernel with the PTX that it was assembled from.
struct ProductKernel {
  Target target;
  ProductShape shape;
  Workload workload;  // bf16 in and out
  Names names;
  Schedule schedule;
  std::shared_ptr<const Plan> plan;
  Kernel kernel;
  std::string ptx;
};
absl::StatusOr<ProductKernel> WriteProductKernel(const Target& target, const ProductShape& shape,
                                                 const Schedule& schedule);

struct KernelFault {
  std::string name;
  // Races show by chance; each is widened by a delay in one warp.
  bool race = false;
  std::vector<std::string> variants;  // that can have it
  // FailedPrecondition: the PTX has no place for the fault.
  std::function<absl::StatusOr<Kernel>(const ProductKernel& right)> make;
};
// The only list.
absl::Span<const KernelFault> AllKernelFaults();

// Right kernels to put faults into: one of each kind of tensor-core kernel.
struct FaultSubject {
  std::string name;
  ProductShape shape;
  std::string schedule;
};
absl::Span<const FaultSubject> AllFaultSubjects();

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_GPU_FAULTY_KERNELS_H_
