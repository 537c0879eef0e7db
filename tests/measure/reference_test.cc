#include "measure/reference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilewright {
namespace {

double RoundoffOf(const std::string& expression, const std::string& sizes,
                  const std::string& types) {
  const absl::StatusOr<Workload> workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return AccumulatorRoundoff(*workload);
}

TEST(Reference, SumsAreHeldToWhatTheyAccumulateIn) {
  const std::string product = "C[m,n] = sum(k: A[m,k] * B[n,k])";
  EXPECT_EQ(RoundoffOf(product, "m=8 n=8 k=64", "bf16"), std::ldexp(1.0, -24));
  EXPECT_EQ(RoundoffOf(product, "m=8 n=8 k=64", "f64"), std::ldexp(1.0, -53));
  EXPECT_EQ(RoundoffOf(product, "m=8 n=8 k=64", "i8,C:i32"), 0);
}

TEST(Reference, ProductsOfEightBitsAreKeptToFewerBitsWhereSumsAreShort) {
  const std::string product = "C[m,n] = sum(k: A[m,k] * B[n,k])";
  EXPECT_EQ(RoundoffOf(product, "m=8 n=8 k=64", "e4m3,C:bf16"), std::ldexp(1.0, -18));
  EXPECT_EQ(RoundoffOf(product, "m=8 n=8 k=65536", "e4m3,C:bf16"), std::ldexp(1.0, -24));
  // Other programs have no tensor cores to blame.
  EXPECT_EQ(RoundoffOf("Y[r] = sum(c: X[r,c])", "r=8 c=64", "e4m3,Y:f32"), std::ldexp(1.0, -24));
}

}  // namespace
}  // namespace tilewright
