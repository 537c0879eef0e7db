// Runs the program as a user does, by the shell.
#ifndef TILEWRIGHT_TESTS_CLI_COMMAND_LINE_H_
#define TILEWRIGHT_TESTS_CLI_COMMAND_LINE_H_

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace tilewright {

struct Outcome {
  int code = -1;
  std::string output;  // standard output and error together
};

// Each test has a directory of its own.
class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/cli-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Runs `ENVIRONMENT tilewright ARGUMENTS` by the shell, so both may hold redirections and quotes.
  Outcome Run(const std::string& arguments, const std::string& environment = "") const {
    const std::string command = absl::StrCat("cd '", directory_, "' && { ", environment, " '",
                                             TILEWRIGHT_PROGRAM, "' ", arguments, "; } 2>&1");
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return outcome;
    char buffer[4096];
    for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      outcome.output.append(buffer, n);
    const int status = pclose(pipe);
    if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
    return outcome;
  }

  std::string Path(const std::string& name) const { return absl::StrCat(directory_, "/", name); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }
  // A log with a few records.
  void MakeLog(const std::string& name) const {
    const Outcome made =
        Run(absl::StrCat("log import '", TILEWRIGHT_GOLDEN_DIR, "/log_v1.jsonl' --db ", name));
    ASSERT_EQ(made.code, 0) << made.output;
  }

 private:
  std::string directory_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_CLI_COMMAND_LINE_H_
