#include "db/export.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "db/connection.h"
#include "db/log_lines.h"
#include "db/record_reader.h"
#include "db/record_writer.h"

namespace tilewright {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
constexpr int64_t kPage = 1000;
constexpr size_t kLongestLineBytes = 16 << 20;

using Sink = absl::FunctionRef<absl::Status(const LogRecord& record)>;

// Walks the log in an order in which every record comes after those it names.
class Exporter {
 public:
  Exporter(Database& from, const ExportOptions& options, Sink sink)
      : from_(from), reader_(from.connection()), options_(options), sink_(sink) {}

  absl::Status Run() {
    absl::Status status = sink_(LogHeader{from_.origin()});
    status.Update(Rows(from_.ListTargets()));
    status.Update(Rows(from_.ListWorkloads()));
    if (!status.ok()) return status;
    absl::StatusOr<std::vector<RunRow>> runs = from_.ListRuns({.limit = kAll});
    if (!runs.ok()) return runs.status();
    for (auto run = runs->rbegin(); status.ok() && run != runs->rend(); ++run)
      status = RunAndItsSessions(*run);
    if (status.ok()) status = Trials();
    for (auto run = runs->rbegin(); status.ok() && run != runs->rend(); ++run) {
      absl::StatusOr<std::vector<TrialRow>> late = from_.ListLateTrials(run->id);
      if (!late.ok()) return late.status();
      for (TrialRow& trial : *late) {
        if (!options_.samples) trial.samples.reset();
        if (status.ok()) status = sink_(LateTrialRow{std::move(trial)});
      }
      if (status.ok()) status = Rows(from_.ListEvaluations(run->id));
    }
    return status.ok() ? Verdicts() : status;
  }

  int64_t unreadable_blobs() const { return unreadable_blobs_; }

