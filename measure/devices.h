// Which device of this machine: the one front door to the kinds that can be found at run time.
#ifndef TILEWRIGHT_MEASURE_DEVICES_H_
#define TILEWRIGHT_MEASURE_DEVICES_H_

#include <string>

#include "absl/status/statusor.h"
#include "measure/cuda_device.h"
#include "measure/workbench.h"

namespace tilewright {

struct DeviceChoice {
  std::string kind = "cpu";  // "cpu" or "cuda"
  int cores = 0;             // of a CPU; 0: all that this process may use
  std::string device;        // of several GPUs: UUID, its beginning, or number; empty: the first
};
// Unavailable: there is none here; says why. InvalidArgument: a choice that is not here, with what
// is.
absl::StatusOr<DeviceDescription> DescribeDevice(const DeviceChoice& choice);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_DEVICES_H_
