// Who enters the paired finals and what they decide (DESIGN.md 6). Pure functions of numbers; the
// tuner runs the rounds.
//
//   screened trials ─► ChooseQualifiers ─► 2 rounds ─► ChooseFinalists ─► >= 6 new rounds ─► Decide
//   ─► verdict
//
// Only the last rounds decide, so that a schedule that was lucky in screening gains nothing.
#ifndef TILEWRIGHT_SEARCH_FINALS_H_
#define TILEWRIGHT_SEARCH_FINALS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/rows.h"
#include "measure/statistics.h"

namespace tilewright {

struct FinalsRules {
  double within = 1.08;  // qualify: at most this times the best screened cost
  int most_qualifiers = 16;
  int qualifying_rounds = 2;
  int qualifying_idle_ms = 200;  // before each of their bursts
  int finalists = 4;             // beside the incumbent
  // 6 is the fewest whose order-statistic interval of the median reaches 95%, but that interval
  // runs from the least to the greatest ratio, so one disturbed round leaves everything open; with
  // 9 it leaves one out at either end.
  int deciding_rounds = 9;
  int least_rounds = 6;  // that decide where the time is short
  int idle_ms = 200;     // before each of their bursts
};

// One kernel's times, round by round; NaN: a dropped sample. Empty: it failed.
struct Entrant {
  std::string schedule;
  std::vector<double> round_seconds;
};

// `costs`: screened schedules with their seconds relative to the anchor, any order. The incumbent
// is left out (it enters the deciding rounds anyway). Best first.
std::vector<std::string> ChooseQualifiers(std::vector<std::pair<double, std::string>> costs,
                                          const std::string& incumbent, const FinalsRules& rules);

// The best `rules.finalists` by the median of the qualifying rounds; those that failed or have no
// sample are out. Best first.
std::vector<std::string> ChooseFinalists(absl::Span<const Entrant> qualifying,
                                         const FinalsRules& rules);

struct FinalsDecision {
  std::string winner;
  double winner_seconds = 0;  // median of its deciding rounds
  std::string rival;          // the incumbent, or the runner-up where the incumbent won or failed
  std::optional<double> rival_seconds;  // absent: it failed
  PairedComparison comparison;          // of the winner against the rival
};
// The entrant with the best median wins if it is *faster* than the incumbent by paired rounds; a
// tie keeps the incumbent. An incumbent that failed here loses to the best of the others.
// FailedPrecondition: nobody has a sample.
absl::StatusOr<FinalsDecision> Decide(absl::Span<const Entrant> deciding,
                                      const std::string& incumbent);

// The median of a schedule's rounds that have a sample. Absent: it has none, or did not enter.
std::optional<double> MedianSeconds(absl::Span<const Entrant> entrants,
                                    const std::string& schedule);
// Those of the first `rounds` rounds that a verdict's record keeps: without entrants that failed,
// and only rounds in which no sample was dropped, since the record knows no missing times.
Rounds RoundsOf(absl::Span<const Entrant> entrants, int rounds);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_FINALS_H_
