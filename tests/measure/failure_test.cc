#include "measure/failure.h"

#include <gtest/gtest.h>

#include <set>

namespace tilewright {
namespace {

TEST(Failure, EveryKindIsInTheListOnceAndInOrder) {
  std::set<std::string_view> names;
  int number = 0;
  for (const FailureKindInfo& info : AllFailureKinds()) {
    EXPECT_EQ(static_cast<int>(info.kind), number++);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(&Info(info.kind), &info);
  }
  EXPECT_EQ(number, static_cast<int>(FailureKind::kWorkerLost) + 1);
}

TEST(Failure, NamesParseBackToTheirKinds) {
  for (const FailureKindInfo& info : AllFailureKinds()) {
    ASSERT_TRUE(ParseFailureKind(info.name).ok());
    EXPECT_EQ(*ParseFailureKind(info.name), info.kind);
  }
}

TEST(Failure, AnUnknownNameIsRefusedWithTheNamesThatExist) {
  const absl::Status status = ParseFailureKind("exploded").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("out of bounds"), absl::string_view::npos);
}

TEST(Failure, OnlyBuildTimeoutsAndLostThingsDoNotTrain) {
  for (const FailureKindInfo& info : AllFailureKinds()) {
    const bool excluded = info.kind == FailureKind::kBuildTimeout ||
                          info.kind == FailureKind::kDeviceLost ||
                          info.kind == FailureKind::kWorkerLost;
    EXPECT_EQ(info.trains_classifier, !excluded) << info.name;
  }
}

}  // namespace
}  // namespace tilewright
