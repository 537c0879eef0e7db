// The program as a user meets it: exit codes, and what is said about bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/command_line.h"

namespace tilewright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kMatmul[] = "matmul --size m=8,n=8,k=8 --type f32";

TEST_F(CommandLine, NamesAnUnknownCommandAndThoseThereAre) {
  const Outcome unknown = Run("tunes");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.output,
              StartsWith("tilewright: unknown command 'tunes'; commands are tune, best, query"));
  EXPECT_THAT(unknown.output, Not(HasSubstr("runner")));  // not for people
  EXPECT_THAT(Run("").output, StartsWith("tilewright: expected a command after `tilewright`"));
  EXPECT_THAT(Run("log").output,
              StartsWith("tilewright: expected a command after `tilewright log`; commands are "
                         "export, import, merge, backup; see `tilewright log --help`"));
  EXPECT_THAT(Run("log exprt").output, StartsWith("tilewright: unknown command 'exprt'"));
}

TEST_F(CommandLine, TakesAFlagFromTheEnvironmentBeforeTheFileAndFromTheLineBeforeBoth) {
  Write("c.toml", "[query]\ndb = \"file.db\"\n");
  EXPECT_THAT(Run("--config c.toml query").output, HasSubstr("/file.db: no such file"));
  EXPECT_THAT(Run("query --config c.toml").output, HasSubstr("/file.db: no such file"));
  EXPECT_THAT(Run("--config c.toml query", "TILEWRIGHT_DB=variable.db").output,
              HasSubstr("/variable.db: no such file"));
  EXPECT_THAT(Run("--config c.toml query --db flag.db", "TILEWRIGHT_DB=variable.db").output,
              HasSubstr("/flag.db: no such file"));
}

TEST_F(CommandLine, RefusesAConfigurationFileWithWhatIsNoFlag) {
  Write("c.toml", "[query]\ndbx = \"file.db\"\n");
  const Outcome slip = Run("--config c.toml query");
  EXPECT_EQ(slip.code, 2);
  EXPECT_THAT(slip.output, StartsWith("tilewright: --config: 'query.dbx' is no flag"));
  Write("top.toml", "db = \"file.db\"\n");
  EXPECT_THAT(Run("--config top.toml query").output, HasSubstr("sections named after commands"));
  EXPECT_EQ(Run("--config /etc/passwd query").code, 2);
}

TEST_F(CommandLine, KeepsWorkingWhereTheEnvironmentNamesAVersion) {
  EXPECT_THAT(Run("query", "TILEWRIGHT_VERSION=1").output, HasSubstr("no such file"));
}

TEST_F(CommandLine, TakesAProgramThatNoFamilyWritesForBadInputAndNamesIt) {
  Write("w.tw",
        "fine softmax(r=4 c=4) f32\n"
        "twice 'T[i,j] = sum(k: A[i,k]*B[k,j]); U[i,l] = sum(j: T[i,j]*D[j,l])' i=6 j=6 k=6 l=6 "
        "f32\n");
  for (const char* command :
       {"explain", "tune --time-limit 1s", "tune --dry-run", "build --out pack"}) {
    const Outcome refused = Run(absl::StrCat(command, " --workloads w.tw"));
    EXPECT_EQ(refused.code, 2) << command << ": " << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("tilewright: twice: no family can write this program"));
  }
}

TEST_F(CommandLine, FailsWhereItsOutputCannotBeWritten) {
  const Outcome lost = Run(absl::StrCat("explain ", kMatmul, " > /dev/full"));
  EXPECT_EQ(lost.code, 1);
  EXPECT_EQ(lost.output, "tilewright: standard output cannot be written\n");
}

TEST_F(CommandLine, PrintsIntoNoFileWhereStandardFilesAreClosed) {
  const Outcome made = Run(
      absl::StrCat("log import '", TILEWRIGHT_GOLDEN_DIR, "/log_v1.jsonl' --db a.db <&- >&- 2>&-"));
  EXPECT_EQ(made.code, 0);
  EXPECT_EQ(Run("query workloads --db a.db").code, 0);
  EXPECT_THAT(Read("a.db.lock"), Not(HasSubstr("records")));
}

