#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/text_table.h"
#include "costmodel/model.h"
#include "measure/statistics.h"
#include "nlohmann/json.hpp"
#include "search/model_surrogate.h"
#include "search/noise.h"
#include "search/score.h"
#include "search/simulate.h"
#include "search/transfer.h"

namespace tilewright {
namespace {

struct SimulateFlags {
  std::vector<std::string> spaces;
  std::vector<std::string> strategies;
  std::string workload;
  std::string log;
  std::string score;
  std::string model = "xgboost";
  std::string transfer_from;
  int transfer_starts = TransferOptions().best;
  SimulateOptions options;
  bool noise = false;
  bool json = false;
};

std::string FormatEvaluations(const std::optional<double>& evaluations) {
  return evaluations ? absl::StrFormat("%.0f", *evaluations) : "-";
}

std::vector<std::string> ScoreHeadings() {
  std::vector<std::string> headings = {"strategy", ">seeds", ">P", ">Pmean", ">Pcal"};
  for (int evaluations : kScoredEvaluations) headings.push_back(absl::StrCat(">@", evaluations));
  for (int percent : kScoredPercents) {
    headings.push_back(absl::StrCat(">to ", percent, "%"));
    headings.push_back(">hit");
  }
  headings.push_back(">failed");
  return headings;
}

void PrintTable(const std::string& path, const RecordedFile& file,
                absl::Span<const StrategyScore> scores) {
  const RecordedSpace& space = *file.space;
  const absl::Span<const double> times = space.ascending_milliseconds();
  std::printf("%s: %s%s%s%zu configurations, %zu valid, optimum %.4g ms; P over %d of %d\n",
              path.c_str(), file.kernel.c_str(), file.device.empty() ? "" : " on ",
              file.device.empty() ? file.kernel.empty() ? "" : ", " : (file.device + ", ").c_str(),
              static_cast<size_t>(space.Count()), times.size(), times.front(), scores.front().used,
              scores.front().budget);
  TextTable table(ScoreHeadings());
  for (const StrategyScore& score : scores) {
    std::vector<std::string> cells = {
        score.strategy, absl::StrCat(score.seeds), absl::StrFormat("%.3f", score.p),
        absl::StrFormat("%.3f", score.pmean),
        absl::StrCat(absl::StrFormat("%.3f", score.pcal),
                     score.pcal_error ? absl::StrFormat("±%.3f", *score.pcal_error) : "")};
    for (size_t i = 0; i < score.at.size(); ++i) {
      cells.push_back(absl::StrCat(
          absl::StrFormat("%.3f", score.at[i]),
          score.at_interval[i] ? absl::StrFormat("±%.3f", *score.at_interval[i]) : ""));
    }
    for (size_t i = 0; i < score.to_within.size(); ++i) {
      cells.push_back(FormatEvaluations(score.to_within[i]));
      cells.push_back(absl::StrFormat("%.2f", score.share_within[i]));
    }
    cells.push_back(absl::StrFormat("%.3f", score.failed_share));
    table.Add(std::move(cells));
  }
  std::printf("%s\n", table.ToString().c_str());
}

// Names of files need not be UTF-8, JSON has to be.
void PrintLine(const nlohmann::ordered_json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void PrintJson(const std::string& path, absl::Span<const StrategyScore> scores) {
  for (const StrategyScore& score : scores) {
    nlohmann::ordered_json line = {{"space", path},          {"strategy", score.strategy},
                                   {"seeds", score.seeds},   {"evaluations", score.evaluations},
                                   {"budget", score.budget}, {"used", score.used},
                                   {"P", score.p},           {"Pmean", score.pmean},
                                   {"Pcal", score.pcal}};
    if (score.pcal_error) line["Pcalse"] = *score.pcal_error;
    for (size_t i = 0; i < kScoredEvaluations.size(); ++i) {
      line[absl::StrCat("at", kScoredEvaluations[i])] = score.at[i];
      if (score.at_interval[i])
        line[absl::StrCat("ci", kScoredEvaluations[i])] = *score.at_interval[i];
    }
    for (size_t i = 0; i < kScoredPercents.size(); ++i) {
      if (score.to_within[i]) line[absl::StrCat("to", kScoredPercents[i])] = *score.to_within[i];
      line[absl::StrCat("hit", kScoredPercents[i])] = score.share_within[i];
    }
    line["failed"] = score.failed_share;
    PrintLine(line);
  }
}

void PrintAggregate(absl::Span<const std::vector<StrategyScore>> scores) {
  std::vector<std::string> headings = {"mean over spaces", ">spaces", ">P",
                                       ">least",           ">Pcal",   ">least"};
  for (int evaluations : kScoredEvaluations) headings.push_back(absl::StrCat(">@", evaluations));
  for (int percent : kScoredPercents) headings.push_back(absl::StrCat(">hit ", percent, "%"));
  headings.push_back(">failed");
  TextTable table(headings);
  for (const AggregateScore& score : Aggregate(scores)) {
    std::vector<std::string> cells = {score.strategy, absl::StrCat(score.spaces)};
    for (double value : {score.p, score.least_p, score.pcal, score.least_pcal})
      cells.push_back(absl::StrFormat("%.3f", value));
    for (double value : score.at) cells.push_back(absl::StrFormat("%.3f", value));
    for (double value : score.share_within) cells.push_back(absl::StrFormat("%.3f", value));
    cells.push_back(absl::StrFormat("%.3f", score.failed_share));
    table.Add(std::move(cells));
  }
  std::fputs(table.ToString().c_str(), stdout);
}

void PrintAggregateJson(absl::Span<const std::vector<StrategyScore>> scores) {
  for (const AggregateScore& score : Aggregate(scores)) {
    nlohmann::ordered_json line = {{"spaces", score.spaces}, {"strategy", score.strategy},
                                   {"P", score.p},           {"least_P", score.least_p},
                                   {"Pcal", score.pcal},     {"least_Pcal", score.least_pcal}};
    for (size_t i = 0; i < kScoredEvaluations.size(); ++i)
      line[absl::StrCat("at", kScoredEvaluations[i])] = score.at[i];
    for (size_t i = 0; i < kScoredPercents.size(); ++i)
      line[absl::StrCat("hit", kScoredPercents[i])] = score.share_within[i];
    line["failed"] = score.failed_share;
    PrintLine(line);
  }
}

void WarnOfRuns(const std::string& path, const StrategyScore& score) {
  if (score.unknown_keys + score.differing_times == 0) return;
  std::fprintf(stderr,
               "warning: %s: %s: %lld evaluations name no configuration of the space, "
               "%lld have another time than it\n",
               path.c_str(), score.strategy.c_str(), static_cast<long long>(score.unknown_keys),
               static_cast<long long>(score.differing_times));
}

// With what learns, and what is transferred.
absl::StatusOr<SimulateOptions> OptionsFor(const SimulateFlags& flags, const RecordedSpace& space) {
  SimulateOptions options = flags.options;
  Transfer transfer;
  if (!flags.transfer_from.empty()) {
    const absl::StatusOr<RecordedFile> other =
        ReadRecordedFile(flags.transfer_from, {.workload = flags.workload});
    if (!other.ok()) return other.status();
    absl::StatusOr<Transfer> between =
        TransferBetween(*other->space, space, {.best = flags.transfer_starts});
    if (!between.ok()) {
      return absl::Status(between.status().code(),
                          absl::StrCat(flags.transfer_from, ": ", between.status().message()));
    }
    transfer = *std::move(between);
  }
  options.beginning.transferred = std::move(transfer.best);
  options.make_surrogate = [model = flags.model, known = std::move(transfer.known)](
                               const RecordedSpace& recorded, uint64_t seed) {
    return NewDecisionSurrogate(&recorded, seed, model, known);
  };
  return options;
}

// A space and how it is searched.
struct Input {
  std::string path;
  RecordedFile file;
  SimulateOptions options;
};

// All that is read, before anything is run or written: what is wrong with the last file must not
// cost the runs on the first.
absl::StatusOr<std::vector<Input>> ReadInputs(const SimulateFlags& flags) {
  std::vector<Input> inputs;
  for (const std::string& path : flags.spaces) {
    absl::StatusOr<RecordedFile> file = ReadRecordedFile(path, {.workload = flags.workload});
    if (!file.ok()) return file.status();
    for (const std::string& warning : file->warnings)
      std::fprintf(stderr, "warning: %s: %s\n", path.c_str(), warning.c_str());
    absl::StatusOr<SimulateOptions> options = OptionsFor(flags, *file->space);
    if (!options.ok()) return options.status();
    inputs.push_back({path, *std::move(file), *std::move(options)});
  }
  return inputs;
}

absl::Status OpenLog(const SimulateFlags& flags, std::ofstream* log) {
  std::vector<std::string> others = flags.spaces;
  if (!flags.transfer_from.empty()) others.push_back(flags.transfer_from);
  for (const std::string& other : others) {
    std::error_code error;  // a log that does not exist yet is none of them
    if (!std::filesystem::equivalent(flags.log, other, error)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flags.log, ": --log would overwrite the recorded space; name another file"));
  }
  log->open(flags.log, std::ios::trunc);
  if (!*log) return absl::InvalidArgumentError(absl::StrCat(flags.log, ": cannot be written"));
  return absl::OkStatus();
}

// The runs of every strategy on one space, written to `log` if that is open.
absl::StatusOr<std::vector<StrategyRuns>> RunStrategies(const SimulateFlags& flags,
                                                        absl::Span<const StrategyChoice> choices,
                                                        const Input& input, std::ofstream* log) {
  const RecordedSpace& space = *input.file.space;
  std::vector<StrategyRuns> all;
  for (size_t s = 0; s < choices.size(); ++s) {
    const absl::StatusOr<std::vector<SimulatedRun>> runs =
        Simulate(space, choices[s], input.options);
    if (!runs.ok()) return runs.status();
    if (log->is_open()) {
      for (const SimulatedRun& run : *runs)
        *log << RunLine(space, flags.strategies[s], run) << '\n';
      // What is stopped later leaves the runs of this strategy; a full disk costs no more of them.
      if (!log->flush())
        return absl::UnavailableError(absl::StrCat(flags.log, ": cannot be written"));
    }
    all.push_back(RunsOf(flags.strategies[s], *runs));
  }
  return all;
}

// --noise: how far the verdicts of runs on noisy readings can be trusted.
absl::Status PrintNoise(const SimulateFlags& flags, absl::Span<const StrategyChoice> choices,
                        const Input& input) {
  TextTable table({"verdicts", ">runs", ">within 1%", ">median loss", ">greatest loss",
                   ">self comparisons", ">called different"});
  for (size_t s = 0; s < choices.size(); ++s) {
    const absl::StatusOr<NoiseReport> report =
        SimulateNoise(*input.file.space, choices[s], input.options);
    if (!report.ok()) {
      return absl::Status(report.status().code(),
                          absl::StrCat(input.path, ": ", report.status().message()));
    }
    const double median = report->losses.empty() ? 0 : Median(report->losses);
    const double greatest = report->losses.empty()
                                ? 0
                                : *std::max_element(report->losses.begin(), report->losses.end());
    if (flags.json) {
      const nlohmann::ordered_json line = {{"space", input.path},
                                           {"strategy", flags.strategies[s]},
                                           {"runs", report->runs},
                                           {"within", report->share_within()},
                                           {"median_loss", median},
                                           {"greatest_loss", greatest},
                                           {"self_comparisons", report->self_comparisons},
                                           {"self_different", report->share_self_different()}};
      PrintLine(line);
      continue;
    }
    table.Add({flags.strategies[s], absl::StrCat(report->runs),
               absl::StrFormat("%.3f", report->share_within()),
               absl::StrFormat("%.2f%%", 100 * median), absl::StrFormat("%.2f%%", 100 * greatest),
               absl::StrCat(report->self_comparisons),
               absl::StrFormat("%.4f", report->share_self_different())});
  }
  if (!flags.json) std::printf("%s\n%s\n", input.path.c_str(), table.ToString().c_str());
  return absl::OkStatus();
}

absl::Status CheckCombination(const SimulateFlags& flags) {
  if (flags.spaces.size() > 1 && !(flags.log.empty() && flags.score.empty())) {
    return absl::InvalidArgumentError(
        "simulate: --log and --score take one --space: the lines of a log do not name theirs");
  }
  if (!flags.score.empty() && !(flags.log.empty() && flags.strategies.empty())) {
    return absl::InvalidArgumentError(
        "simulate: --score judges the runs of a log; --strategy and --log make new ones");
  }
  if (!flags.score.empty() && !flags.transfer_from.empty()) {
    return absl::InvalidArgumentError(
        "simulate: --score judges the runs of a log; --transfer-from is about new ones");
  }
  if (flags.noise && !(flags.log.empty() && flags.score.empty())) {
    return absl::InvalidArgumentError(
        "simulate: --noise judges verdicts; --log and --score are about searches without noise");
  }
  return absl::OkStatus();
}

int RunSimulate(SimulateFlags flags) {
  if (absl::Status checked = CheckCombination(flags); !checked.ok()) return Fail(checked);
  if (flags.strategies.empty()) flags.strategies = {"evolutionary"};
  std::vector<StrategyChoice> choices;
  for (const std::string& text : flags.strategies) {
    const absl::StatusOr<StrategyChoice> choice = ParseStrategy(text);
    if (!choice.ok()) return Fail(choice.status());
    choices.push_back(*choice);
  }
  const absl::StatusOr<std::vector<Input>> inputs = ReadInputs(flags);
  if (!inputs.ok()) return FailToOpen(inputs.status());
  std::ofstream log;
  if (!flags.log.empty()) {
    if (absl::Status opened = OpenLog(flags, &log); !opened.ok()) return Fail(opened);
  }
  std::vector<std::vector<StrategyScore>> all;
  for (const Input& input : *inputs) {
    const auto& [path, file, unused] = input;
    if (flags.noise) {
      if (absl::Status printed = PrintNoise(flags, choices, input); !printed.ok())
        return Fail(printed);
      continue;
    }
    const absl::StatusOr<std::vector<StrategyRuns>> runs =
        flags.score.empty() ? RunStrategies(flags, choices, input, &log)
                            : ReadRuns(*file.space, flags.score);
    if (!runs.ok()) return Fail(runs.status());
    absl::StatusOr<std::vector<StrategyScore>> scores = ScoreRuns(*file.space, *runs);
    if (!scores.ok()) return Fail(scores.status());
    for (const StrategyScore& score : *scores) WarnOfRuns(path, score);
    if (flags.json) {
      PrintJson(path, *scores);
    } else {
      PrintTable(path, file, *scores);
    }
    std::fflush(stdout);
    all.push_back(*std::move(scores));
  }
  if (all.size() > 1) (flags.json ? PrintAggregateJson : PrintAggregate)(all);
  return kExitOk;
}

}  // namespace

std::function<int()> AddSimulate(CLI::App* app) {
  auto flags = std::make_shared<SimulateFlags>();
  const CLI::Range at_least_one(1, 1000000);
  app->add_option("--space", flags->spaces,
                  "a recorded space: a Kernel Tuner cache, T4 results (plain or .gz) or a tuning "
                  "log; may be repeated")
      ->required();
  std::vector<std::string> names;
  for (const StrategyRow& row : AllStrategies()) names.push_back(row.name);
  app->add_option("--strategy", flags->strategies,
                  absl::StrCat("NAME or NAME{parameter=value …}; may be repeated; strategies are ",
                               absl::StrJoin(names, ", "), "; evolutionary if not given"));
  app->add_option("--workload", flags->workload,
                  "of a tuning log: a workload's name, or the beginning of its key");
  app->add_option("--trials", flags->options.trials, "evaluations per run")
      ->check(at_least_one)
      ->capture_default_str();
  app->add_option("--seeds", flags->options.seeds, "runs per strategy, each with its own seed")
      ->check(at_least_one)
      ->capture_default_str();
  app->add_option("--first-seed", flags->options.first_seed, "the least of the seeds")
      ->check(CLI::Range(uint64_t{0}, uint64_t{std::numeric_limits<int64_t>::max()}))
      ->capture_default_str();
  app->add_option("--batch", flags->options.batch, "proposals at a time")
      ->check(at_least_one)
      ->capture_default_str();
  std::vector<std::string> models;
  for (const ModelRow& row : AllModels()) models.push_back(row.name);
  app->add_option("--model", flags->model, "what a model-guided strategy learns with")
      ->check(CLI::IsMember(models))
      ->capture_default_str();
  app->add_option("--transfer-from", flags->transfer_from,
                  "a recorded space of another device: runs start with its best and a model of it");
  app->add_option("--transfer-starts", flags->transfer_starts,
                  "how many of its best are measured first")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app->add_option("--jobs", flags->options.jobs, "threads, at most one per core; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app->add_option("--log", flags->log, "write every evaluation of every run, a line per run");
  app->add_option("--score", flags->score, "score the runs of such a log instead of running any");
  app->add_flag("--noise", flags->noise,
                "draw noisy readings from the recorded samples, hold the finals on them, and judge "
                "the verdicts instead of the searches");
  app->add_flag("--json", flags->json, "one JSON object per space and strategy");
  return [flags] { return RunSimulate(*flags); };
}

}  // namespace tilewright
