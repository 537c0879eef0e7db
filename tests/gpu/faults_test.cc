// Whatever a kernel does to the GPU is the kernel's failure, under the right name, and the next
// right kernel is measured as if nothing had been.
#include <algorithm>

#include "measure/workbench.h"
#include "schedule/variant.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/ptx_kernels.h"

namespace tilewright {
namespace {

TEST(GpuFaults, EachIsCaughtAndTheNextRightKernelIsMeasured) {
  TILEWRIGHT_SKIP_WITHOUT_GPU();
  const absl::StatusOr<Workload> workload =
      Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=64 n=48 k=40", "f32"});
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto space = ScheduleSpace::Make(*workload, device->target, AllVariants());
  ASSERT_TRUE(space.ok()) << space.status();
  SessionSpec spec{*workload, {}, (*space)->NaiveSchedule()};
  spec.regime.at = workload->HighestSizes();
  spec.run_timeout = absl::Seconds(2);
  const absl::StatusOr<std::unique_ptr<Workbench>> bench = Workbench::Make(*device, {});
  ASSERT_TRUE(bench.ok()) << bench.status();
  const absl::Status opened = (*bench)->OpenSession(spec);
  ASSERT_TRUE(opened.ok()) << opened;
  const Schedule schedules[] = {spec.anchor};
  const BuildOutcome right = (*bench)->Build(*workload, schedules, absl::Seconds(30))[0];
  ASSERT_TRUE(right.kernel.has_value()) << right.failure->text;
  for (const WrongKernel& wrong : WrongKernels()) {
    SCOPED_TRACE(wrong.fault);
    const ScreenOutcome outcome = (*bench)->Screen(spec.anchor, KernelOf(wrong));
    ASSERT_TRUE(outcome.failure.has_value());
    std::printf("  %s: %s: %s\n", wrong.fault.c_str(),
                std::string(Info(outcome.failure->kind).name).c_str(),
                outcome.failure->text.c_str());
    EXPECT_NE(std::find(wrong.accepted.begin(), wrong.accepted.end(), outcome.failure->kind),
              wrong.accepted.end());
    const ScreenOutcome next = (*bench)->Screen(spec.anchor, *right.kernel);
    ASSERT_FALSE(next.failure.has_value()) << next.failure->text;
    EXPECT_GT(next.seconds, 0);
  }
  EXPECT_FALSE((*bench)->quarantined());
  // An entrant that ends the runner is out of the finals; the other goes on.
  const std::vector<Kernel> kernels = {*right.kernel, KernelOf(WrongKernels()[1])};
  const FinalsOutcome finals = (*bench)->Finals(kernels, 2, absl::Milliseconds(2), 1);
  EXPECT_FALSE(finals.entrants[0].failure.has_value());
  EXPECT_EQ(finals.entrants[0].round_seconds.size(), 2u);
  EXPECT_TRUE(finals.entrants[1].failure.has_value());
}

}  // namespace
}  // namespace tilewright
