#include "db/record_writer.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace tilewright {
absl::Status InvalidRow(absl::string_view what, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", problem));
}

absl::Status CheckJsonText(const std::string& text, absl::string_view what) {
  if (text.empty() || nlohmann::json::accept(text)) return absl::OkStatus();
  return InvalidRow(what, "expected a JSON text or nothing");
}

absl::Status CheckTime(std::optional<double> seconds, absl::string_view what) {
  if (!seconds.has_value() || (std::isfinite(*seconds) && *seconds > 0)) return absl::OkStatus();
  return InvalidRow(what, absl::StrCat(*seconds, " seconds; expected a finite time above 0"));
}

std::string EncodeTexts(const std::vector<std::string>& texts) {
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<int64_t> RecordWriter::WorkloadNumber(const std::string& key) {
  Query query = connection_.Prepare("SELECT row FROM workload WHERE key = ?");
  if (!query.Bind(absl::string_view(key)).Next())
    return InvalidRow(absl::StrCat("workload ", key), "not in the database");
  return query.Int64();
}

absl::StatusOr<int64_t> RecordWriter::TargetNumber(const std::string& key) {
  Query query = connection_.Prepare("SELECT row FROM target WHERE key = ?");
  if (!query.Bind(absl::string_view(key)).Next())
    return InvalidRow(absl::StrCat("target ", key), "not in the database");
  return query.Int64();
}

absl::StatusOr<int64_t> RecordWriter::NumberOf(const std::string& sql, const Id& id,
                                               absl::string_view kind) {
  Query query = connection_.Prepare(sql);
  if (!query.Bind(id).Next())
    return InvalidRow(absl::StrCat(kind, " ", id.ToHex()), "not in the database");
  return query.Int64();
}

int64_t RecordWriter::RegimeNumber(const std::string& text) {
  {
    Query query = connection_.Prepare("SELECT row FROM regime WHERE text = ?");
    if (query.Bind(absl::string_view(text)).Next()) return query.Int64();
  }
  Query query = connection_.Prepare("INSERT INTO regime(text) VALUES(?) RETURNING row");
  query.Bind(absl::string_view(text)).Next();
  return query.Int64();
}

int64_t RecordWriter::OriginNumber(const std::string& name) {
  const absl::string_view origin = name.empty() ? own_origin_ : name;
  {
    Query query = connection_.Prepare("SELECT row FROM origin WHERE name = ?");
    if (query.Bind(origin).Next()) return query.Int64();
  }
  Query query = connection_.Prepare("INSERT INTO origin(name) VALUES(?) RETURNING row");
  query.Bind(origin).Next();
  return query.Int64();
}

int64_t RecordWriter::EnvironmentNumber(const EnvironmentRow& environment) {
  auto bind = [&](Query& query) {
    for (const std::string* text :
         {&environment.device_uuid, &environment.driver, &environment.toolchain, &environment.timer,
          &environment.procedure}) {
      query.Bind(absl::string_view(*text));
    }
  };
  {
    Query query = connection_.Prepare(
        "SELECT row FROM environment WHERE device_uuid = ? AND driver = ? AND toolchain = ? AND "
        "timer = ? AND "
        "procedure = ?");
    bind(query);
    if (query.Next()) return query.Int64();
  }
  Query query = connection_.Prepare(
      "INSERT INTO environment(device_uuid, driver, toolchain, timer, procedure) VALUES(?, ?, ?, "
      "?, ?) RETURNING row");
  bind(query);
  query.Next();
  return query.Int64();
}

absl::Status RecordWriter::Write(const WorkloadRow& workload) {
  const std::string what = absl::StrCat("workload ", workload.key);
  if (workload.key.empty()) return InvalidRow("workload", "no key");
  absl::Status status = CheckJsonText(workload.names_json, absl::StrCat(what, ": names"));
  if (!status.ok()) return status;
  connection_
      .Prepare(
          "INSERT INTO workload(key, canonical_version, canonical_text) VALUES(?, ?, ?) ON "
          "CONFLICT(key) DO NOTHING")
      .Bind(absl::string_view(workload.key))
      .Bind(int64_t{workload.canonical_version})
      .Bind(absl::string_view(workload.canonical_text))
      .Run();
  int64_t number = 0;
  {
    Query query = connection_.Prepare(
        "SELECT row, canonical_version, canonical_text FROM workload WHERE key = ?");
    query.Bind(absl::string_view(workload.key)).Next();
    number = query.Int64();
    if (query.Int64() != workload.canonical_version || query.Text() != workload.canonical_text) {
      return InvalidRow(what, "stored with another canonical text");
    }
  }
  connection_
      .Prepare(
          "INSERT INTO workload_source(workload, name, source, sizes, types, names) VALUES(?, ?, "
          "?, ?, ?, ?) "
          "ON CONFLICT DO NOTHING")
      .Bind(number)
      .Bind(absl::string_view(workload.name))
      .Bind(absl::string_view(workload.source))
      .Bind(absl::string_view(workload.sizes))
      .Bind(absl::string_view(workload.types))
      .Bind(absl::string_view(workload.names_json))
      .Run();
  return absl::OkStatus();
}

absl::Status RecordWriter::Write(const TargetRow& target) {
  if (target.key.empty()) return InvalidRow("target", "no key");
  connection_
      .Prepare("INSERT INTO target(key, kind, text) VALUES(?, ?, ?) ON CONFLICT(key) DO NOTHING")
      .Bind(absl::string_view(target.key))
      .Bind(absl::string_view(target.kind))
      .Bind(absl::string_view(target.text))
      .Run();
  Query query = connection_.Prepare("SELECT kind, text FROM target WHERE key = ?");
  query.Bind(absl::string_view(target.key)).Next();
  if (query.Text() == target.kind && query.Text() == target.text) return absl::OkStatus();
  return InvalidRow(absl::StrCat("target ", target.key), "stored with another kind or text");
}

absl::Status RecordWriter::Write(const RunRow& run) {
  const std::string what = absl::StrCat("run ", run.id.ToHex());
  absl::Status status = CheckJsonText(run.options_json, absl::StrCat(what, ": options"));
  if (!status.ok()) return status;
  if (run.workloads.empty()) return InvalidRow(what, "no workloads");
  const absl::StatusOr<int64_t> target = TargetNumber(run.target_key);
  if (!target.ok()) return target.status();
  const int inserted = connection_
                           .Prepare(
                               "INSERT INTO run(id, job, target, regime, seed, options, toolchain, "
                               "highest_trial_row, state, started_unix_ns, "
                               "ended_unix_ns, origin) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                               "ON CONFLICT(id) DO NOTHING")
                           .Bind(run.id)
                           .Bind(absl::string_view(run.job))
                           .Bind(*target)
                           .Bind(RegimeNumber(run.regime))
                           .Bind(static_cast<int64_t>(run.seed))
                           .BindTextOrNull(run.options_json)
                           .Bind(absl::string_view(run.toolchain))
                           .Bind(run.highest_trial_row)
                           .Bind(absl::string_view(run.state))
                           .Bind(run.started_unix_ns)
                           .Bind(run.ended_unix_ns)
                           .Bind(OriginNumber(run.origin))
                           .Run();
  if (inserted == 0) return absl::OkStatus();
  const absl::StatusOr<int64_t> number =
      NumberOf("SELECT row FROM run WHERE id = ?", run.id, "run");
  if (!number.ok()) return number.status();
  for (size_t i = 0; i < run.workloads.size(); ++i) {
    const RunWorkload& part = run.workloads[i];
    const absl::StatusOr<int64_t> workload = WorkloadNumber(part.workload_key);
    if (!workload.ok()) return workload.status();
    if (!std::isfinite(part.weight) || part.weight <= 0)
      return InvalidRow(what, "expected a weight above 0");
    connection_
        .Prepare(
            "INSERT INTO run_workload(run, ordinal, workload, weight, anchor_schedule, starts) "
            "VALUES(?, ?, ?, ?, ?, ?)")
        .Bind(*number)
        .Bind(static_cast<int64_t>(i))
        .Bind(*workload)
        .Bind(part.weight)
        .Bind(absl::string_view(part.anchor_schedule))
        .Bind(absl::string_view(EncodeTexts(part.starts)))
        .Run();
  }
  return absl::OkStatus();
}

absl::Status RecordWriter::Write(const SessionRow& session) {
  const absl::StatusOr<int64_t> run =
      NumberOf("SELECT row FROM run WHERE id = ?", session.run, "run");
  if (!run.ok()) return run.status();
  connection_
      .Prepare(
          "INSERT INTO session(id, run, environment, enrolment_epoch, started_unix_ns, origin) "
          "VALUES(?, ?, ?, ?, ?, ?) "
          "ON CONFLICT(id) DO NOTHING")
      .Bind(session.id)
      .Bind(*run)
      .Bind(EnvironmentNumber(session.environment))
      .Bind(session.enrolment_epoch)
      .Bind(session.started_unix_ns)
      .Bind(OriginNumber(session.origin))
      .Run();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RecordWriter::Write(const AnchorTimeRow& time, Numbering numbering) {
  const std::string what = absl::StrCat("anchor time of session ", time.session.ToHex());
  absl::Status status = CheckTime(time.seconds, what);
  if (!status.ok()) return status;
  const absl::StatusOr<int64_t> session =
      NumberOf("SELECT row FROM session WHERE id = ?", time.session, "session");
  if (!session.ok()) return session.status();
  const absl::StatusOr<int64_t> workload = WorkloadNumber(time.workload_key);
  if (!workload.ok()) return workload.status();
  int64_t ordinal = time.ordinal;
  if (numbering == Numbering::kAssign) {
    Query query = connection_.Prepare(
        "SELECT coalesce(max(ordinal) + 1, 0) FROM anchor_time WHERE session = ? AND workload = ?");
    query.Bind(*session).Bind(*workload).Next();
    ordinal = query.Int64();
  } else {
    Query query = connection_.Prepare(
        "SELECT seconds FROM anchor_time WHERE session = ? AND workload = ? AND ordinal = ?");
    if (query.Bind(*session).Bind(*workload).Bind(ordinal).Next()) {
      if (query.Double() == time.seconds) return ordinal;
      return absl::AlreadyExistsError(
          absl::StrCat(what, ": number ", ordinal, " is stored with another time"));
    }
  }
  connection_
      .Prepare("INSERT INTO anchor_time(session, workload, ordinal, seconds) VALUES(?, ?, ?, ?)")
      .Bind(*session)
      .Bind(*workload)
      .Bind(ordinal)
      .Bind(time.seconds)
      .Run();
  return ordinal;
}

absl::StatusOr<int64_t> RecordWriter::Write(const ProposalRow& proposal, Numbering numbering) {
  const std::string what = absl::StrCat("proposal of run ", proposal.run.ToHex());
  if (proposal.trained_on < 0 || proposal.trained_on > proposal.results_seen) {
    return InvalidRow(what, "expected 0 <= trained_on <= results_seen");
  }
  const absl::StatusOr<int64_t> run =
      NumberOf("SELECT row FROM run WHERE id = ?", proposal.run, "run");
  if (!run.ok()) return run.status();
  const absl::StatusOr<int64_t> workload = WorkloadNumber(proposal.workload_key);
  if (!workload.ok()) return workload.status();
  const std::string schedules = EncodeTexts(proposal.schedules);
  int64_t sequence = proposal.sequence;
  if (numbering == Numbering::kAssign) {
    Query query =
        connection_.Prepare("SELECT coalesce(max(sequence) + 1, 0) FROM proposal WHERE run = ?");
    query.Bind(*run).Next();
    sequence = query.Int64();
  } else {
    Query query = connection_.Prepare(
        "SELECT workload, results_seen, trained_on, schedules FROM proposal WHERE run = ? AND "
        "sequence = ?");
    if (query.Bind(*run).Bind(sequence).Next()) {
      const bool same = query.Int64() == *workload && query.Int64() == proposal.results_seen &&
                        query.Int64() == proposal.trained_on && query.Text() == schedules;
      if (same) return sequence;
      return absl::AlreadyExistsError(
          absl::StrCat(what, ": number ", sequence, " is stored with another content"));
    }
  }
  connection_
      .Prepare(
          "INSERT INTO proposal(run, sequence, workload, results_seen, trained_on, schedules, "
          "created_unix_ns) "
          "VALUES(?, ?, ?, ?, ?, ?, ?)")
      .Bind(*run)
      .Bind(sequence)
      .Bind(*workload)
      .Bind(proposal.results_seen)
      .Bind(proposal.trained_on)
      .Bind(absl::string_view(schedules))
      .Bind(proposal.created_unix_ns)
      .Run();
  return sequence;
}

absl::Status RecordWriter::Write(const EvaluationRow& evaluation) {
  absl::Status status =
      CheckJsonText(evaluation.figures_json, absl::StrCat("evaluation ", evaluation.id.ToHex()));
  if (!status.ok()) return status;
  const absl::StatusOr<int64_t> run =
      NumberOf("SELECT row FROM run WHERE id = ?", evaluation.run, "run");
  if (!run.ok()) return run.status();
  connection_
      .Prepare(
          "INSERT INTO evaluation(id, run, model, results_seen, trained_on, figures, "
          "created_unix_ns, origin) "
          "VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING")
      .Bind(evaluation.id)
      .Bind(*run)
      .Bind(absl::string_view(evaluation.model))
      .Bind(evaluation.results_seen)
      .Bind(evaluation.trained_on)
      .BindTextOrNull(evaluation.figures_json)
      .Bind(evaluation.created_unix_ns)
      .Bind(OriginNumber(evaluation.origin))
      .Run();
  return absl::OkStatus();
}

absl::Status RecordWriter::SetRunState(const Id& run, const std::string& state,
                                       std::optional<int64_t> ended_unix_ns) {
  const int changed =
      connection_.Prepare("UPDATE run SET state = ?, ended_unix_ns = ? WHERE id = ?")
          .Bind(absl::string_view(state))
          .Bind(ended_unix_ns)
          .Bind(run)
          .Run();
  if (changed == 1) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("run ", run.ToHex(), ": not in the database"));
}

absl::Status RecordWriter::Rekey(const std::string& old_key, const WorkloadRow& workload) {
  const absl::StatusOr<int64_t> old_number = WorkloadNumber(old_key);
  if (!old_number.ok()) return old_number.status();
  if (workload.key == old_key) return absl::OkStatus();
  const absl::StatusOr<int64_t> new_number = WorkloadNumber(workload.key);
  if (!new_number.ok()) {
    connection_
        .Prepare(
            "UPDATE workload SET key = ?, canonical_version = ?, canonical_text = ? WHERE row = ?")
        .Bind(absl::string_view(workload.key))
        .Bind(int64_t{workload.canonical_version})
        .Bind(absl::string_view(workload.canonical_text))
        .Bind(*old_number)
        .Run();
    return absl::OkStatus();
  }
  // Two workloads become one. A run that had both keeps its records apart: that is a conflict which
  // the schema refuses.
  for (const char* table : {"workload_source", "run_workload", "proposal", "anchor_time", "trial",
                            "late_trial", "session_best", "verdict", "current_verdict"}) {
    const bool drop_doubles = absl::string_view(table) == "workload_source";
    connection_
        .Prepare(absl::StrCat("UPDATE ", drop_doubles ? "OR IGNORE " : "", table,
                              " SET workload = ? WHERE workload = ?"))
        .Bind(*new_number)
        .Bind(*old_number)
        .Run();
  }
  connection_.Prepare("DELETE FROM workload_source WHERE workload = ?").Bind(*old_number).Run();
  connection_.Prepare("DELETE FROM workload WHERE row = ?").Bind(*old_number).Run();
  return absl::OkStatus();
}

}  // namespace tilewright
