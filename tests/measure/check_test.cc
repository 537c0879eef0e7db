#include "measure/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace tilewright {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

LaunchPool& Pool() {
  static LaunchPool* pool = LaunchPool::Make({0, 1}, [] {}).release();
  return *pool;
}

OutputLayout Dense(ElementType type, int64_t rows, int64_t columns) {
  return {"Y", type, {rows, columns}, {columns, 1}, rows * columns};
}

TEST(ElementPasses, AllowsTwiceTheBoundAndTheRoundingOfTheOutput) {
  // f32: u = 2^-24. At 1 with E = 1e-3: allowed 2e-3 + 6e-8.
  EXPECT_TRUE(ElementPasses(ElementType::kF32, 1.001999, {1, 1e-3}));
  EXPECT_FALSE(ElementPasses(ElementType::kF32, 1.0021, {1, 1e-3}));
  EXPECT_TRUE(ElementPasses(ElementType::kF32, 1, {1 + 0x1p-25, 0}));
  EXPECT_FALSE(ElementPasses(ElementType::kF32, 1 + 0x1p-22, {1, 0}));
  // The smallest subnormal beside 0.
  EXPECT_TRUE(ElementPasses(ElementType::kF32, 0x1p-149, {0, 0}));
  EXPECT_FALSE(ElementPasses(ElementType::kF32, 0x1p-147, {0, 0}));
}

TEST(ElementPasses, AllowsBothNeighboursOfATieThatAnErrorMayMove) {
  // bf16 at 1: steps of 2^-7; the reference lies just below the middle of the first.
  const double middle = 1 + 0x1p-8;
  EXPECT_TRUE(ElementPasses(ElementType::kBF16, 1 + 0x1p-7, {middle - 1e-9, 1e-8}));
  EXPECT_TRUE(ElementPasses(ElementType::kBF16, 1, {middle - 1e-9, 1e-8}));
  EXPECT_FALSE(ElementPasses(ElementType::kBF16, 1 + 0x1p-7, {middle - 1e-9, 0}));
  EXPECT_FALSE(ElementPasses(ElementType::kBF16, 1 + 0x1p-7, {1 + 0x1p-10, 1e-8}));
}

TEST(ElementPasses, NanEqualsNanAndAnInfinityTheSameInfinity) {
  for (ElementType type : {ElementType::kF64, ElementType::kF32, ElementType::kF16,
                           ElementType::kBF16, ElementType::kE5M2}) {
    EXPECT_TRUE(ElementPasses(type, kNan, {kNan, 0}));
    EXPECT_FALSE(ElementPasses(type, 0, {kNan, 0}));
    EXPECT_FALSE(ElementPasses(type, kNan, {0, 1}));
    EXPECT_TRUE(ElementPasses(type, kInf, {kInf, 0}));
    EXPECT_FALSE(ElementPasses(type, -kInf, {kInf, 0}));
    EXPECT_FALSE(ElementPasses(type, 1, {kInf, 0}));
    EXPECT_FALSE(ElementPasses(type, kInf, {1, 0.1}));
  }
}

TEST(ElementPasses, NearTheOverflowThresholdEitherIsRight) {
  // f16 overflows at 65520.
  EXPECT_TRUE(ElementPasses(ElementType::kF16, kInf, {65515, 4}));
  EXPECT_TRUE(ElementPasses(ElementType::kF16, 65504, {65515, 4}));
  EXPECT_TRUE(ElementPasses(ElementType::kF16, 65504, {65525, 4}));
  EXPECT_FALSE(ElementPasses(ElementType::kF16, -kInf, {65515, 4}));
  EXPECT_FALSE(ElementPasses(ElementType::kF16, kNan, {65515, 4}));
  EXPECT_FALSE(ElementPasses(ElementType::kF16, kInf, {60000, 4}));
  EXPECT_TRUE(ElementPasses(ElementType::kF16, kInf, {1e6, 4}));
  EXPECT_FALSE(ElementPasses(ElementType::kF16, 65504, {1e6, 4}));
  // e4m3 has no infinity: it overflows to NaN, above 464.
  EXPECT_TRUE(ElementPasses(ElementType::kE4M3, kNan, {460, 8}));
  EXPECT_TRUE(ElementPasses(ElementType::kE4M3, 448, {460, 8}));
  EXPECT_TRUE(ElementPasses(ElementType::kE4M3, kNan, {1000, 1}));
}

TEST(ElementPasses, IntegersAreExactUnlessTheReferenceIsNot) {
  EXPECT_TRUE(ElementPasses(ElementType::kI32, 7, {7, 0}));
  EXPECT_FALSE(ElementPasses(ElementType::kI32, 8, {7, 0}));
  EXPECT_TRUE(ElementPasses(ElementType::kI8, 8, {7.4, 0}));
  EXPECT_FALSE(ElementPasses(ElementType::kI8, 9, {7.4, 0}));
  EXPECT_TRUE(ElementPasses(ElementType::kI8, 6, {7, 1e-6}));
  EXPECT_TRUE(ElementPasses(ElementType::kI8, 127, {300, 0}));
}

