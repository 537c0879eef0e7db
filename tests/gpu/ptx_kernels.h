// Kernels written by hand, in PTX that the driver compiles for any device: wrong ones of a product
// C[m,n] = sum(k: A[m,k] * B[k,n]), which are called with A, B and C, and one that only takes time.
#ifndef TILEWRIGHT_TESTS_GPU_PTX_KERNELS_H_
#define TILEWRIGHT_TESTS_GPU_PTX_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "measure/failure.h"

namespace tilewright {

struct WrongKernel {
  std::string fault;
  std::string body;  // PTX; %rd1, %rd2, %rd3 hold A, B, C
  int64_t shared_memory_bytes;
  std::vector<FailureKind> accepted;
};
std::vector<WrongKernel> WrongKernels();
Kernel KernelOf(const WrongKernel& wrong);

// One warp on each of `blocks` blocks waits for that many cycles of its SM.
Kernel SpinKernel(int64_t cycles, int blocks);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_GPU_PTX_KERNELS_H_
