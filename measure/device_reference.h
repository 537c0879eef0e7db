// References on a GPU: MakeReferences' work, with values and bounds kept where outputs are
// compared.
#ifndef TILEWRIGHT_MEASURE_DEVICE_REFERENCE_H_
#define TILEWRIGHT_MEASURE_DEVICE_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "measure/cuda_kernel.h"
#include "measure/device_checked_calls.h"
#include "schedule/workload.h"

namespace tilewright {

// Fills `shape`'s references, layouts and kept outputs; its sets exist. `reference`: what
// WriteReferenceKernel made. FailedPrecondition as MakeReferences; else what the driver said.
absl::Status MakeDeviceReferences(CudaContext& context, const Workload& workload,
                                  CudaKernel& reference, uint64_t seed, DeviceChecker& checker,
                                  const std::function<void(const std::string&)>& progress,
                                  DeviceShape* shape);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_DEVICE_REFERENCE_H_