// The fast path must say what the rule says, for every type, ordinary and special elements alike.
TEST(ExpectedOutput, AgreesWithTheRuleOfOneElement) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const ElementTypeInfo& info : AllElementTypes()) {
    constexpr int64_t kRows = 40, kColumns = 111;
    std::vector<double> reference, bound;
    std::vector<char> data(kRows * kColumns * info.bytes);
    int64_t wrong = 0, first = -1;
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      double value = normal(random) * (info.is_float ? 1 : 20);
      if (!info.is_float && i % 2 == 0) value = std::rint(value);
      double e = i % 3 == 0 ? 0 : std::fabs(value) * 1e-2;
      if (info.is_float && i % 97 == 0) value = kNan, e = 0;
      if (info.is_float && i % 101 == 0) value = i % 2 ? kInf : -kInf, e = 0;
      if (info.is_float && info.type != ElementType::kF64 && i % 103 == 0)
        value = info.max_finite * (1 + info.unit_roundoff * (i % 3)), e = value * 1e-3;
      reference.push_back(value);
      bound.push_back(e);
      double out = value + normal(random) * e;
      if (i % 50 == 0) out = value * 1.5 + 3;
      if (i % 211 == 0) out = kNan;
      if (i % 223 == 0) out = kInf;
      StoreElement(info.type, out, data.data() + i * info.bytes);
      const double stored = LoadElement(info.type, data.data() + i * info.bytes);
      if (!ElementPasses(info.type, stored, {value, e})) {
        ++wrong;
        if (first < 0) first = i;
      }
    }
    const auto expected = ExpectedOutput::Make(Dense(info.type, kRows, kColumns), reference, bound);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const CheckResult result = (*expected)->Check(data.data(), Pool());
    // The fast path keeps allowances to 24 bits, so an element exactly at its allowance may fall
    // either way.
    EXPECT_NEAR(result.wrong, wrong, 2) << info.name;
    EXPECT_EQ(result.first_wrong, first) << info.name;
    EXPECT_EQ(result.elements, kRows * kColumns);
    EXPECT_GT(wrong, 50) << info.name;
    EXPECT_LE(result.worst_ratio, 1);
    EXPECT_FALSE(result.text.empty());
  }
}

TEST(ExpectedOutput, SaysWhereAndWhatIsWrong) {
  const std::vector<double> reference(12, 2.0);
  const std::vector<double> bound(12, 0.125);
  const auto expected = ExpectedOutput::Make(Dense(ElementType::kF32, 3, 4), reference, bound);
  ASSERT_TRUE(expected.ok());
  std::vector<float> out(12, 2.125f);
  CheckResult result = (*expected)->Check(out.data(), Pool());
  EXPECT_EQ(result.wrong, 0);
  EXPECT_NEAR(result.worst_ratio, 0.5, 1e-3);
  out[6] = 3;
  result = (*expected)->Check(out.data(), Pool());
  EXPECT_EQ(result.text, "Y[1,2]: got 3, expected 2, allowed +-0.25; 1 of 12 elements are wrong");
}

TEST(ExpectedOutput, RefusesAnInfiniteBound) {
  const std::vector<double> reference(4, 1.0);
  for (double bad : {kInf, kNan}) {
    const std::vector<double> bound = {0, 0, bad, 0};
    const absl::Status status =
        ExpectedOutput::Make(Dense(ElementType::kF32, 2, 2), reference, bound).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("Y[1,0]"), absl::string_view::npos) << status;
  }
}

TEST(ExpectedOutput, FindsElementsThroughStridesAndLeavesGapsToFindGapDamage) {
  const OutputLayout layout = {"Y", ElementType::kF16, {3, 5}, {8, 1}, 2 * 8 + 5};
  const std::vector<double> reference(15, 1.0);
  const std::vector<double> bound(15, 0.0);
  const auto expected = ExpectedOutput::Make(layout, reference, bound);
  ASSERT_TRUE(expected.ok());
  std::vector<uint16_t> data(21, 0xffff);
  for (int i = 0; i < 15; ++i) StoreElement(ElementType::kF16, 1.0, &data[i / 5 * 8 + i % 5]);
  EXPECT_EQ((*expected)->Check(data.data(), Pool()).wrong, 0);
  EXPECT_EQ(FindGapDamage(layout, data.data(), 0xff), -1);
  data[6] = 0;
  EXPECT_EQ(FindGapDamage(layout, data.data(), 0xff), 12);
  data[8] = 0;
  const CheckResult result = (*expected)->Check(data.data(), Pool());
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.first_wrong, 5);
}

}  // namespace
}  // namespace tilewright
