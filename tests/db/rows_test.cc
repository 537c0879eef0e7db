#include "db/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace tilewright {
namespace {

TEST(Ids, AreReadBackFromTheirDigitsAndNothingElse) {
  const Id id = Id::Random();
  EXPECT_EQ(id.ToHex().size(), 32);
  EXPECT_EQ(*Id::FromHex(id.ToHex()), id);
  for (const char* bad :
       {"", "12", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Id::FromHex(bad).status())) << bad;
  }
}

TEST(Ids, AreRandom) {
  std::set<Id> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(Id::Random()).second);
}

TEST(SampleBlobs, HoldSamplesWithAndWithoutClocksAndMarks) {
  for (const Samples& samples :
       {Samples{}, Samples{{1e-3, 2e-3}, {}, {}}, Samples{{1e-3, 2e-3}, {2400, 0xffffffff}, {1, 2}},
        Samples{{1e-300}, {}, {3}}}) {
    EXPECT_EQ(*DecodeSamples(EncodeSamples(samples)), samples);
  }
}

TEST(SampleBlobs, ThatAreCutOrLongerAreDamaged) {
  const std::string bytes = EncodeSamples({{1e-3, 2e-3}, {2400, 2300}, {1, 2}});
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeSamples(bytes.substr(0, length)).status())) << length;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeSamples(bytes + "x").status()));
}

TEST(SampleBlobs, OfANewerVersionSaySo) {
  std::string bytes = EncodeSamples({{1e-3}, {}, {}});
  bytes[0] = 2;
  EXPECT_THAT(std::string(DecodeSamples(bytes).status().message()),
              testing::HasSubstr("version 2"));
}

TEST(SampleBlobs, ThatPromiseMoreThanTheyHoldAllocateNothing) {
  std::string bytes = EncodeSamples({{1e-3}, {}, {}});
  bytes[1] = bytes[2] = bytes[3] = bytes[4] = static_cast<char>(0xff);
  EXPECT_TRUE(absl::IsDataLoss(DecodeSamples(bytes).status()));
}

TEST(RoundBlobs, HoldRoundsAndRefuseEveryCut) {
  const Rounds rounds{{"tiled{a=1}", "", "library"}, {1, 2, 3, 4, 5, 6}};
  const std::string bytes = EncodeRounds(rounds);
  EXPECT_EQ(*DecodeRounds(bytes), rounds);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeRounds(bytes.substr(0, length)).status())) << length;
  }
}

}  // namespace
}  // namespace tilewright
