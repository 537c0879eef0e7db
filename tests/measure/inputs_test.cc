#include "measure/inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tilewright {
namespace {

TEST(FillNormal, HasTheMomentsOfTheNormalDistribution) {
  constexpr int kCount = 200000;
  std::vector<float> values(kCount);
  FillNormal(ElementType::kF32, 7, 3, 0, kCount, values.data());
  double sum = 0, squares = 0, fourth = 0;
  for (float v : values) {
    sum += v;
    squares += double{v} * v;
    fourth += std::pow(v, 4);
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
  EXPECT_NEAR(fourth / kCount, 3, 0.1);
}

TEST(FillNormal, DependsOnlyOnSeedStreamAndPosition) {
  for (const ElementTypeInfo& info : AllElementTypes()) {
    std::vector<char> whole(1000 * info.bytes), parts(1000 * info.bytes);
    FillNormal(info.type, 1, 2, 0, 1000, whole.data());
    FillNormal(info.type, 1, 2, 333, 1000, parts.data());
    FillNormal(info.type, 1, 2, 0, 333, parts.data());
    EXPECT_EQ(whole, parts) << info.name;
    FillNormal(info.type, 2, 2, 0, 1000, parts.data());
    EXPECT_NE(whole, parts) << info.name;
    FillNormal(info.type, 1, 3, 0, 1000, parts.data());
    EXPECT_NE(whole, parts) << info.name;
  }
}

TEST(FillNormal, GivesFiniteValuesInEveryType) {
  for (const ElementTypeInfo& info : AllElementTypes()) {
    std::vector<char> data(100000 * info.bytes);
    FillNormal(info.type, 5, 0, 0, 100000, data.data());
    for (int i = 0; i < 100000; ++i) {
      ASSERT_TRUE(std::isfinite(LoadElement(info.type, data.data() + i * info.bytes))) << info.name;
    }
  }
}

}  // namespace
}  // namespace tilewright
