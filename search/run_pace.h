// How long the steps of one run take, as it has measured them: what a plan under a time limit is
// made from.
//
//   RunPace pace;
//   pace.BeginTurn(now);                        // the run's first proposal after a pause follows
//   pace.AddTrial(now, measured_unix_ns);       // each committed trial
//   pace.AddRounds(bursts, idle, took);         // each stage of its finals
//   pace.steps().trial                          // what the next one is expected to take
//
// A machine that others use slows down without notice, so a plan counts kSlack times what is
// expected of every step that it adds. Not thread-safe; the tuner's thread owns it.
#ifndef TILEWRIGHT_SEARCH_RUN_PACE_H_
#define TILEWRIGHT_SEARCH_RUN_PACE_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace tilewright {

// How much longer than expected a step may take without a time limit being missed.
inline constexpr int kSlack = 2;

// What steps are expected to take. Zero: nothing is known of it.
struct StepTimes {
  absl::Duration opening;  // from a turn's first proposal to its first result: a session is opened,
                           // the first schedules are built
  absl::Duration trial;    // screening one more, building included
  absl::Duration burst;    // one burst of the finals, beside its idle
  // For a run that has measured nothing: the longest that others took.
  void RaiseTo(const StepTimes& other);
  // One result tells nothing of the next one.
  bool known() const { return trial > absl::ZeroDuration(); }
};

class RunPace {
 public:
  void BeginTurn(absl::Time now);
  // A trial was committed at `now`. `measured_unix_ns`: when its worker had measured it, by its
  // clock; 0: not known.
  void AddTrial(absl::Time now, int64_t measured_unix_ns);
  // So many bursts, each after `idle`, took so long in all.
  void AddRounds(int64_t bursts, absl::Duration idle, absl::Duration took);

  // A burst before any rounds were held is taken for the screening of a kernel that is built: the
  // median distance of two trials, of which most were built together.
  StepTimes steps() const;

 private:
  struct Trial {
    absl::Time committed;
    int64_t measured_unix_ns = 0;
  };

  absl::Time turn_began_;
  absl::Duration opening_;
  std::optional<absl::Duration> burst_;
  std::deque<Trial> trials_;  // of this turn, the last kRemembered
  StepTimes before_;          // as of the end of the turn before
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_RUN_PACE_H_
