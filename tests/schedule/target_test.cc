#include "schedule/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_replace.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::StatusOr<Target>& target) {
  return std::string(target.status().message());
}

TEST(Target, KnownKindsParseBackToThemselves) {
  std::set<std::string> kinds;
  for (const Target& target : KnownTargets()) {
    absl::StatusOr<Target> parsed = ParseTarget(target.ToString());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, target);
    EXPECT_TRUE(kinds.insert(target.kind).second) << target.kind;
    absl::StatusOr<Target> found = FindTarget(target.kind);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, target);
  }
}

TEST(Target, TextHasEveryFactInOrder) {
  EXPECT_EQ(FindTarget("cpu:x86-64-v3")->ToString(),
            "cpu:x86-64-v3{backend=host llvm_cpu=x86-64-v3 features=+avx,+avx2,+f16c,+fma cores=8 "
            "vector_bits=256 vector_registers=16 fma_per_cycle=2 l1_bytes=32768 l2_bytes=524288 "
            "l3_bytes=33554432 cache_line_bytes=64}");
}

TEST(Target, TextOfAGpuHasTheFactsOfAGpu) {
  EXPECT_EQ(FindTarget("cuda:h200")->ToString(),
            "cuda:h200{backend=nvptx llvm_cpu=sm_90a features=+ptx85 cores=132 clock_mhz=1980 "
            "memory_bytes_per_second=4800000000000 l2_bytes=62914560 shared_memory_bytes=232448 "
            "shared_memory_per_core_bytes=233472 registers_per_core=65536 threads_per_core=2048 "
            "f32_operations_per_cycle=256 tensor_operations_per_cycle=4096 "
            "f64_operations_per_cycle=256}");
}

TEST(Target, FactsOfAnotherBackendAreUnknown) {
  const std::string text = FindTarget("cuda:a100")->ToString();
  EXPECT_THAT(Message(ParseTarget(absl::StrReplaceAll(text, {{"cores=", "vector_bits=1 cores="}}))),
              HasSubstr("unknown fact 'vector_bits'; known: backend, llvm_cpu, features, cores, "
                        "clock_mhz"));
  EXPECT_THAT(Message(ParseTarget(absl::StrReplaceAll(text, {{"clock_mhz=1410 ", ""}}))),
              HasSubstr("the fact 'clock_mhz' is missing"));
  EXPECT_THAT(Message(ParseTarget(absl::StrReplaceAll(text, {{"nvptx", "vulkan"}}))),
              HasSubstr("backend='vulkan'; accepted: host, nvptx"));
}

TEST(Target, FeaturesMayBeEmpty) {
  Target target = KnownTargets()[0];
  target.llvm_features.clear();
  absl::StatusOr<Target> parsed = ParseTarget(target.ToString());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, target);
}

TEST(Target, RefusesMissingUnknownAndImpossibleFacts) {
  const std::string text = KnownTargets()[0].ToString();
  EXPECT_THAT(Message(ParseTarget(absl::StrReplaceAll(text, {{"cores=8 ", ""}}))),
              HasSubstr("the fact 'cores' is missing"));
  EXPECT_THAT(Message(ParseTarget(absl::StrReplaceAll(text, {{"cores=8", "cores=0"}}))),
              HasSubstr("cores=0 must be an integer from 1"));
  EXPECT_THAT(Message(ParseTarget(absl::StrReplaceAll(text, {{"cores=8", "cores=many"}}))),
              HasSubstr("cores=many"));
  EXPECT_THAT(Message(ParseTarget(absl::StrReplaceAll(text, {{"cores=", "kernels="}}))),
              HasSubstr("unknown fact 'kernels'; known: backend, "));
  EXPECT_THAT(Message(ParseTarget("cpu:x")), HasSubstr("target text, column 6: expected '{'"));
}

