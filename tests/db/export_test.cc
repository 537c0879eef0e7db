#include "db/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "golden.h"
#include "sample_rows.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

// A log with a record of every kind.
std::unique_ptr<Database> OpenFullLog(const std::string& path) {
  std::unique_ptr<Database> database = OpenWorld(path);
  EXPECT_TRUE(database->AppendAnchorTime(SampleId(2), kMatmulKey, 2e-3).ok());
  EXPECT_TRUE(
      database->LogProposal({SampleId(1), 0, kMatmulKey, 0, 0, {"tiled{a=1}", "tiled{a=2}"}, 1600})
          .ok());
  TrialRow same = SampleTrial(12, "tiled{a=3}", 1e-3);
  same.same_as = SampleId(10);
  EXPECT_TRUE(database
                  ->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3),
                                  FailedTrial(11, "tiled{a=2}", "wrong output"), same,
                                  SampleTrial(13, "tiled{a=1}", 0.1 + 0.2)})
                  .ok());
  VerdictRow verdict = SampleVerdict(21, "tiled{a=1}");
  verdict.replaces = {SampleId(20)};
  EXPECT_TRUE(database->InsertVerdict(verdict).ok());
  EXPECT_TRUE(database
                  ->InsertEvaluation(
                      {SampleId(30), SampleId(1), "ranker", 3, 3, R"({"spearman":0.8})", 5000, ""})
                  .ok());
  return database;
}

std::string Export(Database& database, const ExportOptions& options = {}) {
  std::string text;
  const auto report = ExportLog(database, options, [&](const std::string& line) {
    text += line + "\n";
    return absl::OkStatus();
  });
  EXPECT_TRUE(report.ok()) << report.status();
  return text;
}

absl::StatusOr<ImportReport> Import(Database& database, const std::string& text) {
  std::istringstream lines(text);
  return ImportLog(database, lines, "log.jsonl");
}

TEST(Export, OfARecordOfEveryKindIsTheGoldenOne) {
  TestDirectory directory;
  ExpectGolden("log_v1.jsonl", Export(*OpenFullLog(directory.File("a.db"))));
}

TEST(Import, OfTheGoldenLogIntoAnEmptyOneGivesTheSameLog) {
  TestDirectory directory;
  const std::string golden = ReadGolden("log_v1.jsonl");
  auto database = Database::OpenWriter(directory.File("a.db"), {.origin = "test"});
  const auto report = Import(**database, golden);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->lines, report->added + 1);
  EXPECT_EQ(report->late, 1);
  EXPECT_EQ(Export(**database), golden);
  EXPECT_EQ((*database)->LoadResumeState(SampleId(1))->trials.size(), 3);
  EXPECT_TRUE((*database)->Best(kMatmulKey, kTargetKey, kRegime)->verdicts[0].current);
}

TEST(Import, KeepsOriginsAndIsIdempotent) {
  TestDirectory directory;
  const std::string text = Export(*OpenFullLog(directory.File("a.db")));
  auto database = Database::OpenWriter(directory.File("b.db"), {.origin = "elsewhere"});
  ASSERT_TRUE(Import(**database, text).ok());
  const std::string once = Export(**database);
  const auto again = Import(**database, text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->added, 0);
  EXPECT_EQ(again->known, again->lines - 1);
  EXPECT_EQ(Export(**database), once);
  EXPECT_EQ((*database)->FindTrial(SampleId(10))->origin, "test");
  EXPECT_EQ((*database)->origin(), "elsewhere");
}

TEST(Merge, GivesWhatExportAndImportGive) {
  TestDirectory directory;
  std::unique_ptr<Database> from = OpenFullLog(directory.File("a.db"));
  auto into = Database::OpenWriter(directory.File("b.db"), {.origin = "test"});
  auto reader = Database::OpenReader(directory.File("a.db"));
  const auto report = MergeLog(**into, **reader);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Export(**into), Export(*from));
  EXPECT_EQ(MergeLog(**into, **reader)->added, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(MergeLog(*from, **reader).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(MergeLog(**reader, **into).status()));
}

