#include "db/database.h"

#include <SQLiteCpp/Backup.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "db/connection.h"
#include "db/database_file.h"
#include "db/record_reader.h"
#include "db/record_writer.h"
#include "db/schema.h"

namespace tilewright {
namespace {

// Above this size `PRAGMA quick_check`, which reads the whole file, runs only after a writer was
// killed.
constexpr int64_t kQuickCheckBytes = 16 << 20;

absl::Status QuickCheck(Connection& connection) {
  return connection.Guard("checking", [&]() -> absl::Status {
    const std::string result =
        connection.database().execAndGet("PRAGMA quick_check(1)").getString();
    if (result == "ok") return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(connection.name(), ": damaged: ", absl::StrReplaceAll(result, {{"\n", " "}})));
  });
}

// Opening a damaged file is a refusal, like every other reason not to open one.
absl::Status AsRefusal(const absl::Status& status) {
  if (!absl::IsDataLoss(status) && !absl::IsInternal(status)) return status;
  return absl::FailedPreconditionError(absl::StrCat(
      status.message(),
      "; restore a backup, or recover what is left with `sqlite3 FILE .recover` (Debian 12: "
      "`.dump`)"));
}

absl::Status CopyTo(Connection& connection, const std::string& path,
                    const DatabaseOptions& options) {
  return connection.Guard(absl::StrCat("copying to ", path), [&] {
    SQLite::Database copy(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                          options.busy_timeout_ms, options.vfs);
    SQLite::Backup backup(copy, connection.database());
    backup.executeStep(-1);
    return absl::OkStatus();
  });
}

// An older file is copied before its schema changes.
absl::Status MigrateAfterCopy(Connection& connection, const DatabaseOptions& options) {
  int version = 0;
  absl::Status status = connection.Guard("reading the version", [&] {
    version = connection.database().execAndGet("PRAGMA user_version").getInt();
    return absl::OkStatus();
  });
  if (!status.ok() || version == SchemaVersion()) return status;
  const std::string copy = absl::StrCat(connection.name(), ".before-v", SchemaVersion());
  if (access(copy.c_str(), F_OK) != 0) {
    const std::string partial = absl::StrCat(copy, ".creating");
    unlink(partial.c_str());
    status = CopyTo(connection, partial, options);
    if (status.ok() && rename(partial.c_str(), copy.c_str()) != 0) {
      status = absl::UnavailableError(absl::StrCat(copy, ": cannot be made before the migration"));
    }
    if (!status.ok()) return status;
  }
  return Migrate(connection, Migrations());
}

absl::StatusOr<std::string> ReadOrigin(Connection& connection) {
  return connection.Guard("reading the origin", [&]() -> absl::StatusOr<std::string> {
    Query query =
        connection.Prepare("SELECT origin.name FROM self JOIN origin ON origin.row = self.origin");
    if (query.Next()) return query.Text();
    return absl::FailedPreconditionError(
        absl::StrCat(connection.name(), ": has no origin; not a tuning log"));
  });
}

}  // namespace

class Database::Impl {
 public:
  Impl(std::unique_ptr<WriterLock> lock, std::unique_ptr<Connection> connection, std::string path,
       std::string origin, DatabaseOptions options)
      : lock_(std::move(lock)),
        connection_(std::move(connection)),
        path_(std::move(path)),
        origin_(std::move(origin)),
        options_(std::move(options)),
        reader_(*connection_),
        writer_(*connection_, origin_) {}

  ~Impl() {
    // Leaves one file where no reader is in the way; SQLite does the rest when the last connection
    // closes.
    if (connection_->writable()) connection_->database().tryExec("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  Connection& connection() { return *connection_; }
  RecordReader& reader() { return reader_; }
  RecordWriter& writer() { return writer_; }
  const std::string& path() const { return path_; }
  const std::string& origin() const { return origin_; }
  const DatabaseOptions& options() const { return options_; }

  absl::Status Write(absl::FunctionRef<absl::Status(RecordWriter&)> body) {
    if (!connection_->writable()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_, ": open for reading only; expected a writer"));
    }
    return connection_->Transaction([&] { return body(writer_); });
  }

 private:
  std::unique_ptr<WriterLock> lock_;  // released after the connection closed
  std::unique_ptr<Connection> connection_;
  std::string path_;
  std::string origin_;
  DatabaseOptions options_;
  RecordReader reader_;
  RecordWriter writer_;
};

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::~Database() = default;
const std::string& Database::path() const { return impl_->path(); }
bool Database::writable() const { return impl_->connection().writable(); }
const std::string& Database::origin() const { return impl_->origin(); }
Connection& Database::connection() { return impl_->connection(); }

