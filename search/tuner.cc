#include "search/tuner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "codegen/writer.h"
#include "schedule/library_product.h"
#include "search/log_sink.h"
#include "search/model_surrogate.h"
#include "search/run_clock.h"
#include "search/run_finals.h"
#include "search/run_results.h"
#include "search/search_state.h"
#include "search/starts.h"
#include "search/training_rows.h"

namespace tilewright {
namespace {

// One run of one workload.
class Tuner : public TuningRun {
 public:
  Tuner(const TunerContext& context, const TuneTask& task, TuneOptions options)
      : context_(context), task_(task), options_(std::move(options)), clock_(context.now) {}

  absl::Status Start(const std::optional<Id>& resume) {
    const absl::Status status = resume ? Resume(*resume) : Begin();
    clock_.Leave(std::nullopt);
    return status;
  }

  // Screening and finals in one go, under the options' limits.
  absl::StatusOr<TuneReport> RunToTheEnd() {
    const absl::Time end = clock_.started() + options_.time_limit;
    const auto until = [&] {
      return end - FinalsReserve(options_, steps().burst, least_entrants());
    };
    return Finish(Screen(trial_limit_, until), end);
  }

  absl::StatusOr<TuneReport> Finish(const absl::Status& screened, absl::Time by) override {
    clock_.Enter(Stats());
    absl::Status status = screened;
    if (status.ok() && options_.run_finals && !Stopped()) status = DecideByFinals(by);
    const bool interrupted = Stopped();
    const absl::StatusOr<TuneReport> report =
        status.ok() ? MakeReport(interrupted) : absl::StatusOr<TuneReport>(status);
    const std::string state = !status.ok() ? "failed" : interrupted ? "interrupted" : "finished";
    const absl::Status ended = context_.client->EndRun(spec_.run_id(), paused_ ? "paused" : state);
    if (report.ok() && !ended.ok()) return ended;
    return report;
  }

  int64_t trials() const override { return results_->trials(); }
  std::optional<double> best_seconds() const override {
    const std::string* best = results_->best();
    return best == nullptr ? std::nullopt : results_->Seconds(*best);
  }
  bool exhausted() const override { return exhausted_; }
  absl::Duration elapsed() const override { return clock_.elapsed_before(); }
  StepTimes steps() const override { return pace_.steps().known() ? pace_.steps() : expected_; }
  void Expect(const StepTimes& steps) override { expected_ = steps; }
  int least_entrants() const override {
    return LeastEntrants(record_.workloads[0].anchor_schedule,
                         space_->DefaultSchedule().ToString());
  }
  void Suspend() override { session_open_ = false; }

 private:
  bool Stopped() const { return context_.stop != nullptr && context_.stop->load(); }

  // ---- beginning
  // ---------------------------------------------------------------------------------------------

  absl::Status MakeSpace() {
    absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
        ScheduleSpace::Make(task_.workload, context_.target, context_.variants);
    if (!space.ok()) return space.status();
    space_ = *std::move(space);
    results_.emplace(space_->DefaultSchedule().ToString());
    absl::StatusOr<const Effort*> effort = FindEffort(options_.effort);
    if (!effort.ok()) return effort.status();
    rules_ = FinalsRulesOf(options_);
    trial_limit_ = TrialsOf(options_);
    absl::StatusOr<SearchStart> start = FindSearchStart(
        context_.log, *space_, TargetKey(context_.target), task_.regime.ToString(task_.workload));
    if (!start.ok()) return start.status();
    start_ = *std::move(start);
    warnings_ = start_.warnings;
    return absl::OkStatus();
  }

  absl::Status Begin() {
    if (absl::Status made = MakeSpace(); !made.ok()) return made;
    absl::StatusOr<int64_t> row = context_.log->HighestTrialRow();
    if (!row.ok()) return row.status();
    record_.id = Id::Random();
    record_.job = context_.job;
    record_.target_key = TargetKey(context_.target);
    record_.regime = task_.regime.ToString(task_.workload);
    record_.seed = options_.seed;
    record_.options_json = options_.ToJson();
    record_.toolchain = context_.toolchain;
    record_.highest_trial_row = *row;
    RunWorkload workload{.workload_key = task_.workload.key(),
                         .weight = task_.weight,
                         .anchor_schedule = start_.anchor.ToString()};
    if (options_.use_starts) {
      for (const Schedule& schedule : start_.starts) workload.starts.push_back(schedule.ToString());
    }
    record_.workloads = {workload};
    record_.started_unix_ns = absl::GetCurrentTimeNanos();
    if (absl::Status made = MakeSearch(); !made.ok()) return made;
    return StartRun();
  }

