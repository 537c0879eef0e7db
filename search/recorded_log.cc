// A workload of a tuning log as a recorded space: the trials of all runs whose times compare.
//
// Times of different sessions do not compare, but ratios to one anchor do. So the runs are grouped
// by target, regime and anchor; the group with the most trials is the space; and a schedule's time
// is the median of its ratios to the anchor, in units of the anchor's median time.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "db/export.h"
#include "db/find_workload.h"
#include "measure/failure.h"
#include "measure/statistics.h"
#include "search/recorded_file.h"

namespace tilewright {
namespace {

constexpr int64_t kAllTrials = INT64_MAX;

using AnchorGroup = std::tuple<std::string, std::string, std::string>;  // target, regime, anchor

// The trials of one schedule in one group.
struct RecordedSchedule {
  std::vector<double> ratios;   // seconds / anchor seconds
  std::vector<double> samples;  // likewise
  std::string failure;
};

absl::StatusOr<std::string> OnlyWorkload(Database& log) {
  absl::StatusOr<std::vector<WorkloadRow>> rows = log.ListWorkloads();
  if (!rows.ok()) return rows.status();
  std::set<std::string> keys;
  for (const WorkloadRow& row : *rows) {
    const absl::StatusOr<std::vector<TrialRow>> trials =
        log.QueryTrials({.workload_key = row.key, .limit = 1});
    if (!trials.ok()) return trials.status();
    if (!trials->empty()) keys.insert(row.key);
  }
  if (keys.empty()) return absl::InvalidArgumentError("the log has no trials");
  if (keys.size() > 1) {
    std::vector<std::string> listed;
    for (const WorkloadRow& row : *rows) {
      if (keys.erase(row.key) == 0) continue;
      listed.push_back(absl::StrCat(row.key.substr(0, 8), " (",
                                    row.name.empty() ? row.source : row.name, " ", row.sizes, ")"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the log has trials of ", listed.size(),
                     " workloads; choose one with --workload: ", absl::StrJoin(listed, ", ")));
  }
  return *keys.begin();
}

class LogReader {
 public:
  LogReader(Database& log, std::string workload) : log_(log), workload_(std::move(workload)) {}

  absl::StatusOr<RecordedTable> Read() {
    const absl::StatusOr<std::vector<TrialRow>> trials =
        log_.QueryTrials({.workload_key = workload_, .limit = kAllTrials});
    if (!trials.ok()) return trials.status();
    if (absl::Status chosen = ChooseGroup(*trials); !chosen.ok()) return chosen;
    for (const TrialRow& trial : *trials) {
      if (groups_.at(trial.run) != group_) continue;
      if (absl::Status added = Add(trial); !added.ok()) return added;
    }
    const auto& [target, regime, anchor] = group_;
    RecordedTable table;
    const absl::StatusOr<TargetRow> row = log_.FindTarget(target);
    if (row.ok()) table.device = row->kind;
    const absl::StatusOr<WorkloadRow> workload = log_.FindWorkload(workload_);
    if (workload.ok()) table.kernel = workload->name.empty() ? workload->source : workload->name;
    WarnOf(&table, static_cast<int64_t>(trials->size()) - in_group_,
           absl::StrCat("of another target, regime or anchor than ", table.device, ", ", regime,
                        ", ", anchor));
    WarnOf(&table, unreadable_, "without a schedule or times that can be read");
    WarnOf(&table, blameless_, "that failed through no fault of the schedule");
    if (anchor_milliseconds_.empty() || schedules_.empty()) {
      return absl::InvalidArgumentError("the workload has no trial with a time");
    }
    const double unit = Median(anchor_milliseconds_);
    for (auto& [text, recorded] : schedules_) {
      RecordedConfiguration configuration{.schedule = *ParseSchedule(text), .key = text};
      if (recorded.ratios.empty()) {
        configuration.failure = recorded.failure;
      } else {
        configuration.milliseconds = Median(recorded.ratios) * unit;
        for (double sample : recorded.samples) configuration.samples.push_back(sample * unit);
      }
      table.configurations.push_back(std::move(configuration));
    }
    return table;
  }

 private:
  absl::Status ChooseGroup(absl::Span<const TrialRow> trials) {
    std::map<AnchorGroup, int64_t> counts;
    for (const TrialRow& trial : trials) {
      if (!groups_.contains(trial.run)) {
        const absl::StatusOr<RunRow> run = log_.FindRun(trial.run);
        if (!run.ok()) return run.status();
        std::string anchor;
        for (const RunWorkload& workload : run->workloads) {
          if (workload.workload_key == workload_) anchor = workload.anchor_schedule;
        }
        groups_[trial.run] = {run->target_key, run->regime, anchor};
      }
      ++counts[groups_[trial.run]];
    }
    for (const auto& [group, count] : counts) {
      if (count <= in_group_) continue;
      group_ = group;
      in_group_ = count;
    }
    return absl::OkStatus();
  }

  absl::Status Add(const TrialRow& trial) {
    if (!ParseSchedule(trial.schedule).ok() ||
        (trial.ok() && !(IsTime(trial.seconds) && IsTime(trial.anchor_seconds)))) {
      ++unreadable_;
      return absl::OkStatus();
    }
    if (trial.failure) {
      const absl::StatusOr<FailureKind> kind = ParseFailureKind(trial.failure->kind);
      if (kind.ok() && Info(*kind).trains_classifier) {
        schedules_[trial.schedule].failure = trial.failure->kind;
      } else {
        ++blameless_;
      }
      return absl::OkStatus();
    }
    RecordedSchedule& recorded = schedules_[trial.schedule];
    recorded.ratios.push_back(*trial.seconds / *trial.anchor_seconds);
    anchor_milliseconds_.push_back(1e3 * *trial.anchor_seconds);
    const absl::StatusOr<Samples> samples = log_.LoadSamples(trial.id);
    if (absl::IsNotFound(samples.status())) return absl::OkStatus();  // dropped to save space
    if (!samples.ok()) return samples.status();
    for (size_t i = 0; i < samples->seconds.size(); ++i) {
      if (i < samples->marks.size() && (samples->marks[i] & Samples::kDropped) != 0) continue;
      if (!IsTime(samples->seconds[i])) continue;
      recorded.samples.push_back(samples->seconds[i] / *trial.anchor_seconds);
    }
    return absl::OkStatus();
  }

  static bool IsTime(const std::optional<double>& seconds) {
    return seconds && 1e3 * *seconds >= kLeastMilliseconds && 1e3 * *seconds < kMostMilliseconds;
  }

  static void WarnOf(RecordedTable* table, int64_t count, const std::string& what) {
    if (count > 0) {
      table->warnings.push_back(
          absl::StrCat(count, count == 1 ? " trial is" : " trials are", " left out, ", what));
    }
  }

  Database& log_;
  const std::string workload_;
  std::map<Id, AnchorGroup> groups_;  // by run
  AnchorGroup group_;
  int64_t in_group_ = 0;
  std::map<std::string, RecordedSchedule> schedules_;
  std::vector<double> anchor_milliseconds_;
  int64_t unreadable_ = 0;
  int64_t blameless_ = 0;
};

absl::StatusOr<RecordedTable> ReadWorkload(Database& log, const std::string& name,
                                           const std::string& workload) {
  const absl::StatusOr<std::string> key =
      workload.empty() ? OnlyWorkload(log) : FindWorkloadKey(log, workload);
  if (!key.ok()) {
    return absl::Status(key.status().code(),
                        absl::StrCat(name, ": ", std::string(key.status().message())));
  }
  absl::StatusOr<RecordedTable> table = LogReader(log, *key).Read();
  if (table.ok() || !absl::IsInvalidArgument(table.status())) return table;
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", std::string(table.status().message())));
}

// A directory of its own, removed with what is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code error;
    std::string pattern =
        (std::filesystem::temp_directory_path(error) / "tilewright-log-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  // Empty: it could not be made.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

absl::StatusOr<RecordedTable> ReadRecordedLog(const std::string& path,
                                              const std::string& workload) {
  const absl::StatusOr<std::unique_ptr<Database>> log = Database::OpenReader(path);
  if (!log.ok()) return log.status();
  return ReadWorkload(**log, path, workload);
}

absl::StatusOr<RecordedTable> ReadExportedLog(const std::string& lines, const std::string& name,
                                              const std::string& workload) {
  const TemporaryDirectory directory;
  if (directory.path().empty()) {
    return absl::UnavailableError(
        absl::StrCat(name, ": no temporary directory can be made to read it in; TMPDIR names one"));
  }
  const absl::StatusOr<std::unique_ptr<Database>> log =
      Database::OpenWriter(absl::StrCat(directory.path(), "/log.db"));
  if (!log.ok()) return log.status();
  std::istringstream stream(lines);
  if (absl::Status read = ImportLog(**log, stream, name).status(); !read.ok()) return read;
  return ReadWorkload(**log, name, workload);
}

}  // namespace tilewright
