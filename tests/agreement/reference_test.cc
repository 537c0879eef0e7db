// The reference kernel's error bound E, by hand (DESIGN.md 6).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "codegen/writer.h"
#include "schedule/target.h"
#include "tests/codegen/host_loader.h"

namespace tilewright {
namespace {

constexpr double kU = 0x1p-24;  // f32

struct ValueAndBound {
  std::vector<double> values;
  std::vector<double> bounds;
};

// Evaluates a program whose parameters are f32 (in the order of their first use in the text) and
// whose one output has `count` elements.
ValueAndBound Reference(const std::string& expression, const std::string& sizes,
                        std::vector<std::vector<float>> inputs, size_t count,
                        const std::string& types = "f32") {
  Names names;
  auto workload = Workload::Make(expression, {sizes, types}, &names);
  EXPECT_TRUE(workload.ok()) << workload.status();
  auto kernel = WriteReferenceKernel(*workload, KnownTargets()[0], kU, 2);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  auto loaded = LoadedKernel::Load(*kernel);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  ValueAndBound result{std::vector<double>(count, -1), std::vector<double>(count, -1)};
  std::vector<void*> buffers;
  for (int tensor : workload->parameters()) {
    // Tests name their parameters A, B, C.
    buffers.push_back(inputs[names.tensors[tensor][0] - 'A'].data());
  }
  buffers.push_back(result.values.data());
  buffers.push_back(result.bounds.data());
  (*loaded)->Run(buffers, workload->HighestSizes());
  return result;
}

void ExpectBound(const ValueAndBound& result, size_t at, double value, double bound) {
  EXPECT_NEAR(result.values[at], value, 1e-13 * std::abs(value));
  if (std::isinf(bound)) {
    EXPECT_EQ(result.bounds[at], bound);
  } else {
    EXPECT_NEAR(result.bounds[at], bound, 1e-6 * bound);
  }
}

TEST(Reference, GivesCopiesNoError) {
  const auto result = Reference("Y[i] = A[i]", "i=3", {{1, -2, 3}}, 3);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(result.bounds[i], 0);
}

TEST(Reference, AddsOneRoundingForASumOfTwo) {
  ExpectBound(Reference("Y[i] = A[i] + B[i]", "i=1", {{3}, {-1}}, 1), 0, 2, 2 * kU);
}

// (3 * 5) has E = 15 u; times 2: 2 * 15 u + u * 30, and E(a) E(b) = 0.
TEST(Reference, CarriesErrorsThroughProducts) {
  ExpectBound(Reference("Y[i] = A[i] * B[i] * C[i]", "i=1", {{3}, {5}, {2}}, 1), 0, 30, 60 * kU);
}

// a = 1 + 1 = 2 with E = 2u; b = 3 + 1 = 4 with E = 4u. 1/b = 1/4 with E = 4u / (4 * 4) + u/4 =
// u/2. E = |a| E(1/b) + |1/b| E(a) + u |a/b| = 2 u/2 + 2u/4 + u/2 = 2u.
TEST(Reference, TreatsADivisionAsAProductWithTheInverse) {
  ExpectBound(Reference("Y[i] = (A[i] + 1) / (B[i] + 1)", "i=1", {{1}, {3}}, 1), 0, 0.5, 2 * kU);
}

// The divisor is (1 - u)^2 - 1, about -2 u, and three products gave it E of about 3 u.
TEST(Reference, GivesAnInfiniteBoundWhereADivisorMayBeZero) {
  const auto result =
      Reference("Y[i] = B[i] / (A[i] * A[i] * B[i] * B[i] - 1)", "i=1", {{1 - 0x1p-24f}, {1}}, 1);
  EXPECT_EQ(result.bounds[0], std::numeric_limits<double>::infinity());
}

// Terms 1*1, 2*2, 3*3, 4*4: E of each is u times it, and 8 u sqrt(4) times the sum of magnitudes:
// (1 + 16) u 30.
TEST(Reference, BoundsASumByItsTermsAndTheAccumulator) {
  ExpectBound(Reference("Y[] = sum(k: A[k] * B[k])", "k=4", {{1, 2, 3, 4}, {1, 2, 3, 4}}, 1), 0, 30,
              17 * 30 * kU);
  ExpectBound(Reference("Y[] = sum(k: A[k] * B[k])", "k=4", {{1, -2, 3, -4}, {1, 2, 3, 4}}, 1), 0,
              1 - 4 + 9 - 16, 17 * 30 * kU);
}

TEST(Reference, TakesTheLargestErrorOfAMaximum) {
  // E of the products: u * 6 and u * 20.
  ExpectBound(Reference("Y[i] = max(A[i] * 2, B[i] * 4)", "i=1", {{3}, {-5}}, 1), 0, 6, 20 * kU);
}

// exp is monotone: |exp(x + E) - exp(x)| with E = u |x|, plus c_f u exp(x).
TEST(Reference, PropagatesThroughAMonotoneFunctionByItsEnds) {
  const double e = 3 * kU;
  const double bound =
      std::exp(3 + e) - std::exp(3.0) + Info(Function::kExp).error_ulps * kU * std::exp(3.0);
  ExpectBound(Reference("Y[i] = exp(A[i] * 2)", "i=1", {{1.5f}}, 1), 0, std::exp(3.0), bound);
}

TEST(Reference, PropagatesThroughGeluByItsLipschitzConstant) {
  const double value = EvaluateUnary(Function::kGelu, 2.0);
  ExpectBound(Reference("Y[i] = gelu(A[i] * 2)", "i=1", {{1}}, 1), 0, value,
              1.13 * 2 * kU + Info(Function::kGelu).error_ulps * kU * value);
}

// 3 * 1 and 3.0000002 are closer than E = u * 3 apart only in the second element.
TEST(Reference, AddsTheDifferenceWhereAComparisonIsInDoubt) {
  const float near = std::nextafter(3.0f, 4.0f);
  const auto result =
      Reference("Y[i] = where(A[i] * 1.5 < B[i] * 1.5, 10, 20)", "i=2", {{3, 3}, {4, near}}, 2);
  EXPECT_EQ(result.values[0], 10);
  EXPECT_EQ(result.bounds[0], 0);
  EXPECT_EQ(result.values[1], 10);
  EXPECT_EQ(result.bounds[1], 10);
}

TEST(Reference, GivesInfiniteAndNaNValuesNoError) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto result = Reference("Y[i] = A[i] * 2 + B[i]", "i=3", {{inf, inf, 1}, {1, -inf, 1}}, 3);
  EXPECT_EQ(result.values[0], inf);
  EXPECT_EQ(result.bounds[0], 0);
  EXPECT_TRUE(std::isnan(result.values[1]));
  EXPECT_EQ(result.bounds[1], 0);
  EXPECT_GT(result.bounds[2], 0);
}

TEST(Reference, AddsTheTypesRoundoffForACast) {
  const auto result = Reference("Y[i] = cast(bf16, A[i])", "i=1", {{1.7f}}, 1);
  EXPECT_EQ(result.values[0], RoundTo(ElementType::kBF16, 1.7f));
  EXPECT_GE(result.bounds[0], 0x1p-8 * 1.7);
  EXPECT_LE(result.bounds[0], 0x1p-8 * 1.75);
}

TEST(Reference, IsExactForIntegers) {
  Names names;
  auto workload = Workload::Make("Y[m] = sum(k: A[m,k] * A[m,k])", {"m=2 k=3", "i8,Y:i32"}, &names);
  ASSERT_TRUE(workload.ok()) << workload.status();
  auto kernel = WriteReferenceKernel(*workload, KnownTargets()[0], 0, 1);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  auto loaded = LoadedKernel::Load(*kernel);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::vector<int8_t> a = {1, -2, 3, 100, 100, 100};
  std::vector<double> values(2, -1);
  std::vector<double> bounds(2, -1);
  (*loaded)->Run({a.data(), values.data(), bounds.data()}, workload->HighestSizes());
  EXPECT_EQ(values, (std::vector<double>{14, 30000}));
  EXPECT_EQ(bounds, (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace tilewright
