// What stands in for the CUDA device in a program built without CUDA headers.
#include <memory>

#include "measure/cuda_device.h"
#include "measure/runner_session.h"

namespace tilewright {
namespace {

constexpr const char* kWithoutCuda =
    "this program was built without CUDA headers, so it cannot measure on GPUs; build it where "
    "cuda.h, cupti.h and cublasLt.h are (-DTILEWRIGHT_CUDA=ON says what is missing)";

class AbsentRunnerDevice : public RunnerDevice {
 public:
  absl::StatusOr<std::unique_ptr<RunnerSession>> Open(const children::OpenSession&,
                                                      const Supervisor&) override {
    return absl::UnimplementedError(kWithoutCuda);
  }
  void SetActive(bool) override {}
};

}  // namespace

absl::StatusOr<std::vector<DeviceDescription>> DescribeCudaDevices() {
  return absl::UnavailableError(kWithoutCuda);
}

std::unique_ptr<RunnerDevice> NewCudaRunnerDevice() {
  return std::make_unique<AbsentRunnerDevice>();
}

std::string_view CudaBuildState() { return "off"; }

}  // namespace tilewright
