#include "cli/task_flags.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "measure/workbench.h"
#include "schedule/operators.h"
#include "schedule/workload_file.h"

namespace tilewright {
namespace {

std::string OperatorHelp() {
  std::vector<std::string> names;
  for (const Operator& op : AllOperators()) names.push_back(op.name);
  return absl::StrCat("an expression, or an operator: ", absl::StrJoin(names, ", "));
}

}  // namespace

void TaskFlags::Add(CLI::App* app) {
  app->add_option("workload", expression, OperatorHelp());
  app->add_option("--size", sizes,
                  "sizes of the indices: m=1024,n=1024 or t=1..8192; X.1=224 for a dimension that "
                  "no index names");
  app->add_option("--type", types, "element types: f32, or bf16,bias:f32");
  app->add_option("--workloads", workload_file, "a file of workloads, one per line");
  app->add_option("--target", target, "a target's kind; `cpu` alone is the one of this machine")
      ->capture_default_str();
  app->add_option("--regime", regime, "what is measured: cache=cold|warm chain=plain data=normal");
  app->add_option("--at", at,
                  "sizes to measure ranged workloads at: t=8192; default: the upper ends");
  app->add_option("--cores", cores, "cores of the CPU to use; 0: all this process may use")
      ->check(CLI::Range(0, 4096));
}

absl::StatusOr<std::vector<TuneTask>> TaskFlags::AllTasks() const {
  if (expression.empty() == workload_file.empty()) {
    return absl::InvalidArgumentError(
        "give either a workload (an expression or an operator) or --workloads FILE");
  }
  std::vector<TuneTask> tasks;
  if (!workload_file.empty()) {
    if (!sizes.empty() || !types.empty()) {
      return absl::InvalidArgumentError(
          "--size and --type go with a workload on the command line; the file has its own");
    }
    absl::StatusOr<std::vector<NamedWorkload>> named = ReadWorkloadFile(workload_file);
    if (!named.ok()) return named.status();
    for (NamedWorkload& entry : *named) {
      tasks.push_back({.name = entry.name,
                       .weight = static_cast<double>(entry.weight),
                       .source = entry.source,
                       .sizes = entry.sizes,
                       .types = entry.types,
                       .workload = std::move(entry.workload),
                       .names = std::move(entry.names),
                       .regime = {}});
    }
  } else {
    const std::string words = absl::StrJoin(sizes, " ");
    absl::StatusOr<ExpandedOperator> expanded = ExpandOperator(expression, words);
    if (!expanded.ok()) return expanded.status();
    Names names;
    absl::StatusOr<Workload> workload =
        Workload::Make(expanded->expression, {.sizes = expanded->sizes, .types = types}, &names);
    if (!workload.ok()) return workload.status();
    tasks.push_back({.name = "",
                     .source = expression,
                     .sizes = words,
                     .types = types,
                     .workload = *std::move(workload),
                     .names = std::move(names),
                     .regime = {}});
  }
  for (TuneTask& task : tasks) {
    absl::StatusOr<Regime> parsed = ParseRegime(regime, task.workload);
    if (!parsed.ok()) return parsed.status();
    task.regime = *std::move(parsed);
    if (!at.empty()) {
      absl::StatusOr<Sizes> sizes_at = ParseSizesAt(task.workload, task.names, at);
      if (!sizes_at.ok()) return sizes_at.status();
      task.regime.at = *std::move(sizes_at);
    }
  }
  return tasks;
}

absl::StatusOr<std::vector<TuneTask>> TaskFlags::Tasks() const {
  absl::StatusOr<std::vector<TuneTask>> tasks = AllTasks();
  if (!tasks.ok()) return tasks.status();
  std::set<std::string> seen;
  std::vector<TuneTask> unique;
  for (TuneTask& task : *tasks) {
    if (seen.insert(task.workload.key()).second) unique.push_back(std::move(task));
  }
  return unique;
}

absl::StatusOr<Target> TaskFlags::FindTarget() const {
  if (TargetIsHere()) {
    absl::StatusOr<DeviceDescription> device = DescribeCpu(cores);
    if (!device.ok()) return device.status();
    return device->target;
  }
  if (absl::StrContains(target, "{")) return ParseTarget(target);
  return tilewright::FindTarget(target);
}

}  // namespace tilewright
