// Writes records: one function per kind of row. For db/ alone; Database and the importer stand on
// it.
//
// Each function expects to run inside a transaction and inside Connection::Guard, and checks what
// the schema cannot say in a message for people. Numbers that the database assigns (ordinals,
// sequence numbers) are assigned to records born here and kept for records that come from another
// log.
#ifndef TILEWRIGHT_DB_RECORD_WRITER_H_
#define TILEWRIGHT_DB_RECORD_WRITER_H_

#include <cstdint>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/connection.h"
#include "db/rows.h"

namespace tilewright {

enum class Numbering { kAssign, kKeep };

class RecordWriter {
 public:
  // `own_origin` is the origin of rows whose `origin` is empty.
  RecordWriter(Connection& connection, std::string own_origin)
      : connection_(connection), own_origin_(std::move(own_origin)) {}

  absl::Status Write(const WorkloadRow& workload);
  absl::Status Write(const TargetRow& target);
  absl::Status Write(const RunRow& run);
  absl::Status Write(const SessionRow& session);
  absl::Status Write(const VerdictRow& verdict);
  absl::Status Write(const EvaluationRow& evaluation);
  // With kKeep the same content under the same number is OK, another content AlreadyExists.
  absl::StatusOr<int64_t> Write(const AnchorTimeRow& time, Numbering numbering);
  absl::StatusOr<int64_t> Write(const ProposalRow& proposal, Numbering numbering);
  absl::StatusOr<Committed> Write(const TrialRow& trial, Numbering numbering);

  absl::Status SetRunState(const Id& run, const std::string& state,
                           std::optional<int64_t> ended_unix_ns);
  absl::Status Rekey(const std::string& old_key, const WorkloadRow& workload);

 private:
  // Rows of named identities. NotFound → InvalidArgument, since the caller's row names them.
  absl::StatusOr<int64_t> WorkloadNumber(const std::string& key);
  absl::StatusOr<int64_t> TargetNumber(const std::string& key);
  absl::StatusOr<int64_t> NumberOf(const std::string& sql, const Id& id, absl::string_view kind);
  int64_t RegimeNumber(const std::string& text);
  int64_t OriginNumber(const std::string& name);
  int64_t EnvironmentNumber(const EnvironmentRow& environment);

  // The rows that a trial refers to.
  struct Subject {
    int64_t run = 0, workload = 0, target = 0, regime = 0, origin = 0;
    std::optional<int64_t> session;
  };
  absl::StatusOr<Subject> SubjectOf(const TrialRow& trial);
  absl::StatusOr<Committed> WriteLate(const TrialRow& trial, const Subject& subject,
                                      absl::string_view reason);
  absl::Status WriteVerdictRow(const VerdictRow& verdict);

  Connection& connection_;
  std::string own_origin_;
};

// What both sources of the writer check. InvalidArgument: `what` is the record.
absl::Status InvalidRow(absl::string_view what, absl::string_view problem);
absl::Status CheckJsonText(const std::string& text, absl::string_view what);
absl::Status CheckTime(std::optional<double> seconds, absl::string_view what);

// A list of schedules as stored: a JSON array of texts.
std::string EncodeTexts(const std::vector<std::string>& texts);

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_RECORD_WRITER_H_
