#include "measure/worker_batch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "measure/protocol.h"

namespace tilewright {
namespace {

v1::Failure ToWire(const CandidateFailure& failure) {
  v1::Failure wire;
  wire.set_kind(std::string(Info(failure.kind).name));
  wire.set_text(CleanText(failure.text, ProtocolLimits::kFailureBytes));
  return wire;
}

v1::BuildFacts FactsOf(const BuildOutcome& outcome) {
  v1::BuildFacts facts;
  facts.set_build_ns(absl::ToInt64Nanoseconds(outcome.build_time));
  if (!outcome.kernel.has_value()) return facts;
  facts.set_ir_digest(outcome.kernel->digests.ir);
  facts.set_assembly_digest(outcome.kernel->digests.assembly);
  facts.set_binary_digest(outcome.kernel->digests.binary);
  for (const auto& [name, value] : outcome.kernel->resources) {
    v1::Resource* resource = facts.add_resources();
    resource->set_name(name);
    resource->set_value(value);
  }
  return facts;
}

CandidateFailure BuildFailureOf(const BuildOutcome& outcome) {
  if (outcome.failure.has_value()) return *outcome.failure;
  return {FailureKind::kBuildFailed, "the builder gave neither a kernel nor a failure"};
}

absl::StatusOr<SessionSpec> ToSessionSpec(const v1::RunSpec& run) {
  absl::StatusOr<Workload> workload = Workload::FromCanonicalText(run.workload_text());
  if (!workload.ok()) return workload.status();
  absl::StatusOr<Regime> regime = ParseRegime(run.regime_text(), *workload);
  if (!regime.ok()) return regime.status();
  if (run.at_sizes_size() > 0) regime->at.assign(run.at_sizes().begin(), run.at_sizes().end());
  if (regime->at.empty()) regime->at = workload->HighestSizes();
  absl::Status sizes = workload->CheckSizes(regime->at);
  if (!sizes.ok()) return sizes;
  SessionSpec spec = {*std::move(workload),
                      *std::move(regime),
                      {},
                      run.input_seed(),
                      absl::Milliseconds(static_cast<int64_t>(run.build_timeout_ms())),
                      absl::Milliseconds(static_cast<int64_t>(run.run_timeout_ms()))};
  absl::StatusOr<Schedule> anchor = ParseSchedule(run.anchor_schedule());
  // An anchor that does not parse fails like any illegal one: the workbench passes over it and says
  // so.
  spec.anchor = anchor.ok() ? *std::move(anchor) : Schedule{run.anchor_schedule(), {}};
  return spec;
}

v1::SessionReport ReportOf(const SessionState& state, const std::string& wanted_anchor) {
  v1::SessionReport report;
  report.set_session_id(state.id);
  for (double seconds : state.anchor_seconds) report.add_anchor_seconds(seconds);
  report.set_anchor_schedule(state.anchor.ToString());
  report.set_anchor_is_fallback(report.anchor_schedule() != wanted_anchor);
  for (const CandidateFailure& failure : state.anchor_failures) {
    *report.add_anchor_failures() = ToWire(failure);
  }
  return report;
}

}  // namespace

WorkerBatch::WorkerBatch(Workbench* bench, WorkerQueue* queue, CoordinatorLink* link,
                         std::string target_text, std::function<bool()> stop)
    : bench_(bench),
      queue_(queue),
      link_(link),
      target_text_(std::move(target_text)),
      stop_(std::move(stop)) {}

absl::StatusOr<bool> WorkerBatch::ReadySession(const v1::LeaseReply& lease) {
  absl::Status session = OpenSession(lease);
  NoteBusy();
  if (absl::IsUnavailable(session) || bench_->quarantined()) {
    Release(lease, 0);
    return absl::UnavailableError(session.ok() ? "the device is lost" : session.message());
  }
  if (session.ok()) return true;
  Refuse(lease, std::string(session.message()));
  return false;
}

WorkerBatch::BuiltLease WorkerBatch::Build(v1::LeaseReply lease) {
  BuiltLease built;
  built.lease = std::move(lease);
  const absl::StatusOr<SessionSpec> spec = SpecOf(built.lease);
  if (!spec.ok()) return built;
  const bool finals = built.lease.items_size() > 0 && built.lease.items(0).has_finals();
  if (finals) {
    const v1::Finals& work = built.lease.items(0).finals();
    built.texts.assign(work.schedules().begin(), work.schedules().end());
  } else {
    for (const v1::WorkItem& item : built.lease.items()) {
      built.texts.push_back(item.screen().schedule());
    }
  }
  BuildTexts(*spec, &built);
  if (finals) return built;
  built.verdicts.resize(built.texts.size());
  for (size_t i = 0; i < built.texts.size(); ++i) {
    if (!built.outcomes[i].kernel.has_value()) continue;
    built.verdicts[i] =
        AskIfTwin(built.lease, built.lease.items(static_cast<int>(i)), FactsOf(built.outcomes[i]));
  }
  return built;
}

absl::Status WorkerBatch::Measure(const BuiltLease& built) {
  const absl::StatusOr<bool> ready = ReadySession(built.lease);
  if (!ready.ok()) return ready.status();
  if (!*ready) return absl::OkStatus();
  if (built.lease.items_size() > 0 && built.lease.items(0).has_finals()) return RunFinals(built);
  return RunScreenings(built);
}

absl::Status WorkerBatch::Run(const v1::LeaseReply& lease) {
  const absl::StatusOr<bool> ready = ReadySession(lease);
  if (!ready.ok()) return ready.status();
  return *ready ? Measure(Build(lease)) : absl::OkStatus();
}

void WorkerBatch::Release(const v1::LeaseReply& lease, int first) {
  if (first >= lease.items_size()) return;
  v1::ReturnRequest outgoing;
  outgoing.set_run_id(lease.run().run_id());
  *outgoing.mutable_epoch() = lease.epoch();
  for (int i = first; i < lease.items_size(); ++i) {
    outgoing.add_released(lease.items(i).trial_id());
  }
  queue_->Post(std::move(outgoing));
}

absl::StatusOr<SessionSpec> WorkerBatch::SpecOf(const v1::LeaseReply& lease) const {
  if (lease.run().target_text() != target_text_) {
    return absl::FailedPreconditionError(absl::StrCat("the run is for ", lease.run().target_text(),
                                                      "; this device is ", target_text_));
  }
  return ToSessionSpec(lease.run());
}

absl::Status WorkerBatch::OpenSession(const v1::LeaseReply& lease) {
  std::string run_text = lease.run().SerializeAsString();
  if (session_.has_value() && session_->run_text == run_text) return absl::OkStatus();
  session_.reset();
  absl::StatusOr<SessionSpec> spec = SpecOf(lease);
  if (!spec.ok()) return spec.status();
  absl::Status opened = bench_->OpenSession(*spec);
  if (!opened.ok()) return opened;
  session_ = Session{*std::move(spec), std::move(run_text)};
  return absl::OkStatus();
}

void WorkerBatch::Refuse(const v1::LeaseReply& lease, const std::string& why) {
  v1::ReturnRequest outgoing;
  outgoing.set_run_id(lease.run().run_id());
  *outgoing.mutable_epoch() = lease.epoch();
  outgoing.mutable_session()->set_refusal(CleanText(why, ProtocolLimits::kFailureBytes));
  for (const v1::WorkItem& item : lease.items()) outgoing.add_released(item.trial_id());
  queue_->Post(std::move(outgoing));
}

v1::ReturnRequest WorkerBatch::OutgoingOf(const v1::LeaseReply& lease) {
  v1::ReturnRequest outgoing;
  outgoing.set_run_id(lease.run().run_id());
  *outgoing.mutable_epoch() = lease.epoch();
  *outgoing.mutable_session() = ReportOf(bench_->session(), lease.run().anchor_schedule());
  return outgoing;
}

void WorkerBatch::BuildTexts(const SessionSpec& spec, BuiltLease* built) {
  std::vector<Schedule> parsed;
  built->outcomes.resize(built->texts.size());
  for (size_t i = 0; i < built->texts.size(); ++i) {
    absl::StatusOr<Schedule> schedule = ParseSchedule(built->texts[i]);
    if (schedule.ok()) {
      parsed.push_back(*schedule);
      built->schedules.push_back(*std::move(schedule));
    } else {
      built->outcomes[i].failure =
          CandidateFailure{FailureKind::kBuildFailed, std::string(schedule.status().message())};
      built->schedules.push_back(std::nullopt);
    }
  }
  std::vector<BuildOutcome> outcomes = bench_->Build(spec.workload, parsed, spec.build_timeout);
  for (size_t i = 0, next = 0; i < built->texts.size(); ++i) {
    if (built->schedules[i].has_value()) built->outcomes[i] = std::move(outcomes[next++]);
  }
  NoteBusy();
}

v1::BuiltReply WorkerBatch::AskIfTwin(const v1::LeaseReply& lease, const v1::WorkItem& item,
                                      const v1::BuildFacts& facts) {
  v1::BuiltRequest request;
  *request.mutable_epoch() = lease.epoch();
  request.set_run_id(lease.run().run_id());
  request.set_trial_id(item.trial_id());
  *request.mutable_facts() = facts;
  v1::BuiltReply reply;
  // Without an answer it is measured: at worst a twin is run twice, or the result is late.
  if (!link_->Built(std::move(request), &reply).ok()) reply.set_verdict(v1::BuiltReply::RUN);
  return reply;
}

v1::TrialResult WorkerBatch::Screened(const ScreenOutcome& outcome, v1::TrialResult result) {
  for (double seconds : outcome.samples_seconds) result.add_samples_seconds(seconds);
  if (outcome.failure.has_value()) {
    *result.mutable_failure() = ToWire(*outcome.failure);
  } else {
    result.set_seconds(outcome.seconds);
  }
  result.set_anchor_seconds(outcome.anchor_seconds);
  result.set_device_ns(absl::ToInt64Nanoseconds(outcome.device_time));
  result.set_check(CleanText(outcome.check_json, ProtocolLimits::kFailureBytes));
  return result;
}

absl::Status WorkerBatch::RunScreenings(const BuiltLease& built) {
  const v1::LeaseReply& lease = built.lease;
  const int count = lease.items_size();
  for (int i = 0; i < count; ++i) {
    if (stop_()) {
      Release(lease, i);
      return absl::OkStatus();
    }
    if (queue_->IsLost(lease.epoch())) {
      queue_->Drop(lease.epoch(), count - i);
      return absl::OkStatus();
    }
    // The next lease comes while the last candidates of this one are measured.
    if (!bench_->builds_ahead() && count - i <= (count + 3) / 4) queue_->WantLease();
    if (built.verdicts[i].verdict() == v1::BuiltReply::LOST) {
      queue_->Drop(lease.epoch(), 1);
      continue;
    }
    v1::TrialResult result;
    result.set_trial_id(lease.items(i).trial_id());
    result.set_schedule(built.texts[i]);
    *result.mutable_facts() = FactsOf(built.outcomes[i]);
    if (!built.outcomes[i].kernel.has_value()) {
      *result.mutable_failure() = ToWire(BuildFailureOf(built.outcomes[i]));
    } else if (built.verdicts[i].verdict() == v1::BuiltReply::SAME_KERNEL) {
      result.set_same_as(built.verdicts[i].same_as());
    } else {
      result = Screened(bench_->Screen(*built.schedules[i], *built.outcomes[i].kernel),
                        std::move(result));
      NoteBusy();
    }
    result.set_measured_unix_ns(absl::GetCurrentTimeNanos());
    v1::ReturnRequest outgoing = OutgoingOf(lease);
    result.set_session_id(outgoing.session().session_id());
    *outgoing.add_trials() = std::move(result);
    queue_->Post(std::move(outgoing));
    if (bench_->quarantined()) {
      Release(lease, i + 1);
      return absl::UnavailableError("the device is lost");
    }
  }
  return absl::OkStatus();
}

absl::Status WorkerBatch::RunFinals(const BuiltLease& built) {
  const v1::LeaseReply& lease = built.lease;
  if (!bench_->builds_ahead()) queue_->WantLease();
  const v1::Finals& finals = lease.items(0).finals();
  std::vector<Kernel> kernels;
  for (const BuildOutcome& outcome : built.outcomes) {
    if (outcome.kernel.has_value()) kernels.push_back(*outcome.kernel);
  }
  if (stop_()) {
    Release(lease, 0);
    return absl::OkStatus();
  }
  FinalsOutcome outcome;
  if (!kernels.empty()) {
    outcome = bench_->Finals(kernels, static_cast<int>(finals.rounds()),
                             absl::Milliseconds(static_cast<int64_t>(finals.idle_ms())),
                             finals.order_seed());
    NoteBusy();
  }
  v1::FinalsResult result;
  result.set_trial_id(lease.items(0).trial_id());
  for (size_t i = 0, next = 0; i < built.texts.size(); ++i) {
    v1::FinalsResult::Entrant* entrant = result.add_entrants();
    entrant->set_schedule(built.texts[i]);
    *entrant->mutable_facts() = FactsOf(built.outcomes[i]);
    if (!built.outcomes[i].kernel.has_value()) {
      *entrant->mutable_failure() = ToWire(BuildFailureOf(built.outcomes[i]));
      continue;
    }
    const FinalsOutcome::Entrant& measured = outcome.entrants[next++];
    for (double seconds : measured.round_seconds) entrant->add_round_seconds(seconds);
    entrant->set_check(CleanText(measured.check_json, ProtocolLimits::kFailureBytes));
    if (!measured.failure.has_value()) continue;
    *entrant->mutable_failure() = ToWire(*measured.failure);
    // Without its device the whole item is to be done again.
    if (Info(measured.failure->kind).retried) *result.mutable_failure() = entrant->failure();
  }
  v1::ReturnRequest outgoing = OutgoingOf(lease);
  result.set_session_id(outgoing.session().session_id());
  *outgoing.add_finals() = std::move(result);
  queue_->Post(std::move(outgoing));
  return bench_->quarantined() ? absl::UnavailableError("the device is lost") : absl::OkStatus();
}

void WorkerBatch::NoteBusy() { busy_ns_ = absl::ToInt64Nanoseconds(bench_->busy()); }

}  // namespace tilewright
