// The tuner: searches one workload's schedules on one target in one regime, decides by finals, and
// records the verdict.
//
//   starts, anchor ◄─ log          batches ─► TuningClient ─► workers
//        │                            ▲            │
//        └─► SearchState (strategy, model) ◄── results in commit order
//                                     │
//                              finals ─► verdict ─► report
//
// The loop is asynchronous: where the device is a GPU the queue always holds a batch beyond the one
// at work, so that neither training nor proposing makes it wait. A CPU device owns its cores, so
// there the tuner takes its turn between two batches.
//
// A run is resumable: everything it decided is in the log (run, proposals, trials). Not
// thread-safe.
#ifndef TILEWRIGHT_SEARCH_TUNER_H_
#define TILEWRIGHT_SEARCH_TUNER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "db/database.h"
#include "measure/failure.h"
#include "measure/regime.h"
#include "measure/statistics.h"
#include "schedule/library_product.h"
#include "schedule/variant.h"
#include "schedule/workload.h"
#include "search/finals.h"
#include "search/run_pace.h"
#include "search/strategy.h"
#include "search/tuning_client.h"

namespace tilewright {

// How hard to try: one row each in tune_options.cc.
struct Effort {
  std::string name;
  std::string help;
  int64_t trials;  // screening trials per workload, unless --trials says otherwise
  FinalsRules finals;
};
absl::Span<const Effort> AllEfforts();
absl::StatusOr<const Effort*> FindEffort(const std::string& name);

// One workload as the user named and wrote it.
struct TuneTask {
  std::string name;  // "" if the user gave none
  double weight = 1;
  // As typed: what ExpandOperator and Workload::Make were given.
  std::string source;
  std::string sizes;
  std::string types;
  Workload workload;
  Names names;
  Regime regime;
};

struct TuneOptions {
  std::string strategy = "evolutionary";  // as ParseStrategy reads it
  std::string model = "xgboost";          // a row of costmodel/models.cc, or "none"
  std::string effort = "standard";
  int64_t trials = 0;  // 0: what the effort says
  int rounds = 0;      // that decide in the finals; 0: what the effort says
  // Finals included. What is begun, beyond what a run must do, is what would end in time though it
  // took kSlack times as long as this run's pace lets expect (run_pace.h). A run must measure a
  // quarter of a batch, if its results come within the timeouts of one candidate, and hold the
  // deciding rounds of one finalist.
  absl::Duration time_limit = absl::InfiniteDuration();
  uint64_t seed = 1;
  int batch = 16;
  bool use_starts =
      true;  // false: no default, suggestion, incumbent nor the log's best are proposed first
  bool use_log = true;  // false: the model learns from this run alone
  bool run_finals = true;
  absl::Duration build_timeout = absl::Seconds(30);
  absl::Duration run_timeout = absl::Seconds(10);

