#include "search/log_sink.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"

namespace tilewright {
namespace {

std::string ResourcesJson(const v1::BuildFacts& facts) {
  if (facts.resources().empty()) return "";
  nlohmann::json json = nlohmann::json::object();
  for (const v1::Resource& resource : facts.resources()) json[resource.name()] = resource.value();
  return json.dump();
}

class LogSink : public CommitSink {
 public:
  explicit LogSink(std::unique_ptr<Database> log) : log_(std::move(log)) {}

  absl::StatusOr<uint64_t> NextGeneration() override {
    const absl::StatusOr<int64_t> generation = log_->NextGeneration(absl::GetCurrentTimeNanos());
    if (!generation.ok()) return generation.status();
    return static_cast<uint64_t>(*generation);
  }

  absl::Status StartRun(const RunRow& record) override {
    const absl::StatusOr<RunRow> stored = log_->FindRun(record.id);
    if (!absl::IsNotFound(stored.status()) && !stored.ok()) return stored.status();
    if (stored.ok()) return log_->SetRunState(record.id, "running", std::nullopt);
    return log_->InsertRun(record);
  }

  absl::Status LogProposal(const Proposal& proposal) override {
    const absl::StatusOr<const RunFacts*> run = FindRun(proposal.run_id);
    if (!run.ok()) return run.status();
    return log_
        ->LogProposal({.run = IdFromBytes(proposal.run_id),
                       .workload_key = (*run)->workload_key,
                       .results_seen = proposal.results_seen,
                       .trained_on = proposal.trained_on,
                       .schedules = proposal.schedules,
                       .created_unix_ns = absl::GetCurrentTimeNanos()})
        .status();
  }

