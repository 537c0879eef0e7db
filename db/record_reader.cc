#include "db/record_reader.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

absl::Status Missing(absl::string_view kind, const Id& id) {
  return absl::NotFoundError(absl::StrCat(kind, " ", id.ToHex(), ": not in the database"));
}

// A WHERE clause and the values of its parameters. The SQL is made of texts in this file alone;
// what a user gave is bound.
class Where {
 public:
  void Text(absl::string_view condition, const std::string& value) {
    if (!value.empty()) Add(condition).text = value;
  }
  void Row(absl::string_view condition, const std::optional<Id>& value) {
    if (value.has_value()) Add(condition).id = value;
  }
  void Number(absl::string_view condition, int64_t value) { Add(condition).number = value; }
  void Fixed(absl::string_view condition) { conditions_.emplace_back(condition); }
  std::string Clause() const {
    return conditions_.empty() ? "" : absl::StrCat(" WHERE ", absl::StrJoin(conditions_, " AND "));
  }
  void Bind(Query& query) const {
    for (const Value& value : values_) {
      if (value.id.has_value()) {
        query.Bind(*value.id);
      } else if (value.number.has_value()) {
        query.Bind(*value.number);
      } else {
        query.Bind(absl::string_view(value.text));
      }
    }
  }

 private:
  struct Value {
    std::string text;
    std::optional<Id> id;
    std::optional<int64_t> number;
  };
  Value& Add(absl::string_view condition) {
    conditions_.emplace_back(condition);
    return values_.emplace_back();
  }
  std::vector<std::string> conditions_;
  std::vector<Value> values_;
};

absl::StatusOr<std::vector<std::string>> DecodeTexts(const std::string& text,
                                                     absl::string_view what) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> texts;
  if (json.is_array()) {
    for (const nlohmann::json& item : json) {
      if (item.is_string()) texts.push_back(item.get<std::string>());
    }
    if (texts.size() == json.size()) return texts;
  }
  return absl::DataLossError(absl::StrCat(what, ": a list of schedules is damaged"));
}

constexpr char kTrialSelect[] =
    "SELECT trial.row, trial.ordinal, trial.id, run.id, workload.key, target.key, regime.text, "
    "trial.schedule, "
    "trial.seconds, trial.failure_kind, trial.failure_message, trial.anchor_seconds, session.id, "
    "trial.build_ns, "
    "trial.ir_digest, trial.binary_digest, trial.resources, trial.same_as, trial.created_unix_ns, "
    "origin.name FROM trial "
    "JOIN run ON run.row = trial.run JOIN workload ON workload.row = trial.workload JOIN target ON "
    "target.row = "
    "trial.target JOIN regime ON regime.row = trial.regime JOIN origin ON origin.row = "
    "trial.origin LEFT JOIN session ON "
    "session.row = trial.session";

constexpr char kLateTrialSelect[] =
    "SELECT trial.row, 0, trial.id, run.id, workload.key, target.key, regime.text, trial.schedule, "
    "trial.seconds, trial.failure_kind, trial.failure_message, trial.anchor_seconds, session.id, "
    "trial.build_ns, "
    "trial.ir_digest, trial.binary_digest, trial.resources, trial.same_as, trial.created_unix_ns, "
    "origin.name, trial.reason, "
    "trial.samples FROM late_trial AS trial JOIN run ON run.row = trial.run JOIN workload ON "
    "workload.row = trial.workload "
    "JOIN target ON target.row = trial.target JOIN regime ON regime.row = trial.regime JOIN origin "
    "ON origin.row = "
    "trial.origin LEFT JOIN session ON session.row = trial.session WHERE run.id = ? ORDER BY "
    "trial.row";

TrialRow ReadTrial(Query& query) {
  TrialRow trial;
  trial.row = query.Int64();
  trial.ordinal = query.Int64();
  trial.id = query.ReadId();
  trial.run = query.ReadId();
  trial.workload_key = query.Text();
  trial.target_key = query.Text();
  trial.regime = query.Text();
  trial.schedule = query.Text();
  trial.seconds = query.OptionalDouble();
  Failure failure;
  failure.kind = query.Text();
  failure.message = query.Text();
  if (!failure.kind.empty()) trial.failure = std::move(failure);
  trial.anchor_seconds = query.OptionalDouble();
  trial.session = query.OptionalId();
  trial.build_ns = query.OptionalInt64();
  trial.ir_digest = query.Text();
  trial.binary_digest = query.Text();
  trial.resources_json = query.Text();
  trial.same_as = query.OptionalId();
  trial.created_unix_ns = query.Int64();
  trial.origin = query.Text();
  return trial;
}

