#include "costmodel/bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace tilewright {
namespace {

const DeviceRates kRates = {.operations_per_cycle = 32,
                            .cycles_per_second = 1e9,
                            .l1_bytes_per_second = 100e9,
                            .l2_bytes_per_second = 50e9,
                            .l3_bytes_per_second = 20e9,
                            .memory_bytes_per_second = 10e9,
                            .overhead_seconds = 1e-6};

// 3.2e9 / (4 threads * 0.5 balance * 32 * 1e9 * 0.8) = 62.5 ms; memory 1e8 / 1e10 = 10 ms; L3 1e9 /
// (2 * 2e10) = 25 ms.
TEST(Bound, TheSlowestLevelDecides) {
  BoundQuantities q = {.threads = 4,
                       .operations = 3.2e9,
                       .memory_bytes = 1e8,
                       .l3_bytes = 1e9,
                       .issue_efficiency = 0.8,
                       .balance = 0.5};
  Bound bound = ComputeBound(q, kRates);
  EXPECT_NEAR(bound.arithmetic_seconds, 0.0625, 1e-9);
  EXPECT_NEAR(bound.memory_seconds, 0.010, 1e-9);
  EXPECT_NEAR(bound.l3_seconds, 0.025, 1e-9);
  EXPECT_NEAR(bound.seconds, 0.062501, 1e-9);
  EXPECT_STREQ(bound.level, "arithmetic");
  q.memory_bytes = 1e9;
  bound = ComputeBound(q, kRates);
  EXPECT_NEAR(bound.seconds, 0.100001, 1e-9);
  EXPECT_STREQ(bound.level, "memory");
}

TEST(Bound, APlanAsksForAtMostTheTargetsCores) {
  Plan plan;
  plan.threads = 100;
  plan.operations = 5;
  const Target target = *FindTarget("cpu:x86-64-v3");
  EXPECT_EQ(QuantitiesOf(plan, target).threads, 8);
  EXPECT_EQ(QuantitiesOf(plan, target).operations, 5);
}

TEST(Bound, DefaultRatesAreAboveZeroForEveryKnownTarget) {
  for (const Target& target : KnownTargets()) {
    const DeviceRates rates = DefaultRates(target, 4);
    EXPECT_GT(rates.operations_per_cycle, 0);
    EXPECT_GT(rates.l1_bytes_per_second, rates.l2_bytes_per_second);
    EXPECT_GT(rates.l2_bytes_per_second, rates.l3_bytes_per_second);
    EXPECT_GT(rates.memory_bytes_per_second, 0);
  }
}

std::vector<CalibrationRow> RowsOf(const DeviceRates& truth, int count, double noise) {
  std::mt19937_64 random(3);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<CalibrationRow> rows;
  for (int i = 0; i < count; ++i) {
    CalibrationRow row;
    row.quantities = {.threads = 1 + static_cast<double>(i % 2),
                      .operations = 1e6 * std::exp2(10 * uniform()),
                      .memory_bytes = 1e5 * std::exp2(10 * uniform()),
                      .l2_bytes = 1e6 * std::exp2(9 * uniform()),
                      .issue_efficiency = 0.5 + 0.5 * uniform()};
    row.seconds = ComputeBound(row.quantities, truth).seconds * (1 + noise * (uniform() - 0.5));
    rows.push_back(row);
  }
  return rows;
}

TEST(Calibrate, FindsTheRatesThatMadeTheTimes) {
  DeviceRates truth = kRates;
  truth.cycles_per_second *= 1.9;
  truth.memory_bytes_per_second *= 0.4;
  truth.l2_bytes_per_second *= 0.7;
  absl::StatusOr<DeviceRates> found = Calibrate(kRates, RowsOf(truth, 200, 0.05));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_NEAR(found->cycles_per_second / truth.cycles_per_second, 1, 0.08);
  EXPECT_NEAR(found->memory_bytes_per_second / truth.memory_bytes_per_second, 1, 0.08);
  EXPECT_NEAR(found->l2_bytes_per_second / truth.l2_bytes_per_second, 1, 0.08);
  // No row has bytes of L1 or L3: they keep their rates.
  EXPECT_EQ(found->l1_bytes_per_second, kRates.l1_bytes_per_second);
  EXPECT_EQ(found->l3_bytes_per_second, kRates.l3_bytes_per_second);
  EXPECT_EQ(*found, *Calibrate(kRates, RowsOf(truth, 200, 0.05)));
}

TEST(Calibrate, DoesNotLetAFewRowsMoveARateByOrdersOfMagnitude) {
  // Whatever made these kernels a thousand times slower, the bound does not know of it.
  std::vector<CalibrationRow> rows = RowsOf(kRates, 2, 0);
  for (CalibrationRow& row : rows) row.seconds *= 1000;
  const absl::StatusOr<DeviceRates> found = Calibrate(kRates, rows);
  ASSERT_TRUE(found.ok());
  EXPECT_GT(found->memory_bytes_per_second, kRates.memory_bytes_per_second / 100);
  EXPECT_GT(found->cycles_per_second, kRates.cycles_per_second / 100);
}

TEST(Calibrate, RefusesNoRowsAndImpossibleTimes) {
  EXPECT_EQ(Calibrate(kRates, {}).status().code(), absl::StatusCode::kInvalidArgument);
  std::vector<CalibrationRow> rows = RowsOf(kRates, 3, 0);
  rows[1].seconds = 0;
  EXPECT_THAT(std::string(Calibrate(kRates, rows).status().message()),
              testing::HasSubstr("calibration row 1"));
}

}  // namespace
}  // namespace tilewright
