#include "schedule/element_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tilewright {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr ElementType kSmall[] = {ElementType::kF16, ElementType::kBF16, ElementType::kE4M3,
                                  ElementType::kE5M2};

double Decode(ElementType type, uint32_t code) {
  unsigned char bytes[4];
  std::memcpy(bytes, &code, 4);  // little endian, as every target is
  return LoadElement(type, bytes);
}

uint32_t Codes(ElementType type) { return 1u << (8 * Info(type).bytes); }

TEST(ElementType, NamesParseBackAndUnknownOnesAreListed) {
  for (const ElementTypeInfo& info : AllElementTypes()) {
    EXPECT_EQ(*ParseElementType(info.name), info.type);
    EXPECT_EQ(Info(info.type).name, info.name);
  }
  const auto unknown = ParseElementType("fp32");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().message(),
            "unknown element type 'fp32'; types are f64, f32, f16, bf16, e4m3, e5m2, i8, i32");
}

TEST(LoadElement, ReadsKnownCodes) {
  EXPECT_EQ(Decode(ElementType::kF16, 0x3C00), 1.0);
  EXPECT_EQ(Decode(ElementType::kF16, 0xFBFF), -65504.0);
  EXPECT_EQ(Decode(ElementType::kF16, 0x0001), 0x1p-24);
  EXPECT_EQ(Decode(ElementType::kBF16, 0x3F80), 1.0);
  EXPECT_EQ(Decode(ElementType::kE4M3, 0x7E), 448.0);
  EXPECT_TRUE(std::isnan(Decode(ElementType::kE4M3, 0x7F)));
  EXPECT_EQ(Decode(ElementType::kE4M3, 0x78), 256.0);
  EXPECT_EQ(Decode(ElementType::kE4M3, 0x01), 0x1p-9);
  EXPECT_EQ(Decode(ElementType::kE5M2, 0x7B), 57344.0);
  EXPECT_EQ(Decode(ElementType::kE5M2, 0x7C), kInfinity);
  EXPECT_EQ(Decode(ElementType::kI8, 0x80), -128.0);
}

TEST(StoreElement, GivesBackEveryCode) {
  for (ElementType type : kSmall) {
    for (uint32_t code = 0; code < Codes(type); ++code) {
      const double value = Decode(type, code);
      unsigned char bytes[4] = {};
      StoreElement(type, value, bytes);
      uint32_t stored;
      std::memcpy(&stored, bytes, 4);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(Decode(type, stored)));
      } else {
        ASSERT_EQ(stored, code) << Info(type).name << " " << value;
      }
    }
  }
}

// Against the sorted list of all finite values: the nearest, the one with the even code where two
// are as near.
TEST(RoundTo, TakesTheNearestOfAllEncodings) {
  for (ElementType type : kSmall) {
    const ElementTypeInfo& info = Info(type);
    std::vector<double> finite;  // non-negative ones, ascending, by code
    for (uint32_t code = 0; code < Codes(type) / 2; ++code) {
      const double value = Decode(type, code);
      if (std::isfinite(value)) finite.push_back(value);
    }
    ASSERT_EQ(finite.back(), info.max_finite);
    ASSERT_EQ(finite[1], info.smallest_subnormal);
    for (size_t i = 0; i + 1 < finite.size(); ++i) {
      const double low = finite[i];
      const double high = finite[i + 1];
      ASSERT_LT(low, high);
      const double middle = (low + high) / 2;  // exact: both have few bits
      const double even = i % 2 == 0 ? low : high;
      for (double sign : {1.0, -1.0}) {
        ASSERT_EQ(RoundTo(type, sign * low), sign * low);
        ASSERT_EQ(RoundTo(type, sign * middle), sign * even) << info.name << " " << middle;
        ASSERT_EQ(RoundTo(type, sign * std::nextafter(middle, 0)), sign * low);
        ASSERT_EQ(RoundTo(type, sign * std::nextafter(middle, kInfinity)), sign * high);
      }
    }
    // Half a step above the largest value, an even code stays and anything more overflows.
    const double step = finite.back() - finite[finite.size() - 2];
    const double edge = finite.back() + step / 2;
    const double beyond = RoundTo(type, std::nextafter(edge, kInfinity));
    EXPECT_TRUE(info.has_infinity ? beyond == kInfinity : std::isnan(beyond));
    EXPECT_EQ(RoundTo(type, std::nextafter(edge, 0)), info.max_finite);
    EXPECT_TRUE(std::isnan(RoundTo(type, std::nan(""))));
    EXPECT_TRUE(info.has_infinity ? RoundTo(type, -kInfinity) == -kInfinity
                                  : std::isnan(RoundTo(type, -kInfinity)));
  }
}

TEST(RoundTo, AgreesWithTheHardwareInF32) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t bits = random();
    double x;
    std::memcpy(&x, &bits, 8);
    if (std::isnan(x)) continue;
    // Half of them within the range of f32.
    int exponent = 0;
    if (i % 2) x = std::ldexp(std::frexp(x, &exponent), static_cast<int>(bits % 300) - 160);
    ASSERT_EQ(RoundTo(ElementType::kF32, x), static_cast<double>(static_cast<float>(x))) << x;
  }
  EXPECT_EQ(RoundTo(ElementType::kF64, 0.1), 0.1);
}

TEST(RoundTo, ClampsIntegersAndMakesNaNZero) {
  EXPECT_EQ(RoundTo(ElementType::kI8, 2.5), 2);
  EXPECT_EQ(RoundTo(ElementType::kI8, 3.5), 4);
  EXPECT_EQ(RoundTo(ElementType::kI8, 1000), 127);
  EXPECT_EQ(RoundTo(ElementType::kI8, -kInfinity), -128);
  EXPECT_EQ(RoundTo(ElementType::kI8, std::nan("")), 0);
  EXPECT_EQ(RoundTo(ElementType::kI32, 1e18), 2147483647);
  EXPECT_EQ(RoundTo(ElementType::kI32, -1e18), -2147483648.0);
}

}  // namespace
}  // namespace tilewright
