// The text form of the log's records: one JSON object per line (docs/formats/log_lines.md). For db/
// alone.
//
// Each kind of record is one row of a list: its name, its version, and one function that names its
// fields, from which both directions follow. Reading is strict: a field that is missing, unknown or
// of the wrong type is refused by name.
#ifndef TILEWRIGHT_DB_LOG_LINES_H_
#define TILEWRIGHT_DB_LOG_LINES_H_

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "db/rows.h"

namespace tilewright {

// The first line of a log.
struct LogHeader {
  std::string origin;  // of the database that wrote it
  bool operator==(const LogHeader&) const = default;
};

// A result that was not the first of its candidate; late_reason says why.
struct LateTrialRow {
  TrialRow trial;
  bool operator==(const LateTrialRow&) const = default;
};

using LogRecord = std::variant<LogHeader, TargetRow, WorkloadRow, RunRow, SessionRow, AnchorTimeRow,
                               ProposalRow, TrialRow, LateTrialRow, VerdictRow, EvaluationRow>;

// Without the line's end. Text that is not UTF-8 (a compiler's message) has the bad bytes replaced
// by U+FFFD.
std::string WriteLogLine(const LogRecord& record);
// InvalidArgument says what is wrong with the line; FailedPrecondition: of a newer version than
// this program reads.
absl::StatusOr<LogRecord> ReadLogLine(const std::string& line);

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_LOG_LINES_H_
