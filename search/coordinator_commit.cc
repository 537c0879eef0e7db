// The coordinator's group commit: results come in requests, are judged by the lease book, stored by
// the sink in one transaction, then acknowledged, and told to the tuners in the order they were
// stored.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "measure/failure.h"
#include "measure/protocol.h"
#include "search/coordinator_core.h"

namespace tilewright {
namespace {

constexpr int kNotStored = -1;

v1::ReturnReply::Fate ToWire(TrialFate fate) {
  switch (fate) {
    case TrialFate::kFirst:
      return v1::ReturnReply::COMMITTED;
    case TrialFate::kLate:
      return v1::ReturnReply::LATE;
    case TrialFate::kDuplicate:
      return v1::ReturnReply::DUPLICATE;
  }
  return v1::ReturnReply::UNKNOWN;
}

bool IsInfrastructure(const v1::TrialResult& result) {
  if (!result.has_failure()) return false;
  absl::StatusOr<FailureKind> kind = ParseFailureKind(result.failure().kind());
  return kind.ok() && Info(*kind).retried;
}

// A twin was not run: what its kernel's first trial came to is what it comes to.
v1::TrialResult FillTwin(v1::TrialResult twin, const v1::TrialResult& first) {
  twin.set_session_id(first.session_id());
  twin.set_seconds(first.seconds());
  twin.set_anchor_seconds(first.anchor_seconds());
  if (first.has_failure()) *twin.mutable_failure() = first.failure();
  return twin;
}

}  // namespace

struct CoordinatorCore::Group {
  // Of one result: the row of the batch that stores it, or its fate without one.
  struct Answer {
    int row = kNotStored;
    v1::ReturnReply::Fate fate = v1::ReturnReply::UNKNOWN;
  };
  struct Request {
    absl::Status status;
    std::vector<Answer> trials;
    std::vector<v1::ReturnReply::Fate> finals;
    bool stores = false;  // something of it is in the batch
  };
  CommitBatch batch;
  std::vector<Request> requests;

  // Null: not about to be committed as a trial here.
  const v1::TrialResult* Find(const std::string& run_id, const std::string& trial_id) const {
    for (const CommitBatch::Trial& trial : batch.trials) {
      if (trial.run_id == run_id && trial.result.trial_id() == trial_id &&
          trial.late_reason.empty() && !IsInfrastructure(trial.result)) {
        return &trial.result;
      }
    }
    return nullptr;
  }
};

void CoordinatorCore::CommitPending() {
  std::vector<PendingReturn> pending = std::exchange(pending_, {});
  if (pending.empty()) return;
  if (CommitGroup(absl::MakeSpan(pending))) return;
  for (PendingReturn& request : pending) CommitGroup(absl::MakeSpan(&request, 1));
}

bool CoordinatorCore::CommitGroup(absl::Span<PendingReturn> requests) {
  Group group;
  for (const PendingReturn& pending : requests) {
    Group::Request& request = group.requests.emplace_back();
    // On an error what the request put into the batch is taken out again.
    const size_t sessions = group.batch.sessions.size();
    const size_t trials = group.batch.trials.size();
    const size_t finals = group.batch.finals.size();
    request.status = AddToGroup(*pending.request, &group);
    if (!request.status.ok()) {
      group.batch.sessions.resize(sessions);
      group.batch.trials.resize(trials);
      group.batch.finals.resize(finals);
    }
    request.stores = group.batch.sessions.size() > sessions || group.batch.trials.size() > trials ||
                     group.batch.finals.size() > finals;
  }
  std::vector<TrialFate> fates;
  absl::Status stored;
  if (!group.batch.trials.empty() || !group.batch.sessions.empty() || !group.batch.finals.empty()) {
    absl::StatusOr<std::vector<TrialFate>> committed = sink_->Commit(group.batch);
    stored = committed.status();
    if (stored.code() == absl::StatusCode::kInvalidArgument && requests.size() > 1) return false;
    if (stored.code() != absl::StatusCode::kInvalidArgument) NoteSink(stored);
    if (committed.ok()) fates = *std::move(committed);
  }
  if (stored.ok()) TellOfCommit(group.batch, fates);
  for (size_t i = 0; i < requests.size(); ++i) {
    PendingReturn& pending = requests[i];
    const Group::Request& request = group.requests[i];
    absl::Status status = request.status;
    if (status.ok() && request.stores && !stored.ok()) {
      status = stored.code() == absl::StatusCode::kInvalidArgument
                   ? stored
                   : absl::UnavailableError(
                         absl::StrCat("not stored, send it again: ", stored.message()));
    }
    if (status.ok()) {
      for (const Group::Answer& answer : request.trials) {
        pending.reply->add_fates(answer.row == kNotStored ? answer.fate
                                                          : ToWire(fates[answer.row]));
      }
      for (v1::ReturnReply::Fate fate : request.finals) pending.reply->add_fates(fate);
      NoteWorker(*pending.request);
    }
    pending.done(status);
  }
  return true;
}

absl::Status CoordinatorCore::AddToGroup(const v1::ReturnRequest& request, Group* group) {
  if (book_->FindEnrolment(request.enrolment_id()) == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("enrolment ", IdToHex(request.enrolment_id()), " is not known; enrol again"));
  }
  if (request.trials().empty() && request.finals().empty() && !request.has_session()) {
    return absl::OkStatus();
  }
  if (!runs_.contains(request.run_id())) {
    return absl::AbortedError(
        absl::StrCat("run ", IdToHex(request.run_id()), " is not known here (yet)"));
  }
  AddSession(request, group);
  absl::Status judged = JudgeTrials(request, group);
  if (!judged.ok()) return judged;
  return JudgeFinals(request, group);
}