 private:
  template <typename Row>
  absl::Status Rows(absl::StatusOr<std::vector<Row>> rows) {
    if (!rows.ok()) return rows.status();
    for (Row& row : *rows) {
      absl::Status status = sink_(LogRecord(std::move(row)));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status RunAndItsSessions(const RunRow& run) {
    absl::Status status = sink_(run);
    const absl::StatusOr<std::vector<SessionRow>> sessions = from_.ListSessions(run.id);
    if (!sessions.ok()) return sessions.status();
    for (const SessionRow& session : *sessions) {
      if (status.ok()) status = sink_(session);
      if (status.ok()) status = Rows(from_.ListAnchorTimes(session.id));
    }
    if (!status.ok()) return status;
    return Rows(
        from_.connection().Guard("reading proposals", [&] { return reader_.Proposals(run.id); }));
  }

  absl::Status Trials() {
    TrialFilter page{.limit = kPage};
    while (true) {
      absl::StatusOr<std::vector<TrialRow>> trials = from_.QueryTrials(page);
      if (!trials.ok()) return trials.status();
      if (trials->empty()) return absl::OkStatus();
      page.after_row = trials->back().row;
      for (TrialRow& trial : *trials) {
        if (options_.samples) {
          absl::StatusOr<Samples> samples = from_.LoadSamples(trial.id);
          if (samples.ok()) trial.samples = *std::move(samples);
          if (absl::IsDataLoss(samples.status())) ++unreadable_blobs_;
        }
        absl::Status status = sink_(std::move(trial));
        if (!status.ok()) return status;
      }
    }
  }

  absl::Status Verdicts() {
    absl::StatusOr<std::vector<VerdictRow>> verdicts =
        from_.QueryVerdicts({.current_only = false, .limit = kAll});
    if (!verdicts.ok()) return verdicts.status();
    for (auto verdict = verdicts->rbegin(); verdict != verdicts->rend(); ++verdict) {
      if (options_.samples) {
        absl::StatusOr<Rounds> rounds = from_.LoadRounds(verdict->id);
        if (rounds.ok()) verdict->rounds = *std::move(rounds);
        if (absl::IsDataLoss(rounds.status())) ++unreadable_blobs_;
      }
      absl::Status status = sink_(*verdict);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  Database& from_;
  RecordReader reader_;
  const ExportOptions options_;
  Sink sink_;
  int64_t unreadable_blobs_ = 0;
};

// Writes records that come from another log. Runs inside a transaction.
class Importer {
 public:
  explicit Importer(Database& into)
      : connection_(into.connection()), writer_(connection_, into.origin()) {}

  absl::Status Add(const LogRecord& record) {
    ++report_.lines;
    const bool is_header = std::holds_alternative<LogHeader>(record);
    if (is_header != (report_.lines == 1)) {
      return absl::InvalidArgumentError(is_header ? "a second header"
                                                  : "expected the header 'tilewright_log' first");
    }
    if (is_header) return absl::OkStatus();
    const int64_t before = connection_.database().getTotalChanges();
    absl::Status status = std::visit([&](const auto& row) { return Write(row); }, record);
    if (absl::IsAlreadyExists(status)) {
      ++report_.conflicting;
      return absl::OkStatus();
    }
    if (!status.ok()) return status;
    ++(connection_.database().getTotalChanges() > before ? report_.added : report_.known);
    return absl::OkStatus();
  }
  const ImportReport& report() const { return report_; }

 private:
  absl::Status Write(const LogHeader&) { return absl::OkStatus(); }
  absl::Status Write(const TargetRow& row) { return writer_.Write(row); }
  absl::Status Write(const WorkloadRow& row) { return writer_.Write(row); }
  absl::Status Write(const RunRow& row) { return writer_.Write(row); }
  absl::Status Write(const SessionRow& row) { return writer_.Write(row); }
  absl::Status Write(const VerdictRow& row) { return writer_.Write(row); }
  absl::Status Write(const EvaluationRow& row) { return writer_.Write(row); }
  absl::Status Write(const AnchorTimeRow& row) {
    return writer_.Write(row, Numbering::kKeep).status();
  }
  absl::Status Write(const ProposalRow& row) {
    return writer_.Write(row, Numbering::kKeep).status();
  }
  absl::Status Write(const LateTrialRow& row) { return Write(row.trial); }
  absl::Status Write(const TrialRow& row) {
    const absl::StatusOr<Committed> outcome = writer_.Write(row, Numbering::kKeep);
    if (outcome.ok() && *outcome == Committed::kLate) ++report_.late;
    return outcome.status();
  }

  Connection& connection_;
  RecordWriter writer_;
  ImportReport report_;
};

absl::Status AtLine(const absl::Status& status, const std::string& name, int64_t line) {
  return absl::Status(status.code(), absl::StrCat(name, ":", line, ": ", status.message()));
}

absl::Status CheckWritable(Database& into) {
  if (into.writable()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(into.path(), ": open for reading only; expected a writer"));
}

}  // namespace

absl::StatusOr<ExportReport> ExportLog(
    Database& from, const ExportOptions& options,
    absl::FunctionRef<absl::Status(const std::string& line)> sink) {
  ExportReport report;
  auto write = [&](const LogRecord& record) {
    ++report.lines;
    return sink(WriteLogLine(record));
  };
  Exporter exporter(from, options, write);
  absl::Status status = from.Transaction([&] { return exporter.Run(); });
  report.unreadable_blobs = exporter.unreadable_blobs();
  if (!status.ok()) return status;
  return report;
}

absl::StatusOr<ExportReport> ExportLogToFile(Database& from, const ExportOptions& options,
                                             const std::string& path) {
  if (access(path.c_str(), F_OK) == 0)
    return absl::AlreadyExistsError(absl::StrCat(path, ": exists; expected a new file"));
  const std::string partial = absl::StrCat(path, ".creating");
  FILE* file = std::fopen(partial.c_str(), "we");
  auto failed = [&] {
    return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  };
  if (file == nullptr && errno == ENOENT)
    return absl::NotFoundError(absl::StrCat(path, ": there is no such directory"));
  if (file == nullptr) return failed();
  absl::StatusOr<ExportReport> report =
      ExportLog(from, options, [&](const std::string& line) -> absl::Status {
        const bool written = std::fwrite(line.data(), 1, line.size(), file) == line.size() &&
                             std::fputc('\n', file) != EOF;
        if (written) return absl::OkStatus();
        return errno == ENOSPC
                   ? absl::ResourceExhaustedError(absl::StrCat(path, ": the disk is full"))
                   : failed();
      });
  if (report.ok() && (std::fflush(file) != 0 || fsync(fileno(file)) != 0)) report = failed();
  if (std::fclose(file) != 0 && report.ok()) report = failed();
  if (report.ok() &&
      renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0)
    report = failed();
  if (!report.ok()) unlink(partial.c_str());
  return report;
}

absl::StatusOr<ImportReport> ImportLog(Database& into, std::istream& lines,
                                       const std::string& name) {
  absl::Status status = CheckWritable(into);
  if (!status.ok()) return status;
  Importer importer(into);
  status = into.Transaction([&]() -> absl::Status {
    std::vector<char> buffer(kLongestLineBytes);
    int64_t number = 0;
    while (lines.getline(buffer.data(), static_cast<std::streamsize>(buffer.size()))) {
      ++number;
      // getline counts the line's end, which the last line may lack.
      const std::string line(buffer.data(), lines.gcount() - (lines.eof() ? 0 : 1));
      if (line.empty() || line == "\r") continue;
      const absl::StatusOr<LogRecord> record = ReadLogLine(line);
      if (!record.ok()) return AtLine(record.status(), name, number);
      absl::Status added = importer.Add(*record);
      if (!added.ok()) return AtLine(added, name, number);
    }
    if (!lines.eof()) {
      return AtLine(absl::InvalidArgumentError(
                        absl::StrCat("expected lines of at most ", kLongestLineBytes, " bytes")),
                    name, number + 1);
    }
    if (importer.report().lines > 0) return absl::OkStatus();
    return AtLine(absl::InvalidArgumentError("no lines; expected the header 'tilewright_log'"),
                  name, 1);
  });
  if (!status.ok()) return status;
  return importer.report();
}

absl::StatusOr<ImportReport> MergeLog(Database& into, Database& from) {
  absl::Status status = CheckWritable(into);
  if (!status.ok()) return status;
  if (into.path() == from.path()) {
    return absl::InvalidArgumentError(
        absl::StrCat(into.path(), ": cannot be merged into itself; expected another log"));
  }
  Importer importer(into);
  auto add = [&](const LogRecord& record) { return importer.Add(record); };
  status = into.Transaction([&] {
    Exporter exporter(from, {}, add);
    absl::Status exported = from.Transaction([&] { return exporter.Run(); });
    return exported.ok() ? exported
                         : absl::Status(exported.code(), absl::StrCat("merging ", from.path(), ": ",
                                                                      exported.message()));
  });
  if (!status.ok()) return status;
  return importer.report();
}

bool BeginsAsExport(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return !line.empty() && line.front() == '{' &&
         line.find("\"tilewright_log\"") != std::string_view::npos;
}

}  // namespace tilewright