  absl::Status Resume(const Id& id) {
    absl::StatusOr<ResumeState> state = context_.log->LoadResumeState(id);
    if (!state.ok()) return state.status();
    record_ = state->run;
    if (record_.toolchain != context_.toolchain) {
      return absl::FailedPreconditionError(absl::StrCat(
          "run ", id.ToHex(), " was made with `", record_.toolchain, "` and cannot go on with `",
          context_.toolchain, "`; start a new run, which begins from what this one measured"));
    }
    absl::StatusOr<TuneOptions> stored = TuneOptions::FromJson(record_.options_json);
    if (!stored.ok()) return stored.status();
    // The budget is the caller's, what decides the order of proposals is the run's.
    stored->time_limit = options_.time_limit;
    if (options_.trials > 0) stored->trials = options_.trials;
    if (options_.rounds > 0) stored->rounds = options_.rounds;
    stored->seed = record_.seed;
    options_ = *std::move(stored);
    if (absl::Status made = MakeSpace(); !made.ok()) return made;
    if (absl::Status made = MakeSearch(); !made.ok()) return made;
    std::set<std::string> committed;
    for (const TrialRow& trial : state->trials) {
      if (absl::Status status = CommitResult(FactsOf(trial)); !status.ok()) return status;
      committed.insert(trial.schedule);
    }
    std::vector<std::string> open;
    for (const ProposalRow& proposal : state->proposals) {
      Batch logged{.results_seen = proposal.results_seen, .trained_on = proposal.trained_on};
      for (const std::string& text : proposal.schedules) {
        absl::StatusOr<absl::uint128> index = IndexOf(text);
        if (!index.ok()) return index.status();
        logged.indices.push_back(*index);
        if (!committed.contains(text)) open.push_back(text);
      }
      if (absl::Status replayed = search_->Replay(logged); !replayed.ok()) return replayed;
    }
    if (absl::Status status = StartRun(); !status.ok()) return status;
    in_flight_ = open.size();
    return open.empty() ? absl::OkStatus() : context_.client->Requeue(spec_.run_id(), open);
  }

  absl::StatusOr<absl::uint128> IndexOf(const std::string& text) {
    const absl::StatusOr<Schedule> schedule = ParseSchedule(text);
    if (!schedule.ok()) return schedule.status();
    return space_->space().IndexOf(*schedule);
  }

  absl::Status MakeSearch() {
    absl::StatusOr<StrategyChoice> strategy = ParseStrategy(options_.strategy);
    if (!strategy.ok()) return strategy.status();
    SearchBeginning beginning;
    for (const std::string& text : record_.workloads[0].starts) {
      const absl::StatusOr<absl::uint128> index = IndexOf(text);
      if (index.ok()) beginning.starts.push_back(*index);
    }
    if (options_.use_starts && context_.log != nullptr) {
      absl::StatusOr<std::vector<absl::uint128>> transferred = FindTransferred(
          *context_.log, *space_, record_.target_key, record_.regime, record_.highest_trial_row);
      if (!transferred.ok()) return transferred.status();
      beginning.transferred = *std::move(transferred);
    }
    if (options_.model != "none") {
      absl::StatusOr<std::unique_ptr<LearningSurrogate>> surrogate =
          NewModelSurrogate(space_, task_.regime.at, record_.regime,
                            {.model = options_.model,
                             .log = options_.use_log ? context_.log : nullptr,
                             .through_row = record_.highest_trial_row,
                             .run = BytesFromId(record_.id)});
      if (!surrogate.ok()) return surrogate.status();
      surrogate_ = *std::move(surrogate);
    }
    search_ = SearchState::Make(&space_->space(), *strategy, record_.seed, std::move(beginning),
                                surrogate_.get());
    return absl::OkStatus();
  }

  absl::Status StartRun() {
    spec_.set_run_id(BytesFromId(record_.id));
    spec_.set_workload_text(task_.workload.canonical_text());
    spec_.set_target_text(context_.target.ToString());
    spec_.set_regime_text(record_.regime);
    spec_.set_anchor_schedule(record_.workloads[0].anchor_schedule);
    spec_.set_input_seed(record_.seed);
    spec_.set_build_timeout_ms(absl::ToInt64Milliseconds(options_.build_timeout));
    spec_.set_run_timeout_ms(absl::ToInt64Milliseconds(options_.run_timeout));
    for (int64_t size : task_.regime.at) spec_.add_at_sizes(size);
    return context_.client->StartRun(spec_, context_.toolchain, record_);
  }

