// The Database is the tuning log: what was asked, tried, measured and decided, in one SQLite file.
//
//   auto database = Database::OpenWriter("tuning.db");
//   if (!database.ok()) return database.status();  // FailedPrecondition: refused, files untouched
//   auto committed = (*database)->CommitTrials(results);
//   if (committed.ok()) Acknowledge(results);  // on disk: kill -9 and power loss keep them
//
// One writer, many readers. The writer is one process with one connection on one thread, which also
// checkpoints; a second is refused. Readers (`best`, `query`, a build) are read-only and work while
// it writes, each on its own thread; a Database must not be shared between threads, nor carried
// over fork().
//
// Every write function is one durable transaction, or part of the enclosing Transaction(). Group
// what arrived together: a commit costs a flush to disk, a row almost nothing.
//
// Errors
//   FailedPrecondition  opening: the file is not ours, truncated, of a newer version, on a network
//   file system or already
//                       written by another process; later: a write on a reader
//   InvalidArgument     a row contradicts itself or names a record that is not there; nothing was
//   written NotFound            the record asked for does not exist ResourceExhausted   the disk is
//   full; nothing of the transaction was written, the caller keeps its rows and tries again
//   Unavailable         the disk failed, or the file stayed locked; as above
//   DataLoss            the file is damaged: stop, keep it, recover into a new one
//   (docs/formats/database.md)
#ifndef TILEWRIGHT_DB_DATABASE_H_
#define TILEWRIGHT_DB_DATABASE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/rows.h"

namespace tilewright {

class Connection;  // db/connection.h

struct DatabaseOptions {
  // How long a statement waits for a lock before it is Unavailable, in milliseconds.
  int busy_timeout_ms = 5000;
  // Provenance of the records born in a database that OpenWriter creates; empty: a random name.
  // Merging keeps it.
  std::string origin;
  // SQLite's VFS; empty: the default. Tests inject faults here.
  std::string vfs;
};

// Which trials. An empty field does not restrict.
struct TrialFilter {
  enum class State { kAny, kOk, kFailed };
  enum class Order {
    kCommitted,  // in the order of their rows
    kNewest,
    kFastest,  // by seconds, failures last. Seconds of different sessions are not comparable: for
               // display only
  };
  std::string workload_key;
  std::string workload_name;
  std::string target_key;
  std::string target_kind;
  std::string regime;
  std::optional<Id> run;
  std::optional<Id> session;
  State state = State::kAny;
  std::string failure_kind;
  int64_t after_row = 0;               // rows greater than this one: pages through a large answer
  std::optional<int64_t> through_row;  // rows up to this one: what was known at a run's start
  Order order = Order::kCommitted;
  int64_t limit = 1000;  // > 0
};

// Which verdicts. An empty field does not restrict.
struct VerdictFilter {
  std::string workload_key;
  std::string workload_name;
  std::string target_key;
  std::string target_kind;
  std::string regime;
  bool current_only = true;
  int64_t limit = 1000;  // > 0; newest first
};

struct RunFilter {
  std::optional<std::string> job;
  std::string state;
  int64_t limit = 1000;  // > 0; newest first
};

// What is known about the best schedule of one workload, target and regime.
struct BestAnswer {
  enum class Kind {
    kVerdict,     // one current verdict: verdicts[0]
    kContested,   // several that do not replace each other; `verify` settles it
    kUnverified,  // no verdict: `trial` is the fastest of the session with most measured trials
  };
  Kind kind = Kind::kUnverified;
  std::vector<VerdictRow> verdicts;  // newest first
  std::optional<TrialRow> trial;
};

// What `--resume` replays. A proposed schedule without a trial was never committed.
struct ResumeState {
  RunRow run;
  std::vector<ProposalRow> proposals;  // by sequence
  std::vector<TrialRow> trials;        // by ordinal: in commit order
};

struct LogCounts {
  int64_t workloads = 0;
  int64_t targets = 0;
  int64_t runs = 0;
  int64_t sessions = 0;
  int64_t trials = 0;
  int64_t failed_trials = 0;
  int64_t late_trials = 0;
  int64_t verdicts = 0;
};

class Database {
 public:
  // Opens for writing; creates the file if there is none (all of it or nothing) and migrates an
  // older one, after copying it to PATH.before-vN. Holds the lock file PATH.lock until destroyed.
  static absl::StatusOr<std::unique_ptr<Database>> OpenWriter(const std::string& path,
                                                              const DatabaseOptions& options = {});
  // Opens for reading only. NotFound if there is no such file.
  static absl::StatusOr<std::unique_ptr<Database>> OpenReader(const std::string& path,
                                                              const DatabaseOptions& options = {});
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const;
  bool writable() const;
  // Provenance of records born here.
  const std::string& origin() const;

