#include "tests/gpu/sanitize.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <random>
#include <regex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "codegen/writer.h"
#include "measure/cuda_kernel.h"
#include "measure/devices.h"
#include "measure/inputs.h"
#include "measure/workbench.h"
#include "nlohmann/json.hpp"
#include "schedule/contraction_wgmma.h"
#include "schedule/match.h"
#include "schedule/operators.h"
#include "schedule/variant.h"

namespace tilewright {
namespace {

using nlohmann::json;

constexpr double kWaves = 2;
// Programs under the sanitizer at a time: each has a host thread of its own at work, mostly.
constexpr size_t kAtOnce = 8;
constexpr int kToolSeconds = 90;

struct Winner {
  std::string name, source, sizes, types, regime, schedule;
  Names names;
};

// The newest verdict of each workload and regime whose winner is a kernel.
absl::StatusOr<std::vector<Winner>> ReadWinners(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::map<std::string, json> workloads;
  std::vector<std::pair<std::string, json>> verdicts;  // by workload and regime, oldest first
  std::string line;
  while (std::getline(file, line)) {
    json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object())
      return absl::InvalidArgumentError(absl::StrCat(path, ": not an exported log"));
    const std::string kind = row.value("kind", "");
    if (kind == "workload") workloads[row.value("key", "")] = row;
    if (kind != "verdict") continue;
    const std::string key = absl::StrCat(row.value("workload", ""), row.value("regime", ""));
    const auto known = std::find_if(verdicts.begin(), verdicts.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (known == verdicts.end()) {
      verdicts.emplace_back(key, std::move(row));
    } else {
      known->second = std::move(row);
    }
  }
  std::vector<Winner> winners;
  for (const auto& [key, verdict] : verdicts) {
    const json& workload = workloads[verdict.value("workload", "")];
    if (!workload.is_object() || !workload.contains("names")) continue;
    Winner winner{workload.value("name", ""),
                  workload.value("source", ""),
                  workload.value("sizes", ""),
                  workload.value("types", ""),
                  verdict.value("regime", ""),
                  verdict.value("winner_schedule", ""),
                  {}};
    winner.names.indices = workload["names"]["indices"].get<std::vector<std::string>>();
    if (winner.name.empty()) winner.name = winner.sizes;
    winners.push_back(std::move(winner));
  }
  return winners;
}

absl::StatusOr<Workload> MakeWorkload(const Winner& winner,
                                      const std::map<std::string, int64_t>& sizes) {
  absl::StatusOr<ExpandedOperator> expanded = ExpandOperator(winner.source, winner.sizes);
  if (!expanded.ok()) return expanded.status();
  std::vector<std::string> words =
      absl::StrSplit(expanded->sizes, absl::ByAnyChar(" ,"), absl::SkipEmpty());
  for (std::string& word : words) {
    const auto own = sizes.find(word.substr(0, word.find('=')));
    if (own != sizes.end()) word = absl::StrCat(own->first, "=", own->second);
  }
  return Workload::Make(expanded->expression,
                        {.sizes = absl::StrJoin(words, " "), .types = winner.types});
}

int64_t DecisionOr(const Schedule& schedule, const char* name, int64_t other) {
  const std::string* token = schedule.Find(name);
  return token == nullptr ? other : std::max(1L, std::atol(token->c_str()));
}

// Tiles that the schedule cuts the output into.
double TilesOf(const Plan& plan, const Schedule& schedule, const Contraction& c,
               const Sizes& sizes) {
  if (const auto* wgmma = dynamic_cast<const ContractionWgmmaPlan*>(&plan))
    return static_cast<double>(wgmma->tiles_at_highest);
  const double rows =
      std::ceil(static_cast<double>(c.m.Extent(sizes)) / DecisionOr(schedule, "tile_m", 1));
  const double columns =
      std::ceil(static_cast<double>(c.n.Extent(sizes)) / DecisionOr(schedule, "tile_n", 256));
  return rows * columns * c.Batches(sizes);
}

// The winner's workload with m and n halved, the larger first, until its tiles are two waves at
// most and the schedule is legal. FailedPrecondition: there is no such size.
absl::StatusOr<Workload> Reduce(const Winner& winner, const Schedule& schedule,
                                const Target& target) {
  absl::StatusOr<Workload> workload = MakeWorkload(winner, {});
  if (!workload.ok()) return workload.status();
  const absl::StatusOr<Contraction> match = MatchContraction(*workload);
  if (!match.ok()) return match.status();
  std::map<std::string, int64_t> sizes;
  std::vector<int> indices;
  for (const Axis* axis : {&match->m, &match->n}) {
    if (axis->indices.size() == 1) indices.push_back(axis->lead());
  }
  const Sizes own = workload->HighestSizes();
  for (int index : indices) sizes[winner.names.indices[index]] = own[index];
  std::string reason = "no sizes of two waves";
  for (;;) {
    const absl::StatusOr<Workload> smaller = MakeWorkload(winner, sizes);
    if (!smaller.ok()) return smaller.status();
    const auto space = ScheduleSpace::Make(*smaller, target, AllVariants());
    if (!space.ok()) return space.status();
    const absl::StatusOr<Contraction> roles = MatchContraction(*smaller);
    const auto plan = (*space)->MakePlan(schedule, smaller->HighestSizes());
    if (plan.ok() && roles.ok()) {
      const double tiles = TilesOf(**plan, schedule, *roles, smaller->HighestSizes());
      if (tiles <= kWaves * target.cores) return *smaller;
    } else if (!plan.ok()) {
      reason = std::string(plan.status().message());
    }
    auto largest = sizes.end();
    for (auto size = sizes.begin(); size != sizes.end(); ++size) {
      if (largest == sizes.end() || size->second > largest->second) largest = size;
    }
    if (largest == sizes.end() || largest->second <= 1)
      return absl::FailedPreconditionError(reason);
    // A multiple of 16 stays one, so that the kernel stays of the same kind.
    const int64_t half = largest->second / 2;
    largest->second = largest->second % 16 == 0 && half >= 16 ? half / 16 * 16 : half;
  }
}

std::string FindSanitizer() {
  std::vector<std::string> folders = {"/usr/local/cuda/bin"};
  if (const char* path = std::getenv("PATH")) {
    const std::vector<std::string> own = absl::StrSplit(path, ':', absl::SkipEmpty());
    folders.insert(folders.begin(), own.begin(), own.end());
  }
  for (const std::string& folder : folders) {
    const std::string file = absl::StrCat(folder, "/compute-sanitizer");
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", std::regex_replace(text, std::regex("'"), "'\\''"), "'");
}

struct ToolRun {
  bool passed = false;
  std::string said;  // the tool's summary, or the last line of all
};

ToolRun RunTool(const std::string& sanitizer, const std::string& tool, const Workload& workload,
                const std::string& schedule) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      absl::StrCat("timeout -k 5 ", kToolSeconds, " ", Quoted(sanitizer), " --tool ", tool,
                   " --error-exitcode 9 --print-limit 4 ", Quoted(self), " once ",
                   Quoted(workload.canonical_text()), " ", Quoted(schedule), " 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {false, "cannot be started"};
  std::string output;
  char buffer[4096];
  while (const size_t count = fread(buffer, 1, sizeof(buffer), pipe)) output.append(buffer, count);
  const int status = pclose(pipe);
  ToolRun run;
  std::string last;
  std::string first_report;
  for (absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    const std::string text(line);
    if (text.find("SUMMARY") != std::string::npos) run.said = text;
    if (first_report.empty() &&
        (text.find("Error:") != std::string::npos || text.find("Warning:") != std::string::npos ||
         text.find("Invalid ") != std::string::npos))
      first_report = text;
    last = text;
  }
  if (run.said.empty()) run.said = last;
  const bool finished = output.find("ran once") != std::string::npos;
  run.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0 && finished &&
               run.said.find(" 0 errors") != std::string::npos;
  const bool hazards = run.said.find("0 hazards") == std::string::npos && tool == "racecheck";
  if (tool == "racecheck" && finished && !hazards) run.passed = WEXITSTATUS(status) == 0;
  run.said = std::regex_replace(run.said, std::regex("^=+ *"), "");
  if (!first_report.empty())
    absl::StrAppend(&run.said, " / ", std::regex_replace(first_report, std::regex("^=+ *"), ""));
  return run;
}

// Screens the winner at its own sizes, with inputs that nobody has seen.
std::string FreshCheck(Workbench& bench, const Winner& winner, const Schedule& schedule) {
  const absl::StatusOr<Workload> workload = MakeWorkload(winner, {});
  if (!workload.ok()) return std::string(workload.status().message());
  SessionSpec spec{*workload, {}, schedule};
  spec.regime.at = workload->HighestSizes();
  if (winner.regime.find("chain=dependent") != std::string::npos)
    spec.regime.chain = Regime::Chain::kDependent;
  std::random_device device;
  spec.input_seed = (uint64_t{device()} << 32) | device();
  // The anchor is the winner: it is screened three times when the session opens.
  if (absl::Status opened = bench.OpenSession(spec); !opened.ok())
    return std::string(opened.message());
  for (const CandidateFailure& failure : bench.session().anchor_failures)
    return absl::StrCat(std::string(Info(failure.kind).name), ": ", failure.text);
  return "";
}

struct Row {
  std::string shape;
  std::string refused;  // why nothing was run
  ToolRun memcheck, racecheck;
  std::string fresh;  // empty: passed
};

std::string SizesText(const Workload& workload) {
  return absl::StrJoin(workload.HighestSizes(), "x");
}

}  // namespace

int RunKernelOnce(const std::string& workload_text, const std::string& schedule_text) {
  const auto fail = [](const absl::Status& status) {
    std::printf("failed: %s\n", std::string(status.message()).c_str());
    return 1;
  };
  const absl::StatusOr<DeviceDescription> device = DescribeCudaDevice("");
  if (!device.ok()) return fail(device.status());
  const absl::StatusOr<Workload> workload = Workload::FromCanonicalText(workload_text);
  if (!workload.ok()) return fail(workload.status());
  const absl::StatusOr<Schedule> schedule = ParseSchedule(schedule_text);
  if (!schedule.ok()) return fail(schedule.status());
  const absl::StatusOr<Kernel> kernel =
      WriteKernel({*workload, device->target, *schedule}, DefaultCatalogue());
  if (!kernel.ok()) return fail(kernel.status());
  const auto context = CudaContext::Open(device->uuid, "event");
  if (!context.ok()) return fail(context.status());
  const CudaDriver& driver = (*context)->driver();
  const Sizes sizes = workload->HighestSizes();
  std::vector<DeviceMemory> memory;
  std::vector<CUdeviceptr> buffers;
  for (absl::Span<const int> tensors : {workload->parameters(), workload->outputs()}) {
    for (int tensor : tensors) {
      const int64_t bytes = workload->BufferBytes(tensor, sizes);
      absl::StatusOr<DeviceMemory> buffer = DeviceMemory::Allocate(**context, bytes);
      if (!buffer.ok()) return fail(buffer.status());
      std::vector<char> host(static_cast<size_t>(bytes));
      FillNormal(workload->layout(tensor).type, /*seed=*/7, buffers.size(), 0,
                 workload->BufferElements(tensor, sizes), host.data());
      absl::Status status = driver.Check(
          driver.MemcpyHtoDAsync(buffer->address(), host.data(), host.size(), (*context)->stream()),
          "cuMemcpyHtoD");
      if (status.ok()) status = (*context)->Synchronize();
      if (!status.ok()) return fail(status);
      buffers.push_back(buffer->address());
      memory.push_back(*std::move(buffer));
    }
  }
  const auto loaded = CudaKernel::Load(**context, *kernel, /*dependent=*/false);
  if (!loaded.ok()) return fail(loaded.status());
  absl::Status status = (*loaded)->Bind(sizes, [&](int) { return buffers; });
  for (int call = 0; call < 2 && status.ok(); ++call) status = (*loaded)->Enqueue(0, false);
  if (status.ok()) status = (*context)->Synchronize();
  if (!status.ok()) return fail(status);
  std::printf("ran once: %s\n", schedule_text.c_str());
  return 0;
}

int PrintSanitized(const std::string& log_path, int most) {
  const absl::StatusOr<DeviceDescription> device = DescribeCudaDevice("");
  if (!device.ok()) {
    std::printf("[SKIP] %s\n", std::string(device.status().message()).c_str());
    return 0;
  }
  const std::string sanitizer = FindSanitizer();
  if (sanitizer.empty()) {
    std::printf("[SKIP] no compute-sanitizer in PATH or /usr/local/cuda/bin\n");
    return 0;
  }
  absl::StatusOr<std::vector<Winner>> winners = ReadWinners(log_path);
  if (!winners.ok()) {
    std::printf("%s\n", std::string(winners.status().message()).c_str());
    return 2;
  }
  if (most > 0 && static_cast<int>(winners->size()) > most) winners->resize(most);
  std::vector<Row> rows(winners->size());
  std::vector<Schedule> schedules(winners->size());
  std::vector<std::optional<Workload>> reduced(winners->size());
  for (size_t i = 0; i < winners->size(); ++i) {
    absl::StatusOr<Schedule> schedule = ParseSchedule((*winners)[i].schedule);
    absl::StatusOr<Workload> smaller = schedule.ok()
                                           ? Reduce((*winners)[i], *schedule, device->target)
                                           : absl::StatusOr<Workload>(schedule.status());
    if (!smaller.ok()) {
      rows[i].refused = std::string(smaller.status().message());
      continue;
    }
    rows[i].shape = SizesText(*smaller);
    schedules[i] = *std::move(schedule);
    reduced[i] = *std::move(smaller);
  }
  for (size_t begin = 0; begin < rows.size(); begin += kAtOnce / 2) {
    std::vector<std::future<void>> running;
    for (size_t i = begin; i < std::min(rows.size(), begin + kAtOnce / 2); ++i) {
      if (!reduced[i]) continue;
      for (auto [tool, run] :
           {std::pair("memcheck", &rows[i].memcheck), std::pair("racecheck", &rows[i].racecheck)}) {
        running.push_back(std::async(std::launch::async, [&, i, tool = tool, run = run] {
          *run = RunTool(sanitizer, tool, *reduced[i], (*winners)[i].schedule);
        }));
      }
    }
  }
  const absl::StatusOr<std::unique_ptr<Workbench>> bench = Workbench::Make(*device, {});
  int failed = 0;
  std::printf("%-24s %-20s %-9s %-9s %-6s\n", "winner", "reduced to", "memcheck", "racecheck",
              "fresh");
  for (size_t i = 0; i < rows.size(); ++i) {
    const Winner& winner = (*winners)[i];
    Row& row = rows[i];
    if (!row.refused.empty()) {
      std::printf("%-24s not run: %s\n", winner.name.c_str(), row.refused.c_str());
      ++failed;
      continue;
    }
    row.fresh = bench.ok() ? FreshCheck(**bench, winner, schedules[i])
                           : std::string(bench.status().message());
    const auto word = [](bool passed) { return passed ? "PASS" : "FAIL"; };
    const bool all = row.memcheck.passed && row.racecheck.passed && row.fresh.empty();
    std::printf("%-24s %-20s %-9s %-9s %-6s%s\n", winner.name.c_str(), row.shape.c_str(),
                word(row.memcheck.passed), word(row.racecheck.passed), word(row.fresh.empty()),
                winner.regime.find("chain=dependent") != std::string::npos ? " (dependent)" : "");
    if (!row.memcheck.passed) std::printf("    memcheck: %s\n", row.memcheck.said.c_str());
    if (!row.racecheck.passed) std::printf("    racecheck: %s\n", row.racecheck.said.c_str());
    if (!row.fresh.empty()) std::printf("    fresh: %s\n", row.fresh.c_str());
    if (!all) std::printf("    %s\n", winner.schedule.c_str());
    std::fflush(stdout);
    failed += !all;
  }
  std::printf("%zu winners, %d not all passed\n", rows.size(), failed);
  if (!rows.empty() && !rows[0].memcheck.said.empty())
    std::printf("for example memcheck: %s; racecheck: %s\n", rows[0].memcheck.said.c_str(),
                rows[0].racecheck.said.c_str());
  return failed == 0 ? 0 : 1;
}

}  // namespace tilewright