void CoordinatorCore::AddSession(const v1::ReturnRequest& request, Group* group) {
  const v1::SessionReport& report = request.session();
  if (report.session_id().empty()) return;
  auto stored = session_anchors_.find(report.session_id());
  if (stored != session_anchors_.end() && stored->second >= report.anchor_seconds_size()) return;
  group->batch.sessions.push_back(
      {request.run_id(), workers_[request.enrolment_id()].device, report});
}

absl::Status CoordinatorCore::JudgeTrials(const v1::ReturnRequest& request, Group* group) {
  using Kind = LeaseBook::Verdict::Kind;
  for (int i = 0; i < request.trials_size(); ++i) {
    v1::TrialResult result = request.trials(i);
    const std::string same_as = result.same_as();
    // Its kernel's first trial may be committed together with it.
    const v1::TrialResult* first =
        same_as.empty() ? nullptr : group->Find(request.run_id(), same_as);
    if (first != nullptr) {
      result = FillTwin(std::move(result), *first);
      result.clear_same_as();
    }
    const LeaseBook::Verdict verdict = book_->JudgeTrial(request, result);
    Group::Answer answer;
    switch (verdict.kind) {
      case Kind::kInvalid:
        return absl::InvalidArgumentError(absl::StrCat("trials[", i, "]: ", verdict.reason));
      case Kind::kUnknown:
        return absl::AbortedError(verdict.reason);
      case Kind::kDuplicate:
        answer.fate = v1::ReturnReply::DUPLICATE;
        break;
      case Kind::kRetry:
        book_->Retry(request.run_id(), result.trial_id(), /*blame=*/result.has_failure());
        ++runs_[request.run_id()].counts.retried;
        answer.fate = v1::ReturnReply::RETRIED;
        break;
      case Kind::kCommit:
      case Kind::kLate:
        if (first == nullptr && !same_as.empty()) {
          first = book_->FindCommitted(request.run_id(), same_as);
          if (first == nullptr) {  // late, and without a time of its own
            answer.fate = v1::ReturnReply::LATE;
            break;
          }
          result = FillTwin(std::move(result), *first);
        }
        result.set_same_as(same_as);
        answer.row = static_cast<int>(group->batch.trials.size());
        group->batch.trials.push_back({request.run_id(), workers_[request.enrolment_id()].device,
                                       std::move(result), verdict.reason, Now()});
        break;
    }
    group->requests.back().trials.push_back(answer);
  }
  return absl::OkStatus();
}

absl::Status CoordinatorCore::JudgeFinals(const v1::ReturnRequest& request, Group* group) {
  using Kind = LeaseBook::Verdict::Kind;
  for (int i = 0; i < request.finals_size(); ++i) {
    const v1::FinalsResult& result = request.finals(i);
    const LeaseBook::Verdict verdict = book_->JudgeFinals(request, result);
    v1::ReturnReply::Fate fate = v1::ReturnReply::UNKNOWN;
    switch (verdict.kind) {
      case Kind::kInvalid:
        return absl::InvalidArgumentError(absl::StrCat("finals[", i, "]: ", verdict.reason));
      case Kind::kUnknown:
        return absl::AbortedError(verdict.reason);
      case Kind::kDuplicate:
        fate = v1::ReturnReply::DUPLICATE;
        break;
      case Kind::kLate:
        fate = v1::ReturnReply::LATE;
        break;
      case Kind::kRetry:
        book_->Retry(request.run_id(), result.trial_id(), /*blame=*/true);
        fate = v1::ReturnReply::RETRIED;
        break;
      case Kind::kCommit:
        fate = v1::ReturnReply::COMMITTED;
        group->batch.finals.push_back(
            {request.run_id(), workers_[request.enrolment_id()].device, result});
        break;
    }
    group->requests.back().finals.push_back(fate);
  }
  return absl::OkStatus();
}

