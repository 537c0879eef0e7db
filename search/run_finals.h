// Holds the finals of one run: who enters, in which rounds, and what they decide. finals.h has the
// rules as pure functions; the rounds themselves are the caller's, over the wire in the tuner.
//
//   screened costs ─► qualifying rounds ─┐
//   library's algorithms ─► its best ────┼─► deciding rounds ─► FinalsOutcome
//   anchor, default ─────────────────────┘
//
// Not thread-safe.
#ifndef TILEWRIGHT_SEARCH_RUN_FINALS_H_
#define TILEWRIGHT_SEARCH_RUN_FINALS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "measure/measure.pb.h"
#include "search/finals.h"

namespace tilewright {

enum class FinalsStage { kQualifying, kLibrary, kDeciding };

struct FinalsField {
  // Screened schedules with their seconds relative to the anchor; at least one.
  std::vector<std::pair<double, std::string>> costs;
  std::string anchor;
  std::string default_schedule;
  std::vector<std::string> library_algorithms;  // empty: no library competes
  uint64_t seed = 0;                            // decides the order within rounds
  // When they are to be over: as much of the finals is held as fits before it though every burst
  // takes kSlack times what the last ones took. The least number of deciding rounds of one
  // finalist, with idles as short as it takes, is always held. Of the time beside them one half is
  // for qualifying, in which screening chooses who takes part, and what is left then for a library,
  // more rounds and more finalists.
  absl::Time by = absl::InfiniteFuture();
  // For `by`, what is expected of
  absl::Duration burst;    // one burst, beside its idle
  absl::Duration opening;  // the session, before the first rounds; zero: it is open
};

// What whole finals take, and what is held of them however short the time, if a burst takes
// `burst` beside its idle: building and checking it are a part of that.
absl::Duration TimeOfFinals(const FinalsRules& rules, absl::Duration burst);
absl::Duration LeastTimeOfFinals(const FinalsRules& rules, absl::Duration burst, int entrants);
// The least number of entrants: one finalist, the anchor, and the default where it is another.
inline constexpr int kMostLeastEntrants = 3;
int LeastEntrants(const std::string& anchor, const std::string& default_schedule);

// What the caller lends.
struct FinalsCalls {
  // Holds the rounds and waits for them. Cancelled: the run is told to stop.
  std::function<absl::StatusOr<v1::FinalsResult>(const v1::Finals&, FinalsStage)> hold;
  std::function<void(std::string)> warn;
  std::function<void(FinalsStage)> ended;  // also of a stage that needed no rounds
  std::function<absl::Time()> now;
};

struct FinalsOutcome {
  FinalsDecision decision;
  std::vector<Entrant> deciding;  // of the deciding rounds
  std::string library;            // the algorithm that competed; empty: none did
  v1::FinalsResult raw;           // of the deciding rounds
  int rounds = 0;                 // of them
  int idle_ms = 0;                // before each of their bursts
};

// A library is measured against, but never wins: it cannot be packed. Errors: as `hold`;
// Unavailable: the rounds failed as a whole; FailedPrecondition: nobody has a sample.
absl::StatusOr<FinalsOutcome> HoldFinals(const FinalsField& field, const FinalsRules& rules,
                                         const FinalsCalls& calls);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_RUN_FINALS_H_
