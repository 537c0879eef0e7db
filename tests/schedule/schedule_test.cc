#include "schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

std::string Message(std::string_view text) {
  return std::string(ParseSchedule(text).status().message());
}

TEST(Schedule, ParsesBackToItself) {
  const std::string text = "contraction.tiled{tile_m=6 tile_n=16 pack_b=1 store=tma}";
  absl::StatusOr<Schedule> schedule = ParseSchedule(text);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->ToString(), text);
  EXPECT_EQ(schedule->variant, "contraction.tiled");
  ASSERT_NE(schedule->Find("store"), nullptr);
  EXPECT_EQ(*schedule->Find("store"), "tma");
  EXPECT_EQ(schedule->Find("stages"), nullptr);
}

TEST(Schedule, MayHaveNoDecisions) {
  absl::StatusOr<Schedule> schedule = ParseSchedule("contraction.naive{}");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_TRUE(schedule->decisions.empty());
  EXPECT_EQ(schedule->ToString(), "contraction.naive{}");
}

TEST(Schedule, ReadsSpareSpacesAndWritesNone) {
  absl::StatusOr<Schedule> schedule = ParseSchedule("  v{  a=1   b=-2 }  ");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->ToString(), "v{a=1 b=-2}");
}

TEST(Schedule, ErrorsNameTheColumnAndWhatWasExpected) {
  EXPECT_EQ(Message(""), "schedule text, column 1: expected a name; found the end of the text");
  EXPECT_EQ(Message("v"), "schedule text, column 2: expected '{'; found the end of the text");
  EXPECT_EQ(Message("v{a"),
            "schedule text, column 4: expected '=' after 'a'; found the end of the text");
  EXPECT_EQ(Message("v{a=}"), "schedule text, column 5: expected a value of 'a'; found '}'");
  EXPECT_EQ(Message("v{a=1 =2}"), "schedule text, column 7: expected name=value or '}'; found '='");
  EXPECT_EQ(Message("v{a=1=2}"), "schedule text, column 6: expected a space or '}'; found '='");
  EXPECT_EQ(Message("v{a=1"),
            "schedule text, column 6: expected name=value or '}'; found the end of the text");
  EXPECT_EQ(Message("v{a=1} x"), "schedule text, column 8: expected nothing after '}'; found 'x'");
  EXPECT_THAT(Message("v{a=1 a=2}"), HasSubstr("column 7: 'a' is given twice"));
  EXPECT_EQ(ParseSchedule("v").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Schedule, RejectsControlAndNonAsciiCharacters) {
  EXPECT_FALSE(ParseSchedule("v{a=1\nb=2}").ok());
  EXPECT_FALSE(ParseSchedule("v{a=\xc3\xa4}").ok());
}

}  // namespace
}  // namespace tilewright