void CoordinatorCore::TellOfCommit(const CommitBatch& batch, const std::vector<TrialFate>& fates) {
  for (const CommitBatch::Session& session : batch.sessions) {
    session_anchors_[session.report.session_id()] = session.report.anchor_seconds_size();
    TuningEvent event;
    event.kind = TuningEvent::Kind::kSession;
    event.session = session.report;
    event.device = session.device;
    event.suits_run = true;
    Tell(session.run_id, std::move(event));
  }
  for (size_t i = 0; i < batch.trials.size(); ++i) TellOfTrial(batch.trials[i], fates[i]);
  for (const CommitBatch::Finals& finals : batch.finals) {
    std::optional<std::string> id = book_->CommittedFinals(finals.run_id, finals.result.trial_id());
    if (!id) continue;
    TuningEvent event;
    event.kind = TuningEvent::Kind::kFinals;
    event.finals = finals.result;
    event.finals.set_trial_id(*std::move(id));
    event.device = finals.device;
    event.suits_run = true;
    Tell(finals.run_id, std::move(event));
  }
}

void CoordinatorCore::TellOfTrial(const CommitBatch::Trial& trial, TrialFate fate) {
  TuningStats& counts = runs_[trial.run_id].counts;
  if (fate == TrialFate::kLate) ++counts.late;
  if (!trial.late_reason.empty()) return;
  const bool is_trial = fate != TrialFate::kLate;
  const bool awaited = book_->Committed(trial.run_id, trial.result, is_trial);
  // A first result counts although nobody waits for it: a resumed run's, measured for an earlier
  // generation. A duplicate counts if somebody waits: its commit went through although it seemed to
  // fail.
  if (!awaited && fate != TrialFate::kFirst) return;
  if (is_trial) ++counts.trials;
  TuningEvent event;
  event.kind = is_trial ? TuningEvent::Kind::kTrial : TuningEvent::Kind::kLate;
  event.trial = trial.result;
  event.device = trial.device;
  event.suits_run = true;
  Tell(trial.run_id, std::move(event));
}

void CoordinatorCore::NoteWorker(const v1::ReturnRequest& request) {
  if (auto worker = workers_.find(request.enrolment_id()); worker != workers_.end()) {
    worker->second.busy = absl::Nanoseconds(static_cast<int64_t>(request.busy_ns()));
  }
  if (!request.session().refusal().empty()) {
    book_->Refuse(request.run_id(), request.enrolment_id());
    TuningEvent event;
    event.kind = TuningEvent::Kind::kSession;
    event.session = request.session();
    event.device = workers_[request.enrolment_id()].device;
    Tell(request.run_id(), std::move(event));
  }
  const std::vector<std::string> released(request.released().begin(), request.released().end());
  book_->Release(request.run_id(), released);
  if (request.leaving()) book_->Leave(request.enrolment_id());
}

void CoordinatorCore::CommitLost() {
  if (lost_.empty()) return;
  CommitBatch batch;
  for (const LeaseBook::Lost& lost : lost_) {
    v1::Failure failure;
    failure.set_kind(std::string(Info(FailureKind::kWorkerLost).name));
    failure.set_text(lost.text);
    if (lost.item.has_screen()) {
      v1::TrialResult result;
      result.set_trial_id(lost.item.trial_id());
      result.set_schedule(lost.item.screen().schedule());
      *result.mutable_failure() = std::move(failure);
      batch.trials.push_back({lost.run_id, {}, std::move(result), "", Now()});
    } else {
      v1::FinalsResult result;
      result.set_trial_id(lost.item.trial_id());
      *result.mutable_failure() = std::move(failure);
      batch.finals.push_back({lost.run_id, {}, std::move(result)});
    }
  }
  absl::StatusOr<std::vector<TrialFate>> fates = sink_->Commit(batch);
  if (fates.ok()) {
    NoteSink(absl::OkStatus());
    lost_.clear();
    TellOfCommit(batch, *fates);
  } else if (fates.status().code() == absl::StatusCode::kInvalidArgument) {
    // The log will never take them; the tuner must not wait for them either.
    lost_.clear();
    TellOfCommit(batch, std::vector<TrialFate>(batch.trials.size(), TrialFate::kLate));
  } else {
    NoteSink(fates.status());
  }
}

}  // namespace tilewright
