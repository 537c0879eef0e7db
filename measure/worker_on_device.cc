// The worker of devices of this machine: RunWorker's short form.
#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/writer.h"
#include "measure/devices.h"
#include "measure/worker.h"

namespace tilewright {
namespace {

WorkerExit RunOnDevice(const WorkerOptions& options, const DeviceDescription& device,
                       const std::atomic<bool>& stop, std::string* error) {
  WorkerParts parts{device, ToolchainId(device.target), nullptr};
  parts.make_workbench = [&device, &options] { return Workbench::Make(device, options.workbench); };
  return RunWorker(options, parts, stop, error);
}

// Each GPU has a worker of its own, with its own enrolment, runner and share of the builders; the
// first that must end for another reason than being drained decides how this process ends.
WorkerExit RunOnAll(const WorkerOptions& options, const std::vector<DeviceDescription>& devices,
                    const std::atomic<bool>& stop, std::string* error) {
  const int count = static_cast<int>(devices.size());
  std::vector<WorkerOptions> each(devices.size(), options);
  std::vector<std::string> errors(devices.size());
  std::vector<WorkerExit> exits(devices.size(), WorkerExit::kDrained);
  std::vector<std::thread> threads;
  for (int d = 0; d < count; ++d) {
    each[d].workbench.share = count;
    if (!options.name.empty()) each[d].name = absl::StrCat(options.name, "/", d);
    threads.emplace_back([&, d] { exits[d] = RunOnDevice(each[d], devices[d], stop, &errors[d]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int d = 0; d < count; ++d) {
    if (exits[d] == WorkerExit::kDrained) continue;
    *error = absl::StrCat(devices[d].uuid, ": ", errors[d]);
    return exits[d];
  }
  return WorkerExit::kDrained;
}

WorkerExit ExitOf(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return WorkerExit::kBadInput;
  return absl::IsUnavailable(status) ? WorkerExit::kDeviceLost : WorkerExit::kFailed;
}

}  // namespace

WorkerExit RunWorker(const WorkerOptions& options, const std::atomic<bool>& stop,
                     std::string* error) {
  if (options.device.kind == "cuda" && options.device.device == "all") {
    const absl::StatusOr<std::vector<DeviceDescription>> devices = DescribeCudaDevices();
    if (devices.ok()) return RunOnAll(options, *devices, stop, error);
    *error = std::string(devices.status().message());
    return ExitOf(devices.status());
  }
  const absl::StatusOr<DeviceDescription> device = DescribeDevice(options.device);
  if (device.ok()) return RunOnDevice(options, *device, stop, error);
  *error = std::string(device.status().message());
  return ExitOf(device.status());
}

}  // namespace tilewright
