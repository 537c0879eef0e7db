// Moves records between logs: as JSON lines (docs/formats/log_lines.md), or straight from another
// database.
//
// Records keep their ids and origins, so that importing is idempotent and logs may be merged in any
// order and any number of times. An export of a log and its import into an empty database give the
// same rows in the same order: runs can be resumed there. In any other database an imported run is
// history: its start (highest_trial_row) names rows of its own log.
#ifndef TILEWRIGHT_DB_EXPORT_H_
#define TILEWRIGHT_DB_EXPORT_H_

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/database.h"

namespace tilewright {

struct ExportOptions {
  bool samples = true;  // with the samples of trials and the rounds of verdicts; without, a line is
                        // a third as long
};

struct ExportReport {
  int64_t lines = 0;
  int64_t unreadable_blobs =
      0;  // samples or rounds that do not decode; their records are written without them
};

// Gives every line, without its end, to `sink`, all of one state of the log. A failure of the sink
// ends the export.
absl::StatusOr<ExportReport> ExportLog(
    Database& from, const ExportOptions& options,
    absl::FunctionRef<absl::Status(const std::string& line)> sink);
// Writes a file: all of it, flushed to disk, or none. AlreadyExists if `path` exists, NotFound
// if its directory does not.
absl::StatusOr<ExportReport> ExportLogToFile(Database& from, const ExportOptions& options,
                                             const std::string& path);

struct ImportReport {
  int64_t lines = 0;
  int64_t added = 0;
  int64_t known = 0;  // already there
  int64_t late = 0;   // of `added`: results of candidates that had one here
  int64_t conflicting =
      0;  // proposals and anchor times of a run that went on in two copies; ours were kept
};

// Reads lines into the log, all in one transaction. `name` is what messages call the source.
// InvalidArgument or FailedPrecondition (a newer version): `name:line: problem`, nothing was
// imported.
absl::StatusOr<ImportReport> ImportLog(Database& into, std::istream& lines,
                                       const std::string& name);
// The same from another open database.
absl::StatusOr<ImportReport> MergeLog(Database& into, Database& from);

// Whether `text` begins as an export of any version does, that is with its header.
bool BeginsAsExport(std::string_view text);

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_EXPORT_H_
