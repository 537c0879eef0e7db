#include "measure/cuda_device.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "measure/cuda_context.h"
#include "measure/cuda_driver.h"
#include "measure/kernel_trace.h"

namespace tilewright {
namespace {

absl::StatusOr<CudaDeviceFacts> ReadFacts(const CudaDriver& driver, int ordinal) {
  CUdevice device = -1;
  absl::Status status = driver.Check(driver.DeviceGet(&device, ordinal), "cuDeviceGet");
  if (!status.ok()) return status;
  CudaDeviceFacts facts;
  char name[256] = "";
  status = driver.Check(driver.DeviceGetName(name, sizeof(name), device), "cuDeviceGetName");
  if (!status.ok()) return status;
  facts.name = name;
  CUuuid uuid;
  status = driver.Check(driver.DeviceGetUuid(&uuid, device), "cuDeviceGetUuid");
  if (!status.ok()) return status;
  facts.uuid = CudaUuidText(uuid);
  int l2_bytes = 0;
  const struct {
    CUdevice_attribute attribute;
    int* value;
    bool needed;
  } wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &facts.major, true},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &facts.minor, true},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &facts.multiprocessors, true},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &facts.clock_khz, false},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &facts.memory_clock_khz, false},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &facts.memory_bus_bits, false},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2_bytes, true},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &facts.shared_memory_per_block, true},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       &facts.shared_memory_per_multiprocessor, true},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &facts.registers_per_multiprocessor,
       true},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &facts.threads_per_multiprocessor, true},
  };
  for (const auto& one : wanted) {
    status = driver.Check(driver.DeviceGetAttribute(one.value, one.attribute, device),
                          "cuDeviceGetAttribute");
    if (!status.ok() && one.needed) return status;
  }
  facts.l2_bytes = l2_bytes;
  return facts;
}

// Events, unless TILEWRIGHT_TIMER asks for CUPTI, whose tracing slows down what it times
// (docs/timers.md).
absl::StatusOr<std::string> ChooseTimer() {
  const char* chosen = std::getenv("TILEWRIGHT_TIMER");
  const std::string timer = chosen == nullptr ? "event" : chosen;
  if (timer != "event" && timer != "cupti") {
    return absl::InvalidArgumentError(
        absl::StrCat("TILEWRIGHT_TIMER=", timer, ": accepted are event and cupti"));
  }
  if (timer == "cupti") {
    if (absl::Status status = KernelTrace::Probe(); !status.ok()) return status;
  }
  return timer;
}

}  // namespace

absl::StatusOr<std::vector<DeviceDescription>> DescribeCudaDevices() {
  const absl::StatusOr<const CudaDriver*> driver = CudaDriver::Load();
  if (!driver.ok()) return driver.status();
  int count = 0;
  absl::Status status = (*driver)->Check((*driver)->DeviceGetCount(&count), "cuDeviceGetCount");
  if (!status.ok()) return status;
  if (count == 0) return absl::UnavailableError("the CUDA driver finds no GPU here");
  int version = 0;
  status = (*driver)->Check((*driver)->DriverGetVersion(&version), "cuDriverGetVersion");
  if (!status.ok()) return status;
  const absl::StatusOr<std::string> timer = ChooseTimer();
  if (!timer.ok()) return timer.status();
  std::vector<DeviceDescription> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const absl::StatusOr<CudaDeviceFacts> facts = ReadFacts(**driver, ordinal);
    if (!facts.ok()) return facts.status();
    absl::StatusOr<Target> target = CudaTargetOf(*facts);
    if (!target.ok()) continue;  // a display adapter, say: not a device of ours
    DeviceDescription& device = devices.emplace_back();
    device.uuid = facts->uuid;
    device.target = *std::move(target);
    device.timer = *timer;
    device.driver = absl::StrCat("cuda ", version / 1000, ".", version % 1000 / 10);
  }
  if (devices.empty()) {
    return absl::UnavailableError("no GPU here has compute capability 8.0 or later");
  }
  return devices;
}

std::string_view CudaBuildState() { return "on"; }

}  // namespace tilewright
