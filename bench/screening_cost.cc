// What a screening trial costs beside the kernel itself: builds, checks, timing, per trial, on this
// machine's CPU.
//
//   screening_cost WORKER [TRIALS]
//
// WORKER is an executable that serves the hidden commands `builder` and `runner`. Each workload's
// default schedule is built and screened TRIALS times (default 20); the last line of each block is
// the rate a search can hope for.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "measure/frames.h"
#include "measure/statistics.h"
#include "measure/workbench.h"
#include "schedule/operators.h"
#include "schedule/variant.h"

namespace tilewright {
namespace {

struct Case {
  const char* expression;
  const char* sizes;
  const char* types;
};

constexpr Case kCases[] = {
    {"C[m,n] = sum(k: A[m,k] * B[k,n])", "m=512 n=512 k=512", "f32"},
    {"softmax", "r=2048 c=1024", "f32"},
};

// Builds go in batches, as a worker's do.
constexpr int kBatch = 8;

bool RunCase(Workbench& bench, const Target& target, const Case& c, int trials) {
  const auto expanded = ExpandOperator(c.expression, c.sizes);
  if (!expanded.ok()) return false;
  const auto workload = Workload::Make(expanded->expression, {expanded->sizes, c.types});
  if (!workload.ok()) {
    printf("%s: %s\n", c.expression, workload.status().ToString().c_str());
    return false;
  }
  const auto space = ScheduleSpace::Make(*workload, target, AllVariants());
  if (!space.ok()) return false;
  SessionSpec spec{*workload, {}, (*space)->DefaultSchedule()};
  spec.regime.at = workload->HighestSizes();
  const double opening = MonotonicSeconds();
  if (const absl::Status status = bench.OpenSession(spec); !status.ok()) {
    printf("%s: %s\n", c.expression, status.ToString().c_str());
    return false;
  }
  printf("%s %s %s\n  schedule        %s\n", c.expression, c.sizes, c.types,
         bench.session().anchor.ToString().c_str());
  printf("  open session    %8.1f ms (references %.1f ms), anchor %.1f us\n",
         (MonotonicSeconds() - opening) * 1e3,
         absl::ToDoubleMilliseconds(bench.session().reference_time),
         bench.session().anchor_seconds[0] * 1e6);
  std::vector<double> build, screen, timing, seconds;
  for (int done = 0; done < trials; done += kBatch) {
    const std::vector<Schedule> schedules(kBatch, bench.session().anchor);
    const double start = MonotonicSeconds();
    const std::vector<BuildOutcome> built = bench.Build(*workload, schedules, absl::Seconds(60));
    build.push_back((MonotonicSeconds() - start) / kBatch);
    for (const BuildOutcome& outcome : built) {
      const double before = MonotonicSeconds();
      const ScreenOutcome screened = bench.Screen(schedules[0], *outcome.kernel);
      screen.push_back(MonotonicSeconds() - before);
      if (screened.failure) {
        printf("  failure: %s\n", screened.failure->text.c_str());
        return false;
      }
      timing.push_back(absl::ToDoubleSeconds(screened.device_time));
      seconds.push_back(screened.seconds);
    }
  }
  const double trial = Median(build) + Median(screen);
  printf("  kernel          %8.1f us\n", Median(seconds) * 1e6);
  printf("  build           %8.1f ms a trial, in batches of %d\n", Median(build) * 1e3, kBatch);
  printf("  screen          %8.1f ms, of which timing %.1f ms, the rest warm-up calls and checks\n",
         Median(screen) * 1e3, Median(timing) * 1e3);
  printf("  trial           %8.1f ms: %.1f a second\n", trial * 1e3, 1 / trial);
  return true;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  using namespace tilewright;  // NOLINT
  if (argc < 2) {
    fprintf(stderr, "usage: screening_cost WORKER [TRIALS]\n");
    return 2;
  }
  const absl::StatusOr<DeviceDescription> device = DescribeCpu(0);
  if (!device.ok()) {
    fprintf(stderr, "%s\n", device.status().ToString().c_str());
    return 1;
  }
  WorkbenchOptions options;
  options.executable = argv[1];
  const auto bench = Workbench::Make(*device, options);
  if (!bench.ok()) return 1;
  const int trials = argc > 2 ? std::atoi(argv[2]) : 20;
  bool good = true;
  for (const Case& c : kCases) good &= RunCase(**bench, device->target, c, trials);
  return good ? 0 : 1;
}
