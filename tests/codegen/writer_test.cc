// The front door: determinism, symbols, goldens, targets that this machine may not have, refusals,
// dumps.
#include "codegen/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

constexpr char kSoftmax[] =
    "h[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - h[r])); Y[r,c] = exp(X[r,c] - h[r]) / z[r]";

Candidate MakeCandidate(const std::string& expression, const std::string& sizes,
                        const std::string& types, const Target& target) {
  auto workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  auto space = ScheduleSpace::Make(*workload, target, AllVariants());
  EXPECT_TRUE(space.ok()) << space.status();
  return {*workload, target, (*space)->DefaultSchedule()};
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Kernel Write(const Candidate& candidate) {
  auto kernel = WriteKernel(candidate, DefaultCatalogue());
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? *kernel : Kernel{};
}

TEST(WriteKernel, GivesTheSameBytesEveryTimeAndOnEveryThread) {
  const Candidate candidate = MakeCandidate(kSoftmax, "r=37 c=100", "f32", KnownTargets()[0]);
  const Kernel first = Write(candidate);
  EXPECT_EQ(Write(candidate), first);
  std::vector<Kernel> kernels(2);
  std::vector<std::thread> threads;
  for (Kernel& kernel : kernels) threads.emplace_back([&] { kernel = Write(candidate); });
  for (std::thread& thread : threads) thread.join();
  for (const Kernel& kernel : kernels) EXPECT_EQ(kernel, first);
}

TEST(WriteKernel, NamesEntriesByTheirTextAndNothingElseByTheSchedule) {
  const Candidate candidate = MakeCandidate("Y[i] = X[i] * 2", "i=1000", "f32", KnownTargets()[0]);
  const Kernel kernel = Write(candidate);
  ASSERT_EQ(kernel.launches.size(), 1u);
  EXPECT_THAT(kernel.launches[0].entry, ::testing::MatchesRegex("tw_[0-9a-f]{16}"));
  EXPECT_FALSE(absl::StrContains(kernel.objects[0].bytes, "vectorised"));
  EXPECT_FALSE(absl::StrContains(kernel.objects[0].bytes, "body"));
  EXPECT_EQ(kernel.digests.binary, Sha256Hex(kernel.objects[0].bytes));
}

TEST(WriteKernel, GivesEachLaunchOfANaiveKernelItsOwnSymbol) {
  Candidate candidate = MakeCandidate(kSoftmax, "r=5 c=7", "f32", KnownTargets()[0]);
  candidate.schedule = *ParseSchedule("row_reduction.naive{threads=2}");
  const Kernel kernel = Write(candidate);
  ASSERT_EQ(kernel.launches.size(), 3u);
  EXPECT_NE(kernel.launches[0].entry, kernel.launches[1].entry);
  EXPECT_NE(kernel.launches[1].entry, kernel.launches[2].entry);
  EXPECT_GT(kernel.workspace.bytes, 0);
}

TEST(WriteKernel, WritesZmmRegistersForAnAvx512Target) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "tilewright-avx512";
  const Candidate candidate =
      MakeCandidate(kSoftmax, "r=64 c=1024", "f32", *FindTarget("cpu:x86-64-v4"));
  auto kernel = WriteKernel(candidate, DefaultCatalogue(), {directory.string()});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_TRUE(absl::StrContains(ReadFile(directory / "05-assembly.s"), "%zmm"));
}

TEST(WriteKernel, DumpsEveryStageInNumberedFiles) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "tilewright-dump";
  const Candidate candidate =
      MakeCandidate("Y[i] = tanh(X[i])", "i=1..1000", "bf16", KnownTargets()[0]);
  auto kernel = WriteKernel(candidate, DefaultCatalogue(), {directory.string()});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(*kernel, Write(candidate));
  EXPECT_THAT(ReadFile(directory / "01-schedule.txt"), HasSubstr(candidate.schedule.ToString()));
  EXPECT_THAT(ReadFile(directory / "02-plan.txt"), HasSubstr("memory_bytes"));
  EXPECT_EQ(Sha256Hex(ReadFile(directory / "03-ir-before-passes.ll")), kernel->digests.ir);
  EXPECT_THAT(ReadFile(directory / "04-ir-after-passes.ll"), HasSubstr(kernel->launches[0].entry));
  EXPECT_THAT(ReadFile(directory / "05-assembly.s"), HasSubstr(kernel->launches[0].entry));
  EXPECT_EQ(ReadFile(directory / "06-recipe.json"), kernel->RecipeJson());
}