Where TrialConditions(const TrialFilter& filter) {
  Where where;
  where.Text("trial.workload = (SELECT row FROM workload WHERE key = ?)", filter.workload_key);
  where.Text("trial.workload IN (SELECT workload FROM workload_source WHERE name = ?)",
             filter.workload_name);
  where.Text("trial.target = (SELECT row FROM target WHERE key = ?)", filter.target_key);
  where.Text("trial.target IN (SELECT row FROM target WHERE kind = ?)", filter.target_kind);
  where.Text("trial.regime = (SELECT row FROM regime WHERE text = ?)", filter.regime);
  where.Row("trial.run = (SELECT row FROM run WHERE id = ?)", filter.run);
  where.Row("trial.session = (SELECT row FROM session WHERE id = ?)", filter.session);
  where.Text("trial.failure_kind = ?", filter.failure_kind);
  if (filter.state == TrialFilter::State::kOk) where.Fixed("trial.seconds IS NOT NULL");
  if (filter.state == TrialFilter::State::kFailed) where.Fixed("trial.failure_kind IS NOT NULL");
  if (filter.after_row > 0) where.Number("trial.row > ?", filter.after_row);
  if (filter.through_row.has_value()) where.Number("trial.row <= ?", *filter.through_row);
  return where;
}

absl::string_view OrderOf(TrialFilter::Order order) {
  switch (order) {
    case TrialFilter::Order::kNewest:
      return " ORDER BY trial.row DESC";
    case TrialFilter::Order::kFastest:
      return " ORDER BY trial.seconds IS NULL, trial.seconds, trial.row";
    case TrialFilter::Order::kCommitted:
      break;
  }
  return " ORDER BY trial.row";
}

absl::Status CheckLimit(int64_t limit) {
  if (limit > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("limit ", limit, ": expected a number above 0"));
}

constexpr char kVerdictSelect[] =
    "SELECT verdict.id, workload.key, target.key, regime.text, verdict.winner_schedule, "
    "verdict.winner_ir_digest, "
    "verdict.winner_binary_digest, verdict.rival_schedule, verdict.outcome, verdict.ratio, "
    "verdict.ratio_low, "
    "verdict.ratio_high, verdict.winner_seconds, verdict.rival_seconds, verdict.default_seconds, "
    "verdict.library_seconds, "
    "verdict.limit_seconds, verdict.bound_seconds, environment.device_uuid, environment.driver, "
    "environment.toolchain, "
    "environment.timer, environment.procedure, verdict.check_evidence, verdict.created_unix_ns, "
    "origin.name, "
    "EXISTS (SELECT 1 FROM current_verdict WHERE current_verdict.verdict = verdict.row) FROM "
    "verdict "
    "JOIN workload ON workload.row = verdict.workload JOIN target ON target.row = verdict.target "
    "JOIN regime ON regime.row = verdict.regime JOIN environment ON environment.row = "
    "verdict.environment "
    "JOIN origin ON origin.row = verdict.origin";

VerdictRow ReadVerdict(Query& query) {
  VerdictRow verdict;
  verdict.id = query.ReadId();
  for (std::string* text :
       {&verdict.workload_key, &verdict.target_key, &verdict.regime, &verdict.winner_schedule,
        &verdict.winner_ir_digest, &verdict.winner_binary_digest, &verdict.rival_schedule,
        &verdict.outcome}) {
    *text = query.Text();
  }
  verdict.ratio = query.Double();
  verdict.ratio_low = query.Double();
  verdict.ratio_high = query.Double();
  for (std::optional<double>* seconds :
       {&verdict.winner_seconds, &verdict.rival_seconds, &verdict.default_seconds,
        &verdict.library_seconds, &verdict.limit_seconds, &verdict.bound_seconds}) {
    *seconds = query.OptionalDouble();
  }
  for (std::string* text : {&verdict.environment.device_uuid, &verdict.environment.driver,
                            &verdict.environment.toolchain, &verdict.environment.timer,
                            &verdict.environment.procedure, &verdict.check_json}) {
    *text = query.Text();
  }
  verdict.created_unix_ns = query.Int64();
  verdict.origin = query.Text();
  verdict.current = query.Int64() != 0;
  return verdict;
}

}  // namespace

