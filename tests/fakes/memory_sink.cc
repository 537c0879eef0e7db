#include "tests/fakes/memory_sink.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tilewright {

class MemorySink : public CommitSink {
 public:
  explicit MemorySink(MemoryLog* log) : log_(log) {}

  absl::StatusOr<uint64_t> NextGeneration() override {
    std::scoped_lock lock(log_->mutex_);
    return ++log_->generation_;
  }
  absl::Status StartRun(const RunRow&) override { return absl::OkStatus(); }
  absl::Status LogProposal(const Proposal& proposal) override {
    std::scoped_lock lock(log_->mutex_);
    log_->proposals_.push_back(proposal);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<TrialFate>> Commit(const CommitBatch& batch) override {
    std::scoped_lock lock(log_->mutex_);
    absl::Status fault = log_->fault_ == nullptr ? absl::OkStatus() : log_->fault_(false);
    if (!fault.ok()) return fault;
    for (const CommitBatch::Session& session : batch.sessions) {
      log_->sessions_[session.report.session_id()] = session.report;
    }
    for (const CommitBatch::Trial& trial : batch.trials) {
      const v1::TrialResult& result = trial.result;
      if (result.has_failure() == (result.seconds() > 0)) {
        return absl::InvalidArgumentError("a trial is a time or a failure");
      }
      if (!result.session_id().empty() && !log_->sessions_.contains(result.session_id())) {
        return absl::InvalidArgumentError("a trial of an unknown session");
      }
      if (result.schedule() == "poison{}") return absl::InvalidArgumentError("poison");
    }
    ++log_->commits_;
    std::vector<TrialFate> fates;
    for (const CommitBatch::Trial& trial : batch.trials) fates.push_back(Store(trial));
    fault = log_->fault_ == nullptr ? absl::OkStatus() : log_->fault_(true);
    if (!fault.ok()) return fault;
    return fates;
  }

  absl::Status RecordVerdict(const VerdictRow&) override { return absl::OkStatus(); }
  absl::Status RecordEvaluation(const EvaluationRow&) override { return absl::OkStatus(); }
  absl::Status EndRun(const std::string& run_id, const std::string& state) override {
    std::scoped_lock lock(log_->mutex_);
    log_->run_states_[run_id] = state;
    return absl::OkStatus();
  }

 private:
  // The caller holds the log's mutex.
  TrialFate Store(const CommitBatch::Trial& trial) {
    if (!log_->ids_.emplace(trial.result.trial_id(), true).second) return TrialFate::kDuplicate;
    MemoryLog::Stored stored = {trial.result, trial.late_reason};
    if (!trial.late_reason.empty() ||
        log_->trials_.contains({trial.run_id, trial.result.schedule()})) {
      log_->late_.push_back(std::move(stored));
      return TrialFate::kLate;
    }
    log_->trials_[{trial.run_id, trial.result.schedule()}] = std::move(stored);
    return TrialFate::kFirst;
  }

  MemoryLog* const log_;
};

std::unique_ptr<CommitSink> NewMemorySink(MemoryLog* log) {
  return std::make_unique<MemorySink>(log);
}

void MemoryLog::SetFault(std::function<absl::Status(bool after)> fault) {
  std::scoped_lock lock(mutex_);
  fault_ = std::move(fault);
}
std::map<std::pair<std::string, std::string>, MemoryLog::Stored> MemoryLog::trials() const {
  std::scoped_lock lock(mutex_);
  return trials_;
}
std::vector<MemoryLog::Stored> MemoryLog::late() const {
  std::scoped_lock lock(mutex_);
  return late_;
}
std::map<std::string, v1::SessionReport> MemoryLog::sessions() const {
  std::scoped_lock lock(mutex_);
  return sessions_;
}
std::vector<Proposal> MemoryLog::proposals() const {
  std::scoped_lock lock(mutex_);
  return proposals_;
}
int MemoryLog::commits() const {
  std::scoped_lock lock(mutex_);
  return commits_;
}
std::string MemoryLog::run_state(const std::string& run_id) const {
  std::scoped_lock lock(mutex_);
  auto it = run_states_.find(run_id);
  return it == run_states_.end() ? "" : it->second;
}

}  // namespace tilewright
