#include "db/log_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

// The fields of each record, for writing and reading alike: `fields(name, value)` is required,
// `fields.Optional` is left out when the value is empty, `fields.JsonText` is a text that holds
// JSON and stands in the line as JSON.
template <typename Archive>
void Describe(Archive& fields, LogHeader& row) {
  fields("origin", row.origin);
}
template <typename Archive>
void Describe(Archive& fields, TargetRow& row) {
  fields("key", row.key);
  fields("target", row.kind);
  fields("text", row.text);
}
template <typename Archive>
void Describe(Archive& fields, WorkloadRow& row) {
  fields("key", row.key);
  fields("canonical_version", row.canonical_version);
  fields("canonical_text", row.canonical_text);
  fields.Optional("name", row.name);
  fields.Optional("source", row.source);
  fields.Optional("sizes", row.sizes);
  fields.Optional("types", row.types);
  fields.JsonText("names", row.names_json);
}
template <typename Archive>
void Describe(Archive& fields, RunWorkload& row) {
  fields("workload", row.workload_key);
  fields("weight", row.weight);
  fields("anchor_schedule", row.anchor_schedule);
  fields.Optional("starts", row.starts);
}
template <typename Archive>
void Describe(Archive& fields, RunRow& row) {
  fields("id", row.id);
  fields.Optional("job", row.job);
  fields("target", row.target_key);
  fields("regime", row.regime);
  fields("seed", row.seed);
  fields.JsonText("options", row.options_json);
  fields("toolchain", row.toolchain);
  fields("highest_trial_row", row.highest_trial_row);
  fields("workloads", row.workloads);
  fields("state", row.state);
  fields("started_unix_ns", row.started_unix_ns);
  fields.Optional("ended_unix_ns", row.ended_unix_ns);
  fields("origin", row.origin);
}
template <typename Archive>
void Describe(Archive& fields, EnvironmentRow& row) {
  fields("device_uuid", row.device_uuid);
  fields("driver", row.driver);
  fields("toolchain", row.toolchain);
  fields("timer", row.timer);
  fields("procedure", row.procedure);
}
template <typename Archive>
void Describe(Archive& fields, SessionRow& row) {
  fields("id", row.id);
  fields("run", row.run);
  fields("environment", row.environment);
  fields("enrolment_epoch", row.enrolment_epoch);
  fields("started_unix_ns", row.started_unix_ns);
  fields("origin", row.origin);
}
template <typename Archive>
void Describe(Archive& fields, AnchorTimeRow& row) {
  fields("session", row.session);
  fields("workload", row.workload_key);
  fields("ordinal", row.ordinal);
  fields("seconds", row.seconds);
}
template <typename Archive>
void Describe(Archive& fields, ProposalRow& row) {
  fields("run", row.run);
  fields("sequence", row.sequence);
  fields("workload", row.workload_key);
  fields("results_seen", row.results_seen);
  fields("trained_on", row.trained_on);
  fields("schedules", row.schedules);
  fields("created_unix_ns", row.created_unix_ns);
}
template <typename Archive>
void Describe(Archive& fields, Samples& row) {
  fields("seconds", row.seconds);
  fields.Optional("clock_mhz", row.clock_mhz);
  fields.Optional("marks", row.marks);
}
template <typename Archive>
void Describe(Archive& fields, Failure& row) {
  fields("kind", row.kind);
  fields("message", row.message);
}
template <typename Archive>
void DescribeResult(Archive& fields, TrialRow& row) {
  fields("id", row.id);
  fields("run", row.run);
  fields("workload", row.workload_key);
  fields("target", row.target_key);
  fields("regime", row.regime);
  fields("schedule", row.schedule);
  fields.Optional("seconds", row.seconds);
  fields.Optional("failure", row.failure);
  fields.Optional("anchor_seconds", row.anchor_seconds);
  fields.Optional("session", row.session);
  fields.Optional("build_ns", row.build_ns);
  fields.Optional("ir_digest", row.ir_digest);
  fields.Optional("binary_digest", row.binary_digest);
  fields.JsonText("resources", row.resources_json);
  fields.Optional("same_as", row.same_as);
  fields.Optional("samples", row.samples);
  fields("created_unix_ns", row.created_unix_ns);
  fields("origin", row.origin);
}
template <typename Archive>
void Describe(Archive& fields, TrialRow& row) {
  DescribeResult(fields, row);
  fields("ordinal", row.ordinal);
}
template <typename Archive>
void Describe(Archive& fields, LateTrialRow& row) {
  DescribeResult(fields, row.trial);
  fields("reason", row.trial.late_reason);
}
template <typename Archive>
void Describe(Archive& fields, Rounds& row) {
  fields("schedules", row.schedules);
  fields("seconds", row.seconds);
}
template <typename Archive>
void Describe(Archive& fields, VerdictRow& row) {
  fields("id", row.id);
  fields("workload", row.workload_key);
  fields("target", row.target_key);
  fields("regime", row.regime);
  fields("winner_schedule", row.winner_schedule);
  fields.Optional("winner_ir_digest", row.winner_ir_digest);
  fields.Optional("winner_binary_digest", row.winner_binary_digest);
  fields("rival_schedule", row.rival_schedule);
  fields("outcome", row.outcome);
  fields("ratio", row.ratio);
  fields("ratio_low", row.ratio_low);
  fields("ratio_high", row.ratio_high);
  fields.Optional("winner_seconds", row.winner_seconds);
  fields.Optional("rival_seconds", row.rival_seconds);
  fields.Optional("default_seconds", row.default_seconds);
  fields.Optional("library_seconds", row.library_seconds);
  fields.Optional("limit_seconds", row.limit_seconds);
  fields.Optional("bound_seconds", row.bound_seconds);
  fields("environment", row.environment);
  fields.JsonText("check", row.check_json);
  fields.Optional("rounds", row.rounds);
  fields("created_unix_ns", row.created_unix_ns);
  fields("origin", row.origin);
  fields.Optional("replaces", row.replaces);
}
template <typename Archive>
void Describe(Archive& fields, EvaluationRow& row) {
  fields("id", row.id);
  fields("run", row.run);
  fields("model", row.model);
  fields("results_seen", row.results_seen);
  fields("trained_on", row.trained_on);
  fields.JsonText("figures", row.figures_json);
  fields("created_unix_ns", row.created_unix_ns);
  fields("origin", row.origin);
}

