// A CudaKernel is one kernel loaded on a GPU and bound to sets of buffers, as its recipe says:
// launches in order on the context's stream, tensor maps made by the driver, a workspace between
// guard bands. A library's call (codegen/library_kernel.h) is one too. Argument tables are made the
// first time a set is called, so that a later call costs its launches alone.
#ifndef TILEWRIGHT_MEASURE_CUDA_KERNEL_H_
#define TILEWRIGHT_MEASURE_CUDA_KERNEL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/device_check.h"
#include "codegen/kernel.h"
#include "codegen/library_kernel.h"
#include "measure/cublaslt.h"
#include "measure/cuda_context.h"

namespace tilewright {

// The arguments of cuTensorMapEncodeTiled for a recipe's map.
struct TensorMapRequest {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  std::vector<cuuint64_t> extents;        // elements, innermost first
  std::vector<cuuint64_t> strides_bytes;  // of dimensions 1…, as the driver wants them
  std::vector<cuuint32_t> box;
  std::vector<cuuint32_t> element_strides;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
};
// InvalidArgument names the field that the hardware does not take: 1..5 dimensions, boxes of 1..256
// elements, strides that are multiples of 16 B, the innermost box within the swizzle's width (CUDA
// Driver API, cuTensorMapEncodeTiled).
absl::StatusOr<TensorMapRequest> RequestOf(const TensorMap& map, absl::Span<const int64_t> sizes);

// Fills one 64-byte aligned CUtensorMap.
absl::Status EncodeTensorMap(const CudaDriver& driver, const TensorMapRequest& request,
                             CUdeviceptr address, CUtensorMap* map);

class CudaKernel {
 public:
  // Loads code and workspace. `dependent`: launches that may be are launched with programmatic
  // stream serialization, so that a call may begin before the one ahead of it has ended.
  // InvalidArgument: the driver refuses the code (its log is in the message) or the recipe is
  // wrong. ResourceExhausted: no memory.
  static absl::StatusOr<std::unique_ptr<CudaKernel>> Load(CudaContext& context,
                                                          const Kernel& kernel, bool dependent);
  ~CudaKernel();

  // The buffers of a set in the order of the kernel's buffer numbers.
  using BuffersOfSet = std::function<std::vector<CUdeviceptr>(int set)>;
  // Replaces what was bound. FailedPrecondition: the sizes are outside the kernel's domain.
  absl::Status Bind(absl::Span<const int64_t> sizes, BuffersOfSet buffers);
  // Precondition: bound. Enqueues one call. `after_kernel`: what precedes it on the stream is a
  // kernel, which a dependent launch needs.
  absl::Status Enqueue(int set, bool after_kernel);
  // Kernels that one call launches (a workspace that must be zero is cleared beside them); 0: a
  // library does not say.
  int launches() const { return library_ ? 0 : static_cast<int>(kernel_.launches.size()); }

  // Enqueues filling the workspace with a byte: whoever reads it before writing it shows.
  absl::Status FillWorkspace(unsigned char value);
  // The workspace's guard bands, to be compared with the band pattern at `pattern`.
  void AppendBandTasks(CUdeviceptr pattern, std::vector<CompareTask>* tasks) const;
  // The offset from the workspace's first byte of a damaged byte of task `task` of AppendBandTasks.
  int64_t BandOffset(int task, uint64_t at) const;
  const Kernel& kernel() const { return kernel_; }
  CUfunction function(int launch) const { return functions_[launch]; }

 private:
  // 64-byte slots, because a tensor map must lie so.
  struct alignas(64) Slot {
    std::byte bytes[128];
  };
  struct BoundLaunch {
    std::unique_ptr<Slot[]> slots;
    std::vector<void*> pointers;  // one per argument
  };

  CudaKernel(CudaContext& context, Kernel kernel, bool dependent)
      : context_(context), kernel_(std::move(kernel)), dependent_(dependent) {}
  absl::Status LoadCode();
  absl::Status MakeWorkspace();
  // Enqueues it: flags stand at zero between calls.
  absl::Status ClearFlags();
  absl::Status BindSet(int set);
  absl::Status EnqueueLibrary(int set);
  absl::Status Fill(const Argument& argument, absl::Span<const CUdeviceptr> buffers, Slot* slot);

  CudaContext& context_;
  const Kernel kernel_;
  const bool dependent_;
  std::vector<CUmodule> modules_;
  std::vector<CUfunction> functions_;        // by launch
  std::optional<LibraryCall> library_call_;  // of a library: instead of functions
  std::unique_ptr<CublasLtProduct> library_;
  DeviceMemory workspace_;
  CUdeviceptr workspace_data_ = 0;
  std::vector<int64_t> sizes_;
  std::vector<TensorMapRequest> map_requests_;  // by tensor map
  BuffersOfSet buffers_;
  std::vector<std::vector<BoundLaunch>> bound_;  // by set (empty: not yet), then launch
};

// Guard bands: this many bytes of the pattern on both sides of every buffer.
inline constexpr int64_t kDeviceBandBytes = 4096;
// What a band holds at byte i after its beginning: kDeviceBandPattern[i % 8].
inline constexpr unsigned char kDeviceBandPattern[8] = {0xc3, 0x5a, 0x96, 0x3c,
                                                        0xe1, 0x1e, 0xb4, 0x4b};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CUDA_KERNEL_H_
