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
  // With less than TimeOfFinals needs but for half of the qualifying, screening decides which one
  // enters, no library competes, and the idles are as short as it takes. The deciding rounds are
  // always held.
  absl::Duration time_left = absl::InfiniteDuration();
};

// What whole finals take, from the idles and about 100 ms of building, checking and timing a burst.
absl::Duration TimeOfFinals(const FinalsRules& rules);

// What the caller lends.
struct FinalsCalls {
  // Holds the rounds and waits for them. Cancelled: the run is told to stop.
  std::function<absl::StatusOr<v1::FinalsResult>(const v1::Finals&, FinalsStage)> hold;
  std::function<void(std::string)> warn;
  std::function<void(FinalsStage)> ended;  // also of a stage that needed no rounds
};

struct FinalsOutcome {
  FinalsDecision decision;
  std::vector<Entrant> deciding;  // of the deciding rounds
  std::string library;            // the algorithm that competed; empty: none did
  v1::FinalsResult raw;           // of the deciding rounds
  int idle_ms = 0;                // before each of their bursts
};

// A library is measured against, but never wins: it cannot be packed. Errors: as `hold`;
// Unavailable: the rounds failed as a whole; FailedPrecondition: nobody has a sample.
absl::StatusOr<FinalsOutcome> HoldFinals(const FinalsField& field, const FinalsRules& rules,
                                         const FinalsCalls& calls);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_RUN_FINALS_H_
