#include "costmodel/bound.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewright {
namespace {

// The rates that calibration scales. Operations per cycle is a fact of the target and stays.
constexpr double DeviceRates::*kScaled[] = {
    &DeviceRates::cycles_per_second,       &DeviceRates::l1_bytes_per_second,
    &DeviceRates::l2_bytes_per_second,     &DeviceRates::l3_bytes_per_second,
    &DeviceRates::memory_bytes_per_second, &DeviceRates::overhead_seconds,
};
constexpr int kScaledCount = static_cast<int>(std::size(kScaled));

double Loss(const DeviceRates& start, const double (&log2_scale)[kScaledCount],
            absl::Span<const CalibrationRow> rows) {
  // A fifth of a row: a hundred rows decide over it, and a few cannot move a rate by orders of
  // magnitude for what the bound does not know of them.
  const double pull = 0.2 / static_cast<double>(rows.size());
  DeviceRates rates = start;
  double loss = 0;
  for (int i = 0; i < kScaledCount; ++i) {
    rates.*kScaled[i] *= std::exp2(log2_scale[i]);
    loss += pull * log2_scale[i] * log2_scale[i];
  }
  double distance = 0;
  for (const CalibrationRow& row : rows) {
    distance += std::abs(std::log2(ComputeBound(row.quantities, rates).seconds / row.seconds));
  }
  return loss + distance / static_cast<double>(rows.size());
}

}  // namespace

std::string DeviceRates::ToString() const {
  return absl::StrFormat(
      "operations_per_cycle=%g cycles_per_second=%.4g l1=%.4g l2=%.4g l3=%.4g memory=%.4g B/s "
      "overhead=%.3g s",
      operations_per_cycle, cycles_per_second, l1_bytes_per_second, l2_bytes_per_second,
      l3_bytes_per_second, memory_bytes_per_second, overhead_seconds);
}

namespace {

// 128 B per cycle of an SM from L1 or shared memory; 46 from L2 (6154 B per cycle of the chip, the
// figure of DeepGEMM's model for Hopper); nine tenths of the memory's theoretical rate (an H200
// copies at 4.3 of 4.8 TB/s). A GPU has no third level, so no plan moves bytes there.
DeviceRates GpuRates(const Target& target, int operand_bytes) {
  DeviceRates rates;
  rates.operations_per_cycle = target.PeakOperationsPerCycle(operand_bytes);
  rates.cycles_per_second = 1e6 * target.clock_mhz;
  rates.l1_bytes_per_second = 128 * rates.cycles_per_second;
  rates.l2_bytes_per_second = 46 * rates.cycles_per_second;
  rates.l3_bytes_per_second = rates.l2_bytes_per_second / 2;
  rates.memory_bytes_per_second = 0.9 * static_cast<double>(target.memory_bytes_per_second);
  rates.overhead_seconds = 2e-6;
  return rates;
}

}  // namespace

DeviceRates DefaultRates(const Target& target, int operand_bytes) {
  if (target.is_gpu()) return GpuRates(target, operand_bytes);
  // A server core of 2020 to 2025: 3 GHz in sustained vector code, two loads of a vector per cycle
  // from L1, 32 B per cycle from L2, 12 B per cycle from L3, a share of 12 GB/s of memory up to
  // what eight channels of DDR4-3200 give. Calibration moves them.
  constexpr double kCyclesPerSecond = 3e9;
  const double vector_bytes = std::max(target.vector_bits / 8, 8);
  DeviceRates rates;
  rates.operations_per_cycle = target.OperationsPerCycle(operand_bytes);
  rates.cycles_per_second = kCyclesPerSecond;
  rates.l1_bytes_per_second = 2 * vector_bytes * kCyclesPerSecond;
  rates.l2_bytes_per_second = 32 * kCyclesPerSecond;
  rates.l3_bytes_per_second = 12 * kCyclesPerSecond;
  rates.memory_bytes_per_second = std::min(12e9 * target.cores, 200e9);
  rates.overhead_seconds = 2e-6;
  return rates;
}

