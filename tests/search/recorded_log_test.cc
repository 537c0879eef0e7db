// Tuning logs of Tilewright as recorded spaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "db/export.h"
#include "search/recorded_space.h"
#include "tests/db/sample_rows.h"

namespace tilewright {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordedLogTest : public testing::Test {
 protected:
  void SetUp() override { log_ = OpenWorld(directory_.File("log.db")); }

  void Commit(std::vector<TrialRow> trials) {
    const auto committed = log_->CommitTrials(trials);
    ASSERT_TRUE(committed.ok()) << committed.status();
  }
  absl::StatusOr<RecordedFile> Read(const std::string& workload = "") {
    return ReadRecordedFile(directory_.File("log.db"), {.workload = workload});
  }

  TestDirectory directory_;
  std::unique_ptr<Database> log_;
};

TEST_F(RecordedLogTest, TrialsAreASpaceOfTheirSchedules) {
  Commit({SampleTrial(10, "tiled{a=1 b=2}", 3e-3), SampleTrial(11, "tiled{a=2 b=2}", 1e-3),
          SampleTrial(12, "naive{}", 4e-3), FailedTrial(13, "tiled{a=4 b=2}", "wrong output")});
  const absl::StatusOr<RecordedFile> file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->warnings, IsEmpty());
  EXPECT_EQ(file->device, "cpu:test/avx2/2");
  EXPECT_EQ(file->kernel, "qkv");
  const RecordedSpace& space = *file->space;
  ASSERT_EQ(space.Count(), 4);
  EXPECT_EQ(space.At(0).ToString(), "naive{}");
  const absl::uint128 fast = *space.IndexOfKey("tiled{a=2 b=2}");
  EXPECT_THAT(*space.configuration(fast).milliseconds, DoubleNear(1, 1e-12));
  EXPECT_THAT(space.configuration(fast).samples,
              ElementsAre(DoubleNear(1, 1e-12), DoubleNear(1.01, 1e-12)));
  EXPECT_EQ(space.configuration(*space.IndexOfKey("tiled{a=4 b=2}")).failure, "wrong output");
  EXPECT_EQ(space.Neighbours(fast).size(), 2);
}

TEST_F(RecordedLogTest, AnExportIsTheSpaceOfItsLog) {
  Commit({SampleTrial(10, "tiled{a=1 b=2}", 3e-3), SampleTrial(11, "tiled{a=2 b=2}", 1e-3),
          FailedTrial(13, "tiled{a=4 b=2}", "wrong output")});
  const std::string lines = directory_.File("log.jsonl");
  ASSERT_TRUE(ExportLogToFile(*log_, {}, lines).ok());
  const absl::StatusOr<RecordedFile> file = Read();
  const absl::StatusOr<RecordedFile> exported = ReadRecordedFile(lines, {.workload = "qkv"});
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->device, file->device);
  ASSERT_EQ(exported->space->Count(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(exported->space->configuration(i).key, file->space->configuration(i).key);
    EXPECT_EQ(exported->space->configuration(i).milliseconds,
              file->space->configuration(i).milliseconds);
    EXPECT_EQ(exported->space->configuration(i).samples, file->space->configuration(i).samples);
  }
}

TEST_F(RecordedLogTest, NamesTheLineOfAnExportThatDoesNotParse) {
  const std::string lines = directory_.File("log.jsonl");
  ASSERT_TRUE(ExportLogToFile(*log_, {}, lines).ok());
  std::ofstream(lines, std::ios::app) << "{\"kind\":\"trial\"\n";
  const absl::Status status = ReadRecordedFile(lines, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("log.jsonl:"));
}

