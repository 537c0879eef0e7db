#include "measure/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/measure.pb.h"

namespace tilewright {
namespace {

TEST(ChildProcess, AMissingProgramIsAnErrorOrAChildThatEnds) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Spawn("/nonexistent/program", {"runner"});
  EXPECT_FALSE(child.ok());
}

TEST(ChildProcess, ReportsExitCodesAndSignals) {
  auto child = ChildProcess::Spawn("/bin/sh", {"-c", "exit 7"});
  ASSERT_TRUE(child.ok());
  ChildProcess::Exit exit = (*child)->Stop(absl::Seconds(10));
  EXPECT_EQ(exit.code, 7);
  EXPECT_EQ(exit.ToString(), "exited with status 7");
  child = ChildProcess::Spawn("/bin/sh", {"-c", "kill -SEGV $$"});
  ASSERT_TRUE(child.ok());
  exit = (*child)->Stop(absl::Seconds(10));
  EXPECT_EQ(exit.signal, SIGSEGV);
  EXPECT_EQ(exit.ToString(), "killed by SIGSEGV");
}

TEST(ChildProcess, StopKillsAHungChildAndWhatItStarted) {
  auto child = ChildProcess::Spawn("/bin/sh", {"-c", "sleep 1000 & echo $! >&3; wait"});
  ASSERT_TRUE(child.ok());
  char text[32] = {};
  ASSERT_GT(read((*child)->fd(), text, sizeof(text) - 1), 0);
  const pid_t grandchild = atoi(text);
  ASSERT_GT(grandchild, 0);
  const ChildProcess::Exit exit = (*child)->Stop(absl::ZeroDuration());
  EXPECT_TRUE(exit.reaped);
  EXPECT_EQ(exit.signal, SIGKILL);
  // The grandchild is dead or a zombie that init has yet to reap: it no longer has a command line.
  for (int i = 0; i < 200; ++i) {
    FILE* file = fopen(("/proc/" + std::to_string(grandchild) + "/cmdline").c_str(), "r");
    if (file == nullptr) return;
    const int first = fgetc(file);
    fclose(file);
    if (first == EOF) return;
    usleep(10000);
  }
  FAIL() << "the grandchild lives";
}

TEST(ChildProcess, IsInAGroupOfItsOwnAndHasNoOtherDescriptors) {
  auto child = ChildProcess::Spawn(
      "/bin/sh", {"-c",
                  "found=; for f in 4 5 6 7 8 9 10 11 12; do [ -e /proc/$$/fd/$f ] && "
                  "found=\"$found $f\"; done; echo \"fds:$found\" >&3; cat <&3 >/dev/null"});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(getpgid((*child)->pid()), (*child)->pid());
  char text[64] = {};
  ASSERT_GT(read((*child)->fd(), text, sizeof(text) - 1), 0);
  EXPECT_STREQ(text, "fds:\n");
}

TEST(Frames, ADeadPeerIsUnavailableASilentOneRunsIntoTheDeadline) {
  auto child = ChildProcess::Spawn("/bin/sh", {"-c", "read x <&3; exit 0"});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ((*child)->Receive(absl::Milliseconds(30)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  v1::BuildTask task;
  task.set_schedule("a\n");
  EXPECT_TRUE((*child)->Send(task, absl::Seconds(5)).ok());
  EXPECT_EQ((*child)->Receive(absl::Seconds(10)).status().code(), absl::StatusCode::kUnavailable);
}

class FramesOverAPair : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds_), 0); }
  void TearDown() override {
    close(fds_[0]);
    close(fds_[1]);
  }
  int fds_[2];
};

TEST_F(FramesOverAPair, MessagesComeBackWhole) {
  v1::BuildTask task;
  task.set_schedule(std::string(100000, 's'));
  ASSERT_TRUE(SendMessage(fds_[0], task, absl::Seconds(5)).ok());
  v1::BuildTask got;
  ASSERT_TRUE(ReceiveMessage(fds_[1], &got, absl::Seconds(5)).ok());
  EXPECT_EQ(got.schedule(), task.schedule());
}

TEST_F(FramesOverAPair, NonsenseIsAnErrorNotAnAllocation) {
  const char nonsense[] = "\xff\xff\xff\xff\xff\xff\xff\xff and more";
  ASSERT_GT(send(fds_[0], nonsense, sizeof(nonsense), 0), 0);
  EXPECT_EQ(ReceiveFrame(fds_[1], absl::Seconds(5)).status().code(), absl::StatusCode::kInternal);
}

TEST_F(FramesOverAPair, ATruncatedFrameIsUnavailable) {
  const FrameHeader header{100, static_cast<uint32_t>(FrameKind::kMessage)};
  ASSERT_EQ(send(fds_[0], &header, sizeof(header), 0), static_cast<ssize_t>(sizeof(header)));
  shutdown(fds_[0], SHUT_RDWR);
  EXPECT_EQ(ReceiveFrame(fds_[1], absl::Seconds(5)).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tilewright