absl::StatusOr<BestAnswer> RecordReader::Best(const std::string& workload_key,
                                              const std::string& target_key,
                                              const std::string& regime) {
  int64_t subject[3] = {};
  {
    Query query = connection_.Prepare(
        "SELECT (SELECT row FROM workload WHERE key = ?), (SELECT row FROM target WHERE key = ?), "
        "(SELECT row FROM regime WHERE text = ?)");
    query.Bind(absl::string_view(workload_key))
        .Bind(absl::string_view(target_key))
        .Bind(absl::string_view(regime))
        .Next();
    for (int64_t& row : subject) row = query.Int64();  // 0 for NULL, which no row has
  }
  BestAnswer answer;
  {
    static const std::string sql =
        absl::StrCat(kVerdictSelect,
                     " WHERE verdict.row IN (SELECT verdict FROM current_verdict WHERE workload = "
                     "? AND target = ? AND "
                     "regime = ?) ORDER BY verdict.created_unix_ns DESC, verdict.row DESC");
    Query query = connection_.Prepare(sql);
    for (const int64_t row : subject) query.Bind(row);
    while (query.Next()) answer.verdicts.push_back(ReadVerdict(query));
  }
  if (!answer.verdicts.empty()) {
    for (VerdictRow& verdict : answer.verdicts) ReadReplaces(verdict);
    answer.kind =
        answer.verdicts.size() == 1 ? BestAnswer::Kind::kVerdict : BestAnswer::Kind::kContested;
    return answer;
  }
  static const std::string sql = absl::StrCat(kTrialSelect,
                                              " WHERE trial.row = (SELECT trial FROM session_best "
                                              "WHERE workload = ? AND target = ? AND regime = ? "
                                              "ORDER BY measured DESC, session DESC LIMIT 1)");
  Query query = connection_.Prepare(sql);
  for (const int64_t row : subject) query.Bind(row);
  if (!query.Next()) {
    return absl::NotFoundError(absl::StrCat("workload ", workload_key, " on target ", target_key,
                                            " in regime '", regime, "': nothing measured in ",
                                            connection_.name()));
  }
  answer.kind = BestAnswer::Kind::kUnverified;
  answer.trial = ReadTrial(query);
  return answer;
}

std::vector<WorkloadRow> RecordReader::Workloads(const std::string& key, const std::string& name) {
  Where where;
  where.Text("workload.key = ?", key);
  where.Text("workload_source.name = ?", name);
  Query query = connection_.Prepare(
      absl::StrCat("SELECT workload.key, workload.canonical_version, workload.canonical_text, "
                   "workload_source.name, "
                   "workload_source.source, workload_source.sizes, workload_source.types, "
                   "workload_source.names FROM workload_source "
                   "JOIN workload ON workload.row = workload_source.workload",
                   where.Clause(), " ORDER BY workload_source.row"));
  where.Bind(query);
  std::vector<WorkloadRow> rows;
  while (query.Next()) {
    WorkloadRow& row = rows.emplace_back();
    row.key = query.Text();
    row.canonical_version = static_cast<int>(query.Int64());
    row.canonical_text = query.Text();
    row.name = query.Text();
    row.source = query.Text();
    row.sizes = query.Text();
    row.types = query.Text();
    row.names_json = query.Text();
  }
  return rows;
}

std::vector<TargetRow> RecordReader::Targets(const std::string& key, const std::string& kind) {
  Where where;
  where.Text("key = ?", key);
  where.Text("kind = ?", kind);
  Query query = connection_.Prepare(
      absl::StrCat("SELECT key, kind, text FROM target", where.Clause(), " ORDER BY row"));
  where.Bind(query);
  std::vector<TargetRow> rows;
  while (query.Next()) {
    TargetRow& row = rows.emplace_back();
    row.key = query.Text();
    row.kind = query.Text();
    row.text = query.Text();
  }
  return rows;
}

