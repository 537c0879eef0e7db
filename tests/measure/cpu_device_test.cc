#include <gtest/gtest.h>

#include "measure/workbench.h"

namespace tilewright {
namespace {

TEST(DescribeCpu, GivesTheSameDeviceTwice) {
  const absl::StatusOr<DeviceDescription> a = DescribeCpu(1);
  const absl::StatusOr<DeviceDescription> b = DescribeCpu(1);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->uuid, b->uuid);
  EXPECT_EQ(a->target, b->target);
  EXPECT_EQ(a->uuid.size(), 36u);
  EXPECT_EQ(a->uuid[14], '5');  // name-based with SHA-1
  EXPECT_EQ(a->timer, "clock");
}

TEST(DescribeCpu, ItsTargetTextParsesBack) {
  const absl::StatusOr<DeviceDescription> device = DescribeCpu(0);
  ASSERT_TRUE(device.ok());
  const absl::StatusOr<Target> target = ParseTarget(device->target.ToString());
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(*target, device->target);
  EXPECT_EQ(device->target.kind.rfind("cpu:", 0), 0u);
  EXPECT_GE(device->target.cores, 1);
  EXPECT_GE(device->target.l2_bytes, device->target.l1_bytes);
}

TEST(DescribeCpu, AnotherNumberOfCoresIsAnotherDevice) {
  const absl::StatusOr<DeviceDescription> all = DescribeCpu(0);
  ASSERT_TRUE(all.ok());
  if (all->target.cores < 2) GTEST_SKIP() << "one core only";
  EXPECT_NE(DescribeCpu(1)->uuid, all->uuid);
}

TEST(DescribeCpu, MoreCoresThanThereAreAreRefused) {
  const absl::Status status = DescribeCpu(100000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DescribeCpu(-1).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tilewright
