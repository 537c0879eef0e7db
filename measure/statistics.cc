#include "measure/statistics.h"

#include <algorithm>
#include <cmath>

namespace tilewright {

double Median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  if (values.size() % 2 == 1) return values[middle];
  const double upper = values[middle];
  const double lower = *std::max_element(values.begin(), values.begin() + middle);
  return lower + (upper - lower) / 2;
}

std::optional<Interval> MedianInterval(std::vector<double> values, double confidence) {
  // With X ~ B(n, 1/2) samples below the median, [x(r), x(n+1-r)] covers it with probability
  //   P(r <= X <= n - r) = 1 - 2 P(X <= r - 1).
  // The narrowest symmetric interval is the largest r >= 1 whose tail P(X <= r - 1) still fits.
  const int n = static_cast<int>(values.size());
  const double largest_tail = (1 - confidence) / 2;
  int r = 0;
  double tail = 0;
  for (int k = 0; k < n / 2; ++k) {
    // P(X = k) = C(n, k) / 2^n, by logarithms so that it does not overflow.
    tail += std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) -
                     n * std::log(2.0));
    if (tail > largest_tail) break;
    r = k + 1;
  }
  if (r == 0) return std::nullopt;
  std::sort(values.begin(), values.end());
  return Interval{values[r - 1], values[n - r]};
}

std::string_view ToString(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFaster:
      return "faster";
    case Outcome::kSlower:
      return "slower";
    case Outcome::kTie:
      return "tie";
  }
  return "tie";
}

PairedComparison ComparePaired(absl::Span<const double> candidate, absl::Span<const double> rival,
                               double least_ratio) {
  std::vector<double> ratios;
  const size_t rounds = std::min(candidate.size(), rival.size());
  for (size_t i = 0; i < rounds; ++i) {
    if (std::isnan(candidate[i]) || std::isnan(rival[i])) continue;
    ratios.push_back(rival[i] / candidate[i]);
  }
  PairedComparison comparison;
  comparison.rounds = static_cast<int>(ratios.size());
  if (ratios.empty()) return comparison;
  comparison.ratio = Median(ratios);
  comparison.interval = MedianInterval(std::move(ratios));
  if (!comparison.interval) return comparison;
  if (comparison.interval->low > 1 && comparison.ratio >= least_ratio) {
    comparison.outcome = Outcome::kFaster;
  } else if (comparison.interval->high < 1 && comparison.ratio <= 1 / least_ratio) {
    comparison.outcome = Outcome::kSlower;
  }
  return comparison;
}

}  // namespace tilewright
