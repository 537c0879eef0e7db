#include "measure/enrolments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kDevice[] = "device 1";

class EnrolmentsTest : public ::testing::Test {
 protected:
  Enrolments::Enrolled Enrol(const std::string& nonce, int second,
                             const std::string& device = kDevice) {
    v1::EnrolRequest request;
    request.set_device_uuid(device);
    request.set_target_text("target");
    request.set_toolchain_id("toolchain");
    request.set_worker_nonce(nonce);
    return enrolments_.Enrol(request, At(second), [this] { return absl::StrCat("id ", ++ids_); });
  }
  static absl::Time At(int second) { return absl::FromUnixSeconds(1000 + second); }

  Enrolments enrolments_;
  int ids_ = 0;
};

TEST_F(EnrolmentsTest, TheSameProcessKeepsItsEnrolmentAndIsSeenAgain) {
  EXPECT_EQ(Enrol("a", 0).id, "id 1");
  EXPECT_EQ(enrolments_.EarliestSeen(), At(0));
  const Enrolments::Enrolled again = Enrol("a", 5);
  EXPECT_EQ(again.id, "id 1");
  EXPECT_FALSE(again.superseded.has_value());
  EXPECT_EQ(enrolments_.EarliestSeen(), At(5));
}

TEST_F(EnrolmentsTest, AnotherProcessSupersedesOnlyTheOneWithItsDevice) {
  Enrol("a", 0);
  EXPECT_FALSE(Enrol("b", 1, "device 2").superseded.has_value());
  EXPECT_EQ(Enrol("c", 2).superseded, "id 1");
  EXPECT_EQ(enrolments_.CheckLive("id 1").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(enrolments_.CheckLive("id 1").message(), HasSubstr("another worker has device"));
  EXPECT_TRUE(enrolments_.CheckLive("id 2").ok());
  EXPECT_TRUE(enrolments_.CheckLive("id 3").ok());
  EXPECT_EQ(enrolments_.Live().size(), 2u);
}

TEST_F(EnrolmentsTest, WhatWasMeasuredWhileTheDeviceWasItsOwnIsNotSuperseded) {
  Enrol("a", 0);
  Enrol("b", 10);
  EXPECT_FALSE(enrolments_.WasSuperseded("id 1", At(9)));
  EXPECT_TRUE(enrolments_.WasSuperseded("id 1", At(10)));
  EXPECT_TRUE(enrolments_.WasSuperseded("id 1", std::nullopt));
  EXPECT_FALSE(enrolments_.WasSuperseded("id 2", std::nullopt));
  EXPECT_TRUE(enrolments_.WasSuperseded("never seen", At(0)));
}

TEST_F(EnrolmentsTest, OneThatLeftIsRememberedButNotLive) {
  Enrol("a", 0);
  enrolments_.Leave("id 1");
  EXPECT_EQ(enrolments_.CheckLive("id 1").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(enrolments_.Live(), IsEmpty());
  ASSERT_NE(enrolments_.Find("id 1"), nullptr);
  EXPECT_FALSE(enrolments_.WasSuperseded("id 1", std::nullopt));
  EXPECT_EQ(enrolments_.EarliestSeen(), absl::InfiniteFuture());
}

TEST_F(EnrolmentsTest, RemembersTheLastSixteenThatEndedOnADevice) {
  for (int i = 0; i < 18; ++i) Enrol(absl::StrCat("process ", i), i);
  EXPECT_EQ(enrolments_.Find("id 1"), nullptr);  // seventeen ended
  EXPECT_NE(enrolments_.Find("id 2"), nullptr);
  EXPECT_TRUE(enrolments_.CheckLive("id 18").ok());
}

TEST_F(EnrolmentsTest, NamesTheLiveOnesThatAreSilent) {
  Enrol("a", 0);
  Enrol("b", 5, "device 2");
  EXPECT_THAT(enrolments_.SilentSince(At(-1)), IsEmpty());
  EXPECT_THAT(enrolments_.SilentSince(At(4)), ElementsAre("id 1"));
  enrolments_.Forget("id 1");
  EXPECT_EQ(enrolments_.Find("id 1"), nullptr);
  EXPECT_THAT(enrolments_.SilentSince(At(5)), ElementsAre("id 2"));
}

}  // namespace
}  // namespace tilewright