  // ---- screening
  // ---------------------------------------------------------------------------------------------

  // A CPU device's cores are the tuner's as well, so the next batch is made when the last one is
  // back.
  int LowWater() const { return context_.target.backend == "host" ? 0 : options_.batch; }

  absl::Status Screen(int64_t trials, const std::function<absl::Time()>& until) override {
    trial_limit_ = trials;
    if (!screening_begun_) trials_before_ = results_->trials();
    clock_.Enter(Stats());
    screening_begun_ = true;
    Report(TuneProgress::Phase::kStarting);
    screening_started_ = context_.now();
    pace_.BeginTurn(screening_started_);
    const absl::Status status = ScreenUntil(until);
    screening_time_ += context_.now() - screening_started_;
    if (status.ok()) clock_.EndPhase("screening");
    clock_.Leave(Stats());
    return status;
  }

  absl::Status ScreenUntil(const std::function<absl::Time()>& until) {
    // No result takes longer than one candidate may; without a worker nothing comes.
    const absl::Duration patience = options_.build_timeout + options_.run_timeout;
    absl::Time heard = screening_started_;  // of a result
    while (!Stopped()) {
      const absl::Time now = context_.now();
      const absl::Time end = until();
      if (now >= std::max(end, heard + patience)) break;
      if (in_flight_ <= LowWater() && !exhausted_) {
        if (absl::Status status = ProposeBatch(Fitting(end - now)); !status.ok()) return status;
      }
      if (in_flight_ == 0) break;
      const int64_t before = results_->trials();
      if (absl::Status status = Receive(absl::Milliseconds(200)); !status.ok()) return status;
      if (results_->trials() > before) heard = context_.now();
      if (clock_.phases().empty() && results_->trials() > trials_before_)
        clock_.EndPhase("first trial");
      Report(TuneProgress::Phase::kScreening);
    }
    return absl::OkStatus();
  }

  // How many schedules, at most a batch, are expected to be measured in `time`, each slower than
  // expected by kSlack. Before the pace is known, and however short the time, the first
  // LeastFirstBatch are proposed; at its end fewer are not worth a batch.
  int Fitting(absl::Duration time) const {
    if (time == absl::InfiniteDuration()) return options_.batch;
    const int least = LeastFirstBatch(options_);
    const bool nothing_yet = results_->costs().empty();
    const StepTimes step = steps();
    const bool over = time <= absl::ZeroDuration();
    if (!step.known()) return (nothing_yet ? in_flight_ > 0 : over) ? 0 : least;
    const absl::Duration opening = session_open_ ? absl::ZeroDuration() : step.opening;
    const absl::Duration before = std::max(opening, in_flight_ * step.trial);
    const double fit = absl::FDivDuration(time - kSlack * before, kSlack * step.trial);
    if (fit < least) return nothing_yet && in_flight_ == 0 ? least : 0;
    return static_cast<int>(std::min<double>(options_.batch, fit));
  }

  std::optional<TuningStats> Stats() {
    const absl::StatusOr<TuningStats> stats = context_.client->Stats(spec_.run_id());
    return stats.ok() ? std::optional<TuningStats>(*stats) : std::nullopt;
  }

  absl::Status ProposeBatch(int most) {
    const int64_t left = trial_limit_ - results_->trials() - in_flight_;
    const int count = static_cast<int>(std::min<int64_t>(most, left));
    if (count <= 0) return absl::OkStatus();
    const Batch batch = search_->Propose(count);
    if (!search_->training_status().ok())
      Warn(absl::StrCat("the model was not trained: ", search_->training_status().message()));
    exhausted_ = static_cast<int>(batch.indices.size()) < count;
    if (batch.indices.empty()) return absl::OkStatus();
    Proposal proposal{.run_id = spec_.run_id(),
                      .results_seen = batch.results_seen,
                      .trained_on = batch.trained_on};
    for (absl::uint128 index : batch.indices)
      proposal.schedules.push_back(space_->space().At(index).ToString());
    in_flight_ += proposal.schedules.size();
    return context_.client->Propose(proposal);
  }

