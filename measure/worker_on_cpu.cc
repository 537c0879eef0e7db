// The worker of this machine's CPU: RunWorker's short form.
#include <utility>

#include "codegen/writer.h"
#include "measure/worker.h"

namespace tilewright {

WorkerExit RunWorker(const WorkerOptions& options, const std::atomic<bool>& stop,
                     std::string* error) {
  absl::StatusOr<DeviceDescription> device = DescribeCpu(options.cores);
  if (!device.ok()) {
    *error = std::string(device.status().message());
    return absl::IsInvalidArgument(device.status()) ? WorkerExit::kBadInput : WorkerExit::kFailed;
  }
  WorkerParts parts{*device, ToolchainId(device->target), nullptr};
  parts.make_workbench = [&device, &options] {
    return Workbench::Make(*device, options.workbench);
  };
  return RunWorker(options, parts, stop, error);
}

}  // namespace tilewright