absl::StatusOr<std::vector<RunRow>> RecordReader::Runs(const std::optional<Id>& id,
                                                       const RunFilter& filter) {
  absl::Status status = CheckLimit(filter.limit);
  if (!status.ok()) return status;
  Where where;
  where.Row("run.id = ?", id);
  if (filter.job.has_value() && filter.job->empty()) where.Fixed("run.job = ''");
  if (filter.job.has_value()) where.Text("run.job = ?", *filter.job);
  where.Text("run.state = ?", filter.state);
  std::vector<RunRow> runs;
  {
    Query query = connection_.Prepare(absl::StrCat(
        "SELECT run.id, run.job, target.key, regime.text, run.seed, run.options, run.toolchain, "
        "run.highest_trial_row, "
        "run.state, run.started_unix_ns, run.ended_unix_ns, origin.name FROM run JOIN target ON "
        "target.row = run.target "
        "JOIN regime ON regime.row = run.regime JOIN origin ON origin.row = run.origin",
        where.Clause(), " ORDER BY run.row DESC LIMIT ?"));
    where.Bind(query);
    query.Bind(filter.limit);
    while (query.Next()) {
      RunRow& run = runs.emplace_back();
      run.id = query.ReadId();
      run.job = query.Text();
      run.target_key = query.Text();
      run.regime = query.Text();
      run.seed = static_cast<uint64_t>(query.Int64());
      run.options_json = query.Text();
      run.toolchain = query.Text();
      run.highest_trial_row = query.Int64();
      run.state = query.Text();
      run.started_unix_ns = query.Int64();
      run.ended_unix_ns = query.OptionalInt64();
      run.origin = query.Text();
    }
  }
  for (RunRow& run : runs) {
    Query query = connection_.Prepare(
        "SELECT workload.key, run_workload.weight, run_workload.anchor_schedule, "
        "run_workload.starts FROM run_workload "
        "JOIN workload ON workload.row = run_workload.workload WHERE run_workload.run = (SELECT "
        "row FROM run WHERE id = ?) "
        "ORDER BY run_workload.ordinal");
    query.Bind(run.id);
    while (query.Next()) {
      RunWorkload& part = run.workloads.emplace_back();
      part.workload_key = query.Text();
      part.weight = query.Double();
      part.anchor_schedule = query.Text();
      absl::StatusOr<std::vector<std::string>> starts =
          DecodeTexts(query.Text(), absl::StrCat("run ", run.id.ToHex()));
      if (!starts.ok()) return starts.status();
      part.starts = *std::move(starts);
    }
  }
  return runs;
}

std::vector<SessionRow> RecordReader::Sessions(const std::optional<Id>& id,
                                               const std::optional<Id>& run) {
  Where where;
  where.Row("session.id = ?", id);
  where.Row("session.run = (SELECT row FROM run WHERE id = ?)", run);
  Query query = connection_.Prepare(
      absl::StrCat("SELECT session.id, run.id, environment.device_uuid, environment.driver, "
                   "environment.toolchain, environment.timer, "
                   "environment.procedure, session.enrolment_epoch, session.started_unix_ns, "
                   "origin.name FROM session JOIN run ON "
                   "run.row = session.run JOIN environment ON environment.row = "
                   "session.environment JOIN origin ON origin.row = "
                   "session.origin",
                   where.Clause(), " ORDER BY session.row"));
  where.Bind(query);
  std::vector<SessionRow> rows;
  while (query.Next()) {
    SessionRow& row = rows.emplace_back();
    row.id = query.ReadId();
    row.run = query.ReadId();
    for (std::string* text :
         {&row.environment.device_uuid, &row.environment.driver, &row.environment.toolchain,
          &row.environment.timer, &row.environment.procedure}) {
      *text = query.Text();
    }
    row.enrolment_epoch = query.Int64();
    row.started_unix_ns = query.Int64();
    row.origin = query.Text();
  }
  return rows;
}

std::vector<AnchorTimeRow> RecordReader::AnchorTimes(const Id& session) {
  Query query = connection_.Prepare(
      "SELECT workload.key, anchor_time.ordinal, anchor_time.seconds FROM anchor_time JOIN "
      "workload ON workload.row = "
      "anchor_time.workload WHERE anchor_time.session = (SELECT row FROM session WHERE id = ?) "
      "ORDER BY anchor_time.workload, anchor_time.ordinal");
  query.Bind(session);
  std::vector<AnchorTimeRow> rows;
  while (query.Next()) {
    AnchorTimeRow& row = rows.emplace_back();
    row.session = session;
    row.workload_key = query.Text();
    row.ordinal = query.Int64();
    row.seconds = query.Double();
  }
  return rows;
}