TEST_F(CommandLine, TakesTheKindThatItShowsForItself) {
  const Outcome shown = Run(absl::StrCat("explain ", kMatmul));
  ASSERT_EQ(shown.code, 0);
  std::string kind;
  for (absl::string_view line : absl::StrSplit(shown.output, '\n')) {
    const std::string text(line);
    if (text.rfind("target ", 0) == 0) kind = text.substr(7, text.find('{') - 7);
  }
  ASSERT_THAT(kind, StartsWith("cpu:"));
  EXPECT_EQ(Run(absl::StrCat("explain ", kMatmul, " --target ", kind)).output, shown.output);
  const Outcome other = Run(absl::StrCat("explain ", kMatmul, " --target cpu:other/avx2/4"));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.output, AllOf(StartsWith("tilewright: unknown target 'cpu:other/avx2/4'"),
                                  HasSubstr(absl::StrCat("this machine is cpu (", kind, ")"))));
}

TEST_F(CommandLine, QueriesHeedTheirFlagsOrRefuseThem) {
  MakeLog("a.db");
  EXPECT_EQ(Run("query trials --db a.db --state failed").code, 0);
  const Outcome unheeded = Run("query workloads --db a.db --state failed");
  EXPECT_EQ(unheeded.code, 2);
  EXPECT_EQ(unheeded.output,
            "tilewright: query workloads does not heed --state; it heeds --db, --json\n");
  const Outcome failure = Run("query trials --db a.db --failure wrong_outputs");
  EXPECT_EQ(failure.code, 2);
  EXPECT_THAT(failure.output, HasSubstr("wrong_outputs"));
  const Outcome target = Run("query trials --db a.db --target cuda:h2000");
  EXPECT_EQ(target.code, 2);
  EXPECT_THAT(target.output, StartsWith("tilewright: no target in the log is `cuda:h2000`; its "
                                        "kinds are "));
  EXPECT_THAT(Run("query trials --db a.db --limit 1").output, HasSubstr("1 rows shown"));
}

TEST_F(CommandLine, RefusesToWriteOverWhatIsThere) {
  MakeLog("a.db");
  std::filesystem::create_directory(Path("full"));
  Write("full/file", "mine");
  const Outcome pack = Run(absl::StrCat("build ", kMatmul, " --db a.db --out full"));
  EXPECT_EQ(pack.code, 2);
  EXPECT_THAT(pack.output, HasSubstr("exists and is no pack"));
  EXPECT_EQ(Read("full/file"), "mine");
  EXPECT_EQ(Run("log export full/file --db a.db").code, 2);
  EXPECT_EQ(Run("log backup full/file --db a.db").code, 2);
  EXPECT_EQ(Run("log export nowhere/file --db a.db").code, 2);
  EXPECT_EQ(Read("full/file"), "mine");
}

TEST_F(CommandLine, RefusesAnEmptyTextWhereAValueIsExpected) {
  for (const char* flags : {"tune ''", "tune matmul --size ''", "query --db ''", "build --out ''",
                            "tune --workloads ''", "explain matmul --schedule ''"}) {
    const Outcome refused = Run(flags);
    EXPECT_EQ(refused.code, 2) << flags << ": " << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("expected a value, found an empty text")) << flags;
  }
}

TEST_F(CommandLine, AWorkloadOfTwoNamesHasTheWeightOfBoth) {
  Write("w.tw",
        "a x3 matmul(m=8 n=8 k=8) f32\n"
        "other softmax(r=8 c=8) f32\n"
        "b x4 matmul(m=8 n=8 k=8) f32\n");
  const Outcome tuned = Run("tune --workloads w.tw --db a.db --trials 4 --floor 1 --no-finals");
  EXPECT_EQ(tuned.code, 0) << tuned.output;
  EXPECT_THAT(tuned.output, ::testing::ContainsRegex("\na +7 "));
}

