// The flags that say which workloads, on what, in which regime: the same for every command that
// takes workloads.
//
//   tilewright tune 'C[m,n] = sum(k: A[m,k] * B[k,n])' --size m=1024,n=1024,k=1024 --type f32
//   --target cpu tilewright tune --workloads ops.tw --target cpu
#ifndef TILEWRIGHT_CLI_TASK_FLAGS_H_
#define TILEWRIGHT_CLI_TASK_FLAGS_H_

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "schedule/target.h"
#include "schedule/variant.h"
#include "search/tuner.h"

namespace tilewright {

struct TaskFlags {
  std::string expression;          // an operator or an expression
  std::vector<std::string> sizes;  // --size, may be repeated
  std::string types;               // --type
  std::string workload_file;       // --workloads
  std::string regime;              // --regime
  std::string at;                  // --at
  std::string target = "cpu";      // --target
  int cores = 0;                   // --cores
  std::string device;              // --device

  void Add(CLI::App* app);
  // The tasks in the order given. InvalidArgument says what is wrong and where.
  absl::StatusOr<std::vector<TuneTask>> AllTasks() const;
  // The same without later twins (same key): what is worth tuning.
  absl::StatusOr<std::vector<TuneTask>> Tasks() const;
  // `cpu` or `cuda` alone is the kind found here; a kind is looked up, or read if it is a target's
  // full text.
  absl::StatusOr<Target> FindTarget() const;
  // InvalidArgument unless `target`, as FindTarget gave it, is what this machine can measure.
  absl::Status CheckIsHere(const Target& target) const;
  // True if the target is the word for this machine's.
  bool TargetIsHere() const { return target == "cpu" || target == "cuda"; }
};

// What people call a task: its name in the workload file, else its expression.
std::string TitleOf(const TuneTask& task);
// The task's schedules. InvalidArgument names the task if no variant can write it for the target.
absl::StatusOr<std::shared_ptr<const ScheduleSpace>> SpaceOf(const TuneTask& task,
                                                             const Target& target);

}  // namespace tilewright

#endif  // TILEWRIGHT_CLI_TASK_FLAGS_H_