// The kinds of lines, in the order of LogRecord's alternatives.
struct KindRow {
  const char* name;
  int version;
};
constexpr KindRow kKinds[] = {
    {"tilewright_log", 1}, {"target", 1},      {"workload", 1},   {"run", 1},
    {"session", 1},        {"anchor_time", 1}, {"proposal", 1},   {"trial", 1},
    {"late_trial", 1},     {"verdict", 1},     {"evaluation", 1},
};
static_assert(std::size(kKinds) == std::variant_size_v<LogRecord>);

template <typename T>
constexpr bool kIsVector = false;
template <typename T>
constexpr bool kIsVector<std::vector<T>> = true;
template <typename T>
constexpr bool kIsOptional = false;
template <typename T>
constexpr bool kIsOptional<std::optional<T>> = true;

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& value) {
    object_[name] = ToJson(value);
  }
  template <typename T>
  void Optional(const char* name, T& value) {
    if constexpr (kIsOptional<T>) {
      if (value.has_value()) object_[name] = ToJson(*value);
    } else {
      if (!value.empty()) object_[name] = ToJson(value);
    }
  }
  void JsonText(const char* name, std::string& text) {
    if (text.empty()) return;
    Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    object_[name] = json.is_discarded() ? Json(text) : std::move(json);
  }
  Json& object() { return object_; }

 private:
  template <typename T>
  static Json ToJson(T& value) {
    if constexpr (std::is_same_v<T, Id>) {
      return value.ToHex();
    } else if constexpr (kIsVector<T>) {
      Json list = Json::array();
      for (auto& item : value) list.push_back(ToJson(item));
      return list;
    } else if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>) {
      return value;
    } else {
      Writer inner;
      Describe(inner, value);
      return std::move(inner.object_);
    }
  }
  Json object_ = Json::object();
};

