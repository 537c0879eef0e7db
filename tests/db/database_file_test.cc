// Files that are not a log of ours, or no longer.
#include "db/database_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "db/export.h"
#include "db/schema.h"
#include "sample_rows.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Both ways of opening refuse it with a message that holds `why`; the file and its directory stay
// as they are.
void ExpectRefused(const TestDirectory& directory, const std::string& name,
                   const std::string& why) {
  const std::string path = directory.File(name);
  const std::string before = ReadFile(path);
  for (const bool writable : {true, false}) {
    const absl::Status status =
        writable ? Database::OpenWriter(path).status() : Database::OpenReader(path).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
  EXPECT_EQ(ReadFile(path), before);
  const auto entries = std::filesystem::directory_iterator(directory.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

// The bytes of a log with a few records.
std::string LogBytes() {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  EXPECT_TRUE(database
                  ->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3),
                                  FailedTrial(11, "tiled{a=2}", "crashed")})
                  .ok());
  EXPECT_TRUE(database->InsertVerdict(SampleVerdict(20, "tiled{a=1}")).ok());
  database.reset();
  return ReadFile(directory.File("a.db"));
}

TEST(Refusal, OfAnEmptyFile) {
  TestDirectory directory;
  WriteFile(directory.File("a.db"), "");
  ExpectRefused(directory, "a.db", "empty");
}

TEST(Refusal, OfTextAndGarbage) {
  for (const std::string& bytes :
       {std::string("x"), std::string("SQLite format 3"), std::string(5000, 'z')}) {
    TestDirectory directory;
    WriteFile(directory.File("a.db"), bytes);
    ExpectRefused(directory, "a.db", "not an SQLite database");
  }
}

TEST(Refusal, OfAnotherProgramsDatabase) {
  TestDirectory directory;
  {
    SQLite::Database other(directory.File("a.db"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    other.exec("CREATE TABLE bookmarks(url TEXT); PRAGMA user_version = 1");
  }
  ExpectRefused(directory, "a.db", "another program");
}

TEST(Refusal, OfANewerVersion) {
  TestDirectory directory;
  std::string bytes = LogBytes();
  bytes[63] = static_cast<char>(SchemaVersion() + 1);  // user_version, big-endian at 60
  WriteFile(directory.File("a.db"), bytes);
  ExpectRefused(directory, "a.db", "newer Tilewright");
}

TEST(Refusal, OfATruncatedLogAtAnyLength) {
  const std::string bytes = LogBytes();
  for (size_t length = 1; length < bytes.size(); length += 1021) {
    TestDirectory directory;
    WriteFile(directory.File("a.db"), bytes.substr(0, length));
    ExpectRefused(directory, "a.db", length < 100 ? "not an SQLite database" : "truncated");
  }
}

TEST(Refusal, OfADirectoryAndOfAFileInNoDirectory) {
  TestDirectory directory;
  EXPECT_TRUE(absl::IsFailedPrecondition(Database::OpenWriter(directory.path()).status()));
  EXPECT_TRUE(absl::IsNotFound(Database::OpenWriter(directory.File("none/a.db")).status()));
  EXPECT_TRUE(absl::IsNotFound(Database::OpenReader(directory.File("a.db")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Database::OpenReader("").status()));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Refusal, OfALogWithTwoNames) {
  TestDirectory directory;
  OpenWorld(directory.File("a.db"));
  std::filesystem::create_hard_link(directory.File("a.db"), directory.File("b.db"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Database::OpenWriter(directory.File("a.db")).status()));
}

TEST(Damage, InAnyPageIsRefusedOrReportedAndNeverChangesTheFile) {
  const std::string bytes = LogBytes();
  constexpr size_t kPage = 4096;
  for (size_t page = 0; page < bytes.size() / kPage; ++page) {
    TestDirectory directory;
    const std::string path = directory.File("a.db");
    std::string damaged = bytes;
    // The b-tree header of the page; of page 1 it follows the file's header.
    for (size_t i = 0; i < 12; ++i) damaged[page * kPage + (page == 0 ? 100 : 0) + i] ^= 0x5a;
    WriteFile(path, damaged);
    const absl::Status writer = Database::OpenWriter(path).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(writer)) << page << ": " << writer;
    EXPECT_EQ(writer.message().find('\n'), std::string::npos);
    const auto reader = Database::OpenReader(path);
    if (reader.ok()) {
      const auto exported =
          ExportLog(**reader, {}, [](const std::string&) { return absl::OkStatus(); });
      EXPECT_TRUE(exported.ok() || absl::IsDataLoss(exported.status())) << exported.status();
    }
    EXPECT_EQ(ReadFile(path), damaged);
  }
}

TEST(Damage, AFileThatIsTakenAwayEndsTheWriting) {
  for (const bool replaced : {false, true}) {
    TestDirectory directory;
    const std::string path = directory.File("a.db");
    WriteFile(directory.File("other.db"), LogBytes());
    std::unique_ptr<Database> database = OpenWorld(path);
    ASSERT_TRUE(database->NextGeneration(1).ok());
    if (replaced) {
      std::filesystem::rename(directory.File("other.db"), path);
    } else {
      std::filesystem::remove(path);
    }
    const absl::Status status = database->NextGeneration(2).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(path + ": was deleted, moved or replaced while it was written"));
  }
}

TEST(Damage, InSamplesCostsTheSamplesAlone) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  ASSERT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
  database->connection().database().exec("UPDATE trial_samples SET samples = x'09'");
  EXPECT_TRUE(absl::IsDataLoss(database->LoadSamples(SampleId(10)).status()));
  EXPECT_TRUE(database->Best(kMatmulKey, kTargetKey, kRegime).ok());
  const auto exported =
      ExportLog(*database, {}, [](const std::string&) { return absl::OkStatus(); });
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->unreadable_blobs, 1);
}

TEST(Damage, OfTheLogFileLosesAtMostWhatItHeld) {
  TestDirectory directory;
  OpenWorld(directory.File("a.db"));
  WriteFile(directory.File("a.db-wal"), std::string(10000, 'q'));
  const auto database = Database::OpenWriter(directory.File("a.db"));
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_EQ((*database)->Count()->runs, 1);
}

TEST(NetworkFileSystem, IsKnownByItsTypeAndFuseByItsMount) {
  EXPECT_EQ(NetworkFileSystem(0x6969, "nfs4"), "NFS");
  EXPECT_EQ(NetworkFileSystem(0xff534d42, "cifs"), "CIFS");
  EXPECT_EQ(NetworkFileSystem(0x0bd00bd0, "lustre"), "Lustre");
  EXPECT_EQ(NetworkFileSystem(0xef53, "ext4"), "");
  EXPECT_EQ(NetworkFileSystem(0x01021994, "tmpfs"), "");
  EXPECT_EQ(NetworkFileSystem(0x65735546, "fuse.sshfs"), "FUSE");
  EXPECT_EQ(NetworkFileSystem(0x65735546, "fuse.fuse-overlayfs"), "");
  TestDirectory directory;
  EXPECT_TRUE(CheckFileSystem(directory.File("a.db")).ok());
}

}  // namespace
}  // namespace tilewright
