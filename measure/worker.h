// A worker: dials a coordinator, enrols its device, leases batches, builds and measures them on its
// workbench, and returns the results. Results that were not acknowledged are kept and sent again.
// Survives a coordinator restart (jittered reconnect).
#ifndef TILEWRIGHT_MEASURE_WORKER_H_
#define TILEWRIGHT_MEASURE_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "measure/devices.h"
#include "measure/workbench.h"

namespace tilewright {

struct WorkerOptions {
  std::string address;  // "unix:/run/x.sock" or "host:port"
  std::string name;     // for people; default: host name
  DeviceChoice device;  // device "all" of kind "cuda": every GPU, each with an enrolment of its own
  int batch = 8;        // items per lease
  absl::Duration give_up_after = absl::Seconds(60);  // without a coordinator
  // Told to stop: how long results may still take to be acknowledged.
  absl::Duration grace = absl::Seconds(5);
  WorkbenchOptions workbench;
};

// Exit codes of DESIGN.md 11.
enum class WorkerExit {
  kDrained = 0,
  kFailed = 1,
  kBadInput = 2,
  kAuthentication = 65,
  kCoordinatorGone = 69,
  kDeviceLost = 70,
  kRetry = 75
};

// What a worker works with beside its connection. Tests hand in a scripted workbench.
struct WorkerParts {
  DeviceDescription device;
  std::string toolchain_id;
  // Called once, on the thread that will own the workbench.
  std::function<absl::StatusOr<std::unique_ptr<Workbench>>()> make_workbench;
};

// Works until drained, told to stop (`stop` becomes true, as by SIGTERM: finishes the current
// candidate, gives the rest back), or unable to go on; `error` then says why. The first form works
// on devices of this machine.
WorkerExit RunWorker(const WorkerOptions& options, const std::atomic<bool>& stop,
                     std::string* error);
WorkerExit RunWorker(const WorkerOptions& options, const WorkerParts& parts,
                     const std::atomic<bool>& stop, std::string* error);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_WORKER_H_