// Takes fields from an object; the first problem is kept and ends the reading.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) Fail("expected an object");
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    const Json* field = Find(name);
    if (field != nullptr) {
      Read(name, *field, value);
    } else if (problem_.empty()) {
      Fail(absl::StrCat("no field '", name, "'"));
    }
  }
  template <typename T>
  void Optional(const char* name, T& value) {
    const Json* field = Find(name);
    if (field == nullptr) return;
    if constexpr (kIsOptional<T>) {
      Read(name, *field, value.emplace());
    } else {
      Read(name, *field, value);
    }
  }
  void JsonText(const char* name, std::string& text) {
    const Json* field = Find(name);
    if (field != nullptr) text = field->dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  // The first problem, or the first field that nobody asked for; empty if all is well.
  std::string Finish() {
    if (!problem_.empty() || !object_.is_object()) return problem_;
    for (const auto& [name, value] : object_.items()) {
      if (std::find(taken_.begin(), taken_.end(), name) == taken_.end())
        return absl::StrCat(where_, ": unknown field '", name, "'");
    }
    return "";
  }
  void Take(const char* name) { taken_.emplace_back(name); }

 private:
  void Fail(const std::string& problem) {
    if (problem_.empty()) problem_ = absl::StrCat(where_, ": ", problem);
  }
  void Expect(const char* name, const char* what) {
    Fail(absl::StrCat("field '", name, "': expected ", what));
  }

  const Json* Find(const char* name) {
    if (!problem_.empty()) return nullptr;
    const auto found = object_.find(name);
    if (found == object_.end()) return nullptr;
    Take(name);
    return &*found;
  }

  template <typename T>
  void Read(const char* name, const Json& json, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      json.is_string() ? void(value = json.get<std::string>()) : Expect(name, "a text");
    } else if constexpr (std::is_same_v<T, Id>) {
      const absl::StatusOr<Id> id = Id::FromHex(json.is_string() ? json.get<std::string>() : "");
      id.ok() ? void(value = *id) : Expect(name, "32 hexadecimal digits");
    } else if constexpr (std::is_same_v<T, double>) {
      json.is_number() ? void(value = json.get<double>()) : Expect(name, "a number");
      if (!std::isfinite(value)) Expect(name, "a finite number");
    } else if constexpr (std::is_integral_v<T>) {
      ReadInteger(name, json, value);
    } else if constexpr (kIsVector<T>) {
      if (!json.is_array()) return Expect(name, "a list");
      for (const Json& item : json) Read(name, item, value.emplace_back());
    } else {
      FieldReader inner(json, absl::StrCat(where_, ": ", name));
      Describe(inner, value);
      const std::string problem = inner.Finish();
      if (!problem.empty() && problem_.empty()) problem_ = problem;
    }
  }

  template <typename T>
  void ReadInteger(const char* name, const Json& json, T& value) {
    if (json.is_number_unsigned() &&
        json.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<T>::max())) {
      value = static_cast<T>(json.get<uint64_t>());
    } else if (std::is_signed_v<T> && json.is_number_integer() && !json.is_number_unsigned() &&
               json.get<int64_t>() >= static_cast<int64_t>(std::numeric_limits<T>::min())) {
      value = static_cast<T>(json.get<int64_t>());
    } else {
      Expect(name,
             std::is_signed_v<T> ? "an integer in range" : "an integer in range and not below 0");
    }
  }

  const Json& object_;
  std::string where_;
  std::vector<std::string> taken_;
  std::string problem_;
};

// Calls `body` with a default value of the alternative number `kind`.
template <size_t kIndex = 0, typename Body>
LogRecord MakeRecord(size_t kind, Body&& body) {
  if constexpr (kIndex + 1 < std::variant_size_v<LogRecord>) {
    if (kind != kIndex) return MakeRecord<kIndex + 1>(kind, body);
  }
  std::variant_alternative_t<kIndex, LogRecord> row;
  body(row);
  return row;
}

}  // namespace

std::string WriteLogLine(const LogRecord& record) {
  Writer writer;
  const KindRow& kind = kKinds[record.index()];
  writer.object()["kind"] = kind.name;
  writer.object()["version"] = kind.version;
  std::visit(
      [&](const auto& row) {
        // Describe names fields for reading too and so takes what it may change; writing changes
        // nothing.
        Describe(writer, const_cast<std::remove_cvref_t<decltype(row)>&>(row));
      },
      record);
  return writer.object().dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<LogRecord> ReadLogLine(const std::string& line) {
  // The parser takes a NUL for the end.
  if (line.find('\0') != std::string::npos)
    return absl::InvalidArgumentError("a NUL byte; expected a JSON text");
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return absl::InvalidArgumentError("not a JSON object; expected one object per line");
  const auto name = json.find("kind");
  const auto version = json.find("version");
  if (name == json.end() || !name->is_string() || version == json.end() ||
      !version->is_number_unsigned()) {
    return absl::InvalidArgumentError(
        "expected the fields 'kind' (a text) and 'version' (a number)");
  }
  const std::string kind_name = name->get<std::string>();
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const KindRow& row) { return row.name == kind_name; });
  if (kind == std::end(kKinds)) {
    std::string known;
    for (const KindRow& row : kKinds) absl::StrAppend(&known, known.empty() ? "" : ", ", row.name);
    return absl::InvalidArgumentError(
        absl::StrCat("kind '", kind_name, "'; expected one of ", known));
  }
  const uint64_t line_version = version->get<uint64_t>();
  if (line_version > static_cast<uint64_t>(kind->version)) {
    return absl::FailedPreconditionError(
        absl::StrCat(kind_name, " of version ", line_version,
                     ", written by a newer Tilewright; this one reads up to ", kind->version));
  }
  if (line_version == 0) return absl::InvalidArgumentError("version 0; versions count from 1");
  std::string problem;
  LogRecord record = MakeRecord(static_cast<size_t>(kind - std::begin(kKinds)), [&](auto& row) {
    FieldReader reader(json, kind_name);
    reader.Take("kind");
    reader.Take("version");
    Describe(reader, row);
    problem = reader.Finish();
  });
  if (!problem.empty()) return absl::InvalidArgumentError(problem);
  return record;
}

}  // namespace tilewright