TEST(Merge, OfARunThatWentOnInTwoCopiesKeepsOursAndStoresTheirResultsAsLate) {
  TestDirectory directory;
  std::unique_ptr<Database> ours = OpenWorld(directory.File("a.db"));
  ASSERT_TRUE(ours->Backup(directory.File("b.db")).ok());
  auto theirs = Database::OpenWriter(directory.File("b.db"));
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  ASSERT_TRUE(ours->LogProposal({SampleId(1), 0, kMatmulKey, 0, 0, {"tiled{a=1}"}, 1}).ok());
  ASSERT_TRUE((*theirs)->LogProposal({SampleId(1), 0, kMatmulKey, 0, 0, {"tiled{a=2}"}, 1}).ok());
  ASSERT_TRUE(ours->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
  ASSERT_TRUE((*theirs)->CommitTrials({SampleTrial(11, "tiled{a=2}", 1e-3)}).ok());
  const auto report = MergeLog(*ours, **theirs);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->conflicting, 1);
  EXPECT_EQ(report->late, 1);
  EXPECT_EQ(ours->LoadResumeState(SampleId(1))->proposals[0].schedules[0], "tiled{a=1}");
  EXPECT_EQ(MergeLog(*ours, **theirs)->added, 0);
}

TEST(Merge, OfTwoFleetsVerdictsIsContestedInEitherOrder) {
  TestDirectory directory;
  std::unique_ptr<Database> ours = OpenWorld(directory.File("a.db")),
                            theirs = OpenWorld(directory.File("b.db"));
  ASSERT_TRUE(ours->InsertVerdict(SampleVerdict(20, "tiled{a=1}")).ok());
  ASSERT_TRUE(theirs->InsertVerdict(SampleVerdict(21, "tiled{a=2}")).ok());
  ASSERT_TRUE(MergeLog(*ours, *theirs).ok());
  ASSERT_TRUE(MergeLog(*theirs, *ours).ok());
  for (Database* database : {ours.get(), theirs.get()}) {
    EXPECT_EQ(database->Best(kMatmulKey, kTargetKey, kRegime)->kind, BestAnswer::Kind::kContested);
  }
}

TEST(Import, RefusesABadLineByItsNumberAndImportsNothing) {
  TestDirectory directory;
  std::string text = Export(*OpenFullLog(directory.File("a.db")));
  auto database = Database::OpenWriter(directory.File("b.db"));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  auto trial = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find(R"("kind":"trial")") != std::string::npos;
  });
  const std::string where = "log.jsonl:" + std::to_string(trial - lines.begin() + 1) + ": ";
  const std::vector<std::pair<std::string, std::string>> changes = {
      {R"("schedule":)", R"("shedule":)"},            // a field missing, another unknown
      {R"("seconds":0.001)", R"("seconds":"fast")"},  // wrong type
      {R"("seconds":0.001)", R"("seconds":-0.001)"},  // wrong value
      {R"("seconds":0.001)", R"("seconds":1e999)"},
      {R"("seconds":0.001)", R"("seconds":null)"},
      {R"("id":"0a0a)", R"("id":"zz0a)"},
      {R"("run":"0101)", R"("run":"7701)"},  // no such run
      {R"("kind":"trial")", R"("kind":"trail")"},
      {R"("version":1)", R"("version":2)"},
      {R"("version":1)", R"("version":0)"},
      {R"("build_ns":12345)", R"("build_ns":123.5)"},
      {R"("clock_mhz":[2400,2395])", R"("clock_mhz":[2400,-1])"},
      {R"("clock_mhz":[2400,2395])", R"("clock_mhz":[2400])"},
      {R"("created_unix_ns":2000)", R"("created_unix_ns":99999999999999999999)"},
      {R"("ordinal":0)", R"("ordinal":0,"extra":1)"},
      {"{", "["},
      {R"("spills":0})", R"("spills":0)"},
  };
  for (const auto& [from, to] : changes) {
    std::string line = *trial;
    ASSERT_NE(line.find(from), std::string::npos) << from;
    line.replace(line.find(from), from.size(), to);
    const auto report = Import(**database, absl::StrReplaceAll(text, {{*trial, line}}));
    EXPECT_TRUE(absl::IsInvalidArgument(report.status()) ||
                absl::IsFailedPrecondition(report.status()))
        << to;
    EXPECT_THAT(std::string(report.status().message()), testing::StartsWith(where)) << to;
    EXPECT_EQ((*database)->Count()->workloads, 0);
  }
}