TEST_F(RecordedLogTest, TimesOfDifferentRunsCompareByTheirAnchor) {
  RunRow again = SampleRun();
  again.id = SampleId(3);
  SessionRow session = SampleSession();
  session.id = SampleId(4);
  session.run = again.id;
  ASSERT_TRUE(log_->InsertRun(again).ok());
  ASSERT_TRUE(log_->InsertSession(session).ok());
  // The second run's device was twice as slow: 8 ms there are 4 ms here.
  TrialRow slow = SampleTrial(20, "tiled{a=1}", 8e-3);
  slow.run = again.id;
  slow.session = session.id;
  slow.anchor_seconds = 4e-3;
  Commit({SampleTrial(10, "tiled{a=1}", 3e-3), slow, SampleTrial(11, "tiled{a=2}", 1e-3)});
  const absl::StatusOr<RecordedFile> file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  const RecordedSpace& space = *file->space;
  ASSERT_EQ(space.Count(), 2);
  // Ratios to the anchor of 1.5 and 2, and 0.5; the anchor's median time is 2 ms.
  EXPECT_THAT(*space.configuration(0).milliseconds, DoubleNear(3.5, 1e-12));
  EXPECT_THAT(*space.configuration(1).milliseconds, DoubleNear(1, 1e-12));
}

TEST_F(RecordedLogTest, LeavesTimesOutThatNoQuotientSurvives) {
  TrialRow no_anchor = SampleTrial(11, "tiled{a=2}", 1e-3);
  no_anchor.anchor_seconds = 1e-320;
  TrialRow odd_samples = SampleTrial(10, "tiled{a=1}", 3e-3);
  odd_samples.samples = Samples{{0, -1, 3e-3, 1e-320, 1e308}, {}, {}};
  Commit({odd_samples, no_anchor, SampleTrial(12, "tiled{a=3}", 1e-320),
          SampleTrial(13, "tiled{a=4}", 1e308)});
  const absl::StatusOr<RecordedFile> file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->space->Count(), 1);
  EXPECT_EQ(file->space->configuration(0).samples.size(), 1);
  EXPECT_THAT(file->warnings,
              ElementsAre(HasSubstr("3 trials are left out, without a schedule or times")));
}

TEST_F(RecordedLogTest, LeavesTrialsOfAnotherAnchorOutAndFailuresOfTheDevice) {
  RunRow other = SampleRun();
  other.id = SampleId(3);
  other.workloads[0].anchor_schedule = "naive{}";
  ASSERT_TRUE(log_->InsertRun(other).ok());
  TrialRow elsewhere = SampleTrial(20, "tiled{a=1}", 8e-3);
  elsewhere.run = other.id;
  Commit({elsewhere, SampleTrial(10, "tiled{a=1}", 3e-3), SampleTrial(11, "tiled{a=2}", 1e-3),
          FailedTrial(12, "tiled{a=4}", "device lost")});
  const absl::StatusOr<RecordedFile> file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->space->Count(), 2);
  EXPECT_THAT(*file->space->configuration(0).milliseconds, DoubleNear(3, 1e-12));
  EXPECT_THAT(file->warnings, Contains(HasSubstr("1 trial is left out, of another target, regime "
                                                 "or anchor than cpu:test/avx2/2")));
  EXPECT_THAT(file->warnings, Contains(HasSubstr("through no fault of the schedule")));
}

TEST_F(RecordedLogTest, AsksWhichOfSeveralWorkloadsIsMeant) {
  TrialRow softmax = SampleTrial(20, "row{a=1}", 8e-3);
  softmax.workload_key = kSoftmaxKey;
  Commit({SampleTrial(10, "tiled{a=1}", 3e-3), softmax});
  const absl::StatusOr<RecordedFile> either = Read();
  EXPECT_EQ(either.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(either.status().message()),
              HasSubstr("trials of 2 workloads; choose one with --workload: aaaa (qkv m=64"));
  EXPECT_EQ((*Read("qkv")).space->At(0).ToString(), "tiled{a=1}");
  EXPECT_EQ((*Read("softmax(r=64 c=64)")).space->At(0).ToString(), "row{a=1}");
  EXPECT_TRUE(absl::IsNotFound(Read("gelu").status()));
}

TEST_F(RecordedLogTest, RefusesALogWithNothingToSearch) {
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("the log has no trials"));
  Commit({FailedTrial(13, "tiled{a=4}", "wrong output")});
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("no trial with a time"));
}

}  // namespace
}  // namespace tilewright
