#include "cli/record_json.h"

#include <optional>

#include "nlohmann/json.hpp"

namespace tilewright {
namespace {

template <typename T>
void Put(nlohmann::json* json, const char* name, const std::optional<T>& value) {
  if (value) (*json)[name] = *value;
}

nlohmann::json Trial(const TrialRow& trial) {
  nlohmann::json json = {{"id", trial.id.ToHex()},
                         {"run", trial.run.ToHex()},
                         {"row", trial.row},
                         {"ordinal", trial.ordinal},
                         {"workload", trial.workload_key},
                         {"target", trial.target_key},
                         {"regime", trial.regime},
                         {"schedule", trial.schedule},
                         {"ir_digest", trial.ir_digest},
                         {"binary_digest", trial.binary_digest},
                         {"created_unix_ns", trial.created_unix_ns}};
  Put(&json, "seconds", trial.seconds);
  Put(&json, "anchor_seconds", trial.anchor_seconds);
  Put(&json, "build_ns", trial.build_ns);
  if (trial.failure)
    json["failure"] = {{"kind", trial.failure->kind}, {"message", trial.failure->message}};
  if (trial.session) json["session"] = trial.session->ToHex();
  if (trial.same_as) json["same_as"] = trial.same_as->ToHex();
  return json;
}

nlohmann::json Verdict(const VerdictRow& verdict) {
  nlohmann::json json = {{"id", verdict.id.ToHex()},
                         {"workload", verdict.workload_key},
                         {"target", verdict.target_key},
                         {"regime", verdict.regime},
                         {"winner", verdict.winner_schedule},
                         {"winner_binary_digest", verdict.winner_binary_digest},
                         {"rival", verdict.rival_schedule},
                         {"outcome", verdict.outcome},
                         {"ratio", verdict.ratio},
                         {"ratio_low", verdict.ratio_low},
                         {"ratio_high", verdict.ratio_high},
                         {"toolchain", verdict.environment.toolchain},
                         {"device_uuid", verdict.environment.device_uuid},
                         {"current", verdict.current},
                         {"created_unix_ns", verdict.created_unix_ns}};
  Put(&json, "winner_seconds", verdict.winner_seconds);
  Put(&json, "rival_seconds", verdict.rival_seconds);
  Put(&json, "default_seconds", verdict.default_seconds);
  Put(&json, "limit_seconds", verdict.limit_seconds);
  return json;
}

// A failure's message may hold any bytes that a child printed; JSON has to be UTF-8.
std::string LineOf(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string TrialJson(const TrialRow& trial) { return LineOf(Trial(trial)); }
std::string VerdictJson(const VerdictRow& verdict) { return LineOf(Verdict(verdict)); }

std::string RunJson(const RunRow& run) {
  nlohmann::json json = {{"id", run.id.ToHex()},
                         {"job", run.job},
                         {"target", run.target_key},
                         {"regime", run.regime},
                         {"seed", run.seed},
                         {"state", run.state},
                         {"toolchain", run.toolchain},
                         {"started_unix_ns", run.started_unix_ns},
                         {"workloads", nlohmann::json::array()}};
  for (const RunWorkload& workload : run.workloads)
    json["workloads"].push_back(workload.workload_key);
  Put(&json, "ended_unix_ns", run.ended_unix_ns);
  return LineOf(json);
}

std::string WorkloadJson(const WorkloadRow& workload) {
  return LineOf({{"key", workload.key},
                 {"name", workload.name},
                 {"source", workload.source},
                 {"sizes", workload.sizes},
                 {"types", workload.types},
                 {"canonical_version", workload.canonical_version},
                 {"canonical_text", workload.canonical_text}});
}

std::string BestJson(const std::string& title, const BestAnswer& best) {
  nlohmann::json json = {{"workload", title},
                         {"kind", best.kind == BestAnswer::Kind::kVerdict     ? "verdict"
                                  : best.kind == BestAnswer::Kind::kContested ? "contested"
                                                                              : "unverified"}};
  if (best.trial) json["trial"] = Trial(*best.trial);
  for (const VerdictRow& verdict : best.verdicts) json["verdicts"].push_back(Verdict(verdict));
  return LineOf(json);
}

}  // namespace tilewright
