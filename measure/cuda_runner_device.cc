// The GPU as a runner's device: its context, kept from session to session, and host threads that
// make inputs.
#include <algorithm>
#include <memory>

#include "measure/cpu_runner_device.h"
#include "measure/crash_report.h"
#include "measure/cuda_context.h"
#include "measure/device_session.h"
#include "measure/runner_session.h"

namespace tilewright {
namespace {

class CudaRunnerDevice : public RunnerDevice {
 public:
  absl::StatusOr<std::unique_ptr<RunnerSession>> Open(const children::OpenSession& request,
                                                      const Supervisor& supervisor) override {
    if (!context_ || context_->uuid() != request.device_uuid()) {
      supervisor.progress("opening the device", 0);
      context_.reset();
      absl::StatusOr<std::unique_ptr<CudaContext>> context =
          CudaContext::Open(request.device_uuid(), request.timer());
      if (!context.ok()) return context.status();
      context_ = *std::move(context);
    }
    const int cores = std::max(1, request.cores());
    if (!pool_ || pool_->threads() != cores) {
      pool_ = LaunchPool::Make(UsableCores(cores), [] { UseSignalStack(); });
    }
    // The threads are for making inputs alone: the rest of the time the cores are the builders'.
    pool_->SetActive(true);
    absl::StatusOr<std::unique_ptr<RunnerSession>> session =
        OpenDeviceSession(request, *context_, *pool_, supervisor);
    pool_->SetActive(false);
    return session;
  }
  void SetActive(bool) override {}

 private:
  std::unique_ptr<CudaContext> context_;
  std::unique_ptr<LaunchPool> pool_;
};

}  // namespace

std::unique_ptr<RunnerDevice> NewCudaRunnerDevice() { return std::make_unique<CudaRunnerDevice>(); }

}  // namespace tilewright