  absl::Status Receive(absl::Duration timeout) {
    absl::StatusOr<std::vector<TuningEvent>> events =
        context_.client->NextResults(spec_.run_id(), timeout);
    if (!events.ok()) return events.status();
    for (const TuningEvent& event : *events) {
      switch (event.kind) {
        case TuningEvent::Kind::kTrial:
          --in_flight_;
          session_open_ = true;
          pace_.AddTrial(context_.now(), static_cast<int64_t>(event.trial.measured_unix_ns()));
          if (absl::Status status = CommitResult(FactsOf(event.trial)); !status.ok()) return status;
          break;
        case TuningEvent::Kind::kLate:
          --in_flight_;
          break;
        case TuningEvent::Kind::kFinals:
          finals_[event.finals.trial_id()] = event.finals;
          break;
        case TuningEvent::Kind::kSession:
          if (absl::Status status = HearOfSession(event); !status.ok()) return status;
          break;
        case TuningEvent::Kind::kWorkerJoined:
        case TuningEvent::Kind::kWorkerLost:
          break;  // the lease book sees to it; their number shows in the statistics
      }
    }
    return absl::OkStatus();
  }

  absl::Status HearOfSession(const TuningEvent& event) {
    device_ = event.device;
    if (!event.session.refusal().empty())
      return absl::FailedPreconditionError(event.session.refusal());
    for (const v1::Failure& failure : event.session.anchor_failures()) {
      Warn(absl::StrCat("the anchor failed (", failure.kind(), ": ", failure.text(),
                        "); times are relative to ", event.session.anchor_schedule()));
    }
    return absl::OkStatus();
  }

  absl::Status CommitResult(const TrialFacts& facts) {
    absl::StatusOr<absl::uint128> index = IndexOf(facts.schedule);
    if (!index.ok())
      return absl::InternalError(
          absl::StrCat("a worker returned ", facts.schedule, ": ", index.status().message()));
    search_->Commit(results_->Add(facts, *index));
    absl::Status hope = results_->CheckHope();
    paused_ = !hope.ok();
    return hope;
  }

  // ---- finals
  // ------------------------------------------------------------------------------------------------

  // Waits for the rounds, at most until the run is told to stop.
  absl::StatusOr<v1::FinalsResult> HoldRounds(const v1::Finals& finals, FinalsStage stage) {
    const absl::Time began = context_.now();
    const absl::Duration opening = session_open_ ? absl::ZeroDuration() : steps().opening;
    absl::StatusOr<std::string> id = context_.client->Finals(spec_.run_id(), finals);
    if (!id.ok()) return id.status();
    while (!finals_.contains(*id)) {
      if (Stopped()) return absl::CancelledError("stopped");
      if (absl::Status status = Receive(absl::Milliseconds(200)); !status.ok()) return status;
      Report(stage == FinalsStage::kDeciding ? TuneProgress::Phase::kDeciding
                                             : TuneProgress::Phase::kQualifying);
    }
    session_open_ = true;
    pace_.AddRounds(int64_t{finals.rounds()} * finals.schedules_size(),
                    absl::Milliseconds(finals.idle_ms()), context_.now() - began - opening);
    return finals_[*id];
  }

  absl::Status DecideByFinals(absl::Time by) {
    if (results_->costs().empty())
      return absl::OkStatus();  // nothing to decide: the report says so
    FinalsField field{.costs = results_->costs(),
                      .anchor = record_.workloads[0].anchor_schedule,
                      .default_schedule = space_->DefaultSchedule().ToString(),
                      .seed = record_.seed};
    for (const Schedule& schedule :
         LibrarySchedules(task_.workload, context_.target, task_.regime.at, context_.libraries)) {
      field.library_algorithms.push_back(schedule.ToString());
    }
    field.by = by;
    field.burst = steps().burst;
    if (!session_open_) field.opening = steps().opening;
    const FinalsCalls calls{.hold = [&](const v1::Finals& finals,
                                        FinalsStage stage) { return HoldRounds(finals, stage); },
                            .warn = [&](std::string warning) { Warn(std::move(warning)); },
                            .ended =
                                [&](FinalsStage stage) {
                                  clock_.EndPhase(stage == FinalsStage::kQualifying ? "qualifying"
                                                  : stage == FinalsStage::kLibrary
                                                      ? "choosing the library's algorithm"
                                                      : "deciding");
                                },
                            .now = context_.now};
    absl::StatusOr<FinalsOutcome> outcome = HoldFinals(field, rules_, calls);
    if (absl::IsCancelled(outcome.status())) return absl::OkStatus();
    if (!outcome.ok()) return outcome.status();
    deciding_ = std::move(outcome->deciding);
    library_ = std::move(outcome->library);
    return RecordVerdict(*outcome);
  }

