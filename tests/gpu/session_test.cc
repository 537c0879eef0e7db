// A worker's workbench on a real GPU, from candidate to verdict.
#include "measure/workbench.h"
#include "schedule/library_product.h"
#include "schedule/variant.h"
#include "tests/gpu/gpu.h"

namespace tilewright {
namespace {

void MeasureNaive(const DeviceDescription& device, const std::string& expression,
                  const std::string& sizes, const std::string& types, const std::string& regime) {
  SCOPED_TRACE(expression + " " + types + " " + regime);
  const absl::StatusOr<Workload> workload = Workload::Make(expression, {sizes, types});
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto space = ScheduleSpace::Make(*workload, device.target, AllVariants());
  ASSERT_TRUE(space.ok()) << space.status();
  const absl::StatusOr<Regime> parsed = ParseRegime(regime, *workload);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  SessionSpec spec{*workload, *parsed, (*space)->NaiveSchedule()};
  spec.regime.at = workload->HighestSizes();
  const absl::StatusOr<std::unique_ptr<Workbench>> bench = Workbench::Make(device, {});
  ASSERT_TRUE(bench.ok()) << bench.status();
  const absl::Status opened = (*bench)->OpenSession(spec);
  ASSERT_TRUE(opened.ok()) << opened;
  const Schedule schedules[] = {spec.anchor};
  const BuildOutcome built = (*bench)->Build(*workload, schedules, absl::Seconds(30))[0];
  ASSERT_TRUE(built.kernel.has_value()) << built.failure->text;
  for (int trial = 0; trial < 3; ++trial) {
    const ScreenOutcome outcome = (*bench)->Screen(spec.anchor, *built.kernel);
    ASSERT_FALSE(outcome.failure.has_value()) << outcome.failure->text;
    EXPECT_GT(outcome.seconds, 0);
    // The same kernel as the anchor, in one session.
    EXPECT_NEAR(outcome.seconds / outcome.anchor_seconds, 1, 0.2);
    EXPECT_LT(outcome.device_time, absl::Milliseconds(80));
    if (trial == 0) {
      std::printf("  %s: %.3f us, anchor %.3f us, %zu samples, %s\n", types.c_str(),
                  outcome.seconds * 1e6, outcome.anchor_seconds * 1e6,
                  outcome.samples_seconds.size(), outcome.check_json.c_str());
    }
  }
  const std::vector<Kernel> kernels = {*built.kernel, *built.kernel};
  const FinalsOutcome finals = (*bench)->Finals(kernels, 6, absl::Milliseconds(20), 1);
  for (const FinalsOutcome::Entrant& entrant : finals.entrants) {
    EXPECT_FALSE(entrant.failure.has_value()) << entrant.failure->text;
    EXPECT_EQ(entrant.round_seconds.size(), 6u);
  }
}

TEST(GpuSession, NaiveProductsAreMeasuredInEveryType) {
  TILEWRIGHT_SKIP_WITHOUT_GPU();
  for (const char* types : {"f32", "bf16", "f16", "f64", "i8,C:i32", "e4m3,C:bf16"}) {
    MeasureNaive(*device, "C[m,n] = sum(k: A[m,k] * B[k,n])", "m=257 n=190 k=129", types, "");
  }
}

TEST(GpuSession, RegimesAndRangesAreMeasured) {
  TILEWRIGHT_SKIP_WITHOUT_GPU();
  const char* product = "C[m,n] = sum(k: A[m,k] * B[k,n])";
  MeasureNaive(*device, product, "m=128 n=64 k=64", "f32", "cache=warm");
  MeasureNaive(*device, product, "m=128 n=64 k=64", "bf16", "chain=dependent");
  MeasureNaive(*device, product, "m=1..200 n=64 k=64", "f32", "");
}

struct LibraryCase {
  const char* expression;
  const char* sizes;
  const char* types;
};

TEST(GpuSession, ALibraryIsMeasuredAsAKernelIs) {
  TILEWRIGHT_SKIP_WITHOUT_GPU();
  const char* sizes = "m=256 n=192 k=320";
  for (const LibraryCase& one : {
           LibraryCase{"C[m,n] = sum(k: A[m,k] * B[n,k])", sizes, "bf16"},
           LibraryCase{"C[m,n] = sum(k: A[m,k] * B[k,n])", sizes, "bf16"},
           LibraryCase{"C[m,n] = sum(k: A[k,m] * B[n,k])", sizes, "bf16"},
           LibraryCase{"C[m,n] = sum(k: A[k,m] * B[k,n])", sizes, "f16"},
           LibraryCase{"C[m,n] = sum(k: A[m,k] * B[n,k])", sizes, "f32"},
           // Its tensor cores keep sums of e4m3 to fewer bits, which short sums show.
           LibraryCase{"C[m,n] = sum(k: A[m,k] * B[n,k])", "m=256 n=192 k=4096", "e4m3,C:bf16"},
           LibraryCase{"C[m,n] = sum(k: A[m,k] * B[n,k])", sizes, "i8,C:i32"},
           LibraryCase{"C[b,m,n] = sum(k: A[b,m,k] * B[b,n,k])", "b=3 m=256 n=192 k=320", "bf16"},
           LibraryCase{"C[m,n] = relu(sum(k: A[m,k] * B[n,k]) + bias[n])", sizes, "bf16"},
           LibraryCase{"C[m,n] = 0.5 * sum(k: A[m,k] * B[n,k]) + R[m,n]", sizes, "bf16"},
           LibraryCase{"C[m,n] = gelu(sum(k: A[m,k] * B[n,k]) + bias[n])", "m=256 n=192 k=4096",
                       "bf16"},
       }) {
    SCOPED_TRACE(std::string(one.expression) + " " + one.types);
    const absl::StatusOr<Workload> workload =
        Workload::Make(one.expression, {one.sizes, one.types});
    ASSERT_TRUE(workload.ok()) << workload.status();
    const auto space = ScheduleSpace::Make(*workload, device->target, AllVariants());
    ASSERT_TRUE(space.ok()) << space.status();
    SessionSpec spec{*workload, {}, (*space)->NaiveSchedule()};
    spec.regime.at = workload->HighestSizes();
    const absl::StatusOr<std::unique_ptr<Workbench>> bench = Workbench::Make(*device, {});
    ASSERT_TRUE(bench.ok()) << bench.status();
    const absl::Status opened = (*bench)->OpenSession(spec);
    ASSERT_TRUE(opened.ok()) << opened;
    const std::vector<Schedule> schedules =
        LibrarySchedules(*workload, device->target, spec.regime.at);
    ASSERT_FALSE(schedules.empty());
    const BuildOutcome built = (*bench)->Build(*workload, {schedules[0]}, absl::Seconds(30))[0];
    ASSERT_TRUE(built.kernel.has_value()) << built.failure->text;
    // The first call also loads the library's code.
    (*bench)->Screen(schedules[0], *built.kernel);
    const ScreenOutcome outcome = (*bench)->Screen(schedules[0], *built.kernel);
    if (outcome.failure && outcome.failure->text.find("no cuBLASLt here") != std::string::npos) {
      GTEST_SKIP() << outcome.failure->text;
    }
    EXPECT_FALSE(outcome.failure.has_value()) << outcome.failure->text;
    if (outcome.failure) continue;
    EXPECT_GT(outcome.seconds, 0);
    std::printf("  cublaslt %s %s: %.3f us, naive %.3f us\n", one.types, one.expression,
                outcome.seconds * 1e6, outcome.anchor_seconds * 1e6);
  }
}

}  // namespace
}  // namespace tilewright
