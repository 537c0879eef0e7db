#include "measure/built_ahead.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

Workload MakeProduct(const std::string& sizes) {
  absl::StatusOr<Workload> workload =
      Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", {sizes, "f32"});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

std::vector<v1::BuiltKernel> SessionKernels(bool failed) {
  std::vector<v1::BuiltKernel> kernels(2);
  kernels[0].set_recipe_json("reference");
  if (failed) kernels[1].mutable_failure()->set_text("the check is not built");
  return kernels;
}

TEST(BuiltAhead, KeepsWhatWasBuiltForTheNewestWorkloadOnly) {
  const Workload first = MakeProduct("m=4 n=5 k=6");
  const Workload second = MakeProduct("m=4 n=5 k=7");
  BuiltAhead ahead;
  EXPECT_TRUE(ahead.Begin(first));
  EXPECT_FALSE(ahead.Begin(first));
  BuildOutcome outcome;
  outcome.kernel = Kernel();
  outcome.kernel->digests.ir = "1234";
  ahead.Keep(first, "naive{}", outcome);
  ahead.KeepSession(first, SessionKernels(false));
  BuildOutcome found;
  ASSERT_TRUE(ahead.Find(first, "naive{}", &found));
  EXPECT_EQ(found.kernel->digests.ir, "1234");
  EXPECT_FALSE(ahead.Find(first, "other{}", &found));
  EXPECT_FALSE(ahead.Find(second, "naive{}", &found));
  EXPECT_EQ(ahead.Session(first).size(), 2u);
  EXPECT_TRUE(ahead.Session(second).empty());
  EXPECT_TRUE(ahead.Begin(second));
  EXPECT_TRUE(ahead.Session(first).empty());
  EXPECT_FALSE(ahead.Find(first, "naive{}", &found));
}

TEST(BuiltAhead, KeepsTheNewestCandidatesThatFit) {
  const Workload workload = MakeProduct("m=4 n=5 k=6");
  BuiltAhead ahead;
  ASSERT_TRUE(ahead.Begin(workload));
  BuildOutcome outcome;
  outcome.kernel = Kernel();
  outcome.kernel->objects = {{"cubin-sm_90a", std::string(BuiltAhead::kMostKeptBytes / 2, 'x')}};
  for (const char* schedule : {"first{}", "second{}", "second{}", "third{}"})
    ahead.Keep(workload, schedule, outcome);
  BuildOutcome found;
  EXPECT_FALSE(ahead.Find(workload, "first{}", &found));
  EXPECT_TRUE(ahead.Find(workload, "second{}", &found));
  EXPECT_TRUE(ahead.Find(workload, "third{}", &found));
}

TEST(BuiltAhead, WhatFailedIsBuiltAgain) {
  const Workload workload = MakeProduct("m=4 n=5 k=6");
  BuiltAhead ahead;
  ASSERT_TRUE(ahead.Begin(workload));
  BuildOutcome failed;
  failed.failure = CandidateFailure{FailureKind::kBuildTimeout, "too long"};
  ahead.Keep(workload, "naive{}", failed);
  ahead.KeepSession(workload, SessionKernels(true));
  BuildOutcome found;
  EXPECT_FALSE(ahead.Find(workload, "naive{}", &found));
  EXPECT_TRUE(ahead.Session(workload).empty());
}

}  // namespace
}  // namespace tilewright
