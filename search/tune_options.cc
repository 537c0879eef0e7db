#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "search/run_finals.h"
#include "search/tuner.h"

namespace tilewright {

absl::Span<const Effort> AllEfforts() {
  static const auto* efforts = new std::vector<Effort>{
      {"quick",
       "a first answer in seconds",
       48,
       {.most_qualifiers = 4,
        .qualifying_idle_ms = 20,
        .finalists = 1,
        .deciding_rounds = 6,
        .idle_ms = 100}},
      {"claim",
       "as quick, with finals that a claim may rest on: ten rounds, long idles",
       48,
       {.most_qualifiers = 4,
        .qualifying_idle_ms = 20,
        .finalists = 1,
        .deciding_rounds = 10,
        .least_rounds = 10}},
      {"standard", "what a release deserves", 256, {}},
      {"thorough", "when the last percent counts", 1500, {.deciding_rounds = 12}},
  };
  return *efforts;
}

absl::StatusOr<const Effort*> FindEffort(const std::string& name) {
  std::vector<std::string> known;
  for (const Effort& effort : AllEfforts()) {
    if (effort.name == name) return &effort;
    known.push_back(effort.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown effort `", name, "`; efforts are ", absl::StrJoin(known, ", ")));
}

int64_t TrialsOf(const TuneOptions& options) {
  return options.trials > 0 ? options.trials : (*FindEffort(options.effort))->trials;
}

FinalsRules FinalsRulesOf(const TuneOptions& options) {
  FinalsRules rules = (*FindEffort(options.effort))->finals;
  if (options.rounds > 0) rules.deciding_rounds = rules.least_rounds = options.rounds;
  return rules;
}

absl::Duration FinalsReserve(const TuneOptions& options, absl::Duration burst, int least_entrants) {
  if (!options.run_finals) return absl::ZeroDuration();
  const FinalsRules rules = FinalsRulesOf(options);
  return std::max(LeastTimeOfFinals(rules, kSlack * burst, least_entrants),
                  std::min(TimeOfFinals(rules, kSlack * burst), 0.4 * options.time_limit));
}

int LeastFirstBatch(const TuneOptions& options) { return (options.batch + 3) / 4; }

std::string TuneOptions::ToJson() const {
  const nlohmann::json json = {{"strategy", strategy},
                               {"model", model},
                               {"effort", effort},
                               {"trials", trials},
                               {"rounds", rounds},
                               {"batch", batch},
                               {"use_starts", use_starts},
                               {"use_log", use_log},
                               {"run_finals", run_finals},
                               {"build_timeout_ms", absl::ToInt64Milliseconds(build_timeout)},
                               {"run_timeout_ms", absl::ToInt64Milliseconds(run_timeout)}};
  return json.dump();
}

absl::StatusOr<TuneOptions> TuneOptions::FromJson(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return absl::InvalidArgumentError("the run's options are not a JSON object");
  TuneOptions options;
  std::string wrong;
  const auto read = [&](const char* name, auto* field) {
    using Field = std::remove_pointer_t<decltype(field)>;
    const auto found = json.find(name);
    bool fits = found != json.end();
    if constexpr (std::is_same_v<Field, std::string>) {
      fits = fits && found->is_string();
    } else if constexpr (std::is_same_v<Field, bool>) {
      fits = fits && found->is_boolean();
    } else {
      fits = fits && found->is_number_integer();
    }
    if (fits) {
      *field = found->template get<Field>();
    } else if (wrong.empty()) {
      wrong = name;
    }
  };
  int64_t build_ms = 0;
  int64_t run_ms = 0;
  read("strategy", &options.strategy);
  read("model", &options.model);
  read("effort", &options.effort);
  read("trials", &options.trials);
  // Runs of before there was this option lack it.
  if (json.contains("rounds")) read("rounds", &options.rounds);
  read("batch", &options.batch);
  read("use_starts", &options.use_starts);
  read("use_log", &options.use_log);
  read("run_finals", &options.run_finals);
  read("build_timeout_ms", &build_ms);
  read("run_timeout_ms", &run_ms);
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the run's options lack a usable `", wrong, "`"));
  }
  options.build_timeout = absl::Milliseconds(build_ms);
  options.run_timeout = absl::Milliseconds(run_ms);
  return options;
}

}  // namespace tilewright
