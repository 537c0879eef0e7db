#include "measure/cuda_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewright {

absl::Status CudaContext::FindDevice(const std::string& uuid) {
  int count = 0;
  if (absl::Status status = driver_->Check(driver_->DeviceGetCount(&count), "cuDeviceGetCount");
      !status.ok()) {
    return status;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = -1;
    CUuuid found;
    if (driver_->DeviceGet(&device, ordinal) != CUDA_SUCCESS ||
        driver_->DeviceGetUuid(&found, device) != CUDA_SUCCESS || CudaUuidText(found) != uuid) {
      continue;
    }
    device_ = device;
    uuid_ = uuid;
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("the GPU ", uuid, " is not here any more; ", count, " others are"));
}

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Open(const std::string& uuid,
                                                               const std::string& timer) {
  auto context = std::unique_ptr<CudaContext>(new CudaContext);
  if (timer == "cupti") {
    // Before the driver has a context, and before any module is loaded.
    absl::StatusOr<std::unique_ptr<KernelTrace>> trace = KernelTrace::Start();
    if (!trace.ok()) return trace.status();
    context->trace_ = *std::move(trace);
  }
  absl::StatusOr<const CudaDriver*> driver = CudaDriver::Load();
  if (!driver.ok()) return driver.status();
  context->driver_ = *driver;
  if (absl::Status status = context->FindDevice(uuid); !status.ok()) return status;
  const CudaDriver& api = context->driver();
  // The primary context: its creation has had the same form in every version of the driver.
  absl::Status status = api.Check(api.DevicePrimaryCtxRetain(&context->context_, context->device_),
                                  "cuDevicePrimaryCtxRetain");
  if (!status.ok()) return absl::UnavailableError(status.message());
  status = api.Check(api.CtxSetCurrent(context->context_), "cuCtxSetCurrent");
  if (!status.ok()) return status;
  status = api.Check(api.StreamCreate(&context->stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  if (!status.ok()) return status;
  int kilohertz = 0;
  status =
      api.Check(api.DeviceGetAttribute(&context->multiprocessors_,
                                       CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, context->device_),
                "cuDeviceGetAttribute");
  if (!status.ok()) return status;
  if (api.DeviceGetAttribute(&kilohertz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, context->device_) ==
      CUDA_SUCCESS) {
    context->top_clock_mhz_ = kilohertz / 1000;
  }
  if (absl::StatusOr<std::unique_ptr<NvmlDevice>> nvml = NvmlDevice::Open(uuid); nvml.ok()) {
    context->nvml_ = *std::move(nvml);
  }
  return context;
}

CudaContext::~CudaContext() {
  // Errors here are those of a context that has ended already.
  if (stream_ != nullptr) (void)driver_->StreamDestroy(stream_);
  if (context_ != nullptr) (void)driver_->DevicePrimaryCtxRelease(device_);
}

absl::Status CudaContext::Synchronize() const {
  return driver_->Check(driver_->StreamSynchronize(stream_), "cuStreamSynchronize");
}

bool CudaContext::Alive() const { return driver_->CtxSynchronize() == CUDA_SUCCESS; }

std::string CudaUuidText(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    absl::StrAppendFormat(&text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                          static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

absl::StatusOr<DeviceMemory> DeviceMemory::Allocate(CudaContext& context, int64_t bytes) {
  DeviceMemory memory;
  if (bytes == 0) return memory;
  const CudaDriver& driver = context.driver();
  absl::Status status =
      driver.Check(driver.MemAlloc(&memory.address_, static_cast<size_t>(bytes)), "cuMemAlloc");
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(status.message(), ": ", bytes, " B"));
  }
  memory.driver_ = &driver;
  memory.bytes_ = bytes;
  return memory;
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  Free();
  driver_ = std::exchange(other.driver_, nullptr);
  address_ = std::exchange(other.address_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void DeviceMemory::Free() {
  if (driver_ != nullptr) (void)driver_->MemFree(address_);
  driver_ = nullptr;
}

absl::StatusOr<PinnedMemory> PinnedMemory::Allocate(CudaContext& context, int64_t bytes) {
  PinnedMemory memory;
  const CudaDriver& driver = context.driver();
  void* data = nullptr;
  absl::Status status =
      driver.Check(driver.MemHostAlloc(&data, static_cast<size_t>(bytes), 0), "cuMemHostAlloc");
  if (!status.ok()) return status;
  memory.driver_ = &driver;
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  Free();
  driver_ = std::exchange(other.driver_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void PinnedMemory::Free() {
  if (driver_ != nullptr) (void)driver_->MemFreeHost(data_);
  driver_ = nullptr;
}

}  // namespace tilewright
