// A TuningClient without a fleet: every proposed schedule is "measured" at once by a function of
// the test's, and committed to a real log through the real sink. Finals are the same function with
// a little noise. Several runs may be started; each has its own queue and events. With `steps` set
// the client has a clock of its own, which each step moves on.
#ifndef TILEWRIGHT_TESTS_FAKES_FAKE_TUNING_CLIENT_H_
#define TILEWRIGHT_TESTS_FAKES_FAKE_TUNING_CLIENT_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search/log_sink.h"
#include "search/run_pace.h"
#include "search/tuning_client.h"

namespace tilewright {

// Seconds, or the kind of the failure.
struct FakeMeasurement {
  double seconds = 0;
  std::string failure;
};

class FakeTuningClient : public TuningClient {
 public:
  FakeTuningClient(std::unique_ptr<Database> log,
                   std::function<FakeMeasurement(const std::string&)> measure)
      : sink_(NewLogSink(std::move(log))), measure_(std::move(measure)) {}

  // After so many committed trials every call is Unavailable, as if the process had been killed.
  int dies_after = 1 << 30;
  bool has_worker = true;             // false: nothing comes back
  std::vector<std::string> proposed;  // all schedules, in order
  std::vector<v1::Finals> finals;     // all requests
  absl::Time now = absl::UnixEpoch();
  std::function<StepTimes()> steps;  // what the next step takes; empty: no time passes
  int openings = 0;                  // of sessions, with `steps`

  absl::Status StartRun(const v1::RunSpec& spec, const std::string&,
                        const RunRow& record) override {
    Run& run = runs_[spec.run_id()];
    if (absl::Status started = sink_->StartRun(record); !started.ok()) return started;
    v1::SessionReport session;
    session.set_session_id(spec.run_id());  // a resumed run continues its session
    session.add_anchor_seconds(measure_(spec.anchor_schedule()).seconds);
    session.set_anchor_schedule(spec.anchor_schedule());
    run.session = session;
    const absl::StatusOr<std::vector<TrialFate>> stored = sink_->Commit(
        {.sessions = {{spec.run_id(), device_, session}}, .trials = {}, .finals = {}});
    if (!stored.ok()) return stored.status();
    run.events.push_back(
        {.kind = TuningEvent::Kind::kSession, .session = session, .device = device_});
    return absl::OkStatus();
  }
  absl::Status Propose(const Proposal& proposal) override {
    if (absl::Status logged = sink_->LogProposal(proposal); !logged.ok()) return logged;
    proposed.insert(proposed.end(), proposal.schedules.begin(), proposal.schedules.end());
    std::deque<std::string>& queue = runs_[proposal.run_id].queue;
    queue.insert(queue.end(), proposal.schedules.begin(), proposal.schedules.end());
    return absl::OkStatus();
  }
  absl::Status Requeue(const std::string& run_id,
                       absl::Span<const std::string> schedules) override {
    std::deque<std::string>& queue = runs_[run_id].queue;
    queue.insert(queue.end(), schedules.begin(), schedules.end());
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Finals(const std::string& run_id,
                                     const v1::Finals& request) override {
    Run& run = runs_[run_id];
    finals.push_back(request);
    if (steps) {
      OpenSession(run_id);
      now += request.rounds() * request.schedules_size() *
             (absl::Milliseconds(request.idle_ms()) + steps().burst);
    }
    TuningEvent event{.kind = TuningEvent::Kind::kFinals};
    event.finals.set_trial_id(Bytes());
    for (const std::string& schedule : request.schedules()) {
      v1::FinalsResult::Entrant* entrant = event.finals.add_entrants();
      entrant->set_schedule(schedule);
      entrant->mutable_facts()->set_binary_digest(absl::StrCat("binary of ", schedule));
      for (int round = 0; round < request.rounds(); ++round) {
        entrant->add_round_seconds(measure_(schedule).seconds * (1 + 1e-4 * (random_() % 10)));
      }
    }
    run.events.push_back(event);
    return event.finals.trial_id();
  }
  absl::StatusOr<std::vector<TuningEvent>> NextResults(const std::string& run_id,
                                                       absl::Duration) override {
    Run& run = runs_[run_id];
    while (has_worker && !run.queue.empty()) {
      if (committed_ == dies_after) return absl::UnavailableError("killed");
      if (steps) {
        OpenSession(run_id);
        now += steps().trial;
      }
      CommitBatch batch;
      v1::TrialResult result;
      result.set_trial_id(Bytes());
      result.set_schedule(run.queue.front());
      if (steps) result.set_measured_unix_ns(static_cast<uint64_t>(absl::ToUnixNanos(now)));
      run.queue.pop_front();
      const FakeMeasurement measured = measure_(result.schedule());
      if (measured.failure.empty()) {
        result.set_session_id(run.session.session_id());
        result.set_seconds(measured.seconds);
        result.set_anchor_seconds(run.session.anchor_seconds(0));
      } else {
        result.mutable_failure()->set_kind(measured.failure);
        result.mutable_failure()->set_text("as the test says");
      }
      batch.trials.push_back({run_id, device_, result, "", absl::Now()});
      const absl::StatusOr<std::vector<TrialFate>> fates = sink_->Commit(batch);
      if (!fates.ok()) return fates.status();
      ++committed_;
      run.events.push_back({.kind = TuningEvent::Kind::kTrial, .trial = result, .device = device_});
      if (steps) break;  // so that each is heard of at its time
    }
    return std::exchange(run.events, {});
  }
  absl::Status RecordVerdict(const VerdictRow& verdict) override {
    return sink_->RecordVerdict(verdict);
  }
  absl::Status RecordEvaluation(const EvaluationRow& evaluation) override {
    return sink_->RecordEvaluation(evaluation);
  }
  absl::Status EndRun(const std::string& run_id, const std::string& state) override {
    return committed_ == dies_after ? absl::UnavailableError("killed")
                                    : sink_->EndRun(run_id, state);
  }
  absl::StatusOr<TuningStats> Stats(const std::string&) override { return TuningStats(); }

 private:
  struct Run {
    v1::SessionReport session;
    std::deque<std::string> queue;
    std::vector<TuningEvent> events;
  };

  // Each change of run opens one.
  void OpenSession(const std::string& run_id) {
    if (run_id == session_of_) return;
    session_of_ = run_id;
    ++openings;
    now += steps().opening;
  }

  std::string Bytes() {
    const Id id = Id::Random();
    return std::string(id.bytes.begin(), id.bytes.end());
  }

  std::unique_ptr<CommitSink> sink_;
  std::function<FakeMeasurement(const std::string&)> measure_;
  EnrolledDevice device_{
      .worker_name = "fake", .device_uuid = "uuid", .toolchain_id = "test", .timer = "clock"};
  std::map<std::string, Run> runs_;
  std::string session_of_;  // run id
  std::mt19937_64 random_{1};
  int committed_ = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_FAKES_FAKE_TUNING_CLIENT_H_
