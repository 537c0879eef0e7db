#include "measure/nvml.h"

#include <dlfcn.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// After the NVML API reference, version 12 and later; the binary interface of these is fixed.
using NvmlHandle = struct NvmlHandleTag*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInsufficientSize = 7;
constexpr unsigned kNvmlTemperatureGpu = 0;
// nvmlPerfPolicyType_t
constexpr unsigned kNvmlPolicyPower = 0;
constexpr unsigned kNvmlPolicyThermal = 1;
constexpr unsigned kNvmlPolicyBoardLimit = 3;
constexpr unsigned kNvmlPolicyReliability = 5;
struct NvmlViolationTime {
  unsigned long long reference_time;  // us
  unsigned long long violation_time;  // ns
};
struct NvmlProcessInfo {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct NvmlFunctions {
  int (*Init)() = nullptr;
  const char* (*ErrorString)(int) = nullptr;
  int (*HandleByUuid)(const char*, NvmlHandle*) = nullptr;
  int (*ViolationStatus)(NvmlHandle, unsigned, NvmlViolationTime*) = nullptr;
  int (*Temperature)(NvmlHandle, unsigned, unsigned*) = nullptr;
  int (*ComputeProcesses)(NvmlHandle, unsigned*, NvmlProcessInfo*) = nullptr;
};

absl::StatusOr<NvmlFunctions> LoadNvml() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::UnavailableError(absl::StrCat("no NVML here: ", dlerror()));
  NvmlFunctions nvml;
  std::string missing;
  const auto find = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr && missing.empty()) missing = name;
  };
  find(&nvml.Init, "nvmlInit_v2");
  find(&nvml.ErrorString, "nvmlErrorString");
  find(&nvml.HandleByUuid, "nvmlDeviceGetHandleByUUID");
  find(&nvml.ViolationStatus, "nvmlDeviceGetViolationStatus");
  find(&nvml.Temperature, "nvmlDeviceGetTemperature");
  find(&nvml.ComputeProcesses, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (!missing.empty()) {
    return absl::UnavailableError(absl::StrCat("libnvidia-ml.so.1 lacks ", missing));
  }
  if (const int error = nvml.Init(); error != kNvmlSuccess) {
    return absl::UnavailableError(absl::StrCat("nvmlInit: ", nvml.ErrorString(error)));
  }
  return nvml;
}

class LoadedNvmlDevice : public NvmlDevice {
 public:
  LoadedNvmlDevice(NvmlFunctions nvml, NvmlHandle handle) : nvml_(nvml), handle_(handle) {}

  absl::StatusOr<NvmlViolations> Violations() override {
    NvmlViolations violations;
    const struct {
      unsigned policy;
      uint64_t* nanoseconds;
    } wanted[] = {{kNvmlPolicyPower, &violations.power_ns},
                  {kNvmlPolicyThermal, &violations.thermal_ns},
                  {kNvmlPolicyBoardLimit, &violations.hardware_ns},
                  {kNvmlPolicyReliability, &violations.hardware_ns}};
    for (const auto& one : wanted) {
      NvmlViolationTime time = {};
      const int error = nvml_.ViolationStatus(handle_, one.policy, &time);
      if (error != kNvmlSuccess) return Failed("nvmlDeviceGetViolationStatus", error);
      *one.nanoseconds += time.violation_time;
    }
    return violations;
  }
  absl::StatusOr<int> TemperatureCelsius() override {
    unsigned value = 0;
    const int error = nvml_.Temperature(handle_, kNvmlTemperatureGpu, &value);
    if (error != kNvmlSuccess) return Failed("nvmlDeviceGetTemperature", error);
    return static_cast<int>(value);
  }
  absl::StatusOr<int> ForeignProcesses(int own_pid) override {
    std::vector<NvmlProcessInfo> processes(64);
    auto count = static_cast<unsigned>(processes.size());
    const int error = nvml_.ComputeProcesses(handle_, &count, processes.data());
    if (error == kNvmlInsufficientSize) return static_cast<int>(count) - 1;
    if (error != kNvmlSuccess) return Failed("nvmlDeviceGetComputeRunningProcesses", error);
    int foreign = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (static_cast<int>(processes[i].pid) != own_pid) ++foreign;
    }
    return foreign;
  }

 private:
  absl::Status Failed(const char* function, int error) const {
    return absl::UnavailableError(absl::StrCat(function, ": ", nvml_.ErrorString(error)));
  }

  const NvmlFunctions nvml_;
  const NvmlHandle handle_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NvmlDevice>> NvmlDevice::Open(const std::string& uuid) {
  absl::StatusOr<NvmlFunctions> nvml = LoadNvml();
  if (!nvml.ok()) return nvml.status();
  NvmlHandle handle = nullptr;
  if (const int error = nvml->HandleByUuid(uuid.c_str(), &handle); error != kNvmlSuccess) {
    return absl::UnavailableError(
        absl::StrCat("NVML does not know ", uuid, ": ", nvml->ErrorString(error)));
  }
  return std::make_unique<LoadedNvmlDevice>(*nvml, handle);
}

}  // namespace tilewright
