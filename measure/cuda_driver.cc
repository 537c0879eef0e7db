#include "measure/cuda_driver.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// The names that libcuda exports: cuda.h renames functions to their versions by macros.
#define TILEWRIGHT_CUDA_NAME(function) TILEWRIGHT_CUDA_QUOTE(function)
#define TILEWRIGHT_CUDA_QUOTE(function) #function

absl::StatusOr<CudaDriver> LoadDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(absl::StrCat("no CUDA driver here: ", dlerror()));
  }
  CudaDriver driver;
  std::string missing;
#define TILEWRIGHT_CUDA_FIND(member, function)                                                   \
  driver.member =                                                                                \
      reinterpret_cast<decltype(driver.member)>(dlsym(library, TILEWRIGHT_CUDA_NAME(function))); \
  if (driver.member == nullptr && missing.empty()) missing = TILEWRIGHT_CUDA_NAME(function);
  TILEWRIGHT_CUDA_FUNCTIONS(TILEWRIGHT_CUDA_FIND)
#undef TILEWRIGHT_CUDA_FIND
  if (!missing.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "libcuda.so.1 lacks ", missing, ": the driver is older than CUDA ", CUDA_VERSION / 1000,
        ".", CUDA_VERSION % 1000 / 10, ", which this program was built for; update the driver"));
  }
  if (absl::Status status = driver.Check(driver.Init(0), "cuInit"); !status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the CUDA driver cannot be used: ", status.message()));
  }
  return driver;
}

}  // namespace

absl::StatusOr<const CudaDriver*> CudaDriver::Load() {
  static const auto* const driver = new absl::StatusOr<CudaDriver>(LoadDriver());
  if (!driver->ok()) return driver->status();
  return &**driver;
}

absl::Status CudaDriver::Check(CUresult result, const char* function) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  if (GetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "no description";
  const std::string message =
      absl::StrCat(function, ": ", name, " ", static_cast<int>(result), " (", text, ")");
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return absl::OutOfRangeError(message);
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(message);
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_TIMEOUT:
      return absl::DeadlineExceededError(message);
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_DEVICE_NOT_LICENSED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN:
      return absl::UnavailableError(message);
    default:
      return IsSticky(result) ? absl::AbortedError(message) : absl::InvalidArgumentError(message);
  }
}

bool IsSticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

CandidateFailure FailureOf(const absl::Status& status) {
  const std::string text(status.message());
  switch (status.code()) {
    case absl::StatusCode::kOutOfRange:
      return {FailureKind::kOutOfBounds, text};
    case absl::StatusCode::kResourceExhausted:
      return {FailureKind::kOutOfMemory, text};
    case absl::StatusCode::kUnavailable:
      return {FailureKind::kDeviceLost, text};
    case absl::StatusCode::kDeadlineExceeded:
      return {FailureKind::kRunTimeout, text};
    case absl::StatusCode::kAborted:
      return {FailureKind::kCrashed, text};
    default:
      return {FailureKind::kLaunchFailed, text};
  }
}

}  // namespace tilewright
