#include "search/finals.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

// The median of the rounds that have a sample.
std::optional<double> MedianOfRounds(absl::Span<const double> rounds) {
  std::vector<double> kept;
  for (double seconds : rounds) {
    if (!std::isnan(seconds)) kept.push_back(seconds);
  }
  if (kept.empty()) return std::nullopt;
  return Median(std::move(kept));
}

struct Ranked {
  const Entrant* entrant;
  double seconds;
};

std::vector<Ranked> Rank(absl::Span<const Entrant> entrants) {
  std::vector<Ranked> ranked;
  for (const Entrant& entrant : entrants) {
    if (const std::optional<double> seconds = MedianOfRounds(entrant.round_seconds)) {
      ranked.push_back({&entrant, *seconds});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.seconds < b.seconds; });
  return ranked;
}

}  // namespace

std::vector<std::string> ChooseQualifiers(std::vector<std::pair<double, std::string>> costs,
                                          const std::string& incumbent, const FinalsRules& rules) {
  std::sort(costs.begin(), costs.end());
  std::vector<std::string> chosen;
  for (const auto& [cost, schedule] : costs) {
    if (cost > costs.front().first * rules.within ||
        static_cast<int>(chosen.size()) >= rules.most_qualifiers)
      break;
    if (schedule != incumbent) chosen.push_back(schedule);
  }
  return chosen;
}

std::vector<std::string> ChooseFinalists(absl::Span<const Entrant> qualifying,
                                         const FinalsRules& rules) {
  std::vector<std::string> chosen;
  for (const Ranked& ranked : Rank(qualifying)) {
    if (static_cast<int>(chosen.size()) >= rules.finalists) break;
    chosen.push_back(ranked.entrant->schedule);
  }
  return chosen;
}

absl::StatusOr<FinalsDecision> Decide(absl::Span<const Entrant> deciding,
                                      const std::string& incumbent) {
  const std::vector<Ranked> ranked = Rank(deciding);
  if (ranked.empty()) return absl::FailedPreconditionError("finals: no entrant has a sample");
  const Ranked* kept = nullptr;
  for (const Ranked& entry : ranked) {
    if (entry.entrant->schedule == incumbent) kept = &entry;
  }
  const Ranked* winner = &ranked.front();
  const Ranked* rival = kept;
  if (kept != nullptr && winner != kept) {
    const PairedComparison against =
        ComparePaired(winner->entrant->round_seconds, kept->entrant->round_seconds);
    if (against.outcome != Outcome::kFaster) std::swap(winner, rival);
  } else {
    rival = ranked.size() > 1 ? &ranked[1] : nullptr;
  }
  FinalsDecision decision;
  decision.winner = winner->entrant->schedule;
  decision.winner_seconds = winner->seconds;
  if (rival != nullptr) {
    decision.rival = rival->entrant->schedule;
    decision.rival_seconds = rival->seconds;
    decision.comparison =
        ComparePaired(winner->entrant->round_seconds, rival->entrant->round_seconds);
  } else {
    // Alone in the field: a failed incumbent, or nothing else at all.
    decision.rival = incumbent;
  }
  return decision;
}

std::optional<double> MedianSeconds(absl::Span<const Entrant> entrants,
                                    const std::string& schedule) {
  for (const Entrant& entrant : entrants) {
    if (entrant.schedule == schedule) return MedianOfRounds(entrant.round_seconds);
  }
  return std::nullopt;
}

Rounds RoundsOf(absl::Span<const Entrant> entrants, int rounds) {
  std::vector<const Entrant*> timed;
  for (const Entrant& entrant : entrants) {
    if (!entrant.round_seconds.empty()) timed.push_back(&entrant);
  }
  Rounds table;
  for (const Entrant* entrant : timed) table.schedules.push_back(entrant->schedule);
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> times;
    for (const Entrant* entrant : timed) {
      if (round < static_cast<int>(entrant->round_seconds.size()) &&
          !std::isnan(entrant->round_seconds[round])) {
        times.push_back(entrant->round_seconds[round]);
      }
    }
    if (times.size() == timed.size()) {
      table.seconds.insert(table.seconds.end(), times.begin(), times.end());
    }
  }
  return table;
}

}  // namespace tilewright
