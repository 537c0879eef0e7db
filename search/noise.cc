#include "search/noise.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "measure/statistics.h"

namespace tilewright {
namespace {

// Per run.
constexpr int kSelfComparisons = 20;

double DrawReading(const RecordedConfiguration& configuration, std::mt19937_64& random) {
  if (configuration.samples.empty()) return *configuration.milliseconds;
  return configuration.samples[absl::Uint128Low64(
      UniformIndex(random, absl::uint128(configuration.samples.size())))];
}

double TrueMilliseconds(const RecordedConfiguration& configuration) {
  return configuration.samples.empty() ? *configuration.milliseconds
                                       : Median(configuration.samples);
}

// The finals of one simulated run.
class NoisyFinals {
 public:
  NoisyFinals(const RecordedSpace& space, const FinalsRules& rules, uint64_t seed)
      : space_(space), rules_(rules), random_(seed) {}

  // The schedule that the verdict names, out of what the run screened.
  absl::StatusOr<absl::uint128> Hold(const SimulatedRun& run) {
    std::vector<std::pair<double, std::string>> costs;
    std::string incumbent;
    for (const SimulatedEvaluation& evaluation : run.evaluations) {
      if (!evaluation.milliseconds) continue;
      if (incumbent.empty()) incumbent = Name(evaluation.index);
      costs.emplace_back(*evaluation.milliseconds, Name(evaluation.index));
    }
    if (incumbent.empty()) return absl::FailedPreconditionError("every schedule failed");
    std::vector<std::string> finalists = ChooseQualifiers(std::move(costs), incumbent, rules_);
    if (static_cast<int>(finalists.size()) > rules_.finalists)
      finalists = ChooseFinalists(Rounds(finalists, rules_.qualifying_rounds), rules_);
    finalists.push_back(incumbent);
    const absl::StatusOr<FinalsDecision> decision =
        Decide(Rounds(finalists, rules_.deciding_rounds), incumbent);
    if (!decision.ok()) return decision.status();
    return Index(decision->winner);
  }

  // True if rounds of a schedule against itself are called different.
  bool DiffersFromItself(absl::uint128 index) {
    const std::string name = Name(index);
    const std::vector<Entrant> twins = Rounds({name, name}, rules_.deciding_rounds);
    return ComparePaired(twins[0].round_seconds, twins[1].round_seconds).outcome != Outcome::kTie;
  }

  absl::uint128 AnyThatSucceeded() {
    while (true) {
      const absl::uint128 index = UniformIndex(random_, space_.Count());
      if (space_.configuration(index).milliseconds) return index;
    }
  }

 private:
  // Entrants are called by their index.
  static std::string Name(absl::uint128 index) { return absl::StrCat(absl::Uint128Low64(index)); }
  static absl::uint128 Index(const std::string& name) {
    uint64_t index = 0;
    absl::SimpleAtoi(name, &index);
    return index;
  }

  std::vector<Entrant> Rounds(const std::vector<std::string>& names, int rounds) {
    std::vector<Entrant> entrants;
    for (const std::string& name : names) {
      Entrant entrant{.schedule = name, .round_seconds = {}};
      for (int round = 0; round < rounds; ++round) {
        const double milliseconds = DrawReading(space_.configuration(Index(name)), random_);
        entrant.round_seconds.push_back(1e-3 * milliseconds);
      }
      entrants.push_back(std::move(entrant));
    }
    return entrants;
  }

  const RecordedSpace& space_;
  const FinalsRules& rules_;
  std::mt19937_64 random_;
};

}  // namespace

double NoiseReport::share_within() const {
  const auto within =
      std::count_if(losses.begin(), losses.end(), [](double loss) { return loss <= kNearTheBest; });
  return static_cast<double>(within) / std::max(1, runs);
}

double NoiseReport::share_self_different() const {
  return static_cast<double>(self_differences) / std::max(1, self_comparisons);
}

absl::StatusOr<NoiseReport> SimulateNoise(const RecordedSpace& space,
                                          const StrategyChoice& strategy, SimulateOptions options,
                                          const FinalsRules& rules) {
  bool sampled = false;
  for (absl::uint128 i = 0; i < space.Count(); ++i)
    sampled |= space.configuration(i).samples.size() > 1;
  if (!sampled) {
    return absl::InvalidArgumentError(
        "the space has no samples to draw readings from, only one time per configuration");
  }
  options.reading = DrawReading;
  const absl::StatusOr<std::vector<SimulatedRun>> runs = Simulate(space, strategy, options);
  if (!runs.ok()) return runs.status();
  NoiseReport report{.losses = {}, .runs = static_cast<int>(runs->size())};
  for (const SimulatedRun& run : *runs) {
    NoisyFinals finals(space, rules, run.seed ^ 0x9e3779b97f4a7c15);
    for (int i = 0; i < kSelfComparisons; ++i) {
      ++report.self_comparisons;
      report.self_differences += finals.DiffersFromItself(finals.AnyThatSucceeded());
    }
    const absl::StatusOr<absl::uint128> winner = finals.Hold(run);
    if (!winner.ok()) continue;
    double best = std::numeric_limits<double>::infinity();
    for (const SimulatedEvaluation& evaluation : run.evaluations) {
      if (!evaluation.milliseconds) continue;
      best = std::min(best, TrueMilliseconds(space.configuration(evaluation.index)));
    }
    report.losses.push_back(TrueMilliseconds(space.configuration(*winner)) / best - 1);
  }
  return report;
}

}  // namespace tilewright
