#include "cli/task_flags.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "measure/devices.h"
#include "schedule/operators.h"
#include "schedule/workload_file.h"

namespace tilewright {
namespace {

std::string OperatorHelp() {
  std::vector<std::string> names;
  for (const Operator& op : AllOperators()) names.push_back(op.name);
  return absl::StrCat("an expression, or an operator: ", absl::StrJoin(names, ", "));
}

// What each operator is, with the indices that want sizes and its parameters.
std::string OperatorList() {
  std::string text = "Operators, with the indices that --size names:\n";
  for (const Operator& op : AllOperators()) {
    absl::StrAppend(&text, "  ", op.name, ": ", op.help, "\n      --size ",
                    absl::StrJoin(absl::StrSplit(op.example_sizes, ' '), ","), "\n");
    for (const OperatorParameter& parameter : op.parameters) {
      absl::StrAppend(&text, "      ", op.name, "(", parameter.name, "=",
                      absl::StrJoin(parameter.values, "|"), "): ", parameter.help, "\n");
    }
  }
  return text;
}

}  // namespace

void TaskFlags::Add(CLI::App* app) {
  app->add_option("workload", expression, OperatorHelp());
  app->footer(&OperatorList);
  app->add_option("--size", sizes,
                  "sizes of the indices: m=1024,n=1024 or t=1..8192; X.1=224 for a dimension that "
                  "no index names");
  app->add_option("--type", types, "element types: f32, or bf16,bias:f32");
  app->add_option("--workloads", workload_file, "a file of workloads, one per line");
  app->add_option("--target", target,
                  "a target's kind; `cpu` or `cuda` alone is the one of this machine")
      ->capture_default_str();
  app->add_option("--regime", regime,
                  "what is measured: cache=cold|warm chain=plain|dependent data=normal");
  app->add_option("--at", at,
                  "sizes to measure ranged workloads at: t=8192; default: the upper ends");
  app->add_option("--cores", cores, "cores of the CPU to use; 0: all this process may use")
      ->check(CLI::Range(0, 4096));
  app->add_option("--device", device,
                  "of several GPUs: a UUID, its beginning, or a number; default: the first");
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
  std::map<std::string, size_t> places;
  std::vector<TuneTask> unique;
  for (TuneTask& task : *tasks) {
    const auto [found, fresh] = places.try_emplace(task.workload.key(), unique.size());
    if (fresh) {
      unique.push_back(std::move(task));
    } else {  // one workload, called by both names
      unique[found->second].weight += task.weight;
    }
  }
  return unique;
}

absl::StatusOr<Target> TaskFlags::FindTarget() const {
  if (!device.empty() && !absl::StartsWith(target, "cuda")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--device: chooses among GPUs and goes with --target cuda, not with --target ", target));
  }
  if (TargetIsHere()) {
    const absl::StatusOr<DeviceDescription> found =
        DescribeDevice({.kind = target, .cores = cores, .device = device});
    if (!found.ok()) return found.status();
    return found->target;
  }
  if (absl::StrContains(target, "{")) return ParseTarget(target);
  absl::StatusOr<Target> known = tilewright::FindTarget(target);
  if (known.ok()) return known;
  // The kind that tables and records of this machine show.
  const absl::StatusOr<DeviceDescription> here = DescribeCpu(cores);
  if (!here.ok()) return known;
  if (here->target.kind == target) return here->target;
  return absl::Status(
      known.status().code(),
      absl::StrCat(known.status().message(), "; this machine is cpu (", here->target.kind,
                   "); another is given by its whole text, which its `tilewright "
                   "explain` prints behind `target`"));
}

absl::Status TaskFlags::CheckIsHere(const Target& target_found) const {
  if (TargetIsHere()) return absl::OkStatus();
  if (target_found.is_gpu()) {
    const absl::StatusOr<DeviceDescription> gpu =
        DescribeDevice({.kind = "cuda", .device = device});
    if (gpu.ok() && gpu->target == target_found) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--target: there is no ", target_found.kind, " here to measure on (",
                     gpu.ok() ? absl::StrCat("--target cuda is ", gpu->target.kind)
                              : std::string(gpu.status().message()),
                     "); `explain`, `best` and `build` take any target"));
  }
  const absl::StatusOr<DeviceDescription> here = DescribeCpu(cores);
  if (!here.ok()) return here.status();
  if (here->target == target_found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--target: this machine measures for itself alone, --target cpu (", here->target.kind,
      "), not for ", target_found.kind, "; `explain`, `best` and `build` take any target"));
}

std::string TitleOf(const TuneTask& task) { return task.name.empty() ? task.source : task.name; }

absl::StatusOr<std::shared_ptr<const ScheduleSpace>> SpaceOf(const TuneTask& task,
                                                             const Target& target) {
  absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
      ScheduleSpace::Make(task.workload, target, AllVariants());
  if (absl::IsFailedPrecondition(space.status()))
    return absl::InvalidArgumentError(absl::StrCat(TitleOf(task), ": ", space.status().message()));
  return space;
}

}  // namespace tilewright
