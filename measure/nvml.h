// What a GPU says of its own state through NVML (libnvidia-ml.so.1, found at run time): power and
// thermal limits that were in force, temperature, and who else uses the device.
//
// The library is not in any build dependency: the few functions needed are declared here after
// NVIDIA's NVML API reference. A call may hang in a driver that has lost its device, so only
// runners, which are killed at a deadline, call it. Not thread-safe.
#ifndef TILEWRIGHT_MEASURE_NVML_H_
#define TILEWRIGHT_MEASURE_NVML_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace tilewright {

// Cumulative nanoseconds that clocks were held down, by reason (nvmlDeviceGetViolationStatus).
// Differences of two readings say what happened between them.
struct NvmlViolations {
  uint64_t power_ns = 0;
  uint64_t thermal_ns = 0;
  uint64_t hardware_ns = 0;  // reliability and board limits
};

class NvmlDevice {
 public:
  // `uuid`: "GPU-…". Unavailable: no library, or it refuses; then no rule about clocks, power or
  // foreign processes applies.
  static absl::StatusOr<std::unique_ptr<NvmlDevice>> Open(const std::string& uuid);
  virtual ~NvmlDevice() = default;

  virtual absl::StatusOr<NvmlViolations> Violations() = 0;
  virtual absl::StatusOr<int> TemperatureCelsius() = 0;
  // Compute processes on the device other than `own_pid`.
  virtual absl::StatusOr<int> ForeignProcesses(int own_pid) = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_NVML_H_
