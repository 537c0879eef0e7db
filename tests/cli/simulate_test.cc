// `tilewright simulate` as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cli/command_line.h"

namespace tilewright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kSpace[] = " --space " TILEWRIGHT_TEST_DATA "/recorded_cache.json ";

class SimulateCommand : public CommandLine {};

TEST_F(SimulateCommand, ScoresStrategiesAndWritesALogThatScoresTheSame) {
  const std::string flags = absl::StrCat("simulate", kSpace, "--trials 40 --seeds 3 --json ");
  const Outcome made =
      Run(absl::StrCat(flags, "--strategy random 'evolutionary{initial=8}' --log runs.jsonl"));
  ASSERT_EQ(made.code, 0) << made.output;
  EXPECT_THAT(made.output, AllOf(HasSubstr(R"("strategy":"random","seeds":3,"evaluations":40.0)"),
                                 HasSubstr(R"("strategy":"evolutionary{initial=8}")"),
                                 HasSubstr(R"("Pcal":)"), HasSubstr(R"("at25":)")));
  const std::string log = Read("runs.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 6);
  EXPECT_THAT(log, StartsWith(R"({"strategy":"random","seed":1,"evals":[[)"));
  const Outcome scored = Run(absl::StrCat("simulate", kSpace, "--score runs.jsonl --json"));
  EXPECT_EQ(scored.output, made.output);
  EXPECT_EQ(
      Run(absl::StrCat(flags, "--strategy random 'evolutionary{initial=8}' --jobs 3 --log again"))
          .code,
      0);
  EXPECT_EQ(Read("again"), log);
}

TEST_F(SimulateCommand, PrintsATablePerSpaceAndTheMeans) {
  const Outcome table =
      Run(absl::StrCat("simulate", kSpace, kSpace, "--strategy random --trials 30 --seeds 2"));
  ASSERT_EQ(table.code, 0) << table.output;
  EXPECT_THAT(table.output,
              AllOf(HasSubstr("stencil on Imagined 9000, 304 configurations, 256 valid, optimum "
                              "0.988 ms; P over 30 of 85"),
                    HasSubstr("mean over spaces"), HasSubstr("Pcal")));
}

TEST_F(SimulateCommand, SimulatesTheTrialsOfALog) {
  MakeLog("tuning.db");
  const Outcome log = Run("simulate --space tuning.db --strategy random --seeds 2");
  EXPECT_EQ(log.code, 0) << log.output;
  EXPECT_THAT(log.output, HasSubstr("configurations"));
}

TEST_F(SimulateCommand, WarnsOfWhatIsOddAboutAFile) {
  Write("cut.json", R"({"device_name":"","tune_params_keys":["a"],"cache":{"1":{"a":1,"time":1},)");
  const Outcome odd = Run("simulate --space cut.json --strategy random --seeds 1");
  EXPECT_EQ(odd.code, 0) << odd.output;
  EXPECT_THAT(odd.output, AllOf(HasSubstr("warning: cut.json: it names no device"),
                                HasSubstr("warning: cut.json: it ends before its closing braces")));
}

TEST_F(SimulateCommand, JudgesVerdictsOnNoisyReadings) {
  const std::string flags =
      absl::StrCat("simulate", kSpace, "--noise --strategy random --seeds 5 ");
  const Outcome table = Run(flags);
  EXPECT_EQ(table.code, 0) << table.output;
  EXPECT_THAT(table.output, AllOf(HasSubstr("within 1%"), HasSubstr("called different")));
  EXPECT_THAT(Run(flags + "--json").output, HasSubstr(R"("strategy":"random","runs":5,"within":)"));
}

TEST_F(SimulateCommand, RefusesBadInputInOneLine) {
  Write("text.json", "hello");
  Write("list.json", "[]");
  std::filesystem::create_directory(Path("folder"));
  Write("empty.db", "SQLite format 3");
  Write("plain.json",
        R"({"device_name":"d","tune_params_keys":["a"],"cache":{"1":{"a":1,"time":1}}})");
  struct Case {
    std::string flags;
    std::string message;
    int code = 2;
  };
  for (const Case& bad : std::vector<Case>{
           {"", "--space is required"},
           {"--space none.json", "none.json: no such file"},
           {"--space text.json", "text.json: neither JSON nor a tuning log"},
           {"--space empty.db", "empty.db", 4},
           {absl::StrCat(kSpace, "--strategy nonsense"), "unknown strategy `nonsense`"},
           {absl::StrCat(kSpace, "--strategy 'random{x=1}'"), "strategy random: `x=1` is not"},
           {absl::StrCat(kSpace, "--strategy 'annealing{chains=1e9}'"), "from 1 to 10000"},
           {absl::StrCat(kSpace, "--strategy 'evolutionary{pool=nan}'"), "from 1 to 100000"},
           {absl::StrCat(kSpace, "--trials 0"), "--trials"},
           {absl::StrCat(kSpace, "--first-seed -1"), "--first-seed"},
           {absl::StrCat(kSpace, "--first-seed 18446744073709551616"), "--first-seed"},
           {absl::StrCat(kSpace, "--space none.json"), "none.json: no such file"},
           {absl::StrCat(kSpace, "--score none.jsonl --transfer-from plain.json"), "new ones"},
           {absl::StrCat(kSpace, "--seeds none"), "--seeds"},
           {absl::StrCat(kSpace, "--workload qkv"), "is no tuning log"},
           {absl::StrCat(kSpace, "--log none/runs.jsonl"), "none/runs.jsonl: cannot be written"},
           {absl::StrCat(kSpace, "--score none.jsonl"), "none.jsonl: cannot be read"},
           {absl::StrCat(kSpace, "--score text.json"), "text.json:1: not JSON"},
           {absl::StrCat(kSpace, "--score list.json"), "list.json:1: not an object"},
           {absl::StrCat(kSpace, "--score folder"), "folder: is a directory; expected a log"},
           {"--space folder", "folder: is a directory"},
           {absl::StrCat(kSpace, "--score ''"), "--score: expected a value, found an empty"},
           {absl::StrCat(kSpace, "--log ''"), "--log: expected a value, found an empty"},
           {"--space ''", "--space: expected a value, found an empty"},
           {absl::StrCat(kSpace, "--transfer-from plain.json"), "plain.json: nothing to transfer"},
           {absl::StrCat(kSpace, "--log folder"), "folder: cannot be written"},
           {absl::StrCat(kSpace, "--trials 5 --seeds 2 --log /dev/full"),
            "/dev/full: cannot be written", 1},
           {absl::StrCat(kSpace, "--score text.json --strategy random"), "--score judges"},
           {absl::StrCat(kSpace, kSpace, "--log runs.jsonl"), "take one --space"},
           {absl::StrCat(kSpace, "--noise --log runs.jsonl"), "--noise judges verdicts"},
           {"--space plain.json --noise", "plain.json: the space has no samples"},
           {absl::StrCat(kSpace, "--strategy 'ils{kick=101}'"), "from 1 to 100"},
       }) {
    const Outcome refused = Run(absl::StrCat("simulate ", bad.flags));
    EXPECT_EQ(refused.code, bad.code) << bad.flags << "\n" << refused.output;
    EXPECT_THAT(refused.output, AllOf(StartsWith("tilewright: "), HasSubstr(bad.message)));
    EXPECT_EQ(std::count(refused.output.begin(), refused.output.end(), '\n'), 1) << refused.output;
  }
}

TEST_F(SimulateCommand, PrintsJsonOfAFileWhoseNameIsNoUtf8) {
  Write("a\377.json",
        R"({"device_name":"d","tune_params_keys":["a"],"cache":{"1":{"a":1,"time":1}}})");
  const Outcome read = Run("simulate --space a*.json --strategy random --seeds 1 --json");
  EXPECT_EQ(read.code, 0) << read.output;
  EXPECT_THAT(read.output, StartsWith("{\"space\":\"a\xef\xbf\xbd.json\""));
}

TEST_F(SimulateCommand, TakesALimitOfFilesSizesForAFullDisk) {
  const Outcome full =
      Run(absl::StrCat("simulate", kSpace, "--seeds 2 --trials 200 --log a.jsonl"), "ulimit -f 1;");
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.output, "tilewright: a.jsonl: cannot be written\n");
}

