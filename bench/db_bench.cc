// How long the tuning log takes: to answer `best` in a million records, and to commit trials.
//
//   build/bench/db_bench [--benchmark_filter=Best]
//
// "Best" reports the percentiles of single look-ups (microseconds), warm, with the key given; the
// bar is p99 <= 50 µs. The log is built once, in the directory for temporary files: 10,000 subjects
// with a verdict each and 990,000 trials, under a minute.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "db/database.h"

namespace tilewright {
namespace {

constexpr int kSubjects = 10000;
constexpr int kTrialsPerSubject = 99;
constexpr char kRegime[] = "cache=cold chain=plain data=normal";

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

std::string Key(int subject) {
  return absl::StrFormat("%064x", static_cast<uint64_t>(subject) * 0x9e3779b97f4a7c15u);
}

std::string ScheduleText(int number) {
  return absl::StrCat(
      "contraction.wgmma{tile_m=128 tile_n=256 tile_k=64 stages=4 cluster_m=2 store=tma number=",
      number, "}");
}

TrialRow MakeTrial(const RunRow& run, const SessionRow& session, int subject, int number) {
  TrialRow trial;
  trial.id = Id::Random();
  trial.run = run.id;
  trial.workload_key = Key(subject);
  trial.target_key = run.target_key;
  trial.regime = run.regime;
  trial.schedule = ScheduleText(number);
  trial.seconds = 1e-3 + 1e-6 * (number * 37 % 101);
  trial.anchor_seconds = 1.1e-3;
  trial.session = session.id;
  trial.created_unix_ns = 1;
  return trial;
}

VerdictRow MakeVerdict(const RunRow& run, const SessionRow& session, int subject) {
  VerdictRow verdict;
  verdict.id = Id::Random();
  verdict.workload_key = Key(subject);
  verdict.target_key = run.target_key;
  verdict.regime = run.regime;
  verdict.winner_schedule = ScheduleText(1);
  verdict.rival_schedule = ScheduleText(2);
  verdict.outcome = "faster";
  verdict.ratio = 1.1;
  verdict.ratio_low = 1.05;
  verdict.ratio_high = 1.15;
  verdict.environment = session.environment;
  verdict.created_unix_ns = 2;
  return verdict;
}

// The log, built at the first call and removed at exit.
const std::string& LogPath() {
  static const std::string path = [] {
    std::string name = std::filesystem::temp_directory_path() / "tilewright_db_bench_XXXXXX";
    static const std::string directory = mkdtemp(name.data());
    std::atexit([] { std::filesystem::remove_all(directory); });
    const std::string file = directory + "/bench.db";
    auto database = Database::OpenWriter(file);
    Check(database.status());
    Check((*database)->InsertTarget({"target", "cuda:h200", "cuda:h200{…}"}));
    RunRow run;
    run.id = Id::Random();
    run.target_key = "target";
    run.regime = kRegime;
    SessionRow session{.id = Id::Random(),
                       .run = run.id,
                       .environment = {"uuid", "driver", "toolchain", "cupti", "median"}};
    for (int subject = 0; subject < kSubjects; ++subject) {
      Check((*database)->Transaction([&] {
        absl::Status status = (*database)->InsertWorkload(
            {Key(subject), absl::StrCat("text ", subject), 1, "", "source"});
        if (subject == 0) {
          run.workloads = {{Key(0), 1, ScheduleText(0), {}}};
          status.Update((*database)->InsertRun(run));
          status.Update((*database)->InsertSession(session));
        }
        std::vector<TrialRow> trials;
        for (int number = 0; number < kTrialsPerSubject; ++number)
          trials.push_back(MakeTrial(run, session, subject, number));
        status.Update((*database)->CommitTrials(trials).status());
        status.Update((*database)->InsertVerdict(MakeVerdict(run, session, subject)));
        return status;
      }));
    }
    return file;
  }();
  return path;
}

void Best(benchmark::State& state) {
  auto database = Database::OpenReader(LogPath());
  Check(database.status());
  std::mt19937 random(1);
  std::vector<std::string> keys;
  for (int i = 0; i < 4096; ++i) keys.push_back(Key(static_cast<int>(random() % kSubjects)));
  for (const std::string& key : keys)
    Check((*database)->Best(key, "target", kRegime).status());  // warm
  std::vector<double> microseconds;
  size_t next = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    auto best = (*database)->Best(keys[next++ % keys.size()], "target", kRegime);
    const std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - start;
    benchmark::DoNotOptimize(best);
    microseconds.push_back(elapsed.count());
  }
  std::sort(microseconds.begin(), microseconds.end());
  auto percentile = [&](double part) {
    return microseconds[static_cast<size_t>(part * (microseconds.size() - 1))];
  };
  state.counters["p50_us"] = percentile(0.5);
  state.counters["p99_us"] = percentile(0.99);
  state.counters["p999_us"] = percentile(0.999);
}
BENCHMARK(Best)->Unit(benchmark::kMicrosecond)->MinTime(2);

void OpenAndBest(benchmark::State& state) {
  const std::string key = Key(77);
  for (auto _ : state) {
    auto database = Database::OpenReader(LogPath());
    Check(database.status());
    benchmark::DoNotOptimize((*database)->Best(key, "target", kRegime));
  }
}
BENCHMARK(OpenAndBest)->Unit(benchmark::kMicrosecond);

// One batch of state.range(0) trials, flushed to disk.
void Commit(benchmark::State& state) {
  auto database = Database::OpenWriter(LogPath());
  Check(database.status());
  const RunRow run = (*database)->ListRuns({})->front();
  const SessionRow session = (*database)->ListSessions(run.id)->front();
  static int number = 1000000;
  for (auto _ : state) {
    std::vector<TrialRow> trials;
    for (int i = 0; i < state.range(0); ++i) trials.push_back(MakeTrial(run, session, 0, number++));
    Check((*database)->CommitTrials(trials).status());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Commit)->Arg(1)->Arg(32)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tilewright

BENCHMARK_MAIN();
