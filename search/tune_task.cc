// What can be said of a task beside its runs: its keys and rows in the log, its physical limit.
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "search/tuner.h"

namespace tilewright {

std::string TargetKey(const Target& target) { return Sha256Hex(target.ToString()); }

absl::Status RegisterTask(Database& log, const TuneTask& task, const Target& target) {
  const nlohmann::json names = {{"tensors", task.names.tensors}, {"indices", task.names.indices}};
  absl::Status status = log.InsertWorkload({.key = task.workload.key(),
                                            .canonical_text = task.workload.canonical_text(),
                                            .canonical_version = kCanonicalVersion,
                                            .name = task.name,
                                            .source = task.source,
                                            .sizes = task.sizes,
                                            .types = task.types,
                                            .names_json = names.dump()});
  if (!status.ok()) return status;
  return log.InsertTarget(
      {.key = TargetKey(target), .kind = target.kind, .text = target.ToString()});
}

double TaskLimitSeconds(const TuneTask& task, const Target& target) {
  const Sizes& at = task.regime.at;
  return LimitSeconds(target, task.workload.Operations(at), task.workload.CompulsoryBytes(at),
                      task.workload.SmallestParameterBytes(),
                      task.regime.cache == Regime::Cache::kCold);
}

absl::StatusOr<std::optional<Id>> FindUnfinishedRun(Database& log, const TuneTask& task,
                                                    const Target& target) {
  for (const char* state : {"running", "interrupted", "paused"}) {
    absl::StatusOr<std::vector<RunRow>> runs = log.ListRuns({.state = state, .limit = 10000});
    if (!runs.ok()) return runs.status();
    for (const RunRow& run : *runs) {
      if (run.workloads.size() == 1 && run.workloads[0].workload_key == task.workload.key() &&
          run.target_key == TargetKey(target) &&
          run.regime == task.regime.ToString(task.workload)) {
        return std::optional<Id>(run.id);
      }
    }
  }
  return std::optional<Id>();
}

}  // namespace tilewright
