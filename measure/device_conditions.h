// What held a GPU back while something was timed (DESIGN.md 6): thermal and hardware limits, power,
// the clock that it really had, other processes. Where NVML cannot be had, only the clock is known.
#ifndef TILEWRIGHT_MEASURE_DEVICE_CONDITIONS_H_
#define TILEWRIGHT_MEASURE_DEVICE_CONDITIONS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "measure/cuda_context.h"
#include "measure/device_checker.h"
#include "measure/nvml.h"

namespace tilewright {

struct DeviceConditions {
  double clock_mhz = 0;  // 0: too short a stretch to tell
  bool power_capped = false;
  bool thermal = false;    // a thermal or hardware limit was in force
  bool low_clock = false;  // under 75% of the top clock without a power cap
  // A sample under these says nothing about the kernel. Power caps are the kernel's own merit.
  bool dropped() const { return thermal || low_clock; }
  bool operator==(const DeviceConditions&) const = default;
};
// `violations`: between the two ends; absent: unknown. `top_clock_mhz` 0: unknown.
DeviceConditions JudgeConditions(const std::optional<NvmlViolations>& violations, double clock_mhz,
                                 int top_clock_mhz);

// Watches one stretch of work. Uses a batch of the checker of its own: nothing else may be checked
// between Start and End.
class ConditionsWatch {
 public:
  ConditionsWatch(CudaContext& context, DeviceChecker& checker)
      : context_(context), checker_(checker) {}
  absl::Status Start();
  absl::StatusOr<DeviceConditions> End();

 private:
  CudaContext& context_;
  DeviceChecker& checker_;
  std::optional<NvmlViolations> before_;
  int clocks_before_ = 0;
};

// What is looked at once for a while: calls to NVML may take a millisecond.
struct DeviceSurroundings {
  int foreign_processes = 0;    // that compute on the device; 0 where NVML does not tell
  int temperature_celsius = 0;  // 0: not told
};
DeviceSurroundings ReadSurroundings(CudaContext& context);

// `,"timer":"cupti","clock_mhz":1755,…`: for the evidence of a measurement.
std::string ConditionsJson(const CudaContext& context, const DeviceConditions& conditions,
                           const DeviceSurroundings& surroundings);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_DEVICE_CONDITIONS_H_