TEST_F(CommandLine, ATuneMeasuresAndDecidesHoweverShortItsTime) {
  const Outcome tune = Run(absl::StrCat("tune ", kMatmul, " --db a.db --time-limit 1s"));
  EXPECT_EQ(tune.code, 0) << tune.output;
  EXPECT_THAT(tune.output, HasSubstr("verdict: "));
}

TEST_F(CommandLine, RefusesWhatCannotBeTunedHereBeforeItBegins) {
  for (const char* flag : {"--target cpu:x86-64-v3", "--regime chain=dependent", "--model oracle",
                           "--seed -1", "--device 7", "--target cuda:a100", "--rounds 5"}) {
    const Outcome refused =
        Run(absl::StrCat("tune ", kMatmul, " --db a.db --time-limit 10s ", flag));
    EXPECT_EQ(refused.code, 2) << flag << ": " << refused.output;
  }
  EXPECT_THAT(Run(absl::StrCat("tune ", kMatmul, " --model oracle")).output,
              AllOf(HasSubstr("known: xgboost, "), HasSubstr(", none")));
  const Outcome large = Run("tune matmul --size m=300000,n=300000,k=300000 --type f32 --db a.db");
  EXPECT_EQ(large.code, 2);
  EXPECT_THAT(large.output, HasSubstr("GB of memory"));
  EXPECT_FALSE(std::filesystem::exists(Path("a.db")));
}

TEST_F(CommandLine, AnImportThatFailsLeavesNoLogBehind) {
  Write("garbage.jsonl", "no log\n");
  EXPECT_EQ(Run("log import garbage.jsonl --db new.db").code, 2);
  for (const char* file : {"new.db", "new.db-wal", "new.db-shm", "new.db.lock"})
    EXPECT_FALSE(std::filesystem::exists(Path(file))) << file;
  MakeLog("old.db");
  EXPECT_EQ(Run("log import garbage.jsonl --db old.db").code, 2);
  EXPECT_TRUE(std::filesystem::exists(Path("old.db")));
}

// What a scheduler of jobs sends before it kills.
TEST_F(CommandLine, RefusesADirectoryForDumpsThatCannotBeWrittenBeforeItBegins) {
  Write("file", "");
  const Outcome outcome = Run(absl::StrCat("tune ", kMatmul, " --dump file/dumps --db t.db"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output,
              StartsWith("tilewright: --dump file/dumps: Not a directory; expected a directory "
                         "that can be written"));
  EXPECT_FALSE(std::filesystem::exists(Path("t.db")));
}

TEST_F(CommandLine, BeginsNoWorkloadAfterTheTimeLimitAndSaysWhich) {
  Write("two.tw",
        "first matmul(m=8 n=8 k=8) f32\n"
        "second matmul(m=8 n=16 k=8) f32\n");
  const Outcome outcome = Run("tune --workloads two.tw --time-limit 1ms --effort quick --db t.db");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("second"));
  EXPECT_THAT(outcome.output, HasSubstr("not begun, the time limit was over"));
}

TEST_F(CommandLine, SeveralWorkloadsShareTheirTrialsAndTheReportSaysHow) {
  Write("two.tw",
        "rare x1 matmul(m=8 n=8 k=8) f32\n"
        "often x50 matmul(m=8 n=16 k=8) f32\n");
  const Outcome outcome = Run(
      "tune --workloads two.tw --trials 24 --floor 8 --batch 8 --no-finals --model none --db t.db");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("shared budget"));
  EXPECT_THAT(outcome.output, ::testing::ContainsRegex("rare +1 [^\n]* 8 +8 +0 +0 +0\n"));
  EXPECT_THAT(outcome.output, ::testing::ContainsRegex("often +50 [^\n]* 40 +8 +32 +0 +0\n"));
  EXPECT_THAT(Run("tune --workloads two.tw --floor 0 --db t.db").code, 2);
}