absl::StatusOr<std::unique_ptr<Database>> Database::OpenWriter(const std::string& given,
                                                               const DatabaseOptions& options) {
  const absl::StatusOr<std::string> path = ResolvePath(given);
  if (!path.ok()) return path.status();
  absl::Status status = CheckFileSystem(*path);
  if (!status.ok()) return status;
  // Before the lock: a file that is not ours gets no lock file beside it.
  absl::StatusOr<FileFacts> facts = CheckHeader(*path, options);
  if (!facts.ok() && !absl::IsNotFound(facts.status())) return facts.status();
  absl::StatusOr<std::unique_ptr<WriterLock>> lock = WriterLock::Acquire(*path);
  if (!lock.ok()) return lock.status();
  facts = CheckHeader(*path, options);  // another writer may have made it meanwhile
  if (absl::IsNotFound(facts.status())) {
    status = CreateDatabase(*path, options);
    if (!status.ok()) return status;
    facts = CheckHeader(*path, options);
  }
  if (!facts.ok()) return facts.status();
  struct stat file;
  if (stat(path->c_str(), &file) == 0 && file.st_nlink > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(*path, ": has ", file.st_nlink,
                     " hard links; each name would get a log of its own, keep one"));
  }
  absl::StatusOr<std::unique_ptr<Connection>> connection =
      Connect(*path, /*writable=*/true, options);
  if (!connection.ok()) return AsRefusal(connection.status());
  if (facts->has_log || facts->size_bytes <= kQuickCheckBytes) {
    status = QuickCheck(**connection);
    if (!status.ok()) return AsRefusal(status);
  }
  status = MigrateAfterCopy(**connection, options);
  if (!status.ok()) return AsRefusal(status);
  absl::StatusOr<std::string> origin = ReadOrigin(**connection);
  if (!origin.ok()) return AsRefusal(origin.status());
  return std::unique_ptr<Database>(new Database(std::make_unique<Impl>(
      *std::move(lock), *std::move(connection), *path, *std::move(origin), options)));
}

absl::StatusOr<std::unique_ptr<Database>> Database::OpenReader(const std::string& given,
                                                               const DatabaseOptions& options) {
  const absl::StatusOr<std::string> path = ResolvePath(given);
  if (!path.ok()) return path.status();
  absl::StatusOr<FileFacts> facts = CheckHeader(*path, options);
  if (!facts.ok()) return facts.status();
  absl::Status status = CheckFileSystem(*path);
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Connection>> connection =
      Connect(*path, /*writable=*/false, options);
  if (!connection.ok()) return AsRefusal(connection.status());
  int version = 0;
  status = (*connection)->Guard("reading the version", [&] {
    version = (*connection)->database().execAndGet("PRAGMA user_version").getInt();
    return absl::OkStatus();
  });
  if (!status.ok()) return AsRefusal(status);
  if (version != SchemaVersion()) {
    return absl::FailedPreconditionError(absl::StrCat(
        *path, ": schema version ", version, " where this program reads ", SchemaVersion(),
        "; `tilewright tune` and `tilewright log import` open it for writing and migrate it"));
  }
  absl::StatusOr<std::string> origin = ReadOrigin(**connection);
  if (!origin.ok()) return AsRefusal(origin.status());
  return std::unique_ptr<Database>(new Database(
      std::make_unique<Impl>(nullptr, *std::move(connection), *path, *std::move(origin), options)));
}

absl::Status Database::Transaction(absl::FunctionRef<absl::Status()> body) {
  return impl_->connection().Transaction(body);
}

absl::Status Database::InsertWorkload(const WorkloadRow& workload) {
  return impl_->Write([&](RecordWriter& writer) { return writer.Write(workload); });
}
absl::Status Database::InsertTarget(const TargetRow& target) {
  return impl_->Write([&](RecordWriter& writer) { return writer.Write(target); });
}
absl::Status Database::InsertRun(const RunRow& run) {
  return impl_->Write([&](RecordWriter& writer) { return writer.Write(run); });
}
absl::Status Database::SetRunState(const Id& run, const std::string& state,
                                   std::optional<int64_t> ended_unix_ns) {
  return impl_->Write(
      [&](RecordWriter& writer) { return writer.SetRunState(run, state, ended_unix_ns); });
}
absl::Status Database::InsertSession(const SessionRow& session) {
  return impl_->Write([&](RecordWriter& writer) { return writer.Write(session); });
}
absl::Status Database::InsertVerdict(const VerdictRow& verdict) {
  return impl_->Write([&](RecordWriter& writer) { return writer.Write(verdict); });
}
absl::Status Database::InsertEvaluation(const EvaluationRow& evaluation) {
  return impl_->Write([&](RecordWriter& writer) { return writer.Write(evaluation); });
}

