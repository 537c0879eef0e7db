#include "search/run_pace.h"

#include <algorithm>
#include <vector>

namespace tilewright {
namespace {

// Trials that the pace is taken from: two batches, so that it follows the machine.
constexpr size_t kRemembered = 33;

}  // namespace

void StepTimes::RaiseTo(const StepTimes& other) {
  opening = std::max(opening, other.opening);
  trial = std::max(trial, other.trial);
  burst = std::max(burst, other.burst);
}

void RunPace::BeginTurn(absl::Time now) {
  before_ = steps();
  trials_.clear();
  turn_began_ = now;
}

void RunPace::AddTrial(absl::Time now, int64_t measured_unix_ns) {
  if (trials_.empty()) opening_ = now - turn_began_;
  trials_.push_back({now, measured_unix_ns});
  if (trials_.size() > kRemembered) trials_.pop_front();
}

void RunPace::AddRounds(int64_t bursts, absl::Duration idle, absl::Duration took) {
  if (bursts <= 0) return;
  burst_ = std::max(took / bursts - idle, absl::ZeroDuration());
}

StepTimes RunPace::steps() const {
  StepTimes steps = before_;
  if (!trials_.empty()) steps.opening = opening_;
  if (trials_.size() > 1) {
    // Results may be heard of in groups: what counts is how many came after the first one.
    const absl::Time first = trials_.front().committed;
    const int64_t later = std::count_if(trials_.begin(), trials_.end(), [&](const Trial& trial) {
      return trial.committed > first;
    });
    // All at once: the opening is in their time too.
    steps.trial = later > 0 ? (trials_.back().committed - first) / later
                            : (first - turn_began_) / static_cast<int64_t>(trials_.size());
    std::vector<int64_t> between;
    for (size_t i = 1; i < trials_.size(); ++i)
      between.push_back(trials_[i].measured_unix_ns - trials_[i - 1].measured_unix_ns);
    const auto middle = between.begin() + static_cast<std::ptrdiff_t>(between.size() / 2);
    std::nth_element(between.begin(), middle, between.end());
    steps.burst = std::max(absl::Nanoseconds(*middle), absl::ZeroDuration());
  }
  if (steps.burst <= absl::ZeroDuration()) steps.burst = steps.trial;
  if (burst_) steps.burst = *burst_;
  return steps;
}

}  // namespace tilewright