absl::StatusOr<std::vector<ProposalRow>> RecordReader::Proposals(const Id& run) {
  Query query = connection_.Prepare(
      "SELECT proposal.sequence, workload.key, proposal.results_seen, proposal.trained_on, "
      "proposal.schedules, "
      "proposal.created_unix_ns FROM proposal JOIN workload ON workload.row = proposal.workload "
      "WHERE proposal.run = "
      "(SELECT row FROM run WHERE id = ?) ORDER BY proposal.sequence");
  query.Bind(run);
  std::vector<ProposalRow> rows;
  while (query.Next()) {
    ProposalRow& row = rows.emplace_back();
    row.run = run;
    row.sequence = query.Int64();
    row.workload_key = query.Text();
    row.results_seen = query.Int64();
    row.trained_on = query.Int64();
    absl::StatusOr<std::vector<std::string>> schedules =
        DecodeTexts(query.Text(), absl::StrCat("proposal ", row.sequence, " of run ", run.ToHex()));
    if (!schedules.ok()) return schedules.status();
    row.schedules = *std::move(schedules);
    row.created_unix_ns = query.Int64();
  }
  return rows;
}

absl::StatusOr<std::vector<TrialRow>> RecordReader::Trials(const TrialFilter& filter) {
  absl::Status status = CheckLimit(filter.limit);
  if (!status.ok()) return status;
  const Where where = TrialConditions(filter);
  Query query = connection_.Prepare(
      absl::StrCat(kTrialSelect, where.Clause(), OrderOf(filter.order), " LIMIT ?"));
  where.Bind(query);
  query.Bind(filter.limit);
  std::vector<TrialRow> trials;
  while (query.Next()) trials.push_back(ReadTrial(query));
  return trials;
}

std::vector<TrialRow> RecordReader::TrialsOfRun(const Id& run) {
  Query query = connection_.Prepare(
      absl::StrCat(kTrialSelect,
                   " WHERE trial.run = (SELECT row FROM run WHERE id = ?) ORDER BY trial.ordinal"));
  query.Bind(run);
  std::vector<TrialRow> trials;
  while (query.Next()) trials.push_back(ReadTrial(query));
  return trials;
}

absl::StatusOr<TrialRow> RecordReader::Trial(const Id& id) {
  Query query = connection_.Prepare(absl::StrCat(kTrialSelect, " WHERE trial.id = ?"));
  if (!query.Bind(id).Next()) return Missing("trial", id);
  return ReadTrial(query);
}

absl::StatusOr<std::vector<TrialRow>> RecordReader::LateTrials(const Id& run) {
  Query query = connection_.Prepare(kLateTrialSelect);
  query.Bind(run);
  std::vector<TrialRow> trials;
  while (query.Next()) {
    TrialRow& trial = trials.emplace_back(ReadTrial(query));
    trial.late_reason = query.Text();
    const std::string blob = query.Blob();
    if (blob.empty()) continue;
    absl::StatusOr<Samples> samples = DecodeSamples(blob);
    // Damaged samples cost the samples, not the row.
    if (samples.ok()) trial.samples = *std::move(samples);
  }
  return trials;
}

absl::StatusOr<Samples> RecordReader::LoadSamples(const Id& trial) {
  Query query = connection_.Prepare(
      "SELECT samples FROM trial_samples WHERE trial = (SELECT row FROM trial WHERE id = ?)");
  if (!query.Bind(trial).Next()) return Missing("samples of trial", trial);
  return DecodeSamples(query.Blob());
}

void RecordReader::ReadReplaces(VerdictRow& verdict) {
  Query query = connection_.Prepare(
      "SELECT replaced FROM verdict_replaces WHERE verdict = (SELECT row FROM verdict WHERE id = "
      "?) ORDER BY replaced");
  query.Bind(verdict.id);
  while (query.Next()) verdict.replaces.push_back(query.ReadId());
}

