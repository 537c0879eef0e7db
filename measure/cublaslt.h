// A product by cuBLASLt (libcublasLt.so.13, found at run time), called as a kernel is.
#ifndef TILEWRIGHT_MEASURE_CUBLASLT_H_
#define TILEWRIGHT_MEASURE_CUBLASLT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/library_kernel.h"
#include "measure/cuda_context.h"

namespace tilewright {

// Where the operands of one call lie; 0: the product has none.
struct CublasLtBuffers {
  CUdeviceptr a = 0, b = 0, c = 0, bias = 0, residual = 0, workspace = 0;
};

class CublasLtProduct {
 public:
  // FailedPrecondition: the library is not here or does not take the product, or offers fewer
  // algorithms.
  static absl::StatusOr<std::unique_ptr<CublasLtProduct>> Make(const LibraryCall& call,
                                                               int64_t workspace_bytes);
  virtual ~CublasLtProduct() = default;
  // Enqueues the product. May be captured.
  virtual absl::Status Enqueue(const CublasLtBuffers& buffers, CUstream stream) = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CUBLASLT_H_
