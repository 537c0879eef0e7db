// The formats behind ReadRecordedFile: each turns what a file holds into configurations.
#ifndef TILEWRIGHT_SEARCH_RECORDED_FILE_H_
#define TILEWRIGHT_SEARCH_RECORDED_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/lenient_json.h"
#include "search/recorded_space.h"

namespace tilewright {

// Times beyond these are no measurements, and with all times between them quotients of sums of them
// stay numbers.
constexpr double kLeastMilliseconds = 1e-20;
constexpr double kMostMilliseconds = 1e20;

// A RecordedFile before its space is made.
struct RecordedTable {
  std::vector<RecordedConfiguration> configurations;
  std::string device;
  std::string kernel;
  std::vector<std::string> warnings;
};

// InvalidArgument says what is missing.
absl::StatusOr<RecordedTable> ReadKernelTunerCache(const JsonValue& file);
absl::StatusOr<RecordedTable> ReadT4Results(const JsonValue& file);
// The trials of one workload in a tuning log. NotFound: it has none; else as Database::OpenReader.
absl::StatusOr<RecordedTable> ReadRecordedLog(const std::string& path, const std::string& workload);
// The same of the lines that `log export` writes. `name` is what messages call them.
absl::StatusOr<RecordedTable> ReadExportedLog(const std::string& lines, const std::string& name,
                                              const std::string& workload);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_RECORDED_FILE_H_
