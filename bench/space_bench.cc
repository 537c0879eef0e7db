// How long a space of 10^12 schedules takes to compile, to sample and to search around, and how
// many bytes it keeps.
//
//   space_bench --benchmark_counters_tabular=true
//
// The bar (one core): <= 0.5 s to compile, <= 100 MB, <= 10 us for a sample.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <random>

#include "bench/large_space.h"
#include "schedule/diagram.h"
#include "schedule/space.h"

namespace tilewright {
namespace {

std::unique_ptr<VariantSpace> MakeSpace() { return *VariantSpace::Make(HopperGemm(), {{}}); }

void BM_Compile(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MakeSpace());
  const Diagram diagram = *Diagram::Compile(*ResolvedDefinition::Make(HopperGemm()), {{}}, 4 << 20);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  state.counters["schedules"] = static_cast<double>(diagram.count());
  state.counters["nodes"] = static_cast<double>(diagram.nodes());
  state.counters["kept_MB"] = static_cast<double>(diagram.bytes()) / 1e6;
  state.counters["process_peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1e3;
}
BENCHMARK(BM_Compile)->Unit(benchmark::kMillisecond);

void BM_Sample(benchmark::State& state) {
  const std::unique_ptr<VariantSpace> space = MakeSpace();
  std::mt19937_64 random(1);
  for (auto _ : state) benchmark::DoNotOptimize(space->At(UniformIndex(random, space->Count())));
}
BENCHMARK(BM_Sample)->Unit(benchmark::kMicrosecond);

void BM_IndexOf(benchmark::State& state) {
  const std::unique_ptr<VariantSpace> space = MakeSpace();
  std::mt19937_64 random(1);
  const Schedule schedule = space->At(UniformIndex(random, space->Count()));
  for (auto _ : state) benchmark::DoNotOptimize(space->IndexOf(schedule));
}
BENCHMARK(BM_IndexOf)->Unit(benchmark::kMicrosecond);

void BM_Neighbours(benchmark::State& state) {
  const std::unique_ptr<VariantSpace> space = MakeSpace();
  std::mt19937_64 random(1);
  size_t found = 0;
  for (auto _ : state) found += space->Neighbours(UniformIndex(random, space->Count())).size();
  state.counters["neighbours"] =
      benchmark::Counter(static_cast<double>(found), benchmark::Counter::kAvgIterations);
}
BENCHMARK(BM_Neighbours)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tilewright
