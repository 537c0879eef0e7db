// Reads records: SQL texts and the row each selects. For db/ alone; Database and export stand on
// it.
//
// Each function expects to run inside Connection::Guard.
#ifndef TILEWRIGHT_DB_RECORD_READER_H_
#define TILEWRIGHT_DB_RECORD_READER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/connection.h"
#include "db/database.h"
#include "db/rows.h"

namespace tilewright {

class RecordReader {
 public:
  explicit RecordReader(Connection& connection) : connection_(connection) {}

  absl::StatusOr<BestAnswer> Best(const std::string& workload_key, const std::string& target_key,
                                  const std::string& regime);

  std::vector<WorkloadRow> Workloads(const std::string& key, const std::string& name);
  std::vector<TargetRow> Targets(const std::string& key, const std::string& kind);
  absl::StatusOr<std::vector<RunRow>> Runs(const std::optional<Id>& id, const RunFilter& filter);
  std::vector<SessionRow> Sessions(const std::optional<Id>& id, const std::optional<Id>& run);
  std::vector<AnchorTimeRow> AnchorTimes(const Id& session);
  absl::StatusOr<std::vector<ProposalRow>> Proposals(const Id& run);
  absl::StatusOr<std::vector<TrialRow>> Trials(const TrialFilter& filter);
  std::vector<TrialRow> TrialsOfRun(const Id& run);  // by ordinal
  absl::StatusOr<TrialRow> Trial(const Id& id);
  // With their samples.
  absl::StatusOr<std::vector<TrialRow>> LateTrials(const Id& run);
  absl::StatusOr<Samples> LoadSamples(const Id& trial);
  absl::StatusOr<std::vector<VerdictRow>> Verdicts(const VerdictFilter& filter);
  absl::StatusOr<VerdictRow> Verdict(const Id& id);
  absl::StatusOr<Rounds> LoadRounds(const Id& verdict);
  std::vector<EvaluationRow> Evaluations(const Id& run);
  absl::StatusOr<std::vector<std::pair<std::string, int64_t>>> CountFailures(
      const TrialFilter& filter);
  LogCounts Count();
  int64_t HighestTrialRow();

 private:
  void ReadReplaces(VerdictRow& verdict);
  Connection& connection_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_RECORD_READER_H_
