#include "search/starts.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/variant.h"
#include "tests/db/sample_rows.h"

namespace tilewright {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class FindTransferredTest : public testing::Test {
 protected:
  void SetUp() override {
    log_ = OpenWorld(directory_.File("log.db"));
    const absl::StatusOr<Workload> workload = Workload::Make(
        "C[m,n] = sum(k: A[m,k] * B[k,n])", {.sizes = "m=256,n=256,k=256", .types = "f32"});
    ASSERT_TRUE(workload.ok()) << workload.status();
    const absl::StatusOr<Target> target = FindTarget("cuda:h200");
    ASSERT_TRUE(target.ok()) << target.status();
    absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
        ScheduleSpace::Make(*workload, *target, AllVariants());
    ASSERT_TRUE(space.ok()) << space.status();
    space_ = *std::move(space);
    WorkloadRow row = SampleWorkload();
    row.key = workload->key();
    row.canonical_text = workload->canonical_text();
    ASSERT_TRUE(log_->InsertWorkload(row).ok());
  }

  // A trial of this workload on the sample world's target, which is another device.
  TrialRow Trial(uint8_t number, const std::string& schedule, double seconds) {
    TrialRow trial = SampleTrial(number, schedule, seconds);
    trial.workload_key = space_->workload().key();
    return trial;
  }
  std::string Text(absl::uint128 index) { return space_->space().At(index).ToString(); }
  void Commit(std::vector<TrialRow> trials) {
    const auto committed = log_->CommitTrials(trials);
    ASSERT_TRUE(committed.ok()) << committed.status();
  }
  std::vector<absl::uint128> Find(int64_t through_row = 1000000,
                                  const std::string& target = "here") {
    const absl::StatusOr<std::vector<absl::uint128>> found =
        FindTransferred(*log_, *space_, target, kRegime, through_row);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : std::vector<absl::uint128>();
  }

  TestDirectory directory_;
  std::unique_ptr<Database> log_;
  std::shared_ptr<const ScheduleSpace> space_;
};

TEST_F(FindTransferredTest, TakesTheOtherDevicesBestThatAreLegalHereTheBestFirst) {
  EXPECT_THAT(Find(), IsEmpty());
  TrialRow faster_by_ratio = Trial(12, Text(7), 3e-3);
  faster_by_ratio.anchor_seconds = 8e-3;  // that session's device was slower
  TrialRow failed = FailedTrial(13, Text(9), "wrong output");
  failed.workload_key = space_->workload().key();
  Commit({Trial(10, Text(5), 2e-3), Trial(11, Text(3), 1e-3), faster_by_ratio, failed,
          Trial(14, "tiled{a=1}", 1e-5)});
  EXPECT_THAT(Find(), ::testing::ElementsAre(7, 3, 5));
}

TEST_F(FindTransferredTest, TakesFiftyAtMostAndNothingOnceTheDeviceIsKnown) {
  std::vector<TrialRow> trials;
  for (int i = 0; i < 80; ++i) trials.push_back(Trial(10 + i, Text(i), 1e-3 * (1 + i)));
  Commit(trials);
  EXPECT_THAT(Find(), SizeIs(50));
  EXPECT_THAT(Find(1000000, kTargetKey), IsEmpty()) << "these are its own trials";
}

TEST_F(FindTransferredTest, ReadsNoFurtherThanARunsBeginning) {
  Commit({Trial(10, Text(5), 2e-3)});
  const absl::StatusOr<int64_t> row = log_->HighestTrialRow();
  ASSERT_TRUE(row.ok());
  Commit({Trial(11, Text(3), 1e-3)});
  EXPECT_THAT(Find(*row), ::testing::ElementsAre(5));
}

}  // namespace
}  // namespace tilewright
