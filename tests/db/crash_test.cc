// Processes that die, and processes that come second.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>
#include <thread>

#include "db/database.h"
#include "sample_rows.h"

extern char** environ;

namespace tilewright {
namespace {

// A crash_writer at work.
class Victim {
 public:
  explicit Victim(std::string database) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = TILEWRIGHT_CRASH_WRITER;
    char* arguments[] = {program.data(), database.data(), nullptr};
    if (posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments, environ) != 0)
      std::abort();
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
  }
  ~Victim() {
    Kill();
    close(output_);
  }
  pid_t process() const { return process_; }

  // Waits for the first acknowledgement. False if the process ended instead.
  bool AwaitFirst() { return Read(); }
  // Ends it wherever it is; what it acknowledged until then.
  std::set<std::string> Kill() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      while (Read()) {
      }
      waitpid(process_, nullptr, 0);
      process_ = -1;
    }
    std::set<std::string> ids;
    for (size_t at = 0; text_.find('\n', at) != std::string::npos; at = text_.find('\n', at) + 1) {
      ids.insert(text_.substr(at, text_.find('\n', at) - at));
    }
    return ids;
  }

 private:
  bool Read() {
    char buffer[4096];
    const ssize_t length = read(output_, buffer, sizeof(buffer));
    if (length > 0) text_.append(buffer, static_cast<size_t>(length));
    return length > 0;
  }
  pid_t process_ = -1;
  int output_ = -1;
  std::string text_;
};

TEST(Crash, KillingTheWriterAtAnyPointLosesNothingAcknowledgedAndDoublesNothing) {
  TestDirectory directory;
  const std::string path = directory.File("a.db");
  std::mt19937 random(20240601);
  std::set<std::string> acknowledged;
  for (int round = 0; round < 20; ++round) {
    Victim victim(path);
    // Every fifth dies while it opens, creates or recovers.
    if (round % 5 != 0) {
      ASSERT_TRUE(victim.AwaitFirst());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 25000));
    const std::set<std::string> now = victim.Kill();
    acknowledged.insert(now.begin(), now.end());
    auto reader = Database::OpenReader(path);
    if (absl::IsNotFound(reader.status()) && acknowledged.empty()) continue;
    ASSERT_TRUE(reader.ok()) << reader.status();
    std::set<std::string> stored;
    int64_t ordinal = 0;
    const std::vector<TrialRow> trials = *(*reader)->QueryTrials({.limit = 1000000});
    for (const TrialRow& trial : trials) {
      EXPECT_TRUE(stored.insert(trial.id.ToHex()).second) << "twice: " << trial.id.ToHex();
      EXPECT_EQ(trial.ordinal, ordinal++);
    }
    EXPECT_EQ(stored.size() % 3, 0);
    for (const std::string& id : acknowledged) EXPECT_TRUE(stored.contains(id)) << "lost: " << id;
  }
  EXPECT_GT(acknowledged.size(), 0);
  EXPECT_TRUE(Database::OpenWriter(path).ok());
}

TEST(SecondWriter, IsRefusedWithTheFirstOnesProcessWhileReadersWork) {
  TestDirectory directory;
  const std::string path = directory.File("a.db");
  Victim victim(path);
  ASSERT_TRUE(victim.AwaitFirst());
  const auto second = Database::OpenWriter(path);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()),
              testing::HasSubstr("by process " + std::to_string(victim.process())));
  const auto reader = Database::OpenReader(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_GE((*reader)->Count()->trials, 3);
  victim.Kill();
  EXPECT_TRUE(Database::OpenWriter(path).ok());
}

TEST(SecondWriter, IsRefusedInTheSameProcessAndThroughASymbolicLink) {
  TestDirectory directory;
  std::unique_ptr<Database> first = OpenWorld(directory.File("a.db"));
  std::filesystem::create_symlink(directory.File("a.db"), directory.File("link.db"));
  for (const char* name : {"a.db", "link.db"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(Database::OpenWriter(directory.File(name)).status()));
    EXPECT_TRUE(Database::OpenReader(directory.File(name)).ok());
  }
  // The reads above, in the writer's own process, have not cost it its locks.
  ASSERT_TRUE(first->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
  first.reset();
  EXPECT_TRUE(Database::OpenWriter(directory.File("link.db")).ok());
}

}  // namespace
}  // namespace tilewright