  // What `--resume` needs, as JSON; and back. InvalidArgument names the field.
  std::string ToJson() const;
  static absl::StatusOr<TuneOptions> FromJson(const std::string& json);
};

// What a run looks like while it works.
struct TuneProgress {
  enum class Phase { kStarting, kScreening, kQualifying, kDeciding };
  Phase phase = Phase::kStarting;
  int64_t trials = 0;
  int64_t trial_limit = 0;
  std::optional<double> best_seconds;
  std::string best_schedule;
  double trials_per_second = 0;
  std::map<std::string, int64_t> failures;  // by kind
  absl::Duration elapsed;
  std::optional<absl::Duration> left;  // absent: cannot be told yet
};

// What a workload got of a budget that several shared, and why (task_scheduler.h).
struct TaskShare {
  double weight = 1;
  int64_t floor = 0;    // trials that every workload gets
  int64_t gain = 0;     // for what they were expected to save
  int64_t patrol = 0;   // so that no estimate starves a workload
  int64_t resumed = 0;  // of the run that it went on with
};

// A line of the final table.
struct ReportRow {
  std::string label;              // "default", "incumbent", "best", "library", "bound", "limit"
  std::string schedule;           // "" for bound and limit
  std::optional<double> seconds;  // absent: it failed or was not measured
  bool from_finals = false;       // else screened: not for comparing
};

struct TuneReport {
  Id run;
  std::string workload_key;
  std::string name;
  uint64_t operations = 0;  // of one call, for rates
  uint64_t bytes = 0;       // compulsory
  std::vector<ReportRow> rows;
  std::optional<VerdictRow> verdict;  // absent: interrupted or without finals
  // The winner against the library's best algorithm, in the deciding rounds; absent: none competed.
  std::optional<PairedComparison> against_library;
  bool interrupted = false;
  bool exhausted = false;  // nothing was left to propose
  int64_t trials = 0;
  std::map<std::string, int64_t> failures;
  std::string first_failure;  // kind and text of the first
  absl::Duration elapsed;
  double utilisation = 0;        // share of the wall time with a builder or runner at work
  double trials_per_second = 0;  // while screening
  // Where the time went: the first trial's result (a session is opened for it), the other trials,
  // and each part of the finals.
  std::vector<std::pair<std::string, absl::Duration>> phases;
  std::vector<std::string> warnings;  // e.g. the model could not be trained
  std::optional<TaskShare> share;     // absent: a lone workload
};

struct TunerContext {
  TuningClient* client = nullptr;
  Database* log = nullptr;  // a reader
  Target target;
  std::string toolchain;
  absl::Span<const Variant> variants;
  absl::Span<const Library> libraries;                // that compete in the finals
  std::string job;                                    // id of the job, "" for a lone run
  const std::atomic<bool>* stop = nullptr;            // true: end with the best so far
  std::function<void(const TuneProgress&)> progress;  // may be null; called often
  std::function<absl::Time()> now = absl::Now;        // what limits of time are held to
};

// Stores workload and target before a run names them. The log's writer must be in the caller's
// hands (before a sink owns it).
absl::Status RegisterTask(Database& log, const TuneTask& task, const Target& target);

// A run that is advanced a part at a time, so that several share the devices (shared_tuning.h).
// Between two parts its clock stands still, and nothing of it is with a worker unless the last one
// gave up waiting.
class TuningRun {
 public:
  // Begins a run or continues `resume`, as TuneWorkload does. Context and task must outlive it.
  static absl::StatusOr<std::unique_ptr<TuningRun>> Begin(const TunerContext& context,
                                                          const TuneTask& task,
                                                          const TuneOptions& options,
                                                          const std::optional<Id>& resume);
  virtual ~TuningRun() = default;
  // What steps took in other runs: expected of this one until it has measured its own.
  virtual void Expect(const StepTimes& steps) = 0;
  // Screens until the run has `trials` in all, nothing is left to propose, or it is told to stop.
  // Proposes what should be measured before `until` though it took kSlack times as long; a run that
  // has measured nothing proposes LeastFirstBatch whatever `until` says. `until` is asked again and
  // again, since what is kept for later steps follows the pace. What is with workers then is waited
  // for as long as results come within the timeouts of one candidate. After an error only Finish
  // may follow.
  virtual absl::Status Screen(int64_t trials, const std::function<absl::Time()>& until) = 0;
  // Another run has the devices from now on: this one's session there ends.
  virtual void Suspend() = 0;
  // Holds the finals in the time to `by`, ends the run and reports; once. `screened`: how the
  // screening ended; an error is returned.
  virtual absl::StatusOr<TuneReport> Finish(const absl::Status& screened, absl::Time by) = 0;

  virtual int64_t trials() const = 0;                      // committed
  virtual std::optional<double> best_seconds() const = 0;  // screened; absent: nothing succeeded
  virtual bool exhausted() const = 0;                      // nothing is left to propose
  virtual absl::Duration elapsed() const = 0;              // in its own parts
  virtual StepTimes steps() const = 0;                     // what it takes for its next ones
  virtual int least_entrants() const = 0;                  // of its finals
};

// Screening trials of a workload with such options. Precondition: they name an effort.
int64_t TrialsOf(const TuneOptions& options);
// How a run with such options decides. Precondition: they name an effort.
FinalsRules FinalsRulesOf(const TuneOptions& options);
// What of the time limit is kept for the finals if a burst takes `burst` beside its idle: enough
// for whole ones, but at most 0.4 of it where that is enough for the least, which have
// `least_entrants`. Zero: none are held. Precondition: the options name an effort.
absl::Duration FinalsReserve(const TuneOptions& options, absl::Duration burst, int least_entrants);
// A quarter of a batch: what a run with a time limit proposes first, however short that is.
int LeastFirstBatch(const TuneOptions& options);

// The least seconds that the device's peaks allow one call of a task.
double TaskLimitSeconds(const TuneTask& task, const Target& target);

// Runs, or continues `resume` (its stored options rule, but for the budget, which is `options`').
//   FailedPrecondition: no variant can write the workload; its anchor, default and naive schedule
//   all fail; the first twenty trials failed for one reason; a resumed run that this program would
//   search differently.
absl::StatusOr<TuneReport> TuneWorkload(const TunerContext& context, const TuneTask& task,
                                        const TuneOptions& options,
                                        const std::optional<Id>& resume = std::nullopt);

// The run that --resume continues: the newest unfinished one of this workload, target and regime.
// Absent: there is none.
absl::StatusOr<std::optional<Id>> FindUnfinishedRun(Database& log, const TuneTask& task,
                                                    const Target& target);

// Keys of the log's rows.
std::string TargetKey(const Target& target);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_TUNER_H_