DeviceRates DefaultRates(const Target& target, const Workload& workload) {
  if (target.is_gpu()) return GpuRates(target, workload.SmallestParameterBytes());
  int bytes = 1;
  for (int tensor : workload.parameters()) {
    bytes = std::max(bytes, Info(Info(workload.layout(tensor).type).accumulator).bytes);
  }
  return DefaultRates(target, bytes);
}

BoundQuantities QuantitiesOf(const Plan& plan, const Target& target) {
  return {.threads = static_cast<double>(std::clamp(plan.threads, 1, target.cores)),
          .operations = plan.operations,
          .memory_bytes = plan.memory_bytes,
          .l3_bytes = plan.l3_bytes,
          .l2_bytes = plan.l2_bytes,
          .l1_bytes = plan.l1_bytes,
          .issue_efficiency = plan.issue_efficiency,
          .balance = plan.balance};
}

Bound ComputeBound(const BoundQuantities& q, const DeviceRates& rates) {
  // Threads of an unbalanced launch wait for the busiest one.
  const double cores = q.threads * q.balance;
  Bound bound;
  bound.arithmetic_seconds = q.operations / (cores * rates.operations_per_cycle *
                                             rates.cycles_per_second * q.issue_efficiency);
  bound.l1_seconds = q.l1_bytes / (cores * rates.l1_bytes_per_second);
  bound.l2_seconds = q.l2_bytes / (cores * rates.l2_bytes_per_second);
  bound.l3_seconds = q.l3_bytes / (cores * rates.l3_bytes_per_second);
  bound.memory_seconds = q.memory_bytes / rates.memory_bytes_per_second;
  bound.overhead_seconds = rates.overhead_seconds;
  const std::pair<double, const char*> levels[] = {{bound.arithmetic_seconds, "arithmetic"},
                                                   {bound.l1_seconds, "L1"},
                                                   {bound.l2_seconds, "L2"},
                                                   {bound.l3_seconds, "L3"},
                                                   {bound.memory_seconds, "memory"}};
  double slowest = -1;
  for (const auto& [seconds, level] : levels) {
    if (seconds <= slowest) continue;
    slowest = seconds;
    bound.level = level;
  }
  bound.seconds = bound.overhead_seconds + slowest;
  return bound;
}

absl::StatusOr<DeviceRates> Calibrate(const DeviceRates& start,
                                      absl::Span<const CalibrationRow> rows) {
  if (rows.empty())
    return absl::InvalidArgumentError("calibration needs at least one measured row");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!std::isfinite(rows[i].seconds) || rows[i].seconds <= 0) {
      return absl::InvalidArgumentError(absl::StrCat("calibration row ", i, ": ", rows[i].seconds,
                                                     " s is not a positive, finite time"));
    }
    const double seconds = ComputeBound(rows[i].quantities, start).seconds;
    if (!std::isfinite(seconds) || seconds <= 0) {
      return absl::InvalidArgumentError(absl::StrCat("calibration row ", i, ": its bound of ",
                                                     seconds, " s is not positive and finite"));
    }
  }
  // Coordinate descent in the logarithms, in ever smaller steps.
  double scale[kScaledCount] = {};
  double best = Loss(start, scale, rows);
  for (double step : {1.0, 0.5, 0.25, 0.1, 0.03}) {
    bool improved = true;
    for (int sweep = 0; improved && sweep < 20; ++sweep) {
      improved = false;
      for (double& x : scale) {
        for (double direction : {step, -step}) {
          const double before = x;
          x += direction;
          const double loss = Loss(start, scale, rows);
          if (loss < best) {
            best = loss;
            improved = true;
            break;
          }
          x = before;
        }
      }
    }
  }
  DeviceRates rates = start;
  for (int i = 0; i < kScaledCount; ++i) rates.*kScaled[i] *= std::exp2(scale[i]);
  return rates;
}

}  // namespace tilewright
