// The runner's hold on one GPU: its context, one stream for all work, kernel trace and NVML where
// they can be had, and memory of both sides that frees itself.
//
// Opened once per runner and kept from session to session. One thread owns it and everything made
// from it; the context outlives them.
#ifndef TILEWRIGHT_MEASURE_CUDA_CONTEXT_H_
#define TILEWRIGHT_MEASURE_CUDA_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "measure/cuda_driver.h"
#include "measure/kernel_trace.h"
#include "measure/nvml.h"

namespace tilewright {

class CudaContext {
 public:
  // `uuid`: "GPU-…", as DescribeCudaDevices says. `timer`: "cupti" or "event". Unavailable: no such
  // device, or it cannot be used; with timer "cupti" also if kernels cannot be traced, because
  // times of another timer must not take their place.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Open(const std::string& uuid,
                                                           const std::string& timer);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaDriver& driver() const { return *driver_; }
  CUstream stream() const { return stream_; }
  KernelTrace* trace() const { return trace_.get(); }  // null: times come from events
  NvmlDevice* nvml() const { return nvml_.get(); }     // null: no rule about clocks and power
  const std::string& uuid() const { return uuid_; }
  int multiprocessors() const { return multiprocessors_; }
  int top_clock_mhz() const { return top_clock_mhz_; }  // 0: unknown

  // Waits for all work; the first error of it.
  absl::Status Synchronize() const;
  // False: an error has ended the context, and the runner with it.
  bool Alive() const;

 private:
  CudaContext() = default;
  absl::Status FindDevice(const std::string& uuid);

  const CudaDriver* driver_ = nullptr;
  std::string uuid_;
  CUdevice device_ = -1;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<KernelTrace> trace_;
  std::unique_ptr<NvmlDevice> nvml_;
  int multiprocessors_ = 0;
  int top_clock_mhz_ = 0;
};

// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", as nvidia-smi writes it.
std::string CudaUuidText(const CUuuid& uuid);

// A piece of device memory.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // ResourceExhausted: no memory. Zero bytes give no memory.
  static absl::StatusOr<DeviceMemory> Allocate(CudaContext& context, int64_t bytes);
  ~DeviceMemory() { Free(); }
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  CUdeviceptr address() const { return address_; }
  int64_t bytes() const { return bytes_; }

 private:
  void Free();

  const CudaDriver* driver_ = nullptr;
  CUdeviceptr address_ = 0;
  int64_t bytes_ = 0;
};

// Host memory that copies to and from the device do not stop for.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  static absl::StatusOr<PinnedMemory> Allocate(CudaContext& context, int64_t bytes);
  ~PinnedMemory() { Free(); }
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void Free();

  const CudaDriver* driver_ = nullptr;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CUDA_CONTEXT_H_
