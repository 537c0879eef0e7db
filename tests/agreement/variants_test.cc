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

TEST(Agreement, HoldsOnAMachineWithoutAvx) {
  for (uint64_t seed = 100; seed < 108; ++seed) {
    ExpectAgreement(RandomPointwise(seed), BaselineTarget(), seed, 1);
    ExpectAgreement(RandomRowReduction(seed), BaselineTarget(), seed, 1);
    ExpectAgreement(RandomContraction(seed), BaselineTarget(), seed, 1);
  }
}

}  // namespace
}  // namespace tilewright