absl::StatusOr<std::vector<VerdictRow>> RecordReader::Verdicts(const VerdictFilter& filter) {
  absl::Status status = CheckLimit(filter.limit);
  if (!status.ok()) return status;
  Where where;
  where.Text("verdict.workload = (SELECT row FROM workload WHERE key = ?)", filter.workload_key);
  where.Text("verdict.workload IN (SELECT workload FROM workload_source WHERE name = ?)",
             filter.workload_name);
  where.Text("verdict.target = (SELECT row FROM target WHERE key = ?)", filter.target_key);
  where.Text("verdict.target IN (SELECT row FROM target WHERE kind = ?)", filter.target_kind);
  where.Text("verdict.regime = (SELECT row FROM regime WHERE text = ?)", filter.regime);
  if (filter.current_only) where.Fixed("verdict.row IN (SELECT verdict FROM current_verdict)");
  std::vector<VerdictRow> verdicts;
  {
    Query query = connection_.Prepare(
        absl::StrCat(kVerdictSelect, where.Clause(),
                     " ORDER BY verdict.created_unix_ns DESC, verdict.row DESC LIMIT ?"));
    where.Bind(query);
    query.Bind(filter.limit);
    while (query.Next()) verdicts.push_back(ReadVerdict(query));
  }
  for (VerdictRow& verdict : verdicts) ReadReplaces(verdict);
  return verdicts;
}

absl::StatusOr<VerdictRow> RecordReader::Verdict(const Id& id) {
  VerdictRow verdict;
  {
    Query query = connection_.Prepare(absl::StrCat(kVerdictSelect, " WHERE verdict.id = ?"));
    if (!query.Bind(id).Next()) return Missing("verdict", id);
    verdict = ReadVerdict(query);
  }
  ReadReplaces(verdict);
  return verdict;
}

absl::StatusOr<Rounds> RecordReader::LoadRounds(const Id& verdict) {
  Query query =
      connection_.Prepare("SELECT rounds FROM verdict WHERE id = ? AND rounds IS NOT NULL");
  if (!query.Bind(verdict).Next()) return Missing("rounds of verdict", verdict);
  return DecodeRounds(query.Blob());
}

std::vector<EvaluationRow> RecordReader::Evaluations(const Id& run) {
  Query query = connection_.Prepare(
      "SELECT evaluation.id, evaluation.model, evaluation.results_seen, evaluation.trained_on, "
      "evaluation.figures, "
      "evaluation.created_unix_ns, origin.name FROM evaluation JOIN origin ON origin.row = "
      "evaluation.origin WHERE "
      "evaluation.run = (SELECT row FROM run WHERE id = ?) ORDER BY evaluation.row");
  query.Bind(run);
  std::vector<EvaluationRow> rows;
  while (query.Next()) {
    EvaluationRow& row = rows.emplace_back();
    row.id = query.ReadId();
    row.run = run;
    row.model = query.Text();
    row.results_seen = query.Int64();
    row.trained_on = query.Int64();
    row.figures_json = query.Text();
    row.created_unix_ns = query.Int64();
    row.origin = query.Text();
  }
  return rows;
}

absl::StatusOr<std::vector<std::pair<std::string, int64_t>>> RecordReader::CountFailures(
    const TrialFilter& filter) {
  Where where = TrialConditions(filter);
  where.Fixed("trial.failure_kind IS NOT NULL");
  Query query = connection_.Prepare(
      absl::StrCat("SELECT failure_kind, count(*) FROM trial", where.Clause(),
                   " GROUP BY failure_kind ORDER BY count(*) DESC, failure_kind"));
  where.Bind(query);
  std::vector<std::pair<std::string, int64_t>> counts;
  while (query.Next()) {
    std::string kind = query.Text();
    counts.emplace_back(std::move(kind), query.Int64());
  }
  return counts;
}

LogCounts RecordReader::Count() {
  Query query = connection_.Prepare(
      "SELECT (SELECT count(*) FROM workload), (SELECT count(*) FROM target), (SELECT count(*) "
      "FROM run), "
      "(SELECT count(*) FROM session), (SELECT count(*) FROM trial), "
      "(SELECT count(*) FROM trial WHERE failure_kind IS NOT NULL), (SELECT count(*) FROM "
      "late_trial), "
      "(SELECT count(*) FROM verdict)");
  query.Next();
  LogCounts counts;
  for (int64_t* count :
       {&counts.workloads, &counts.targets, &counts.runs, &counts.sessions, &counts.trials,
        &counts.failed_trials, &counts.late_trials, &counts.verdicts}) {
    *count = query.Int64();
  }
  return counts;
}

int64_t RecordReader::HighestTrialRow() {
  Query query = connection_.Prepare("SELECT coalesce(max(row), 0) FROM trial");
  query.Next();
  return query.Int64();
}

}  // namespace tilewright
