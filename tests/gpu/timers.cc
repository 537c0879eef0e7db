#include "tests/gpu/timers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <vector>

#include "measure/call_graph.h"
#include "measure/cuda_context.h"
#include "measure/devices.h"
#include "measure/frames.h"
#include "measure/statistics.h"
#include "tests/gpu/ptx_kernels.h"

namespace tilewright {
namespace {

constexpr int kRounds = 30;

// A kernel of a duration, and the graph that it is timed in.
struct TimedKernel {
  std::unique_ptr<CudaKernel> kernel;
  std::unique_ptr<CallGraph> graph;
  std::unique_ptr<EventPair> events;
};

absl::StatusOr<TimedKernel> MakeTimed(CudaContext& context, int64_t cycles, int calls) {
  TimedKernel timed;
  absl::StatusOr<std::unique_ptr<CudaKernel>> kernel =
      CudaKernel::Load(context, SpinKernel(cycles, context.multiprocessors()), /*dependent=*/false);
  if (!kernel.ok()) return kernel.status();
  timed.kernel = *std::move(kernel);
  absl::Status status = timed.kernel->Bind({}, [](int) { return std::vector<CUdeviceptr>(); });
  if (!status.ok()) return status;
  const std::vector<int> sets(static_cast<size_t>(calls), 0);
  absl::StatusOr<std::unique_ptr<CallGraph>> graph =
      CallGraph::Capture(context, *timed.kernel, sets);
  if (!graph.ok()) return graph.status();
  timed.graph = *std::move(graph);
  absl::StatusOr<std::unique_ptr<EventPair>> events = EventPair::Make(context);
  if (!events.ok()) return events.status();
  timed.events = *std::move(events);
  return timed;
}

// Seconds a call by each timer, by its name.
absl::StatusOr<std::map<std::string, double>> TimeOnce(CudaContext& context, TimedKernel& timed) {
  std::map<std::string, double> seconds;
  // One launch between two events on the stream.
  absl::Status status = timed.events->RecordStart();
  if (status.ok()) status = timed.kernel->Enqueue(0, false);
  if (status.ok()) status = timed.events->RecordEnd();
  if (status.ok()) status = context.Synchronize();
  if (!status.ok()) return status;
  const absl::StatusOr<double> single = timed.events->Seconds();
  if (!single.ok()) return single.status();
  seconds["1 events, one launch"] = *single;
  const double start = MonotonicSeconds();
  const absl::StatusOr<CallGraph::Times> times = timed.graph->Run();
  if (!times.ok()) return times.status();
  seconds["2 host clock, graph / N"] = (MonotonicSeconds() - start) / timed.graph->calls();
  seconds["3 events in the graph / N"] = times->event_seconds;
  if (context.trace() == nullptr) return seconds;
  seconds["4 CUPTI, last end - first start / N"] = times->seconds;
  seconds["5 CUPTI, sum of kernels / N"] = times->busy_seconds;
  return seconds;
}

double Spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[n * 3 / 4] - values[n / 4]) / Median(values);
}

absl::Status PrintRows(CudaContext& context, const char* name, double wanted, int calls) {
  // A launch takes some time besides, so the cycles are found by trying.
  int64_t cycles = std::llround(wanted * 1e6 * context.top_clock_mhz());
  for (int step = 0; step < 4; ++step) {
    absl::StatusOr<TimedKernel> trial = MakeTimed(context, cycles, 20);
    if (!trial.ok()) return trial.status();
    for (int warm = 0; warm < 3; ++warm) (void)trial->graph->Run();
    const absl::StatusOr<CallGraph::Times> times = trial->graph->Run();
    if (!times.ok()) return times.status();
    const double off = (wanted - times->event_seconds) * 1e6 * context.top_clock_mhz();
    cycles = std::max<int64_t>(1, cycles + std::llround(off));
  }
  // Two kernels that are one: what differs between them is noise.
  absl::StatusOr<TimedKernel> a = MakeTimed(context, cycles, calls);
  if (!a.ok()) return a.status();
  absl::StatusOr<TimedKernel> b = MakeTimed(context, cycles, calls);
  if (!b.ok()) return b.status();
  std::map<std::string, std::vector<double>> of_a;
  std::map<std::string, std::vector<double>> of_b;
  for (int round = 0; round < kRounds; ++round) {
    for (const bool first : {true, false}) {
      const absl::StatusOr<std::map<std::string, double>> times =
          TimeOnce(context, first ? *a : *b);
      if (!times.ok()) return times.status();
      for (const auto& [timer, seconds] : *times) (first ? of_a : of_b)[timer].push_back(seconds);
    }
  }
  for (const auto& [timer, seconds] : of_a) {
    const PairedComparison paired = ComparePaired(seconds, of_b[timer]);
    std::printf("%-8s %5d  %-38s %10.3f %9.2f%% %9.4f [%.4f, %.4f]\n", name, calls, timer.c_str(),
                Median(seconds) * 1e6, 100 * Spread(seconds), paired.ratio,
                paired.interval ? paired.interval->low : 0,
                paired.interval ? paired.interval->high : 0);
  }
  return absl::OkStatus();
}

}  // namespace

int PrintTimers(const std::string& timer) {
  const absl::StatusOr<DeviceDescription> device = DescribeCudaDevice("");
  if (!device.ok()) {
    std::printf("[SKIP] %s\n", std::string(device.status().message()).c_str());
    return 0;
  }
  const absl::StatusOr<std::unique_ptr<CudaContext>> context =
      CudaContext::Open(device->uuid, timer);
  if (!context.ok()) {
    std::printf("%s: %s\n", timer.c_str(), std::string(context.status().message()).c_str());
    return 1;
  }
  std::printf("%s, driver %s, CUPTI tracing %s; top clock %d MHz; NVML %s\n",
              device->target.kind.c_str(), device->driver.c_str(),
              (*context)->trace() != nullptr ? "on" : "off", (*context)->top_clock_mhz(),
              (*context)->nvml() != nullptr ? "yes" : "no");
  std::printf("%-8s %5s  %-38s %10s %10s %9s\n", "kernel", "N", "timer", "us a call", "IQR/median",
              "A/A ratio and its 95% interval");
  const struct {
    const char* name;
    double seconds;
    int calls;
  } kernels[] = {{"2 us", 2e-6, 500}, {"20 us", 20e-6, 100}, {"2 ms", 2e-3, 5}};
  for (const auto& kernel : kernels) {
    const absl::Status status = PrintRows(**context, kernel.name, kernel.seconds, kernel.calls);
    if (status.ok()) continue;
    std::printf("%s: %s\n", kernel.name, std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}

}  // namespace tilewright
