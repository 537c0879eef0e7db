// Disks that fill up and fail, at every point at which they can.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "db/database.h"
#include "fault_vfs.h"
#include "sample_rows.h"

namespace tilewright {
namespace {

struct Mode {
  FaultKind kind;
  bool persistent;
};
constexpr Mode kModes[] = {{FaultKind::kDiskFull, false},
                           {FaultKind::kDiskFull, true},
                           {FaultKind::kIoError, false},
                           {FaultKind::kIoError, true}};

std::vector<TrialRow> Batch(int number) {
  std::vector<TrialRow> batch;
  for (const char* half : {"a", "b"}) {
    TrialRow trial = SampleTrial(0, "tiled{x=" + std::to_string(number) + half + "}", 1e-3);
    trial.id = Id::Random();
    batch.push_back(trial);
  }
  return batch;
}

bool IsAnExpectedFailure(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

// Every acknowledged trial is there once, and no batch in half.
void ExpectConsistent(const std::string& path, const std::set<std::string>& acknowledged) {
  auto database = Database::OpenWriter(path);  // checks the file, since it is small
  ASSERT_TRUE(database.ok()) << database.status();
  std::multiset<std::string> stored;
  const std::vector<TrialRow> trials = *(*database)->QueryTrials({});
  for (const TrialRow& trial : trials) stored.insert(trial.id.ToHex());
  EXPECT_EQ(stored.size() % 2, 0);
  for (const std::string& id : acknowledged) EXPECT_EQ(stored.count(id), 1) << id;
}

class Faults : public testing::Test {
 protected:
  void SetUp() override { FaultVfs::Register(); }
  void TearDown() override {
    FaultVfs::Disarm();
    FaultVfs::DenyLogs(false);
  }
};

TEST_F(Faults, OfADiskNeverLoseAnAcknowledgedTrialNorStoreHalfABatch) {
  TestDirectory base;
  OpenWorld(base.File("base.db"));
  for (const Mode& mode : kModes) {
    bool fired = true;
    for (int nth = 1; fired; ++nth) {
      ASSERT_LT(nth, 200);
      TestDirectory directory;
      const std::string path = directory.File("a.db");
      std::filesystem::copy_file(base.File("base.db"), path);
      std::set<std::string> acknowledged;
      {
        auto database = Database::OpenWriter(path, {.vfs = FaultVfs::kName});
        ASSERT_TRUE(database.ok()) << database.status();
        FaultVfs::Arm(nth, mode.persistent, mode.kind);
        for (int number = 0; number < 3; ++number) {
          const std::vector<TrialRow> batch = Batch(number);
          auto committed = (*database)->CommitTrials(batch);
          if (!committed.ok()) {
            EXPECT_TRUE(FaultVfs::fired());
            EXPECT_TRUE(IsAnExpectedFailure(committed.status())) << committed.status();
            // The caller keeps its rows; once the disk is well, the same batch goes in.
            if (mode.persistent) FaultVfs::Disarm();
            committed = (*database)->CommitTrials(batch);
          }
          ASSERT_TRUE(committed.ok()) << committed.status();
          for (const TrialRow& trial : batch) acknowledged.insert(trial.id.ToHex());
        }
        // Closing checkpoints: with the disk ill again where it is ill for good.
        if (mode.persistent) FaultVfs::Arm(1, true, mode.kind);
        fired = FaultVfs::fired();
      }
      FaultVfs::Disarm();
      ExpectConsistent(path, acknowledged);
      EXPECT_EQ(acknowledged.size(), 6);
    }
  }
}

TEST_F(Faults, OfADiskThatStaysIllAreReportedEveryTime) {
  TestDirectory directory;
  OpenWorld(directory.File("a.db"));
  {
    auto database = Database::OpenWriter(directory.File("a.db"), {.vfs = FaultVfs::kName});
    ASSERT_TRUE(database.ok());
    FaultVfs::Arm(1, true, FaultKind::kDiskFull);
    for (int i = 0; i < 5; ++i) {
      const auto committed = (*database)->CommitTrials(Batch(i));
      EXPECT_TRUE(absl::IsResourceExhausted(committed.status())) << committed.status();
      EXPECT_THAT(std::string(committed.status().message()), testing::HasSubstr("free disk space"));
    }
    EXPECT_EQ((*database)->Count()->trials, 0);
  }
  FaultVfs::Disarm();
  ExpectConsistent(directory.File("a.db"), {});
}

TEST_F(Faults, WhileCreatingLeaveNoFileBehind) {
  for (const Mode& mode : kModes) {
    bool fired = true;
    for (int nth = 1; fired; nth += 3) {
      ASSERT_LT(nth, 1000);
      TestDirectory directory;
      const std::string path = directory.File("a.db");
      FaultVfs::Arm(nth, mode.persistent, mode.kind);
      const auto database = Database::OpenWriter(path, {.vfs = FaultVfs::kName});
      fired = FaultVfs::fired();
      FaultVfs::Disarm();
      if (!database.ok()) {
        EXPECT_TRUE(IsAnExpectedFailure(database.status())) << database.status();
        // A fault after the file is whole (opening writes a little) leaves a whole file.
        if (std::filesystem::exists(path)) ExpectConsistent(path, {});
        EXPECT_FALSE(std::filesystem::exists(path + ".creating"));
        const auto again = Database::OpenWriter(path, {.vfs = FaultVfs::kName});
        EXPECT_TRUE(again.ok()) << again.status();
      }
    }
  }
}

TEST_F(Faults, OfAFullDiskDuringAnImportOrABackupLeaveTheLogAsItWas) {
  TestDirectory directory;
  OpenWorld(directory.File("a.db"));
  auto database = Database::OpenWriter(directory.File("a.db"), {.vfs = FaultVfs::kName});
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)->CommitTrials(Batch(1)).ok());
  FaultVfs::Arm(3, true, FaultKind::kDiskFull);
  const absl::Status status = (*database)->Backup(directory.File("b.db"));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  FaultVfs::Disarm();
  EXPECT_FALSE(std::filesystem::exists(directory.File("b.db")));
  EXPECT_TRUE((*database)->Backup(directory.File("b.db")).ok());
}

TEST_F(Faults, AReaderWorksInADirectoryInWhichItMayNotWrite) {
  TestDirectory directory;
  {
    std::unique_ptr<Database> database = OpenWorld(directory.File("a%20#b?.db"));
    ASSERT_TRUE(database->CommitTrials(Batch(1)).ok());
  }
  FaultVfs::DenyLogs(true);
  const auto reader = Database::OpenReader(directory.File("a%20#b?.db"), {.vfs = FaultVfs::kName});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Count()->trials, 2);
}

}  // namespace
}  // namespace tilewright