absl::StatusOr<int64_t> Database::AppendAnchorTime(const Id& session,
                                                   const std::string& workload_key,
                                                   double seconds) {
  absl::StatusOr<int64_t> ordinal = 0;
  absl::Status status = impl_->Write([&](RecordWriter& writer) {
    ordinal = writer.Write(AnchorTimeRow{session, workload_key, 0, seconds}, Numbering::kAssign);
    return ordinal.status();
  });
  if (!status.ok()) return status;
  return ordinal;
}

absl::StatusOr<int64_t> Database::LogProposal(const ProposalRow& proposal) {
  absl::StatusOr<int64_t> sequence = 0;
  absl::Status status = impl_->Write([&](RecordWriter& writer) {
    sequence = writer.Write(proposal, Numbering::kAssign);
    return sequence.status();
  });
  if (!status.ok()) return status;
  return sequence;
}

absl::StatusOr<std::vector<Committed>> Database::CommitTrials(absl::Span<const TrialRow> trials) {
  std::vector<Committed> outcomes;
  absl::Status status = impl_->Write([&](RecordWriter& writer) -> absl::Status {
    for (const TrialRow& trial : trials) {
      const absl::StatusOr<Committed> outcome = writer.Write(trial, Numbering::kAssign);
      if (!outcome.ok()) return outcome.status();
      outcomes.push_back(*outcome);
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return outcomes;
}

absl::StatusOr<int64_t> Database::NextGeneration(int64_t unix_ns) {
  int64_t generation = 0;
  absl::Status status = impl_->Write([&](RecordWriter&) {
    Query query = connection().Prepare(
        "INSERT INTO generation(generation, started_unix_ns) SELECT coalesce(max(generation), 0) + "
        "1, ? FROM generation "
        "RETURNING generation");
    query.Bind(unix_ns).Next();
    generation = query.Int64();
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return generation;
}

absl::Status Database::Rekey(absl::Span<const std::pair<std::string, WorkloadRow>> workloads) {
  return impl_->Write([&](RecordWriter& writer) {
    absl::Status status;
    for (const auto& [old_key, workload] : workloads) {
      if (status.ok()) status = writer.Rekey(old_key, workload);
    }
    return status;
  });
}

absl::Status Database::CollectGarbage(int64_t before_unix_ns) {
  absl::Status status = impl_->Write([&](RecordWriter&) {
    connection()
        .Prepare(
            "DELETE FROM trial_samples WHERE trial IN (SELECT row FROM trial WHERE created_unix_ns "
            "< ?)")
        .Bind(before_unix_ns)
        .Run();
    connection()
        .Prepare("DELETE FROM late_trial WHERE created_unix_ns < ?")
        .Bind(before_unix_ns)
        .Run();
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return connection().Guard("compacting", [&] {
    connection().database().exec("VACUUM");
    connection().database().exec("PRAGMA wal_checkpoint(TRUNCATE)");
    return absl::OkStatus();
  });
}

absl::StatusOr<BestAnswer> Database::Best(const std::string& workload_key,
                                          const std::string& target_key,
                                          const std::string& regime) {
  return connection().Snapshot(
      "reading", [&] { return impl_->reader().Best(workload_key, target_key, regime); });
}

absl::StatusOr<WorkloadRow> Database::FindWorkload(const std::string& key) {
  return connection().Guard("reading workloads", [&]() -> absl::StatusOr<WorkloadRow> {
    std::vector<WorkloadRow> rows;
    if (!key.empty()) rows = impl_->reader().Workloads(key, "");
    if (!rows.empty()) return std::move(rows.front());
    return absl::NotFoundError(absl::StrCat("workload '", key, "': not in ", path()));
  });
}

absl::StatusOr<std::vector<WorkloadRow>> Database::ListWorkloads(const std::string& name) {
  return connection().Guard("reading workloads", [&]() -> absl::StatusOr<std::vector<WorkloadRow>> {
    return impl_->reader().Workloads("", name);
  });
}

absl::StatusOr<TargetRow> Database::FindTarget(const std::string& key) {
  return connection().Guard("reading targets", [&]() -> absl::StatusOr<TargetRow> {
    std::vector<TargetRow> rows;
    if (!key.empty()) rows = impl_->reader().Targets(key, "");
    if (!rows.empty()) return std::move(rows.front());
    return absl::NotFoundError(absl::StrCat("target '", key, "': not in ", path()));
  });
}

absl::StatusOr<std::vector<TargetRow>> Database::ListTargets(const std::string& kind) {
  return connection().Guard("reading targets", [&]() -> absl::StatusOr<std::vector<TargetRow>> {
    return impl_->reader().Targets("", kind);
  });
}

absl::StatusOr<RunRow> Database::FindRun(const Id& run) {
  return connection().Snapshot("reading", [&]() -> absl::StatusOr<RunRow> {
    absl::StatusOr<std::vector<RunRow>> runs = impl_->reader().Runs(run, {});
    if (!runs.ok()) return runs.status();
    if (!runs->empty()) return std::move(runs->front());
    return absl::NotFoundError(absl::StrCat("run ", run.ToHex(), ": not in ", path()));
  });
}

absl::StatusOr<std::vector<RunRow>> Database::ListRuns(const RunFilter& filter) {
  return connection().Snapshot("reading",
                               [&] { return impl_->reader().Runs(std::nullopt, filter); });
}

absl::StatusOr<SessionRow> Database::FindSession(const Id& session) {
  return connection().Guard("reading sessions", [&]() -> absl::StatusOr<SessionRow> {
    std::vector<SessionRow> rows = impl_->reader().Sessions(session, std::nullopt);
    if (!rows.empty()) return std::move(rows.front());
    return absl::NotFoundError(absl::StrCat("session ", session.ToHex(), ": not in ", path()));
  });
}

absl::StatusOr<std::vector<SessionRow>> Database::ListSessions(const Id& run) {
  return connection().Guard("reading sessions", [&]() -> absl::StatusOr<std::vector<SessionRow>> {
    return impl_->reader().Sessions(std::nullopt, run);
  });
}

absl::StatusOr<std::vector<AnchorTimeRow>> Database::ListAnchorTimes(const Id& session) {
  return connection().Guard("reading anchor times",
                            [&]() -> absl::StatusOr<std::vector<AnchorTimeRow>> {
                              return impl_->reader().AnchorTimes(session);
                            });
}

absl::StatusOr<TrialRow> Database::FindTrial(const Id& trial) {
  return connection().Guard("reading trials", [&] { return impl_->reader().Trial(trial); });
}

absl::StatusOr<std::vector<TrialRow>> Database::QueryTrials(const TrialFilter& filter) {
  return connection().Guard("reading trials", [&] { return impl_->reader().Trials(filter); });
}

absl::StatusOr<std::vector<TrialRow>> Database::ListLateTrials(const Id& run) {
  return connection().Guard("reading late trials", [&] { return impl_->reader().LateTrials(run); });
}

absl::StatusOr<Samples> Database::LoadSamples(const Id& trial) {
  return connection().Guard("reading samples", [&] { return impl_->reader().LoadSamples(trial); });
}

absl::StatusOr<VerdictRow> Database::FindVerdict(const Id& verdict) {
  return connection().Snapshot("reading", [&] { return impl_->reader().Verdict(verdict); });
}

absl::StatusOr<std::vector<VerdictRow>> Database::QueryVerdicts(const VerdictFilter& filter) {
  return connection().Snapshot("reading", [&] { return impl_->reader().Verdicts(filter); });
}

absl::StatusOr<Rounds> Database::LoadRounds(const Id& verdict) {
  return connection().Guard("reading rounds", [&] { return impl_->reader().LoadRounds(verdict); });
}

absl::StatusOr<std::vector<EvaluationRow>> Database::ListEvaluations(const Id& run) {
  return connection().Guard("reading evaluations",
                            [&]() -> absl::StatusOr<std::vector<EvaluationRow>> {
                              return impl_->reader().Evaluations(run);
                            });
}

absl::StatusOr<std::vector<std::pair<std::string, int64_t>>> Database::CountFailures(
    const TrialFilter& filter) {
  return connection().Guard("counting failures",
                            [&] { return impl_->reader().CountFailures(filter); });
}

absl::StatusOr<ResumeState> Database::LoadResumeState(const Id& run) {
  return connection().Snapshot("reading", [&]() -> absl::StatusOr<ResumeState> {
    absl::StatusOr<RunRow> row = FindRun(run);
    if (!row.ok()) return row.status();
    absl::StatusOr<std::vector<ProposalRow>> proposals = impl_->reader().Proposals(run);
    if (!proposals.ok()) return proposals.status();
    return ResumeState{*std::move(row), *std::move(proposals), impl_->reader().TrialsOfRun(run)};
  });
}

absl::StatusOr<int64_t> Database::HighestTrialRow() {
  return connection().Guard("reading trials", [&]() -> absl::StatusOr<int64_t> {
    return impl_->reader().HighestTrialRow();
  });
}

absl::StatusOr<LogCounts> Database::Count() {
  return connection().Guard("counting",
                            [&]() -> absl::StatusOr<LogCounts> { return impl_->reader().Count(); });
}

absl::Status Database::Backup(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": exists; a backup expects a new file"));
  }
  const std::string partial = absl::StrCat(path, ".creating");
  unlink(partial.c_str());
  // A copy of what is damaged is worth nothing.
  absl::Status status = QuickCheck(connection());
  if (status.ok()) status = CopyTo(connection(), partial, impl_->options());
  if (status.ok() &&
      renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
    status = absl::UnavailableError(absl::StrCat(path, ": cannot be made: ", std::strerror(errno)));
  }
  if (!status.ok()) unlink(partial.c_str());
  return status;
}

}  // namespace tilewright
