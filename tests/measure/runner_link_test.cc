#include "measure/runner_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// A runner that does what a shell script says.
class RunnerLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/runner-link-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  RunnerLink::Answer AskOf(const std::string& script) const {
    const std::string path = directory_ + "/runner";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    chmod(path.c_str(), 0700);
    absl::StatusOr<std::unique_ptr<RunnerLink>> link = RunnerLink::Start(path);
    EXPECT_TRUE(link.ok()) << link.status();
    return (*link)->Ask({}, absl::Seconds(10));
  }

 private:
  std::string directory_;
};

TEST_F(RunnerLinkTest, ARunnerKilledFromOutsideSaysNothingAboutItsCandidate) {
  if (std::ifstream vmstat("/proc/vmstat"); !vmstat) GTEST_SKIP() << "[SKIP] no /proc/vmstat here";
  const RunnerLink::Answer answer = AskOf("kill -KILL $$");
  EXPECT_FALSE(answer.reply.has_value());
  EXPECT_EQ(answer.failure.kind, FailureKind::kDeviceLost) << answer.failure.text;
  EXPECT_THAT(answer.failure.text, HasSubstr("killed by SIGKILL"));
  EXPECT_TRUE(Info(answer.failure.kind).retried);
}

TEST_F(RunnerLinkTest, ARunnerThatEndsByItselfCrashed) {
  const RunnerLink::Answer answer = AskOf("exit 3");
  EXPECT_EQ(answer.failure.kind, FailureKind::kCrashed);
  EXPECT_THAT(answer.failure.text, HasSubstr("exited with status 3"));
}

}  // namespace
}  // namespace tilewright
