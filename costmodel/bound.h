// The calibrated bound: the seconds that a plan's quantities would take if each level of the
// machine ran at the best rate seen on the device, and the slowest level decided.
//
//   seconds = overhead + max(operations / arithmetic rate, bytes of each level / its bandwidth)
//
// It ranks before there is data, is the first feature of a learned model, and a column of reports.
// Unlike the physical limit (schedule/target.h) it may be beaten. (The roofline model: Williams,
// Waterman, Patterson, "Roofline", 2009; with one roof per cache level: Ilic, Pratas, Sousa,
// "Cache-aware Roofline Model", 2014.)
//
// Pure functions of their arguments.
#ifndef TILEWRIGHT_COSTMODEL_BOUND_H_
#define TILEWRIGHT_COSTMODEL_BOUND_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/target.h"
#include "schedule/variant.h"

namespace tilewright {

// What one device sustains. Rates of one core count for each thread that runs, those of the device
// once.
struct DeviceRates {
  double operations_per_cycle = 0;     // of one core; from the target, see DefaultRates
  double cycles_per_second = 0;        // of one core in sustained arithmetic
  double l1_bytes_per_second = 0;      // of one core, between L1 and registers
  double l2_bytes_per_second = 0;      // of one core, between L2 and L1
  double l3_bytes_per_second = 0;      // of one core, between L3 and L2
  double memory_bytes_per_second = 0;  // of the device
  double overhead_seconds = 0;         // of one call: launching threads, the barrier at the end

  std::string ToString() const;
  bool operator==(const DeviceRates&) const = default;
};

// What a target's facts and typical cores suggest before anything is measured. `operand_bytes` is
// the size of the elements that the inner loop multiplies (4 where half types are widened).
DeviceRates DefaultRates(const Target& target, int operand_bytes);
// The same with `operand_bytes` of a workload: the accumulator type of its widest parameter; on a
// GPU, whose tensor cores multiply what is stored, the smallest parameter.
DeviceRates DefaultRates(const Target& target, const Workload& workload);

// What the bound reads of a plan, beside nothing else.
struct BoundQuantities {
  double threads = 1;  // at most the target's cores
  double operations = 0;
  double memory_bytes = 0;
  double l3_bytes = 0;
  double l2_bytes = 0;
  double l1_bytes = 0;
  double issue_efficiency = 1;
  double balance = 1;
};
BoundQuantities QuantitiesOf(const Plan& plan, const Target& target);

// The seconds of each level and of the whole, for reports and `explain`.
struct Bound {
  double arithmetic_seconds = 0;
  double l1_seconds = 0;
  double l2_seconds = 0;
  double l3_seconds = 0;
  double memory_seconds = 0;
  double overhead_seconds = 0;
  double seconds = 0;      // overhead + the largest of the levels
  const char* level = "";  // which one that is: "arithmetic", "L1", "L2", "L3", "memory"
};
Bound ComputeBound(const BoundQuantities& quantities, const DeviceRates& rates);

// A schedule that was measured on the device.
struct CalibrationRow {
  BoundQuantities quantities;
  double seconds = 0;  // > 0
};
// Scales the rates of `start` so that the bound comes closest to the rows (the mean |log2(bound /
// seconds)|, with a pull towards `start`, so that a level that no row depends on keeps its rate).
// Deterministic. InvalidArgument: no rows, or a time that is not positive and finite.
absl::StatusOr<DeviceRates> Calibrate(const DeviceRates& start,
                                      absl::Span<const CalibrationRow> rows);

}  // namespace tilewright

#endif  // TILEWRIGHT_COSTMODEL_BOUND_H_