TEST(Target, RefusesAnArchitectureAloneWithTheKindsThatHaveIt) {
  EXPECT_EQ(Message(FindTarget("avx2")),
            "target 'avx2' names an architecture, not a device kind; kinds that have it: "
            "cpu:x86-64-v3, cpu:x86-64-v4");
  EXPECT_THAT(Message(FindTarget("x86-64-v4")), HasSubstr("kinds that have it: cpu:x86-64-v4"));
  EXPECT_THAT(Message(FindTarget("sm_90a")),
              HasSubstr("kinds that have it: cuda:h200, cuda:h100-sxm"));
  EXPECT_THAT(Message(FindTarget("z80")), HasSubstr("unknown target 'z80'; known kinds: cpu:"));
}

// 2 pipes * 2 operations * 256 / 32 lanes; 2 * 2 * 256 / 64.
TEST(Target, CountsOperationsOfACycle) {
  const Target target = *FindTarget("cpu:x86-64-v3");
  EXPECT_EQ(target.OperationsPerCycle(4), 32);
  EXPECT_EQ(target.OperationsPerCycle(8), 16);
  Target scalar = target;
  scalar.vector_bits = 0;
  EXPECT_EQ(scalar.OperationsPerCycle(4), 4);
}

// 2 * 1024^3 operations / (8 cores * 32 per cycle * 6 GHz) = 1.398 ms, less 5%.
TEST(Target, LimitIsArithmeticAtAClockThatNoCoreReaches) {
  const Target target = *FindTarget("cpu:x86-64-v3");
  EXPECT_NEAR(LimitSeconds(target, 2.0 * 1024 * 1024 * 1024, 12 << 20, 4, true), 1.3282e-3, 1e-6);
  EXPECT_EQ(LimitSeconds(target, 1e9, 1e12, 4, true), LimitSeconds(target, 1e9, 0, 4, false));
}

// H100 SXM: tensor cores 132 * 4096 * 1.98e9 = 1.0706e15 bf16 operations a second; 8-bit types
// twice, tf32 half of it. f64 132 * 256 * 1.98e9.
//   2 * 8192^3 = 1.0995e12 operations: 1.02707 ms, less 5%: 0.975718 ms; f64 16 times that
TEST(Target, LimitOfAGpuIsItsTensorCoresOrItsMemory) {
  const Target target = *FindTarget("cuda:h100-sxm");
  const double operations = 2.0 * 8192 * 8192 * 8192;
  EXPECT_NEAR(LimitSeconds(target, operations, 0, 2, true), 0.975718e-3, 1e-8);
  EXPECT_NEAR(LimitSeconds(target, operations, 0, 1, true), 0.975718e-3 / 2, 1e-8);
  EXPECT_NEAR(LimitSeconds(target, operations, 0, 4, true), 0.975718e-3 * 2, 1e-8);
  EXPECT_NEAR(LimitSeconds(target, operations, 0, 8, true), 0.975718e-3 * 16, 1e-7);
  // 3.35e9 bytes at 3.35 TB/s: 1 ms, less 5%. They may lie in a warm cache.
  EXPECT_NEAR(LimitSeconds(target, 1, 3.35e9, 2, true), 0.95e-3, 1e-9);
  EXPECT_LT(LimitSeconds(target, 1, 3.35e9, 2, false), 1e-12);
}

TEST(Target, CountsOperationsOfAGpusCycle) {
  const Target target = *FindTarget("cuda:a100");
  EXPECT_EQ(target.OperationsPerCycle(4), 128);
  EXPECT_EQ(target.OperationsPerCycle(2), 128);
  EXPECT_EQ(target.OperationsPerCycle(8), 64);
  EXPECT_EQ(target.PeakOperationsPerCycle(1), 4096);
  EXPECT_EQ(target.PeakOperationsPerCycle(2), 2048);
  EXPECT_EQ(target.PeakOperationsPerCycle(4), 1024);
  EXPECT_EQ(target.PeakOperationsPerCycle(8), 128);
}

}  // namespace
}  // namespace tilewright