TEST_F(SimulateCommand, TakesNoMoreThreadsThanThereAreCores) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory is beyond any limit";
#endif
  const Outcome made = Run(absl::StrCat("simulate", kSpace, "--seeds 1100 --trials 2 --jobs 1024"),
                           "ulimit -v 1000000;");
  EXPECT_EQ(made.code, 0) << made.output;
}

TEST_F(SimulateCommand, SaysThatThereIsNotEnoughMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory is beyond any limit";
#endif
  std::string text = R"({"device_name":"d","tune_params_keys":["a"],"cache":{)";
  for (int i = 0; i < 100000; ++i)
    absl::StrAppend(&text, i == 0 ? "" : ",", "\"", i, R"(":{"a":)", i, R"(,"time":1})");
  Write("large.json", text + "}}");
  const Outcome refused =
      Run("simulate --space large.json --strategy random --seeds 1", "ulimit -v 150000;");
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.output, "tilewright: there is not enough memory\n");
}

TEST_F(SimulateCommand, LeavesAnOlderLogAsItIsWhenNothingCanBeRun) {
  Write("text.json", "no JSON");
  Write("runs.jsonl", "kept");
  for (const std::string& flags :
       {std::string("--space none.json"), std::string("--space text.json"),
        absl::StrCat(kSpace, "--strategy nonsense"),
        absl::StrCat(kSpace, "--transfer-from none.json")}) {
    EXPECT_EQ(Run(absl::StrCat("simulate --log runs.jsonl ", flags)).code, 2) << flags;
    EXPECT_EQ(Read("runs.jsonl"), "kept") << flags;
  }
}

TEST_F(SimulateCommand, DoesNotWriteTheLogOverARecordedSpace) {
  const std::string text =
      R"({"device_name":"d","tune_params_keys":["a"],"cache":{"1":{"a":1,"time":1}}})";
  Write("space.json", text);
  for (const char* flags :
       {"--space space.json --log ./space.json", "--space space.json --log link",
        "--transfer-from space.json --log space.json --space copy.json"}) {
    Write("copy.json", text);
    std::error_code error;
    std::filesystem::create_symlink("space.json", Path("link"), error);
    const Outcome refused = Run(absl::StrCat("simulate --seeds 1 ", flags));
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("--log would overwrite the recorded space"));
    EXPECT_EQ(Read("space.json"), text) << flags;
  }
}

}  // namespace
}  // namespace tilewright
