#include "search/expected_improvement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tilewright {
namespace {

// The process knows at most so many rows, the best and the newest: its cost is their cube.
constexpr size_t kBestRows = 192, kNewestRows = 128;
// Costs are cut off at this quantile of those seen.
constexpr double kCutOff = 0.9;
// A failure is as much slower than the cut-off, in terms of its distance from the best.
constexpr double kFailureExcess = 0.25;
// So many of a pool, the best by their mean, have their deviation computed: few enough that it
// costs so much, each the square of the known rows, between these bounds. With few rows the means
// tell little and the deviations are cheap.
constexpr size_t kConsideredCost = 5000000, kLeastConsidered = 128, kMostConsidered = 512;
// So many of those, the best by the acquisition, are considered jointly.
constexpr size_t kJointly = 64;
// The least improvement that counts: 1%.
constexpr double kLeastImprovement = 0.01;

// log of E[max(0, target - X)], X normal. Far below it the expectation underflows: there its
// asymptote serves.
double LogExpectedImprovement(double mean, double deviation, double target) {
  const double z = (target - mean) / deviation;
  if (z < -6) {
    return -0.5 * z * z - std::log(2.5066282746310002) - 2 * std::log(-z) + std::log(deviation);
  }
  const double density = 0.3989422804014327 * std::exp(-0.5 * z * z);
  const double below = 0.5 * std::erfc(-z * 0.7071067811865476);
  return std::log(std::max(deviation * (z * below + density), 1e-300));
}

std::vector<int> BestFirst(absl::Span<const double> scores, size_t most) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  most = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + most, order.end(), [&](int a, int b) {
    return scores[a] != scores[b] ? scores[a] < scores[b] : a < b;
  });
  order.resize(most);
  return order;
}

}  // namespace

ExpectedImprovement::ExpectedImprovement(const Space* space, uint64_t seed)
    : encoding_(space, seed) {}

void ExpectedImprovement::Observe(const Observation& observation) {
  observations_.push_back(observation);
  if (!observation.ok) return;
  const double cost = std::log(observation.cost);
  best_ = successes_ == 0 ? cost : std::min(best_, cost);
  ++successes_;
}

ExpectedImprovement::Target ExpectedImprovement::MakeTarget() const {
  std::vector<double> costs;
  for (const Observation& observation : observations_) {
    if (observation.ok) costs.push_back(std::log(observation.cost));
  }
  const size_t place = static_cast<size_t>(kCutOff * (costs.size() - 1));
  std::nth_element(costs.begin(), costs.begin() + place, costs.end());
  const double cut_off = costs[place];
  const double failure = cut_off + kFailureExcess * (cut_off - best_);
  std::vector<double> values;
  for (const Observation& observation : observations_) {
    values.push_back(observation.ok ? std::min(std::log(observation.cost), cut_off) : failure);
  }
  std::vector<bool> used(values.size(), true);
  if (values.size() > kBestRows + kNewestRows) {
    used.assign(values.size(), false);
    for (int i : BestFirst(values, kBestRows)) used[i] = true;
    size_t newest = 0;
    for (size_t i = values.size(); i-- > 0 && newest < kNewestRows;) {
      if (!used[i]) used[i] = true, ++newest;
    }
  }
  Target target;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!used[i]) continue;
    target.indices.push_back(observations_[i].index);
    target.values.push_back(values[i]);
  }
  return target;
}

bool ExpectedImprovement::Fit(absl::Span<const absl::uint128> pending) {
  Target target = MakeTarget();
  FitOptions options;
  const size_t n = observations_.size();
  if (n >= tuned_at_ + std::max<size_t>(2, tuned_at_ / 4)) {
    options.steps = tuned_at_ == 0 ? 30 : 10;
    tuned_at_ = n;
  }
  if (!process_.Fit(encoding_.Rows(target.indices), target.values, options).ok()) return false;
  if (pending.empty()) return true;
  const std::vector<double> believed = process_.PredictMean(encoding_.Rows(pending));
  target.indices.insert(target.indices.end(), pending.begin(), pending.end());
  target.values.insert(target.values.end(), believed.begin(), believed.end());
  return process_.Fit(encoding_.Rows(target.indices), target.values, {}).ok();
}

void ExpectedImprovement::Learn(absl::Span<const absl::uint128> pending) {
  fitted_ = successes_ >= 2 && Fit(pending);
}

std::vector<int> ExpectedImprovement::Choose(absl::Span<const absl::uint128> pool, int count) {
  if (!fitted_ || pool.empty()) return {};
  const auto rows = [&](const std::vector<int>& places) {
    std::vector<absl::uint128> indices;
    for (int place : places) indices.push_back(pool[place]);
    return encoding_.Rows(indices);
  };
  const size_t known = std::min(observations_.size(), kBestRows + kNewestRows);
  const std::vector<int> considered =
      BestFirst(process_.PredictMean(encoding_.Rows(pool)),
                std::clamp(kConsideredCost / (known * known), kLeastConsidered, kMostConsidered));
  const double target = best_ - kLeastImprovement;
  const Posterior posterior = process_.Predict(rows(considered));
  std::vector<double> scores;
  for (size_t i = 0; i < considered.size(); ++i) {
    scores.push_back(-LogExpectedImprovement(posterior.mean[i], posterior.deviation[i], target));
  }
  std::vector<int> joint_places;
  for (int i : BestFirst(scores, std::max<size_t>(kJointly, 2 * count)))
    joint_places.push_back(considered[i]);
  GaussianProcess::Joint joint = process_.PredictJoint(rows(joint_places));
  const size_t n = joint_places.size();
  std::vector<bool> taken(n, false);
  std::vector<int> chosen;
  while (chosen.size() < std::min<size_t>(count, n)) {
    size_t best = n;
    double best_score = 0;
    for (size_t i = 0; i < n; ++i) {
      if (taken[i]) continue;
      const double deviation = std::sqrt(std::max(1e-12, joint.covariance[i * n + i]));
      const double score = LogExpectedImprovement(joint.mean[i], deviation, target);
      if (best == n || score > best_score) best = i, best_score = score;
    }
    taken[best] = true;
    chosen.push_back(joint_places[best]);
    // Conditioned on `best` having its mean, means stay and covariances shrink.
    const std::vector<double> column(joint.covariance.begin() + best * n,
                                     joint.covariance.begin() + (best + 1) * n);
    const double variance = column[best] + joint.noise;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j)
        joint.covariance[i * n + j] -= column[i] * column[j] / variance;
    }
  }
  return chosen;
}

}  // namespace tilewright
