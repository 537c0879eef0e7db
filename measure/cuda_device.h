// The GPUs of this machine.
#ifndef TILEWRIGHT_MEASURE_CUDA_DEVICE_H_
#define TILEWRIGHT_MEASURE_CUDA_DEVICE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "measure/workbench.h"
#include "schedule/target.h"

namespace tilewright {

// What the driver says of a device.
struct CudaDeviceFacts {
  std::string name;  // "NVIDIA H200"
  std::string uuid;
  int major = 0;  // compute capability
  int minor = 0;
  int multiprocessors = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  int64_t l2_bytes = 0;
  int shared_memory_per_block = 0;  // opted in
  int shared_memory_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int threads_per_multiprocessor = 0;
};

// The target of a device: the typed-in kind whose name and number of SMs it has, else a row of its
// own made of what the driver says, `cuda:` and its name, with rates of its compute capability.
// Unimplemented: older than compute capability 8.0.
absl::StatusOr<Target> CudaTargetOf(const CudaDeviceFacts& facts);

// All GPUs here, in the driver's order, with the timer each will be timed by. Unavailable: no
// driver, no device, or this program was built without CUDA headers; the text says which.
absl::StatusOr<std::vector<DeviceDescription>> DescribeCudaDevices();

// One device: a UUID ("GPU-…" or its beginning), a number in the driver's order, or for the first
// empty or "all". InvalidArgument lists the devices here.
absl::StatusOr<DeviceDescription> DescribeCudaDevice(std::string_view which);

// "on", or why not: for --version.
std::string_view CudaBuildState();

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CUDA_DEVICE_H_
