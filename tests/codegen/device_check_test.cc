#include "codegen/device_check.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "schedule/element_type.h"

namespace tilewright {
namespace {

TEST(DeviceCheck, EveryElementTypeHasAKernelThatAssembles) {
  const absl::StatusOr<Target> target = FindTarget("cuda:h200");
  ASSERT_TRUE(target.ok()) << target.status();
  for (const ElementTypeInfo& info : AllElementTypes()) {
    SCOPED_TRACE(std::string(info.name));
    const absl::StatusOr<Workload> workload =
        Workload::Make("C[i,j] = A[i,j]", {"i=4 j=5", std::string(info.name)});
    ASSERT_TRUE(workload.ok()) << workload.status();
    const absl::StatusOr<Kernel> kernel = WriteDeviceCheck(*workload, *target);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    ASSERT_EQ(kernel->launches.size(), 3u);  // compare, clocks, one output
    for (const Launch& launch : kernel->launches) EXPECT_EQ(launch.block, kCheckThreads);
    EXPECT_TRUE(absl::EndsWith(kernel->objects[0].format, "-sm_90a"));
  }
}

TEST(DeviceCheck, EveryOutputHasAKernelOfItsOwn) {
  const absl::StatusOr<Target> target = FindTarget("cuda:a100");
  const absl::StatusOr<Workload> workload =
      Workload::Make("out s[i] = sum(j: A[i,j]); out D[i,j] = A[i,j] - s[i]", {"i=4 j=5", "f32"});
  ASSERT_TRUE(workload.ok()) << workload.status();
  const absl::StatusOr<Kernel> kernel = WriteDeviceCheck(*workload, *target);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->launches.size(), kFirstCheckLaunch + workload->outputs().size());
}

TEST(DeviceCheck, ACpuIsRefused) {
  const absl::StatusOr<Workload> workload = Workload::Make("C[i] = A[i]", {"i=4", "f32"});
  const absl::StatusOr<Kernel> kernel = WriteDeviceCheck(*workload, *FindTarget("cpu:x86-64-v3"));
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tilewright