  absl::StatusOr<std::vector<TrialFate>> Commit(const CommitBatch& batch) override {
    std::vector<TrialFate> fates;
    std::map<std::string, size_t> anchors = anchors_stored_;
    const absl::Status status = log_->Transaction([&]() -> absl::Status {
      for (const CommitBatch::Session& session : batch.sessions) {
        if (absl::Status stored = StoreSession(session, &anchors); !stored.ok()) return stored;
      }
      std::vector<TrialRow> rows;
      for (const CommitBatch::Trial& trial : batch.trials) {
        absl::StatusOr<TrialRow> row = MakeRow(trial);
        if (!row.ok()) return row.status();
        rows.push_back(*std::move(row));
      }
      absl::StatusOr<std::vector<Committed>> committed = log_->CommitTrials(rows);
      if (!committed.ok()) return committed.status();
      for (Committed fate : *committed) {
        fates.push_back(fate == Committed::kFirst  ? TrialFate::kFirst
                        : fate == Committed::kLate ? TrialFate::kLate
                                                   : TrialFate::kDuplicate);
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    anchors_stored_ = std::move(anchors);
    return fates;
  }

  absl::Status RecordVerdict(const VerdictRow& verdict) override {
    return log_->InsertVerdict(verdict);
  }
  absl::Status RecordEvaluation(const EvaluationRow& evaluation) override {
    return log_->InsertEvaluation(evaluation);
  }

  absl::Status EndRun(const std::string& run_id, const std::string& state) override {
    return log_->SetRunState(IdFromBytes(run_id), state, absl::GetCurrentTimeNanos());
  }

 private:
  struct RunFacts {
    std::string workload_key;
    std::string target_key;
    std::string regime;
  };

  absl::StatusOr<const RunFacts*> FindRun(const std::string& run_id) {
    auto found = runs_.find(run_id);
    if (found == runs_.end()) {
      const absl::StatusOr<RunRow> row = log_->FindRun(IdFromBytes(run_id));
      if (!row.ok()) return row.status();
      if (row->workloads.size() != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("run ", row->id.ToHex(), " has ", row->workloads.size(),
                         " workloads; a run that is measured has one"));
      }
      found = runs_
                  .emplace(run_id,
                           RunFacts{row->workloads[0].workload_key, row->target_key, row->regime})
                  .first;
    }
    return &found->second;
  }

  absl::Status StoreSession(const CommitBatch::Session& session,
                            std::map<std::string, size_t>* anchors) {
    const absl::StatusOr<const RunFacts*> run = FindRun(session.run_id);
    if (!run.ok()) return run.status();
    const Id id = IdFromBytes(session.report.session_id());
    const auto known = anchors->find(session.report.session_id());
    if (known == anchors->end()) {
      const absl::Status inserted =
          log_->InsertSession({.id = id,
                               .run = IdFromBytes(session.run_id),
                               .environment = {.device_uuid = session.device.device_uuid,
                                               .driver = session.device.driver,
                                               .toolchain = session.device.toolchain_id,
                                               .timer = session.device.timer,
                                               .procedure = kScreeningProcedure},
                               .enrolment_epoch = static_cast<int64_t>(session.device.generation),
                               .started_unix_ns = absl::GetCurrentTimeNanos()});
      if (!inserted.ok()) {
        // Stored before this coordinator started: then its anchor times are what the log has.
        const absl::StatusOr<SessionRow> stored = log_->FindSession(id);
        if (!stored.ok()) return inserted;
      }
      const absl::StatusOr<std::vector<AnchorTimeRow>> times = log_->ListAnchorTimes(id);
      if (!times.ok()) return times.status();
      (*anchors)[session.report.session_id()] = times->size();
    }
    size_t& stored = (*anchors)[session.report.session_id()];
    for (; stored < session.report.anchor_seconds().size(); ++stored) {
      const absl::StatusOr<int64_t> appended =
          log_->AppendAnchorTime(id, (*run)->workload_key, session.report.anchor_seconds(stored));
      if (!appended.ok()) return appended.status();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TrialRow> MakeRow(const CommitBatch::Trial& trial) {
    const absl::StatusOr<const RunFacts*> run = FindRun(trial.run_id);
    if (!run.ok()) return run.status();
    const v1::TrialResult& result = trial.result;
    TrialRow row{.id = IdFromBytes(result.trial_id()),
                 .run = IdFromBytes(trial.run_id),
                 .workload_key = (*run)->workload_key,
                 .target_key = (*run)->target_key,
                 .regime = (*run)->regime,
                 .schedule = result.schedule()};
    if (result.has_failure()) {
      row.failure = Failure{result.failure().kind(), result.failure().text()};
    } else {
      row.seconds = result.seconds();
    }
    if (result.anchor_seconds() > 0) row.anchor_seconds = result.anchor_seconds();
    if (!result.session_id().empty()) row.session = IdFromBytes(result.session_id());
    if (result.facts().build_ns() > 0)
      row.build_ns = static_cast<int64_t>(result.facts().build_ns());
    row.ir_digest = result.facts().ir_digest();
    row.binary_digest = result.facts().binary_digest();
    row.resources_json = ResourcesJson(result.facts());
    if (!result.same_as().empty()) row.same_as = IdFromBytes(result.same_as());
    if (!result.samples_seconds().empty()) {
      row.samples =
          Samples{.seconds = {result.samples_seconds().begin(), result.samples_seconds().end()}};
    }
    row.created_unix_ns = result.measured_unix_ns() > 0
                              ? static_cast<int64_t>(result.measured_unix_ns())
                              : absl::ToUnixNanos(trial.received);
    row.late_reason = trial.late_reason;
    return row;
  }

  static constexpr char kScreeningProcedure[] =
      "screening: check in the warm-up pass, at most 40 ms of timing over rotated inputs, check of "
      "one set after it";

  std::unique_ptr<Database> log_;
  std::map<std::string, RunFacts> runs_;  // by run id
  std::map<std::string, size_t>
      anchors_stored_;  // by session id: how many of its anchor times are in the log
};

}  // namespace

std::unique_ptr<CommitSink> NewLogSink(std::unique_ptr<Database> log) {
  return std::make_unique<LogSink>(std::move(log));
}

Id IdFromBytes(const std::string& bytes) {
  Id id;
  std::copy_n(bytes.begin(), std::min(bytes.size(), id.bytes.size()), id.bytes.begin());
  return id;
}

std::string BytesFromId(const Id& id) { return std::string(id.bytes.begin(), id.bytes.end()); }

}  // namespace tilewright