TEST(WriteKernel, SaysWhichConstraintAnIllegalScheduleBreaks) {
  Candidate candidate = MakeCandidate("Y[j,i] = X[i,j]", "i=100 j=100", "f32", KnownTargets()[0]);
  candidate.schedule = *ParseSchedule(
      "pointwise.vectorised{vector=256 unroll=8 tile_columns=16 tile_rows=8 shuffle=0 threads=1}");
  auto kernel = WriteKernel(candidate, DefaultCatalogue());
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(kernel.status().message(), HasSubstr("tile_holds_step"));
}

TEST(WriteKernel, RefusesAVariantWithoutAWriter) {
  const Candidate candidate = MakeCandidate("Y[i] = X[i] + 1", "i=10", "f32", KnownTargets()[0]);
  auto kernel = WriteKernel(candidate, {AllVariants(), {}});
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(kernel.status().message(),
              HasSubstr("no writer for variant pointwise.vectorised on backend host"));
}

TEST(WriteKernel, RefusesACpuThatLlvmDoesNotKnow) {
  Target target = KnownTargets()[0];
  target.llvm_cpu = "pentium9";
  const Candidate candidate = MakeCandidate("Y[i] = X[i] + 1", "i=10", "f32", target);
  EXPECT_THAT(WriteKernel(candidate, DefaultCatalogue()).status().message(),
              HasSubstr("'pentium9' is not a cpu of LLVM"));
}

TEST(ScheduleSpace, RefusesAttentionWithTheStatementAndTheReason) {
  auto workload = Workload::Make(
      "S[i,j] = sum(d: Q[i,d] * K[j,d]); h[i] = max(j: S[i,j]); z[i] = sum(j: exp(S[i,j] - h[i])); "
      "O[i,d] = sum(j: exp(S[i,j] - h[i]) / z[i] * V[j,d])",
      {"i=16 j=16 d=8", "f32"});
  ASSERT_TRUE(workload.ok()) << workload.status();
  auto space = ScheduleSpace::Make(*workload, KnownTargets()[0], AllVariants());
  EXPECT_EQ(space.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(space.status().message(),
              HasSubstr("sums a product of two tensors with different rows"));
}

TEST(ToolchainId, NamesTheCodegenVersionAndLlvm) {
  EXPECT_THAT(ToolchainId(KnownTargets()[0]),
              ::testing::StartsWith("tilewright-codegen 2, LLVM 19."));
}

// Golden IR. TILEWRIGHT_REWRITE_GOLDEN=1 rewrites the files; a change of them needs a new
// kCodegenVersion.
struct GoldenCase {
  std::string file;
  std::string expression;
  std::string sizes;
  std::string types;
  std::string schedule;
};

class GoldenIr : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenIr, IsWhatItWas) {
  const GoldenCase& golden = GetParam();
  Candidate candidate =
      MakeCandidate(golden.expression, golden.sizes, golden.types, KnownTargets()[0]);
  candidate.schedule = *ParseSchedule(golden.schedule);
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / ("golden-" + golden.file);
  auto kernel = WriteKernel(candidate, DefaultCatalogue(), {directory.string()});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::string written = ReadFile(directory / "03-ir-before-passes.ll");
  const std::filesystem::path path =
      std::filesystem::path(TILEWRIGHT_GOLDEN) / (golden.file + ".ll");
  if (std::getenv("TILEWRIGHT_REWRITE_GOLDEN") != nullptr)
    std::ofstream(path, std::ios::binary) << written;
  EXPECT_EQ(written, ReadFile(path)) << "rewrite with TILEWRIGHT_REWRITE_GOLDEN=1";
}

INSTANTIATE_TEST_SUITE_P(
    Candidates, GoldenIr,
    ::testing::Values(
        GoldenCase{"contraction_naive", "C[m,n] = sum(k: A[m,k] * B[k,n])", "m=4 n=1..8 k=16",
                   "bf16", "contraction.naive{threads=2}"},
        GoldenCase{"pointwise_vectorised", "Y[i] = max(X[i] + 1, 0.5)", "i=1..1000", "f32",
                   "pointwise.vectorised{vector=256 unroll=2 tile_columns=256 threads=2}"},
        GoldenCase{"row_reduction_fused", "z[r] = sum(c: X[r,c] * X[r,c])", "r=10 c=40", "f32",
                   "row_reduction.fused{vector=256 unroll=1 threads=2}"}),
    [](const auto& info) { return info.param.file; });

}  // namespace
}  // namespace tilewright
