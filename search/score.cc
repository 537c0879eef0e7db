#include "search/score.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "measure/statistics.h"
#include "nlohmann/json.hpp"

namespace tilewright {
namespace {

constexpr double kCutoff = 0.96;
constexpr double kNothingYet = std::numeric_limits<double>::infinity();

// What the runs on one space are measured by.
struct Yardstick {
  double best = 0;
  double worst = 0;
  int budget = 0;
  int used = 0;
  std::vector<double> calculated;  // R of p and pmean, k = 1 … used
  std::vector<double> exact;       // R of pcal
};

int BudgetOf(absl::Span<const double> ascending) {
  const int n = static_cast<int>(ascending.size());
  const double median = Median(std::vector<double>(ascending.begin(), ascending.end()));
  const double target = ascending[0] + (median - ascending[0]) * (1 - kCutoff);
  // The place, from the worst, of the first time that reaches the target.
  const int better = static_cast<int>(std::upper_bound(ascending.begin(), ascending.end(), target) -
                                      ascending.begin());
  const int place = n - better;
  return std::max(1, static_cast<int>(std::ceil(static_cast<double>(place) / (n + 1 - place))));
}

// E[best of k distinct configurations of all] for k = 1 … used: the best time, and for each step up
// to the next the chance that all k are worse. If all k fail, the worst time counts.
std::vector<double> ExactRandomSearch(absl::Span<const double> ascending, int64_t total, int used) {
  std::vector<double> log_factorial(total + 1, 0);
  for (int64_t i = 1; i <= total; ++i)
    log_factorial[i] = log_factorial[i - 1] + std::log(static_cast<double>(i));
  std::vector<double> expected;
  for (int64_t k = 1; k <= used; ++k) {
    const double ways = log_factorial[total] - log_factorial[total - k];
    double value = ascending[0];
    for (size_t r = 0; r + 1 < ascending.size(); ++r) {
      const int64_t worse = total - static_cast<int64_t>(r) - 1;
      if (worse < k) break;
      const double chance = std::exp(log_factorial[worse] - log_factorial[worse - k] - ways);
      if (chance < 1e-18) break;  // and it falls further
      value += (ascending[r + 1] - ascending[r]) * chance;
    }
    expected.push_back(value);
  }
  return expected;
}

Yardstick MakeYardstick(const RecordedSpace& space, int cap) {
  const absl::Span<const double> ascending = space.ascending_milliseconds();
  const int n = static_cast<int>(ascending.size());
  Yardstick yardstick{
      .best = ascending.front(), .worst = ascending.back(), .budget = BudgetOf(ascending)};
  yardstick.used = std::min(yardstick.budget, cap);
  for (int k = 1; k <= yardstick.used; ++k) {
    // Ties go to even, as in the publication's code.
    const double rank = std::nearbyint(static_cast<double>(k) * (n + 1) / (k + 1));
    yardstick.calculated.push_back(ascending[n - 1 - std::min(n - 1, static_cast<int>(rank))]);
  }
  yardstick.exact = ExactRandomSearch(
      ascending, static_cast<int64_t>(absl::Uint128Low64(space.Count())), yardstick.used);
  return yardstick;
}

// The best after 1 … length evaluations without repeats; kNothingYet before the first success.
struct BestCurve {
  std::vector<double> best;
  int evaluations = 0;
  int failed = 0;
  int unknown = 0;
};

BestCurve FollowRun(const RecordedSpace& space,
                    absl::Span<const std::optional<absl::uint128>> evaluated, int length) {
  BestCurve curve;
  absl::flat_hash_set<absl::uint128> seen;
  double best = kNothingYet;
  for (const std::optional<absl::uint128>& index : evaluated) {
    if (static_cast<int>(curve.best.size()) == length) break;
    if (index && !seen.insert(*index).second) continue;
    std::optional<double> time;
    if (index) time = space.configuration(*index).milliseconds;
    curve.unknown += !index.has_value();
    curve.failed += !time.has_value();
    if (time) best = std::min(best, *time);
    curve.best.push_back(best);
  }
  curve.evaluations = static_cast<int>(curve.best.size());
  curve.best.resize(length, best);
  return curve;
}

// Mean over k of (s - r) / (best - r), where r is not the optimum itself.
double MeanRatio(absl::Span<const double> s, absl::Span<const double> r, double best) {
  double sum = 0;
  int counted = 0;
  for (size_t k = 0; k < r.size(); ++k) {
    const double whole = best - r[k];
    if (std::abs(whole) <= 1e-12 * best) continue;
    sum += (s[k] - r[k]) / whole;
    ++counted;
  }
  return counted == 0 ? 0 : sum / counted;
}

double MeanOf(absl::Span<const double> values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The standard error of the mean. Precondition: at least two values.
double StandardErrorOf(absl::Span<const double> values) {
  const double mean = MeanOf(values);
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  const double n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1) / n);
}

void ScoreProgress(const Yardstick& yardstick, absl::Span<const BestCurve> curves,
                   StrategyScore* score) {
  std::vector<double> median;
  std::vector<double> mean;
  for (int k = 0; k < yardstick.used; ++k) {
    std::vector<double> values;
    for (const BestCurve& curve : curves)
      values.push_back(curve.best[k] == kNothingYet ? yardstick.worst : curve.best[k]);
    mean.push_back(MeanOf(values));
    median.push_back(Median(std::move(values)));
  }
  score->p = MeanRatio(median, yardstick.calculated, yardstick.best);
  score->pmean = MeanRatio(mean, yardstick.calculated, yardstick.best);
  score->pcal = MeanRatio(mean, yardstick.exact, yardstick.best);
  if (curves.size() < 2) return;
  // pcal is linear in the runs: it is the mean of theirs.
  std::vector<double> single;
  for (const BestCurve& curve : curves) {
    std::vector<double> best(curve.best.begin(), curve.best.begin() + yardstick.used);
    for (double& value : best) value = value == kNothingYet ? yardstick.worst : value;
    single.push_back(MeanRatio(best, yardstick.exact, yardstick.best));
  }
  score->pcal_error = StandardErrorOf(single);
}

void ScoreQuality(const Yardstick& yardstick, absl::Span<const BestCurve> curves, int cap,
                  StrategyScore* score) {
  const size_t n = curves.size();
  // Student's 95% quantile, near enough from two runs up.
  const double quantile = 1.96 + 2.45 / static_cast<double>(std::max<size_t>(1, n - 1));
  for (size_t i = 0; i < kScoredEvaluations.size(); ++i) {
    std::vector<double> quality;  // 0 while nothing succeeded, the time being infinite
    for (const BestCurve& curve : curves)
      quality.push_back(yardstick.best / curve.best[kScoredEvaluations[i] - 1]);
    score->at[i] = MeanOf(quality);
    if (n > 1) score->at_interval[i] = quantile * StandardErrorOf(quality);
  }
  for (size_t i = 0; i < kScoredPercents.size(); ++i) {
    const double near = yardstick.best * (1 + kScoredPercents[i] / 100.0) * (1 + 1e-12);
    std::vector<double> first;
    int hits = 0;
    for (const BestCurve& curve : curves) {
      const auto hit = std::find_if(curve.best.begin(), curve.best.begin() + cap,
                                    [&](double best) { return best <= near; });
      const bool never = hit == curve.best.begin() + cap;
      first.push_back(never ? kNothingYet : hit - curve.best.begin() + 1.0);
      hits += !never;
    }
    score->share_within[i] = static_cast<double>(hits) / static_cast<double>(n);
    std::sort(first.begin(), first.end());
    if (first[n / 2] != kNothingYet) score->to_within[i] = first[n / 2];
  }
}

absl::StatusOr<StrategyScore> ScoreStrategy(const RecordedSpace& space, const Yardstick& yardstick,
                                            const StrategyRuns& runs, int cap) {
  if (runs.runs.empty())
    return absl::InvalidArgumentError(absl::StrCat(runs.strategy, ": there are no runs to score"));
  const int length = std::max(cap, kScoredEvaluations.back());
  std::vector<BestCurve> curves;
  StrategyScore score{.strategy = runs.strategy,
                      .seeds = static_cast<int>(runs.runs.size()),
                      .budget = yardstick.budget,
                      .used = yardstick.used,
                      .differing_times = runs.differing_times};
  std::vector<double> evaluations;
  double failed = 0;
  double all = 0;
  for (const auto& run : runs.runs) {
    curves.push_back(FollowRun(space, run, length));
    evaluations.push_back(curves.back().evaluations);
    failed += curves.back().failed;
    all += curves.back().evaluations;
    score.unknown_keys += curves.back().unknown;
  }
  score.evaluations = Median(evaluations);
  score.failed_share = failed / std::max(1.0, all);
  ScoreProgress(yardstick, curves, &score);
  ScoreQuality(yardstick, curves, cap, &score);
  return score;
}

// One line of a log of runs.
absl::Status ReadRun(const RecordedSpace& space, const std::string& line,
                     std::vector<StrategyRuns>* strategies) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("not JSON, or only a part of a line");
  if (!json.is_object() || !json.contains("strategy") || !json["strategy"].is_string() ||
      !json.contains("evals") || !json["evals"].is_array()) {
    return absl::InvalidArgumentError(
        "not an object with a text `strategy` and a list `evals` of [milliseconds or null, key]");
  }
  const std::string name = json["strategy"];
  auto runs = std::find_if(strategies->begin(), strategies->end(),
                           [&](const StrategyRuns& known) { return known.strategy == name; });
  if (runs == strategies->end()) runs = strategies->insert(runs, {.strategy = name});
  std::vector<std::optional<absl::uint128>> run;
  absl::flat_hash_set<std::string> unknown;  // a repeat of such a key is free as well
  for (const auto& pair : json["evals"]) {
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_string() ||
        !(pair[0].is_null() || pair[0].is_number())) {
      return absl::InvalidArgumentError(
          absl::StrCat("evaluation ", run.size() + 1, " is not [milliseconds or null, key]"));
    }
    const absl::StatusOr<absl::uint128> index = space.IndexOfKey(pair[1]);
    if (!index.ok()) {
      if (unknown.insert(pair[1]).second) run.push_back(std::nullopt);
      continue;
    }
    const std::optional<double> recorded = space.configuration(*index).milliseconds;
    runs->differing_times +=
        recorded.has_value() != pair[0].is_number() ||
        (recorded && std::abs(pair[0].get<double>() - *recorded) > 1e-6 * *recorded);
    run.push_back(*index);
  }
  runs->runs.push_back(std::move(run));
  return absl::OkStatus();
}

}  // namespace