  // Of the deciding rounds; empty if it had none.
  std::vector<double> SecondsOf(const std::string& schedule) const {
    for (const Entrant& entrant : deciding_) {
      if (entrant.schedule == schedule) return entrant.round_seconds;
    }
    return {};
  }

  double Limit() const { return TaskLimitSeconds(task_, context_.target); }

  absl::Status RecordVerdict(const FinalsOutcome& outcome) {
    const FinalsDecision& decision = outcome.decision;
    VerdictRow verdict{
        .id = Id::Random(),
        .workload_key = task_.workload.key(),
        .target_key = record_.target_key,
        .regime = record_.regime,
        .winner_schedule = decision.winner,
        .rival_schedule = decision.rival,
        .outcome = std::string(ToString(decision.comparison.outcome)),
        .ratio = decision.comparison.ratio,
        .winner_seconds = decision.winner_seconds,
        .rival_seconds = decision.rival_seconds,
        .default_seconds = MedianSeconds(deciding_, space_->DefaultSchedule().ToString()),
        .library_seconds = MedianSeconds(deciding_, library_),  // absent: none competed
        .limit_seconds = Limit(),
        .environment = {.device_uuid = device_.device_uuid,
                        .driver = device_.driver,
                        .toolchain = context_.toolchain,
                        .timer = device_.timer,
                        .procedure = absl::StrCat("finals: ", outcome.rounds,
                                                  " paired rounds in random order, ",
                                                  outcome.idle_ms, " ms idle before each burst")},
        .created_unix_ns = absl::GetCurrentTimeNanos(),
        .replaces = start_.verdicts};
    verdict.ratio_low = verdict.ratio_high = verdict.ratio;
    if (decision.comparison.interval) {
      verdict.ratio_low = decision.comparison.interval->low;
      verdict.ratio_high = decision.comparison.interval->high;
    }
    verdict.rounds = RoundsOf(deciding_, outcome.rounds);
    for (const v1::FinalsResult::Entrant& entrant : outcome.raw.entrants()) {
      if (entrant.schedule() != decision.winner) continue;
      verdict.winner_ir_digest = entrant.facts().ir_digest();
      verdict.winner_binary_digest = entrant.facts().binary_digest();
      verdict.check_json = entrant.check();
    }
    if (absl::Status recorded = context_.client->RecordVerdict(verdict); !recorded.ok())
      return recorded;
    verdict_ = std::move(verdict);
    return absl::OkStatus();
  }

  // ---- reporting
  // ---------------------------------------------------------------------------------------------

  void Warn(std::string warning) {
    if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
      warnings_.push_back(std::move(warning));
  }

  void Report(TuneProgress::Phase phase) {
    if (!context_.progress) return;
    TuneProgress progress{.phase = phase,
                          .trials = results_->trials(),
                          .trial_limit = trial_limit_,
                          .failures = results_->failures()};
    progress.elapsed = clock_.elapsed();
    if (const std::string* best = results_->best()) {
      progress.best_schedule = *best;
      progress.best_seconds = results_->Seconds(*best);
    }
    const double screening =
        absl::ToDoubleSeconds(screening_time_ + context_.now() - screening_started_);
    if (phase == TuneProgress::Phase::kScreening && screening > 0 &&
        results_->trials() > trials_before_) {
      progress.trials_per_second = (results_->trials() - trials_before_) / screening;
      const absl::Duration rest =
          absl::Seconds((trial_limit_ - results_->trials()) / progress.trials_per_second) +
          (options_.run_finals ? TimeOfFinals(rules_, steps().burst) : absl::ZeroDuration());
      progress.left =
          std::min(rest, std::max(absl::ZeroDuration(), options_.time_limit - clock_.elapsed()));
    }
    context_.progress(progress);
  }

  ReportRow Row(const std::string& label, const std::string& schedule) {
    ReportRow row{.label = label, .schedule = schedule};
    row.seconds = MedianSeconds(deciding_, schedule);
    row.from_finals = row.seconds.has_value();
    if (!row.seconds) row.seconds = results_->Seconds(schedule);
    return row;
  }

