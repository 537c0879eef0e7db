#include "search/run_clock.h"

#include <algorithm>

namespace tilewright {

void RunClock::Enter(const std::optional<TuningStats>& stats) {
  const absl::Duration away = now_() - left_;
  started_ += away;
  phase_started_ += away;
  if (!stats) return;
  others_.busy += stats->busy - at_left_.busy;
  others_.enrolled += stats->enrolled - at_left_.enrolled;
}

void RunClock::Leave(const std::optional<TuningStats>& stats) {
  left_ = now_();
  if (stats) at_left_ = *stats;
}

void RunClock::EndPhase(const std::string& phase) {
  const absl::Time now = now_();
  const auto known = std::find_if(phases_.begin(), phases_.end(),
                                  [&](const auto& ended) { return ended.first == phase; });
  if (known != phases_.end()) {
    known->second += now - phase_started_;
  } else {
    phases_.emplace_back(phase, now - phase_started_);
  }
  phase_started_ = now;
}

double RunClock::Utilisation(const TuningStats& stats) const {
  const absl::Duration enrolled = stats.enrolled - others_.enrolled;
  if (enrolled <= absl::ZeroDuration()) return 0;
  return absl::FDivDuration(stats.busy - others_.busy, enrolled);
}

}  // namespace tilewright