StrategyRuns RunsOf(const std::string& strategy, absl::Span<const SimulatedRun> runs) {
  StrategyRuns of{.strategy = strategy};
  for (const SimulatedRun& run : runs) {
    of.runs.emplace_back();
    for (const SimulatedEvaluation& evaluation : run.evaluations)
      of.runs.back().push_back(evaluation.index);
  }
  return of;
}

absl::StatusOr<std::vector<StrategyScore>> ScoreRuns(const RecordedSpace& space,
                                                     absl::Span<const StrategyRuns> strategies,
                                                     int cap) {
  if (space.ascending_milliseconds().empty())
    return absl::InvalidArgumentError("every configuration of the space failed");
  if (cap == 0) {
    for (const StrategyRuns& strategy : strategies) {
      for (const auto& run : strategy.runs) cap = std::max(cap, static_cast<int>(run.size()));
    }
  }
  if (cap < 1) return absl::InvalidArgumentError("there is no evaluation to score");
  const Yardstick yardstick = MakeYardstick(space, cap);
  std::vector<StrategyScore> scores;
  for (const StrategyRuns& strategy : strategies) {
    absl::StatusOr<StrategyScore> score = ScoreStrategy(space, yardstick, strategy, cap);
    if (!score.ok()) return score.status();
    scores.push_back(*std::move(score));
  }
  return scores;
}

