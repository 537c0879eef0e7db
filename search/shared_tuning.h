// Tunes several workloads under one budget, shared by expected gain (task_scheduler.h).
//
//   SharedTuning options{.each = tune_options, .floor = 32};
//   TuneShared(context, tasks, options, {.progress = …, .ended = …});
//
// Each workload has a run of its own, begun at its first turn, so that it knows what the earlier
// ones have measured by then; a turn advances one run (TuningRun), and between turns the others
// wait in memory. When the budget is spent the finals are held, run after run. Where the time is
// too short for turns each run goes to its end, finals included, in its first session. A kill
// leaves the runs in the log as any run is left, and each is resumed by itself.
#ifndef TILEWRIGHT_SEARCH_SHARED_TUNING_H_
#define TILEWRIGHT_SEARCH_SHARED_TUNING_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "search/tuner.h"

namespace tilewright {

struct SharedTuning {
  // As for a lone workload, but that `trials` (or what the effort says) times the number of
  // workloads is what all have together, and that the time limit is for all of them, finals
  // included; what one must do is then done for each that is begun before it is over. With a time
  // limit what counts is the gain per second, else per trial.
  TuneOptions each;
  // Trials that each workload gets first. From `trials` up the shares are equal, and the workloads
  // are tuned one after another.
  int64_t floor = 32;
  bool resume = false;  // go on with the unfinished run of each workload, where there is one
};

// Both may be null; called by the thread of TuneShared.
struct SharedTuningCalls {
  std::function<void(size_t task, const TuneProgress&)> progress;  // called often
  // Once for each task, in the order in which they end. DeadlineExceeded: not begun, the time limit
  // was over. Not for tasks that were not begun when the tune was told to stop.
  std::function<void(size_t task, absl::StatusOr<TuneReport>)> ended;
};

// `context.progress` is not called. Precondition: `options.each` names an effort.
void TuneShared(const TunerContext& context, absl::Span<const TuneTask> tasks,
                const SharedTuning& options, const SharedTuningCalls& calls);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_SHARED_TUNING_H_
