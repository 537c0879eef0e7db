// Every variant of this file's families on seeded random programs, at random schedules, agrees with
// the interpreter.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "codegen/writer.h"
#include "schedule/variant.h"
#include "tests/agreement/check.h"
#include "tests/agreement/random_program.h"

namespace tilewright {
namespace {

Target AvxTarget() {
  Target target = KnownTargets()[0];
  target.cores = 4;
  return target;
}

Target BaselineTarget() {
  Target target = AvxTarget();
  target.llvm_cpu = "x86-64";
  target.llvm_features = "";
  target.vector_bits = 128;
  return target;
}

// The naive schedule, the default, and `samples` others of every variant, at the ends of the sizes
// and between.
void ExpectAgreement(const RandomProgram& program, const Target& target, uint64_t seed,
                     int samples) {
  SCOPED_TRACE(program.expression + " | " + program.options.sizes + " | " + program.options.types);
  auto workload = Workload::Make(program.expression, program.options);
  ASSERT_TRUE(workload.ok()) << workload.status();
  auto space = ScheduleSpace::Make(*workload, target, AllVariants());
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<Sizes> points = {workload->HighestSizes()};
  std::mt19937_64 random(seed);
  if (workload->has_range()) {
    points.push_back(workload->LowestSizes());
    Sizes between;
    for (const SizeRange& size : workload->sizes())
      between.push_back(size.low + random() % (size.high - size.low + 1));
    points.push_back(between);
  }
  std::vector<Expected> expected;
  for (const Sizes& sizes : points)
    expected.push_back(MakeExpected(*workload, target, sizes, seed));
  std::vector<Schedule> schedules = {(*space)->NaiveSchedule()};
  for (const Variant* variant : (*space)->variants()) {
    schedules.push_back(variant->default_schedule(*workload, target));
    const VariantSpace& part = (*space)->variant_space(variant->name);
    for (int i = 0; i < samples; ++i)
      schedules.push_back(part.At(UniformIndex(random, part.Count())));
  }
  for (const Schedule& schedule : schedules) {
    auto kernel = WriteKernel({*workload, target, schedule}, DefaultCatalogue());
    ASSERT_TRUE(kernel.ok()) << schedule.ToString() << ": " << kernel.status();
    for (const Expected& at : expected) {
      EXPECT_EQ(Disagreement(*workload, *kernel, at), "") << schedule.ToString();
    }
  }
}

TEST(Agreement, PointwiseVariantsMatchTheInterpreter) {
  for (uint64_t seed = 0; seed < 25; ++seed)
    ExpectAgreement(RandomPointwise(seed), AvxTarget(), seed, 2);
}

TEST(Agreement, RowReductionVariantsMatchTheInterpreter) {
  for (uint64_t seed = 0; seed < 25; ++seed)
    ExpectAgreement(RandomRowReduction(seed), AvxTarget(), seed, 2);
}

TEST(Agreement, ContractionVariantsMatchTheInterpreter) {
  for (uint64_t seed = 0; seed < 25; ++seed)
    ExpectAgreement(RandomContraction(seed), AvxTarget(), seed, 1);
}

// What the random programs do not reach.
TEST(Agreement, HoldsForSeveralOutputsStridesAndMixedTypes) {
  const RandomProgram programs[] = {
      // An output that is read again is read before its rounding.
      {"out z[r] = sum(c: X[r,c]); out Y[r,c] = X[r,c] / (abs(z[r]) + 1)",
       {"r=5 c=37", "f32,z:bf16,Y:f16"}},
      {"out h[i] = X[i] * 1.5; out Y[i] = h[i] + 0.1", {"i=50", "f32,h:e4m3"}},
      {"h[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - h[r])); Y[r,c] = exp(X[r,c] - h[r]) / "
       "z[r]",
       {"r=9 c=70", "i8,X:i8,Y:f32,h:f32,z:f32"}},
      {"s[] = sum(i: X[i])", {"i=1..1000", "bf16,s:f32"}},
      {"s[] = max(i,j: X[i,j])", {"i=13 j=21", "f16"}},
      {"Y[r] = sum(c,d: X[c,r,d] * X[c,r,d])", {"r=6 c=7 d=35", "e5m2,Y:f32"}},
      {"Y[c] = sum(r: X[r,c])", {"r=100 c=1..70", "bf16,Y:f32"}},
      {"Y[a,c] = sum(r: X[a,r,c])", {"a=3 r=40 c=75", "f64"}},
      {"Y[i,j] = X[i,j] + Z[j,i]",
       {"i=20 j=33 X.0.stride=40 X.1.stride=1 Z.0.stride=64 Z.1.stride=3", "f32"}},
      {"Y[i,j,k] = X[k,i,j] * W[j]", {"i=9 j=17 k=70", "bf16,Y:f32"}},
      {"Y[j,i] = cast(i8, X[i,j] * 16)", {"i=70 j=70", "f32,Y:i8"}},
      {"Y[i] = X[i / 4] + X[i % 3] * size(i)", {"i=22 X.0=6", "f32"}},
      {"Y[i] = where(i % 2 == 0 && X[i] > 0 || !(i < 10), X[i], -inf)", {"i=40", "f32"}},
      // A factor that is no integer takes the products of integers out of i32.
      {"Y[m,n] = sum(k: A[m,k] * B[k,n] * 0.5)", {"m=7 n=19 k=12", "i8,Y:f32"}},
  };
  uint64_t seed = 0;
  for (const RandomProgram& program : programs) ExpectAgreement(program, AvxTarget(), ++seed, 3);
}

TEST(Agreement, HoldsOnAMachineWithoutAvx) {
  for (uint64_t seed = 100; seed < 108; ++seed) {
    ExpectAgreement(RandomPointwise(seed), BaselineTarget(), seed, 1);
    ExpectAgreement(RandomRowReduction(seed), BaselineTarget(), seed, 1);
    ExpectAgreement(RandomContraction(seed), BaselineTarget(), seed, 1);
  }
}

}  // namespace
}  // namespace tilewright