absl::StatusOr<std::vector<StrategyRuns>> ReadRuns(const RecordedSpace& space,
                                                   const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a directory; expected a log of runs"));
  }
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::vector<StrategyRuns> strategies;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (absl::Status read = ReadRun(space, line, &strategies); !read.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", std::string(read.message())));
    }
  }
  if (file.bad()) return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  if (strategies.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": has no runs"));
  return strategies;
}

std::vector<AggregateScore> Aggregate(absl::Span<const std::vector<StrategyScore>> spaces) {
  std::vector<AggregateScore> aggregates;
  for (const std::vector<StrategyScore>& scores : spaces) {
    for (const StrategyScore& score : scores) {
      auto found = std::find_if(
          aggregates.begin(), aggregates.end(),
          [&](const AggregateScore& known) { return known.strategy == score.strategy; });
      if (found == aggregates.end()) {
        found = aggregates.insert(
            found, {.strategy = score.strategy, .least_p = score.p, .least_pcal = score.pcal});
      }
      ++found->spaces;
      const double share = 1.0 / found->spaces;  // running means
      found->p += (score.p - found->p) * share;
      found->pcal += (score.pcal - found->pcal) * share;
      found->least_p = std::min(found->least_p, score.p);
      found->least_pcal = std::min(found->least_pcal, score.pcal);
      found->failed_share += (score.failed_share - found->failed_share) * share;
      for (size_t i = 0; i < found->at.size(); ++i)
        found->at[i] += (score.at[i] - found->at[i]) * share;
      for (size_t i = 0; i < found->share_within.size(); ++i)
        found->share_within[i] += (score.share_within[i] - found->share_within[i]) * share;
    }
  }
  return aggregates;
}

}  // namespace tilewright
