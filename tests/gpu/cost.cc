#include "tests/gpu/cost.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "measure/devices.h"
#include "measure/frames.h"
#include "measure/statistics.h"
#include "measure/workbench.h"
#include "schedule/variant.h"

namespace tilewright {
namespace {

constexpr int kScreenings = 12;

absl::Status PrintRow(const DeviceDescription& device, const std::string& sizes) {
  const absl::StatusOr<Workload> workload =
      Workload::Make("C[m,n] = sum(k: A[m,k] * B[n,k])", {sizes, "bf16"});
  if (!workload.ok()) return workload.status();
  const auto space = ScheduleSpace::Make(*workload, device.target, AllVariants());
  if (!space.ok()) return space.status();
  SessionSpec spec{*workload, {}, (*space)->DefaultSchedule()};
  spec.regime.at = workload->HighestSizes();
  const absl::StatusOr<std::unique_ptr<Workbench>> bench = Workbench::Make(device, {});
  if (!bench.ok()) return bench.status();
  const double start = MonotonicSeconds();
  if (absl::Status opened = (*bench)->OpenSession(spec); !opened.ok()) return opened;
  const double opening = MonotonicSeconds() - start;
  const SessionState& session = (*bench)->session();
  const Schedule schedules[] = {session.anchor};
  const BuildOutcome built = (*bench)->Build(*workload, schedules, absl::Seconds(60))[0];
  if (!built.kernel) return absl::InternalError(built.failure->text);
  std::vector<double> wall;
  std::vector<double> on_device;
  ScreenOutcome outcome;
  for (int i = 0; i < kScreenings; ++i) {
    const double before = MonotonicSeconds();
    outcome = (*bench)->Screen(session.anchor, *built.kernel);
    wall.push_back(MonotonicSeconds() - before);
    if (outcome.failure) return absl::InternalError(outcome.failure->text);
    on_device.push_back(absl::ToDoubleSeconds(outcome.device_time));
  }
  std::printf("%-26s %8.2f %8.2f %8.2f %10.2f %8.1f %8.1f %8zu  %s\n  %s\n", sizes.c_str(), opening,
              absl::ToDoubleSeconds(session.reference_time),
              absl::ToDoubleSeconds(built.build_time), outcome.seconds * 1e6, Median(wall) * 1e3,
              Median(on_device) * 1e3, outcome.samples_seconds.size(),
              session.anchor.ToString().c_str(), outcome.check_json.c_str());
  return absl::OkStatus();
}

}  // namespace

int PrintCost() {
  const absl::StatusOr<DeviceDescription> device = DescribeCudaDevice("");
  if (!device.ok()) {
    std::printf("[SKIP] %s\n", std::string(device.status().message()).c_str());
    return 0;
  }
  std::printf("%-26s %8s %8s %8s %10s %8s %8s %8s\n", "product, bf16", "open s", "ref s", "build s",
              "us a call", "wall ms", "timed ms", "samples");
  int exit_code = 0;
  for (const char* sizes : {"m=64 n=4096 k=4096", "m=512 n=512 k=512", "m=1024 n=1024 k=1024",
                            "m=4096 n=4096 k=4096", "m=8192 n=8192 k=8192"}) {
    const absl::Status status = PrintRow(*device, sizes);
    if (status.ok()) continue;
    std::printf("%s: %s\n", sizes, std::string(status.message()).c_str());
    exit_code = 1;
  }
  return exit_code;
}

}  // namespace tilewright