TEST(Import, RefusesLinesWithoutAHeaderAndNewerLogs) {
  TestDirectory directory;
  auto database = Database::OpenWriter(directory.File("a.db"));
  for (const char* text : {"", "\n", "garbage\n", "{}\n",
                           R"({"kind":"target","version":1,"key":"k","target":"c","text":"t"})",
                           "\xff\xfe\n", "[[[[[[[[[[[[[[[["}) {
    const auto report = Import(**database, text);
    EXPECT_TRUE(absl::IsInvalidArgument(report.status())) << text;
    EXPECT_THAT(std::string(report.status().message()), HasSubstr("log.jsonl:1: ")) << text;
  }
  const auto newer = Import(**database, R"({"kind":"tilewright_log","version":2,"origin":"x"})");
  EXPECT_TRUE(absl::IsFailedPrecondition(newer.status())) << newer.status();
  EXPECT_TRUE(absl::IsInvalidArgument(
      Import(**database,
             std::string("{\"kind\":\"tilewright_log\",\"version\":1,\"origin\":\"x\"}\0 ", 52))
          .status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Import(**database, std::string(17 << 20, ' ')).status()));
}

TEST(Import, SurvivesDeepNesting) {
  TestDirectory directory;
  auto database = Database::OpenWriter(directory.File("a.db"));
  EXPECT_FALSE(Import(**database, std::string(1000000, '[')).ok());
  EXPECT_FALSE(Import(**database, R"({"kind":"target","version":1,"key":)" +
                                      std::string(100000, '[') + std::string(100000, ']') + "}")
                   .ok());
}

TEST(Export, ReplacesBytesThatAreNotText) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  TrialRow trial = FailedTrial(10, "tiled{a=1}", "build failed");
  trial.failure->message = "caf\xe9 \x01";
  ASSERT_TRUE(database->CommitTrials({trial}).ok());
  auto other = Database::OpenWriter(directory.File("b.db"));
  const auto report = Import(**other, Export(*database));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ((*other)->FindTrial(SampleId(10))->failure->message, "caf\xef\xbf\xbd \x01");
}

TEST(Export, WithoutSamplesLeavesThemOut) {
  TestDirectory directory;
  const std::string text = Export(*OpenFullLog(directory.File("a.db")), {.samples = false});
  EXPECT_THAT(text, testing::Not(HasSubstr("samples")));
  EXPECT_THAT(text, testing::Not(HasSubstr("rounds")));
}

TEST(Export, ToAFileWritesAllOrNothing) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenFullLog(directory.File("a.db"));
  const auto report = ExportLogToFile(*database, {}, directory.File("log.jsonl"));
  ASSERT_TRUE(report.ok()) << report.status();
  std::ifstream file(directory.File("log.jsonl"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, Export(*database));
  EXPECT_TRUE(
      absl::IsAlreadyExists(ExportLogToFile(*database, {}, directory.File("log.jsonl")).status()));
  const auto stopped = ExportLog(*database, {}, [](const std::string&) {
    return absl::ResourceExhaustedError("the disk is full");
  });
  EXPECT_TRUE(absl::IsResourceExhausted(stopped.status()));
  EXPECT_TRUE(
      absl::IsNotFound(ExportLogToFile(*database, {}, directory.File("none/log.jsonl")).status()));
}

}  // namespace
}  // namespace tilewright
