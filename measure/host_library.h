// A product by a library of the CPU, found at run time, called as a kernel is: OpenBLAS
// (libopenblas.so.0) and oneDNN (libdnnl.so.2), single precision.
//
// Their threads are made when the product is, on all the device's cores.
#ifndef TILEWRIGHT_MEASURE_HOST_LIBRARY_H_
#define TILEWRIGHT_MEASURE_HOST_LIBRARY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "codegen/library_kernel.h"

namespace tilewright {

class HostProduct {
 public:
  // `threads`: the library's, the caller's among them. FailedPrecondition: the library is not here
  // (the text names the file that was looked for and what installs it) or does not take the
  // product.
  static absl::StatusOr<std::unique_ptr<HostProduct>> Make(const LibraryCall& call, int threads);
  virtual ~HostProduct() = default;
  virtual void Multiply(const float* a, const float* b, float* c) const = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_HOST_LIBRARY_H_
