#include "measure/workbench.h"

#include <gtest/gtest.h>

#include "schedule/library_product.h"
#include "schedule/operators.h"
#include "schedule/variant.h"

namespace tilewright {
namespace {

std::unique_ptr<Workbench> MakeBench(int64_t last_level_bytes) {
  absl::StatusOr<DeviceDescription> device = DescribeCpu(0);
  EXPECT_TRUE(device.ok()) << device.status();
  device->target.l3_bytes = last_level_bytes;
  WorkbenchOptions options;
  options.executable = ZOO_WORKER;
  absl::StatusOr<std::unique_ptr<Workbench>> bench = Workbench::Make(*device, options);
  EXPECT_TRUE(bench.ok()) << bench.status();
  return *std::move(bench);
}

SessionSpec SpecOf(const std::string& expression, const std::string& sizes,
                   const std::string& types) {
  absl::StatusOr<Workload> workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  const absl::StatusOr<DeviceDescription> device = DescribeCpu(0);
  const auto space = ScheduleSpace::Make(*workload, device->target, AllVariants());
  EXPECT_TRUE(space.ok()) << space.status();
  SessionSpec spec{*workload, {}, (*space)->DefaultSchedule()};
  spec.regime.at = workload->HighestSizes();
  return spec;
}

TEST(Workbench, OpensASessionScreensAndHoldsFinals) {
  const auto bench = MakeBench(1 << 20);
  const SessionSpec spec = SpecOf("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=96 n=80 k=64", "f32");
  ASSERT_TRUE(bench->OpenSession(spec).ok());
  EXPECT_EQ(bench->session().id.size(), 16u);
  EXPECT_EQ(bench->session().anchor, spec.anchor);
  ASSERT_EQ(bench->session().anchor_seconds.size(), 1u);
  const Schedule schedules[] = {spec.anchor};
  const BuildOutcome built = bench->Build(spec.workload, schedules, absl::Seconds(20))[0];
  ASSERT_TRUE(built.kernel.has_value());
  for (int trial = 0; trial < 31; ++trial) {
    const ScreenOutcome outcome = bench->Screen(spec.anchor, *built.kernel);
    ASSERT_FALSE(outcome.failure.has_value()) << outcome.failure->text;
    EXPECT_FALSE(outcome.samples_seconds.empty());
  }
  EXPECT_EQ(bench->session().anchor_seconds.size(), 2u);  // again after 30 trials
  const std::vector<Kernel> kernels = {*built.kernel, *built.kernel};
  const FinalsOutcome finals = bench->Finals(kernels, 6, absl::Milliseconds(2), 1);
  for (const FinalsOutcome::Entrant& entrant : finals.entrants) {
    EXPECT_FALSE(entrant.failure.has_value());
    EXPECT_EQ(entrant.round_seconds.size(), 6u);
    EXPECT_NE(entrant.check_json.find("worst_ratio"), std::string::npos);
  }
  EXPECT_GT(bench->busy(), absl::ZeroDuration());
}

// A library that is not installed says which file and package it wants; one that is, is checked and
// timed as a kernel is.
TEST(Workbench, LibrariesAreMeasuredAsKernelsAre) {
  const auto bench = MakeBench(1 << 20);
  for (const char* expression :
       {"C[m,n] = sum(k: A[m,k] * B[k,n])", "C[m,n] = sum(k: A[k,m] * B[n,k])"}) {
    const SessionSpec spec = SpecOf(expression, "m=96 n=80 k=64", "f32");
    ASSERT_TRUE(bench->OpenSession(spec).ok());
    const absl::StatusOr<DeviceDescription> device = DescribeCpu(0);
    std::vector<Schedule> schedules =
        LibrarySchedules(spec.workload, device->target, spec.regime.at);
    EXPECT_EQ(schedules.size(), 2u);
    schedules.push_back(spec.anchor);
    std::vector<Kernel> kernels;
    for (const BuildOutcome& built : bench->Build(spec.workload, schedules, absl::Seconds(20))) {
      ASSERT_TRUE(built.kernel.has_value()) << built.failure->text;
      kernels.push_back(*built.kernel);
    }
    const FinalsOutcome finals = bench->Finals(kernels, 3, absl::Milliseconds(2), 1);
    ASSERT_EQ(finals.entrants.size(), 3u);
    for (int i = 0; i < 2; ++i) {
      const FinalsOutcome::Entrant& library = finals.entrants[i];
      if (library.failure) {
        std::printf("[SKIP] %s\n", library.failure->text.c_str());
        EXPECT_NE(library.failure->text.find(" here (Debian: lib"), std::string::npos)
            << library.failure->text;
        continue;
      }
      EXPECT_EQ(library.round_seconds.size(), 3u);
    }
    EXPECT_FALSE(finals.entrants[2].failure.has_value());
  }
}

TEST(Workbench, BuildsKeepTheOrderOfTheirSchedules) {
  const auto bench = MakeBench(1 << 20);
  const SessionSpec spec = SpecOf("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=32 n=32 k=32", "f32");
  const std::vector<Schedule> schedules = {spec.anchor, Schedule{"no.variant", {}}, spec.anchor};
  const std::vector<BuildOutcome> built = bench->Build(spec.workload, schedules, absl::Seconds(20));
  ASSERT_EQ(built.size(), 3u);
  EXPECT_TRUE(built[0].kernel.has_value());
  ASSERT_TRUE(built[1].failure.has_value());
  EXPECT_EQ(built[1].failure->kind, FailureKind::kBuildFailed);
  ASSERT_TRUE(built[2].kernel.has_value());
  EXPECT_EQ(built[0].kernel->digests, built[2].kernel->digests);
}

TEST(Workbench, AWarmRegimeAndRangedSizesWork) {
  const auto bench = MakeBench(1 << 20);
  SessionSpec spec = SpecOf("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=1..50 n=33 k=17", "f32");
  spec.regime.cache = Regime::Cache::kWarm;
  ASSERT_TRUE(bench->OpenSession(spec).ok());
  EXPECT_GT(bench->session().anchor_seconds[0], 0);
}

TEST(Workbench, RefusesDependentLaunchOnACpu) {
  const auto bench = MakeBench(1 << 20);
  SessionSpec spec = SpecOf("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=8 n=8 k=8", "f32");
  spec.regime.chain = Regime::Chain::kDependent;
  EXPECT_EQ(bench->OpenSession(spec).code(), absl::StatusCode::kInvalidArgument);
}

// Every operator's default kernel passes its output check: bounds are wide enough for right
// kernels.
TEST(Workbench, EveryOperatorsDefaultPassesInEveryType) {
  const auto bench = MakeBench(1 << 18);
  for (const Operator& op : AllOperators()) {
    for (const char* type : {"f32", "f64", "f16", "bf16"}) {
      SCOPED_TRACE(op.name + " " + type);
      const auto expanded = ExpandOperator(op.name, op.example_sizes);
      ASSERT_TRUE(expanded.ok()) << expanded.status();
      const absl::Status status =
          bench->OpenSession(SpecOf(expanded->expression, expanded->sizes, type));
      EXPECT_TRUE(status.ok()) << status;
      if (status.ok()) {
        for (const CandidateFailure& failure : bench->session().anchor_failures) {
          ADD_FAILURE() << failure.text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
