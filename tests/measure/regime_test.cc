#include "measure/regime.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

Workload Ranged() {
  WorkloadOptions options;
  options.sizes = "m=1..64,n=32,k=16";
  options.types = "f32";
  absl::StatusOr<Workload> workload = Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", options);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

std::string RangedName(const Workload& workload) {
  for (size_t i = 0; i < workload.sizes().size(); ++i) {
    if (!workload.sizes()[i].fixed()) return workload.program().indices[i];
  }
  return "";
}

TEST(Regime, EmptyTextMeansTheDefaultsAndTheUpperEnd) {
  const Workload workload = Ranged();
  const absl::StatusOr<Regime> regime = ParseRegime("", workload);
  ASSERT_TRUE(regime.ok());
  EXPECT_EQ(regime->ToString(workload),
            "cache=cold chain=plain data=normal at=" + RangedName(workload) + ":64");
}

TEST(Regime, ParsesWhatItPrintsInAnyOrder) {
  const Workload workload = Ranged();
  const std::string at = "at=" + RangedName(workload) + ":8";
  const absl::StatusOr<Regime> regime = ParseRegime(at + " chain=dependent cache=warm", workload);
  ASSERT_TRUE(regime.ok()) << regime.status();
  const std::string text = regime->ToString(workload);
  EXPECT_EQ(text, "cache=warm chain=dependent data=normal " + at);
  EXPECT_EQ(*ParseRegime(text, workload), *regime);
}

TEST(Regime, RefusesWhatItDoesNotKnowAndSaysWhatItAccepts) {
  const Workload workload = Ranged();
  for (const char* text :
       {"cache=lukewarm", "speed=fast", "cache", "cache=cold cache=warm", "at=z:3", "at=x:many"}) {
    const absl::Status status = ParseRegime(text, workload).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_NE(ParseRegime("cache=lukewarm", workload).status().message().find("cache=cold|warm"),
            absl::string_view::npos);
}

TEST(Regime, RefusesSizesOutsideTheRange) {
  const Workload workload = Ranged();
  EXPECT_FALSE(ParseRegime("at=" + RangedName(workload) + ":65", workload).ok());
}

}  // namespace
}  // namespace tilewright