  // Runs `body` in one transaction: a snapshot on a reader, all or nothing on the writer. If `body`
  // or any write inside it fails, everything is rolled back and the failure returned. Transactions
  // inside join the outer one.
  absl::Status Transaction(absl::FunctionRef<absl::Status()> body);

  // Writing. Inserting what is already there (same key, same content) is OK and changes nothing;
  // the same key with other content is InvalidArgument.
  absl::Status InsertWorkload(const WorkloadRow& workload);
  absl::Status InsertTarget(const TargetRow& target);
  absl::Status InsertRun(const RunRow& run);
  absl::Status SetRunState(const Id& run, const std::string& state,
                           std::optional<int64_t> ended_unix_ns);
  absl::Status InsertSession(const SessionRow& session);
  // Returns the ordinal.
  absl::StatusOr<int64_t> AppendAnchorTime(const Id& session, const std::string& workload_key,
                                           double seconds);
  // Returns the sequence number.
  absl::StatusOr<int64_t> LogProposal(const ProposalRow& proposal);
  // All in one transaction, in this order; one answer per row. The first result of a (run,
  // workload, schedule) is the trial.
  absl::StatusOr<std::vector<Committed>> CommitTrials(absl::Span<const TrialRow> trials);
  absl::Status InsertVerdict(const VerdictRow& verdict);
  absl::Status InsertEvaluation(const EvaluationRow& evaluation);
  // Commits and returns a generation of the coordinator greater than every earlier one: the high
  // part of lease epochs.
  absl::StatusOr<int64_t> NextGeneration(int64_t unix_ns);
  // Gives workloads the keys and texts of a newer canonical form: (old key, new row), all in one
  // transaction. A new key that is already there takes over the records of the old one.
  absl::Status Rekey(absl::Span<const std::pair<std::string, WorkloadRow>> workloads);
  // Frees disk space: drops samples and late trials of before `before_unix_ns` (medians stay) and
  // compacts the file.
  absl::Status CollectGarbage(int64_t before_unix_ns);

  // Reading.
  absl::StatusOr<BestAnswer> Best(const std::string& workload_key, const std::string& target_key,
                                  const std::string& regime);
  absl::StatusOr<WorkloadRow> FindWorkload(const std::string& key);
  // All sources of all workloads, or of those with this name; oldest first.
  absl::StatusOr<std::vector<WorkloadRow>> ListWorkloads(const std::string& name = "");
  absl::StatusOr<TargetRow> FindTarget(const std::string& key);
  // All targets, or those of a kind (one kind may have been described differently over time);
  // oldest first.
  absl::StatusOr<std::vector<TargetRow>> ListTargets(const std::string& kind = "");
  absl::StatusOr<RunRow> FindRun(const Id& run);
  absl::StatusOr<std::vector<RunRow>> ListRuns(const RunFilter& filter);
  absl::StatusOr<SessionRow> FindSession(const Id& session);
  absl::StatusOr<std::vector<SessionRow>> ListSessions(const Id& run);
  absl::StatusOr<std::vector<AnchorTimeRow>> ListAnchorTimes(const Id& session);
  absl::StatusOr<TrialRow> FindTrial(const Id& trial);
  absl::StatusOr<std::vector<TrialRow>> QueryTrials(const TrialFilter& filter);
  absl::StatusOr<std::vector<TrialRow>> ListLateTrials(const Id& run);
  // NotFound if the trial has none; DataLoss if they do not decode.
  absl::StatusOr<Samples> LoadSamples(const Id& trial);
  absl::StatusOr<VerdictRow> FindVerdict(const Id& verdict);
  absl::StatusOr<std::vector<VerdictRow>> QueryVerdicts(const VerdictFilter& filter);
  absl::StatusOr<Rounds> LoadRounds(const Id& verdict);
  absl::StatusOr<std::vector<EvaluationRow>> ListEvaluations(const Id& run);
  // Failures by kind, most frequent first. `limit` and `order` of the filter do not apply.
  absl::StatusOr<std::vector<std::pair<std::string, int64_t>>> CountFailures(
      const TrialFilter& filter);
  absl::StatusOr<ResumeState> LoadResumeState(const Id& run);
  // 0 in an empty log. A new run stores it as its start.
  absl::StatusOr<int64_t> HighestTrialRow();
  absl::StatusOr<LogCounts> Count();

  // Writes a consistent copy to a new file while the log is in use. AlreadyExists if `path` exists.
  absl::Status Backup(const std::string& path);

  // For db/ alone: export and import speak SQL.
  Connection& connection();

 private:
  class Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_DATABASE_H_
