// A libcuda.so.1 that has no device and keeps what it is asked. A test loads it before the code
// under test looks for the driver: the loader then finds the one that is there.
#ifndef TILEWRIGHT_TESTS_CODEGEN_FAKE_CUDA_DRIVER_H_
#define TILEWRIGHT_TESTS_CODEGEN_FAKE_CUDA_DRIVER_H_

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tilewright {

// A tensor map as it was asked for; the encoded one holds its number, from 1, in the first word.
struct FakeTensorMap {
  CUtensorMapDataType type;
  uint64_t address;
  std::vector<uint64_t> extents, strides_bytes;
  std::vector<uint32_t> box, element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
  CUtensorMapFloatOOBfill fill;
};

struct FakeCudaLaunch {
  std::string entry;
  std::vector<uint32_t> grid, block;
  uint32_t shared_memory_bytes;
  CUstream stream;
  int cluster;  // 0: no attribute
  bool dependent;
  std::vector<uint64_t> parameters;  // the first 8 bytes of each
  std::vector<const void*> parameter_addresses;
};

struct FakeCuda {
  // What the device is.
  int major = 9;
  int minor = 0;
  int multiprocessors = 132;
  int device = 0;  // of the current context; -1: there is none
  CUresult launch_result = CUDA_SUCCESS;
  CUresult allocation_result = CUDA_SUCCESS;
  uint64_t allocated = 0x7000000;               // where an allocation lies
  std::map<std::string, int> parameter_counts;  // by entry

  // What was asked.
  std::mutex mutex;
  std::vector<std::string> calls;  // "cuMemAllocAsync 512", in order
  std::vector<const void*> loaded;
  std::vector<FakeTensorMap> maps;
  std::vector<FakeCudaLaunch> launches;
};

// The library's only instance, `extern "C" FakeCuda* fake_cuda()`.
using FakeCudaFunction = FakeCuda* (*)();

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_CODEGEN_FAKE_CUDA_DRIVER_H_
