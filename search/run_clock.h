// The time of one run, by its parts: what was between two of them is not the run's.
//
//   RunClock clock(now);           // the first part begins
//   clock.Leave(stats);            // it ends; other runs have their turns
//   clock.Enter(stats);            // the next one begins
//   clock.EndPhase("screening");   // all since the last phase was that
//
// `stats` are the coordinator's for this run; absent: not known. Not thread-safe.
#ifndef TILEWRIGHT_SEARCH_RUN_CLOCK_H_
#define TILEWRIGHT_SEARCH_RUN_CLOCK_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "search/tuning_client.h"

namespace tilewright {

class RunClock {
 public:
  // `now` says what time it is.
  explicit RunClock(std::function<absl::Time()> now)
      : now_(std::move(now)), started_(now_()), phase_started_(started_), left_(started_) {}

  void Enter(const std::optional<TuningStats>& stats);
  void Leave(const std::optional<TuningStats>& stats);
  // Of a part that goes on.
  absl::Duration elapsed() const { return now_() - started_; }
  // Up to the end of the last part, which no other follows yet.
  absl::Duration elapsed_before() const { return left_ - started_; }
  // When it would have begun, had it been without a break.
  absl::Time started() const { return started_; }

  void EndPhase(const std::string& phase);
  // What has ended, by first appearance.
  const std::vector<std::pair<std::string, absl::Duration>>& phases() const { return phases_; }

  // Share of the devices' time, since the first Enter and in its own parts, with a builder or
  // runner at work. 0: no device was there.
  double Utilisation(const TuningStats& stats) const;

 private:
  const std::function<absl::Time()> now_;
  absl::Time started_;
  absl::Time phase_started_;
  absl::Time left_;  // the end of the last part
  std::vector<std::pair<std::string, absl::Duration>> phases_;
  TuningStats others_;   // what of the statistics is not the run's
  TuningStats at_left_;  // the statistics at the end of the last part
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_RUN_CLOCK_H_
