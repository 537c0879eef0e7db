#include "search/run_results.h"

#include "absl/strings/str_cat.h"
#include "measure/failure.h"
#include "search/log_sink.h"

namespace tilewright {
namespace {

constexpr int kHopelessAfter = 20;

}  // namespace

TrialFacts FactsOf(const v1::TrialResult& trial) {
  TrialFacts facts{.schedule = trial.schedule(), .session = trial.session_id()};
  if (trial.has_failure()) {
    facts.failure_kind = trial.failure().kind();
    facts.failure_text = trial.failure().text();
  } else {
    facts.seconds = trial.seconds();
    if (trial.anchor_seconds() > 0) facts.anchor_seconds = trial.anchor_seconds();
  }
  return facts;
}

TrialFacts FactsOf(const TrialRow& trial) {
  TrialFacts facts{.schedule = trial.schedule,
                   .seconds = trial.seconds,
                   .anchor_seconds = trial.anchor_seconds,
                   .session = trial.session ? BytesFromId(*trial.session) : ""};
  if (trial.failure) {
    facts.failure_kind = trial.failure->kind;
    facts.failure_text = trial.failure->message;
  }
  return facts;
}

Result RunResults::Add(const TrialFacts& trial, absl::uint128 index) {
  ++trials_;
  Result result{.index = index, .session = trial.session};
  if (trial.seconds) {
    in_a_row_ = 0;
    // Without a session's anchor a time compares with nothing.
    if (!trial.anchor_seconds) return result;
    result.cost = *trial.seconds / *trial.anchor_seconds;
    costs_.emplace_back(*result.cost, trial.schedule);
    seconds_[trial.schedule] = *trial.seconds;
    if (best_ < 0 || *result.cost < costs_[best_].first) {
      best_ = static_cast<int>(costs_.size()) - 1;
    }
    return result;
  }
  ++failures_[trial.failure_kind];
  if (first_failure_.empty()) {
    first_failure_ = absl::StrCat(trial.failure_kind, ": ", trial.failure_text);
  }
  const absl::StatusOr<FailureKind> kind = ParseFailureKind(trial.failure_kind);
  result.trains_classifier = kind.ok() && Info(*kind).trains_classifier;
  in_a_row_ = trial.failure_kind == last_failure_kind_ ? in_a_row_ + 1 : 1;
  last_failure_kind_ = trial.failure_kind;
  default_failed_ = default_failed_ || trial.schedule == default_schedule_;
  return result;
}

absl::Status RunResults::CheckHope() const {
  if (!costs_.empty() || in_a_row_ < kHopelessAfter || !default_failed_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("paused: the first ", in_a_row_,
                   " trials all failed, the default's among them: ", first_failure_));
}

std::optional<double> RunResults::Seconds(const std::string& schedule) const {
  const auto it = seconds_.find(schedule);
  return it == seconds_.end() ? std::nullopt : std::optional<double>(it->second);
}

}  // namespace tilewright
