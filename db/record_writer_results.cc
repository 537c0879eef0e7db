// The results: trials and verdicts.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "db/record_writer.h"

namespace tilewright {
namespace {

absl::Status CheckTrial(const TrialRow& trial) {
  const std::string what = absl::StrCat("trial ", trial.id.ToHex());
  if (trial.seconds.has_value() == trial.failure.has_value()) {
    return InvalidRow(what, "expected either seconds or a failure");
  }
  if (trial.failure.has_value() && trial.failure->kind.empty())
    return InvalidRow(what, "its failure has no kind");
  if (trial.schedule.empty()) return InvalidRow(what, "no schedule");
  if (trial.seconds.has_value() && !trial.session.has_value())
    return InvalidRow(what, "a time without a session");
  absl::Status status = CheckTime(trial.seconds, what);
  status.Update(CheckTime(trial.anchor_seconds, what));
  status.Update(CheckJsonText(trial.resources_json, absl::StrCat(what, ": resources")));
  if (!status.ok() || !trial.samples.has_value()) return status;
  const Samples& samples = *trial.samples;
  for (const size_t size : {samples.clock_mhz.size(), samples.marks.size()}) {
    if (size != 0 && size != samples.seconds.size())
      return InvalidRow(what, "lists of samples differ in length");
  }
  for (const double value : samples.seconds) {
    if (!std::isfinite(value)) return InvalidRow(what, "a sample is not finite");
  }
  return absl::OkStatus();
}

absl::Status CheckVerdict(const VerdictRow& verdict) {
  const std::string what = absl::StrCat("verdict ", verdict.id.ToHex());
  if (verdict.outcome != "faster" && verdict.outcome != "slower" && verdict.outcome != "tie") {
    return InvalidRow(
        what, absl::StrCat("outcome '", verdict.outcome, "'; expected faster, slower or tie"));
  }
  if (verdict.winner_schedule.empty()) return InvalidRow(what, "no winner");
  const bool ordered = verdict.ratio_low > 0 && verdict.ratio_low <= verdict.ratio_high;
  if (!ordered || !std::isfinite(verdict.ratio_high) || !std::isfinite(verdict.ratio) ||
      verdict.ratio <= 0) {
    return InvalidRow(what, "expected a finite ratio above 0 and an interval low <= high");
  }
  for (const auto& seconds :
       {verdict.winner_seconds, verdict.rival_seconds, verdict.default_seconds,
        verdict.library_seconds, verdict.limit_seconds, verdict.bound_seconds}) {
    absl::Status status = CheckTime(seconds, what);
    if (!status.ok()) return status;
  }
  if (verdict.rounds.has_value()) {
    const Rounds& rounds = *verdict.rounds;
    const size_t columns = rounds.schedules.size();
    if (columns == 0 || rounds.seconds.size() % columns != 0) {
      return InvalidRow(what, "expected as many times in each round as there are schedules");
    }
    for (const double value : rounds.seconds) {
      if (!std::isfinite(value)) return InvalidRow(what, "a time of a round is not finite");
    }
  }
  for (const Id& replaced : verdict.replaces) {
    if (replaced == verdict.id) return InvalidRow(what, "it cannot replace itself");
  }
  return CheckJsonText(verdict.check_json, absl::StrCat(what, ": check evidence"));
}

}  // namespace

absl::StatusOr<RecordWriter::Subject> RecordWriter::SubjectOf(const TrialRow& trial) {
  const std::string what = absl::StrCat("trial ", trial.id.ToHex());
  Subject subject;
  {
    Query query = connection_.Prepare(
        "SELECT run.row, run.target, run.regime, target.key, regime.text FROM run JOIN target ON "
        "target.row = run.target "
        "JOIN regime ON regime.row = run.regime WHERE run.id = ?");
    if (!query.Bind(trial.run).Next())
      return InvalidRow(what, absl::StrCat("run ", trial.run.ToHex(), " is not in the database"));
    subject.run = query.Int64();
    subject.target = query.Int64();
    subject.regime = query.Int64();
    if (query.Text() != trial.target_key || query.Text() != trial.regime) {
      return InvalidRow(what, "its target and regime are not its run's");
    }
  }
  const absl::StatusOr<int64_t> workload = WorkloadNumber(trial.workload_key);
  if (!workload.ok()) return workload.status();
  subject.workload = *workload;
  if (trial.session.has_value()) {
    const absl::StatusOr<int64_t> session =
        NumberOf("SELECT row FROM session WHERE id = ?", *trial.session, "session");
    if (!session.ok()) return session.status();
    subject.session = *session;
  }
  subject.origin = OriginNumber(trial.origin);
  return subject;
}

namespace {

// The columns that trial and late_trial share, in the order in which BindTrial binds them.
constexpr char kTrialColumns[] =
    "id, run, workload, target, regime, schedule, seconds, failure_kind, failure_message, "
    "anchor_seconds, session, "
    "build_ns, ir_digest, binary_digest, resources, same_as, created_unix_ns, origin";
constexpr char kTrialMarks[] = "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?";

template <typename Subject>
void BindTrial(Query& query, const TrialRow& trial, const Subject& subject) {
  query.Bind(trial.id)
      .Bind(subject.run)
      .Bind(subject.workload)
      .Bind(subject.target)
      .Bind(subject.regime);
  query.Bind(absl::string_view(trial.schedule)).Bind(trial.seconds);
  if (trial.failure.has_value()) {
    query.Bind(absl::string_view(trial.failure->kind))
        .Bind(absl::string_view(trial.failure->message));
  } else {
    query.BindNull().BindNull();
  }
  query.Bind(trial.anchor_seconds).Bind(subject.session).Bind(trial.build_ns);
  query.BindTextOrNull(trial.ir_digest)
      .BindTextOrNull(trial.binary_digest)
      .BindTextOrNull(trial.resources_json);
  query.Bind(trial.same_as).Bind(trial.created_unix_ns).Bind(subject.origin);
}

}  // namespace

absl::StatusOr<Committed> RecordWriter::WriteLate(const TrialRow& trial, const Subject& subject,
                                                  absl::string_view reason) {
  Query query =
      connection_.Prepare(absl::StrCat("INSERT INTO late_trial(", kTrialColumns,
                                       ", reason, samples) VALUES(", kTrialMarks, ", ?, ?)"));
  BindTrial(query, trial, subject);
  query.Bind(reason);
  if (trial.samples.has_value()) {
    query.BindBlob(EncodeSamples(*trial.samples));
  } else {
    query.BindNull();
  }
  query.Run();
  return Committed::kLate;
}

absl::StatusOr<Committed> RecordWriter::Write(const TrialRow& trial, Numbering numbering) {
  absl::Status status = CheckTrial(trial);
  if (!status.ok()) return status;
  const absl::StatusOr<Subject> subject = SubjectOf(trial);
  if (!subject.ok()) return subject.status();
  for (const char* table : {"trial", "late_trial"}) {
    Query query = connection_.Prepare(
        absl::StrCat("SELECT run, workload, schedule FROM ", table, " WHERE id = ?"));
    if (!query.Bind(trial.id).Next()) continue;
    const bool same = query.Int64() == subject->run && query.Int64() == subject->workload &&
                      query.Text() == trial.schedule;
    if (same) return Committed::kDuplicate;
    return InvalidRow(absl::StrCat("trial ", trial.id.ToHex()),
                      "stored with another run, workload or schedule");
  }
  if (!trial.late_reason.empty()) return WriteLate(trial, *subject, trial.late_reason);
  int64_t ordinal = trial.ordinal;
  if (numbering == Numbering::kAssign) {
    Query query =
        connection_.Prepare("SELECT coalesce(max(ordinal) + 1, 0) FROM trial WHERE run = ?");
    query.Bind(subject->run).Next();
    ordinal = query.Int64();
  }
  int64_t row = 0;
  {
    Query query =
        connection_.Prepare(absl::StrCat("INSERT INTO trial(", kTrialColumns, ", ordinal) VALUES(",
                                         kTrialMarks, ", ?) ON CONFLICT DO NOTHING RETURNING row"));
    BindTrial(query, trial, *subject);
    // A conflict: the candidate has its result, or (in merged logs) the run went on in two copies.
    if (!query.Bind(ordinal).Next())
      return WriteLate(trial, *subject, "the run already had a result");
    row = query.Int64();
    query.Next();
  }
  if (trial.samples.has_value()) {
    connection_.Prepare("INSERT INTO trial_samples(trial, samples) VALUES(?, ?)")
        .Bind(row)
        .BindBlob(EncodeSamples(*trial.samples))
        .Run();
  }
  if (!trial.ok()) return Committed::kFirst;
  connection_
      .Prepare(
          "INSERT INTO session_best(workload, target, regime, session, measured, trial, seconds) "
          "VALUES(?, ?, ?, ?, 1, ?, ?) ON CONFLICT(workload, target, regime, session) DO UPDATE "
          "SET "
          "measured = measured + 1, trial = iif(excluded.seconds < seconds, excluded.trial, "
          "trial), "
          "seconds = min(seconds, excluded.seconds)")
      .Bind(subject->workload)
      .Bind(subject->target)
      .Bind(subject->regime)
      .Bind(*subject->session)
      .Bind(row)
      .Bind(*trial.seconds)
      .Run();
  return Committed::kFirst;
}

absl::Status RecordWriter::WriteVerdictRow(const VerdictRow& verdict) {
  const absl::StatusOr<int64_t> workload = WorkloadNumber(verdict.workload_key);
  if (!workload.ok()) return workload.status();
  const absl::StatusOr<int64_t> target = TargetNumber(verdict.target_key);
  if (!target.ok()) return target.status();
  const int64_t regime = RegimeNumber(verdict.regime);
  Query query = connection_.Prepare(
      "INSERT INTO verdict(id, workload, target, regime, winner_schedule, winner_ir_digest, "
      "winner_binary_digest, "
      "rival_schedule, outcome, ratio, ratio_low, ratio_high, winner_seconds, rival_seconds, "
      "default_seconds, "
      "library_seconds, limit_seconds, bound_seconds, environment, check_evidence, rounds, "
      "created_unix_ns, origin) "
      "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING row");
  query.Bind(verdict.id).Bind(*workload).Bind(*target).Bind(regime);
  for (const std::string* text :
       {&verdict.winner_schedule, &verdict.winner_ir_digest, &verdict.winner_binary_digest,
        &verdict.rival_schedule, &verdict.outcome}) {
    query.Bind(absl::string_view(*text));
  }
  query.Bind(verdict.ratio).Bind(verdict.ratio_low).Bind(verdict.ratio_high);
  query.Bind(verdict.winner_seconds).Bind(verdict.rival_seconds).Bind(verdict.default_seconds);
  query.Bind(verdict.library_seconds).Bind(verdict.limit_seconds).Bind(verdict.bound_seconds);
  query.Bind(EnvironmentNumber(verdict.environment)).BindTextOrNull(verdict.check_json);
  if (verdict.rounds.has_value()) {
    query.BindBlob(EncodeRounds(*verdict.rounds));
  } else {
    query.BindNull();
  }
  query.Bind(verdict.created_unix_ns).Bind(OriginNumber(verdict.origin)).Next();
  const int64_t row = query.Int64();
  query.Next();
  for (const Id& replaced : verdict.replaces) {
    connection_
        .Prepare(
            "INSERT INTO verdict_replaces(verdict, replaced) VALUES(?, ?) ON CONFLICT DO NOTHING")
        .Bind(row)
        .Bind(replaced)
        .Run();
    connection_
        .Prepare(
            "DELETE FROM current_verdict WHERE verdict = (SELECT row FROM verdict WHERE id = ?)")
        .Bind(replaced)
        .Run();
  }
  connection_
      .Prepare(
          "INSERT INTO current_verdict(workload, target, regime, verdict) SELECT workload, target, "
          "regime, row FROM verdict "
          "WHERE row = ? AND NOT EXISTS (SELECT 1 FROM verdict_replaces WHERE replaced = "
          "verdict.id)")
      .Bind(row)
      .Run();
  return absl::OkStatus();
}

absl::Status RecordWriter::Write(const VerdictRow& verdict) {
  absl::Status status = CheckVerdict(verdict);
  if (!status.ok()) return status;
  {
    Query query =
        connection_.Prepare("SELECT winner_schedule, created_unix_ns FROM verdict WHERE id = ?");
    if (query.Bind(verdict.id).Next()) {
      if (query.Text() == verdict.winner_schedule && query.Int64() == verdict.created_unix_ns)
        return absl::OkStatus();
      return InvalidRow(absl::StrCat("verdict ", verdict.id.ToHex()),
                        "stored with another content");
    }
  }
  return WriteVerdictRow(verdict);
}

}  // namespace tilewright