  // The bound of the best schedule, with the device's rates as this run's times calibrate them.
  std::optional<double> Bound() {
    if (results_->best() == nullptr) return std::nullopt;
    std::vector<std::pair<double, Schedule>> measured;
    for (const auto& [cost, text] : results_->costs()) {
      absl::StatusOr<Schedule> schedule = ParseSchedule(text);
      if (schedule.ok()) measured.emplace_back(*results_->Seconds(text), *std::move(schedule));
    }
    const absl::StatusOr<Schedule> best =
        ParseSchedule(verdict_ ? verdict_->winner_schedule : *results_->best());
    const absl::StatusOr<double> bound =
        best.ok() ? CalibratedBoundSeconds(space_, task_.regime.at, measured, *best)
                  : absl::StatusOr<double>(best.status());
    if (bound.ok()) return *bound;
    Warn(absl::StrCat("the bound is not known: ", bound.status().message()));
    return std::nullopt;
  }

  absl::StatusOr<TuneReport> MakeReport(bool interrupted) {
    TuneReport report{.run = record_.id, .workload_key = task_.workload.key(), .name = task_.name};
    report.operations = task_.workload.Operations(task_.regime.at);
    report.bytes = task_.workload.CompulsoryBytes(task_.regime.at);
    report.rows.push_back(Row("default", space_->DefaultSchedule().ToString()));
    report.rows.push_back(Row("incumbent", record_.workloads[0].anchor_schedule));
    if (verdict_) {
      report.rows.push_back(Row("best", verdict_->winner_schedule));
    } else if (const std::string* best = results_->best()) {
      report.rows.push_back(Row("best", *best));
    }
    if (!library_.empty()) {
      report.rows.push_back(Row("library", library_));
      if (verdict_) {
        report.against_library =
            ComparePaired(SecondsOf(verdict_->winner_schedule), SecondsOf(library_));
      }
    }
    if (const std::optional<double> bound = Bound()) {
      report.rows.push_back({.label = "bound", .seconds = bound});
    }
    report.rows.push_back({.label = "limit", .seconds = Limit()});
    report.verdict = verdict_;
    report.interrupted = interrupted;
    report.exhausted = exhausted_;
    report.trials = results_->trials();
    report.failures = results_->failures();
    report.first_failure = results_->first_failure();
    report.elapsed = clock_.elapsed();
    const double screening = absl::ToDoubleSeconds(screening_time_);
    report.trials_per_second =
        screening > 0 ? (results_->trials() - trials_before_) / screening : 0;
    if (const std::optional<TuningStats> stats = Stats())
      report.utilisation = clock_.Utilisation(*stats);
    report.phases = clock_.phases();
    report.warnings = warnings_;
    return report;
  }

  const TunerContext& context_;
  const TuneTask& task_;
  TuneOptions options_;
  RunClock clock_;
  RunPace pace_;
  StepTimes expected_;         // by what other runs measured
  bool session_open_ = false;  // on a device
  bool screening_begun_ = false;
  absl::Time screening_started_;
  absl::Duration screening_time_;
  std::shared_ptr<const ScheduleSpace> space_;
  FinalsRules rules_;
  int64_t trial_limit_ = 0;
  SearchStart start_;
  RunRow record_;
  v1::RunSpec spec_;
  std::unique_ptr<LearningSurrogate> surrogate_;
  std::unique_ptr<SearchState> search_;
  EnrolledDevice device_;
  std::optional<RunResults> results_;  // from MakeSpace on
  int64_t in_flight_ = 0;
  int64_t trials_before_ = 0;  // of a resumed run, before this start
  bool exhausted_ = false;
  bool paused_ = false;
  std::map<std::string, v1::FinalsResult> finals_;  // by item id
  std::string library_;  // the schedule that competed for a library; empty: none
  std::vector<Entrant> deciding_;
  std::optional<VerdictRow> verdict_;
  std::vector<std::string> warnings_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TuningRun>> TuningRun::Begin(const TunerContext& context,
                                                            const TuneTask& task,
                                                            const TuneOptions& options,
                                                            const std::optional<Id>& resume) {
  auto tuner = std::make_unique<Tuner>(context, task, options);
  if (absl::Status started = tuner->Start(resume); !started.ok()) return started;
  return tuner;
}

absl::StatusOr<TuneReport> TuneWorkload(const TunerContext& context, const TuneTask& task,
                                        const TuneOptions& options,
                                        const std::optional<Id>& resume) {
  Tuner tuner(context, task, options);
  if (absl::Status started = tuner.Start(resume); !started.ok()) return started;
  return tuner.RunToTheEnd();
}

}  // namespace tilewright
