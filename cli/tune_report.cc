#include "cli/tune_report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/text_table.h"
#include "nlohmann/json.hpp"

namespace tilewright {
namespace {

const char* PhaseName(TuneProgress::Phase phase) {
  switch (phase) {
    case TuneProgress::Phase::kStarting:
      return "starting";
    case TuneProgress::Phase::kScreening:
      return "screening";
    case TuneProgress::Phase::kQualifying:
      return "finals, qualifying";
    case TuneProgress::Phase::kDeciding:
      return "finals, deciding";
  }
  return "";
}

std::string FailuresText(const std::map<std::string, int64_t>& failures) {
  if (failures.empty()) return "no failures";
  std::vector<std::string> parts;
  for (const auto& [kind, count] : failures) parts.push_back(absl::StrCat(count, " ", kind));
  return absl::StrJoin(parts, ", ");
}

// "142 GFLOP/s", or for workloads with little arithmetic "12.3 GB/s".
std::string RateText(const TuneReport& report, double seconds) {
  if (report.operations >= 8 * report.bytes)
    return FormatCount(report.operations / seconds) + "OP/s";
  return FormatCount(report.bytes / seconds) + "B/s";
}

double LimitSecondsOf(const TuneReport& report) {
  for (const ReportRow& row : report.rows) {
    if (row.label == "limit" && row.seconds) return *row.seconds;
  }
  return 0;
}

std::optional<double> BestSecondsOf(const TuneReport& report) {
  for (const ReportRow& row : report.rows) {
    if (row.label == "best") return row.seconds;
  }
  return std::nullopt;
}

// Why a run ended without a verdict, and what may be done.
std::string NoVerdictText(const TuneReport& report) {
  if (!HasBest(report)) {
    const char* reason = report.trials > 0 ? "every trial failed"
                         : report.interrupted
                             ? "interrupted before the first trial was back; --resume continues"
                             : "the time was over before the first trial was back; is a worker "
                               "alive?";
    return absl::StrCat("nothing was measured: ", reason, "\n");
  }
  return absl::StrCat("no verdict: ",
                      report.interrupted ? "interrupted before the finals; --resume continues"
                                         : "no finals were held",
                      "; * = screening time, not for comparing\n");
}

std::string VerdictText(const VerdictRow& verdict) {
  const std::string speed = FormatSpeed(verdict.ratio, verdict.ratio_low, verdict.ratio_high);
  if (!verdict.rival_seconds && verdict.rival_schedule == verdict.winner_schedule)
    return "verdict: the incumbent stays; nothing else was measured";
  if (!verdict.rival_seconds)
    return "verdict: the incumbent failed in the finals; the best of the others replaces it";
  return absl::StrCat("verdict: the best is ",
                      verdict.outcome == "tie" ? "not told apart from" : verdict.outcome + " than",
                      " its rival ", verdict.rival_schedule, " (", speed, ")");
}

}  // namespace

bool HasBest(const TuneReport& report) {
  return std::any_of(report.rows.begin(), report.rows.end(),
                     [](const ReportRow& row) { return row.label == "best"; });
}

ProgressLine::ProgressLine(std::string title, int number, int of, bool enabled)
    : title_(std::move(title)),
      prefix_(absl::StrCat("[", number, "/", of, "] ")),
      enabled_(enabled),
      terminal_(isatty(2)) {
  if (title_.size() > 40) title_ = title_.substr(0, 37) + "...";
}

void ProgressLine::Show(const TuneProgress& progress) {
  if (!enabled_ || absl::Now() < next_) return;
  next_ = absl::Now() + (terminal_ ? absl::Milliseconds(200) : absl::Seconds(5));
  std::string line = absl::StrCat(prefix_, title_, ": ", PhaseName(progress.phase), " ",
                                  progress.trials, "/", progress.trial_limit);
  if (progress.best_seconds)
    absl::StrAppend(&line, ", best ", FormatSeconds(*progress.best_seconds));
  if (progress.trials_per_second > 0)
    absl::StrAppendFormat(&line, ", %.1f trials/s", progress.trials_per_second);
  absl::StrAppend(&line, ", ", FailuresText(progress.failures));
  if (progress.left)
    absl::StrAppendFormat(&line, ", %.0f s left", absl::ToDoubleSeconds(*progress.left));
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::Finish() {
  if (enabled_ && terminal_ && shown_) std::fprintf(stderr, "\n");
}

std::string ReportText(const TuneReport& report, const std::string& title, const std::string& db) {
  std::string text = absl::StrFormat(
      "\n%s: %d trials in %.1f s (%.1f a second while screening, devices busy %.0f%% of the time), "
      "%s%s\n",
      title, report.trials, absl::ToDoubleSeconds(report.elapsed), report.trials_per_second,
      100 * report.utilisation, FailuresText(report.failures),
      report.interrupted ? "; interrupted"
      : report.exhausted ? "; nothing left to try"
                         : "");
  for (const std::string& warning : report.warnings)
    absl::StrAppend(&text, "  warning: ", warning, "\n");
  if (!report.first_failure.empty())
    absl::StrAppend(&text, "  first failure: ", report.first_failure, "\n");
  TextTable table({"", ">time", ">rate", ">of bound", ">of limit", "schedule"});
  double bound = 0;
  for (const ReportRow& row : report.rows) {
    if (row.label == "bound" && row.seconds) bound = *row.seconds;
  }
  const double limit = LimitSecondsOf(report);
  for (const ReportRow& row : report.rows) {
    if (!row.seconds) {
      table.Add({row.label, "-", "-", "-", "-", row.schedule});
      continue;
    }
    const bool measured = row.label != "bound" && row.label != "limit";
    table.Add({row.label, FormatSeconds(*row.seconds) + (measured && !row.from_finals ? "*" : ""),
               RateText(report, *row.seconds),
               measured && bound > 0 ? absl::StrFormat("%.0f%%", 100 * bound / *row.seconds) : "-",
               measured && limit > 0 ? absl::StrFormat("%.0f%%", 100 * limit / *row.seconds) : "-",
               row.schedule});
  }
  absl::StrAppend(&text, table.ToString());
  if (report.against_library && report.against_library->interval) {
    absl::StrAppendFormat(&text,
                          "library: the best takes 1/%.3f of its time, 95%% interval %.3f-%.3f\n",
                          report.against_library->ratio, report.against_library->interval->low,
                          report.against_library->interval->high);
  }
  if (report.verdict) {
    absl::StrAppend(&text, VerdictText(*report.verdict), "\n", "replay: tilewright replay ",
                    report.verdict->id.ToHex(), " --db ", db, "\n");
  } else {
    text += NoVerdictText(report);
  }
  return text;
}

std::string SharesText(const std::map<size_t, TuneReport>& reports) {
  double total = 0;
  bool shared = false;
  for (const auto& [task, report] : reports) {
    shared = shared || report.share.has_value();
    if (report.share) total += report.share->weight * BestSecondsOf(report).value_or(0);
  }
  if (!shared) return "";
  TextTable table({"shared budget", ">weight", ">best", ">of the time", ">trials", ">floor",
                   ">by gain", ">patrol", ">resumed"});
  for (const auto& [task, report] : reports) {
    if (!report.share) continue;
    const TaskShare& share = *report.share;
    const std::optional<double> best = BestSecondsOf(report);
    table.Add({report.name, absl::StrFormat("%g", share.weight), best ? FormatSeconds(*best) : "-",
               best ? absl::StrFormat("%.0f%%", 100 * share.weight * *best / total) : "-",
               absl::StrCat(report.trials), absl::StrCat(share.floor), absl::StrCat(share.gain),
               absl::StrCat(share.patrol), absl::StrCat(share.resumed)});
  }
  return absl::StrCat("\n", table.ToString(),
                      "floor: what every workload gets; by gain: for the weighted time it was "
                      "expected to save; patrol: so that none is forgotten\n");
}

std::string ReportJson(const TuneReport& report) {
  nlohmann::json json = {{"run", report.run.ToHex()},
                         {"workload", report.workload_key},
                         {"name", report.name},
                         {"trials", report.trials},
                         {"elapsed_seconds", absl::ToDoubleSeconds(report.elapsed)},
                         {"trials_per_second", report.trials_per_second},
                         {"utilisation", report.utilisation},
                         {"interrupted", report.interrupted},
                         {"exhausted", report.exhausted},
                         {"failures", report.failures},
                         {"warnings", report.warnings},
                         {"rows", nlohmann::json::array()}};
  for (const auto& [phase, time] : report.phases)
    json["phases"][phase] = absl::ToDoubleSeconds(time);
  for (const ReportRow& row : report.rows) {
    nlohmann::json line = {
        {"label", row.label}, {"schedule", row.schedule}, {"from_finals", row.from_finals}};
    if (row.seconds) line["seconds"] = *row.seconds;
    json["rows"].push_back(line);
  }
  if (report.verdict) {
    const VerdictRow& verdict = *report.verdict;
    json["verdict"] = {{"id", verdict.id.ToHex()},        {"winner", verdict.winner_schedule},
                       {"rival", verdict.rival_schedule}, {"outcome", verdict.outcome},
                       {"ratio", verdict.ratio},          {"ratio_low", verdict.ratio_low},
                       {"ratio_high", verdict.ratio_high}};
  }
  if (report.share) {
    json["share"] = {{"weight", report.share->weight},
                     {"floor", report.share->floor},
                     {"gain", report.share->gain},
                     {"patrol", report.share->patrol},
                     {"resumed", report.share->resumed}};
  }
  if (report.against_library && report.against_library->interval) {
    json["against_library"] = {{"ratio", report.against_library->ratio},
                               {"ratio_low", report.against_library->interval->low},
                               {"ratio_high", report.against_library->interval->high},
                               {"rounds", report.against_library->rounds}};
  }
  return json.dump() + "\n";
}

}  // namespace tilewright
