// Statistics of timings: medians, their order-statistic intervals, and the verdict of paired rounds
// (DESIGN.md 6).
#ifndef TILEWRIGHT_MEASURE_STATISTICS_H_
#define TILEWRIGHT_MEASURE_STATISTICS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace tilewright {

// Precondition: not empty, no NaN. The mean of the middle two for an even count.
double Median(std::vector<double> values);

struct Interval {
  double low;
  double high;
};
// The narrowest symmetric order-statistic interval [x(r), x(n+1-r)] that covers the median with
// probability >= `confidence` under the binomial law B(n, 1/2) (David & Nagaraja, Order Statistics,
// section 7.1). Absent if n is too small: 6 samples are the fewest that reach 95%.
std::optional<Interval> MedianInterval(std::vector<double> values, double confidence = 0.95);

enum class Outcome { kFaster, kSlower, kTie };
std::string_view ToString(Outcome outcome);

struct PairedComparison {
  Outcome outcome = Outcome::kTie;
  double ratio =
      1;  // median of rival / candidate, round by round: above 1, the candidate is faster
  std::optional<Interval> interval;  // 95%; absent: too few rounds, which makes a tie
  int rounds = 0;                    // rounds in which both have a sample
};
// Faster: the interval lies wholly above 1 and the median ratio is at least `least_ratio`; slower
// mirrored; else a tie. `candidate[i]` and `rival[i]` are seconds of round i; NaN: dropped.
PairedComparison ComparePaired(absl::Span<const double> candidate, absl::Span<const double> rival,
                               double least_ratio = 1.01);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_STATISTICS_H_