TEST_F(CommandLine, ADryRunSaysWhatEachWorkloadSurelyGetsAndWhatIsShared) {
  Write("two.tw",
        "rare x1 matmul(m=8 n=8 k=8) f32\n"
        "often x50 matmul(m=8 n=16 k=8) f32\n");
  const Outcome shared =
      Run("tune --workloads two.tw --trials 24 --floor 8 --time-limit 90s --db t.db --dry-run");
  EXPECT_EQ(shared.code, 0) << shared.output;
  EXPECT_THAT(shared.output, ::testing::ContainsRegex("workload +weight +key .* floor\n"));
  EXPECT_THAT(shared.output, ::testing::ContainsRegex("rare +1 [^\n]* 8\n"));
  EXPECT_THAT(shared.output, ::testing::ContainsRegex("often +50 [^\n]* 8\n"));
  EXPECT_THAT(shared.output, HasSubstr("48 trials in all: the floors first, together 16; "
                                       "the other 32 by turns"));
  EXPECT_THAT(shared.output, HasSubstr("ends, finals included, after 90s"));
  const Outcome equal = Run("tune --workloads two.tw --trials 24 --floor 24 --db t.db --dry-run");
  EXPECT_THAT(equal.output, HasSubstr("equal shares of at most 24 trials, 48 in all"));
}

TEST_F(CommandLine, AWorkerThatFindsNoCoordinatorSaysSo) {
  const Outcome outcome = Run("worker --connect unix:nobody.sock & sleep 1; kill $!; wait $!");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("unix:nobody.sock"));
  EXPECT_THAT(outcome.output, HasSubstr("trying again for"));
}

TEST_F(CommandLine, ATuneEndsWithTheBestSoFarWhenTerminatedOrInterrupted) {
  // A shell's background program begins with SIGINT ignored.
  for (const char* signal : {"TERM", "INT"}) {
    const Outcome tune =
        Run(absl::StrCat("tune ", kMatmul,
                         " --db a.db --effort thorough --time-limit 10m > out 2>&1 & "
                         "for i in $(seq 300); do grep -qs starting out && break; sleep 0.1; done; "
                         "kill -",
                         signal, " $!; wait $!"),
            "rm -f out; mkdir -p tmp; export TMPDIR=$PWD/tmp;");
    EXPECT_THAT(tune.code, ::testing::AnyOf(0, 1));  // 1: nothing was measured yet
    EXPECT_THAT(Read("out"), HasSubstr("; interrupted"));
    EXPECT_TRUE(std::filesystem::is_empty(Path("tmp")));
    EXPECT_THAT(Run("query runs --db a.db").output, HasSubstr("interrupted"));
  }
}

TEST_F(CommandLine, HelpShowsWhichSizesAnOperatorWants) {
  EXPECT_THAT(Run("tune --help").output,
              AllOf(HasSubstr("softmax: softmax of each row"), HasSubstr("--size r=4,c=9"),
                    HasSubstr("linear(activation=none|relu|gelu|silu)")));
}

TEST_F(CommandLine, ThePackOfTheExampleForCudaIsWhatTheExampleCalls) {
  const std::string cuda = TILEWRIGHT_CUDA_INCLUDE;
  if (cuda.empty()) GTEST_SKIP() << "cuda.h was not found";
  MakeLog("a.db");
  const Outcome built = Run(absl::StrCat("build --workloads ", TILEWRIGHT_EXAMPLES,
                                         "/pack_cuda/kernels.tw --target cuda:h200 --db a.db "
                                         "--regime chain=dependent --out gpu_kernels"));
  if (built.output.find("no ptxas was found") != std::string::npos) {
    GTEST_SKIP() << "no ptxas: the kernels have instructions of sm_90a alone";
  }
  ASSERT_EQ(built.code, 0) << built.output;
  for (const std::string& file :
       {absl::StrCat(TILEWRIGHT_EXAMPLES, "/pack_cuda/demo.c"), Path("gpu_kernels/launcher.c")}) {
    const std::string command =
        absl::StrCat("cc -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I ", Path("gpu_kernels"),
                     " -isystem ", cuda, " ", file);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

}  // namespace
}  // namespace tilewright
