// A DeviceChecker judges outputs where they lie, on the GPU: comparisons are enqueued behind the
// calls they judge and read together after one synchronisation.
//
//   checker->Begin();
//   const int slot = checker->Check(0, output, reference, bound);
//   const int first = checker->Compare(tasks);
//   checker->Finish();                     // waits
//   checker->result(slot).wrong; checker->difference(first);
#ifndef TILEWRIGHT_MEASURE_DEVICE_CHECKER_H_
#define TILEWRIGHT_MEASURE_DEVICE_CHECKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/device_check.h"
#include "measure/check.h"
#include "measure/cuda_context.h"
#include "measure/cuda_kernel.h"

namespace tilewright {

// The reference of one output and content, dense row-major f64 on the device.
struct DeviceReference {
  DeviceMemory values;
  DeviceMemory bounds;
};

class DeviceChecker {
 public:
  // `check`: what WriteDeviceCheck made of the workload. `layouts`: its outputs, at the sizes
  // checked.
  static absl::StatusOr<std::unique_ptr<DeviceChecker>> Make(CudaContext& context,
                                                             const Kernel& check);

  // How an output lies; its place on the device is kept by the caller's index.
  absl::StatusOr<int> AddLayout(int output, const OutputLayout& layout);
  const OutputLayout& layout(int number) const { return layouts_[number].layout; }

  absl::Status Begin();
  // Compares an output with its reference by the rules of measure/check.h.
  absl::StatusOr<int> Check(int layout, CUdeviceptr output, const DeviceReference& reference);
  // Compares bytes; task i's outcome is difference(returned + i).
  absl::StatusOr<int> Compare(absl::Span<const CompareTask> tasks);
  // Reads the clocks of all SMs, in order with the other work.
  absl::StatusOr<int> ReadClocks();
  absl::Status Finish();

  // After Finish, until the next Begin.
  const DeviceCheckResult& result(int slot) const;
  uint64_t difference(int number) const;  // kNoDifference: equal
  // The clock in MHz between two readings: the median over SMs of cycles per time. 0: too close.
  double ClockMhz(int before, int after) const;

  // The first wrong element in words; reads it and its reference back.
  std::string Explain(int layout, const DeviceCheckResult& result, CUdeviceptr output,
                      const DeviceReference& reference);

 private:
  struct PlacedLayout {
    int output;
    OutputLayout layout;
    DeviceMemory dimensions;
  };

  explicit DeviceChecker(CudaContext& context) : context_(context) {}
  absl::Status Launch(int launch, unsigned blocks, unsigned rows,
                      const std::vector<uint64_t>& parameters);
  // Room for `bytes` in this batch, on both sides.
  absl::StatusOr<int64_t> Reserve(int64_t bytes);
  absl::Status Read(CUdeviceptr from, void* to, size_t bytes);

  CudaContext& context_;
  std::unique_ptr<CudaKernel> kernel_;
  std::vector<PlacedLayout> layouts_;
  DeviceMemory device_;  // a batch's tasks and results
  PinnedMemory host_;    // the same, before and after
  int64_t used_ = 0;
  std::vector<int64_t> check_offsets_;    // by slot
  std::vector<int64_t> compare_offsets_;  // by number
  std::vector<int64_t> clock_offsets_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_DEVICE_CHECKER_H_
