#include "db/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "sample_rows.h"

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Database, GivesBackWhatWasWritten) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  EXPECT_EQ(database->origin(), "test");
  EXPECT_EQ(*database->FindWorkload(kMatmulKey), SampleWorkload());
  EXPECT_EQ(*database->FindTarget(kTargetKey), SampleTarget());
  RunRow run = SampleRun();
  run.origin = "test";
  EXPECT_EQ(*database->FindRun(run.id), run);
  SessionRow session = SampleSession();
  session.origin = "test";
  EXPECT_EQ(*database->FindSession(session.id), session);

  TrialRow trial = SampleTrial(10, "tiled{a=1}", 1e-3);
  TrialRow failed = FailedTrial(11, "tiled{a=2}", "wrong output");
  ASSERT_THAT(*database->CommitTrials({trial, failed}),
              ElementsAre(Committed::kFirst, Committed::kFirst));
  EXPECT_EQ(*database->LoadSamples(trial.id), *trial.samples);
  trial.samples.reset();
  trial.origin = failed.origin = "test";
  trial.row = 1;
  failed.row = 2;
  failed.ordinal = 1;
  EXPECT_EQ(*database->FindTrial(trial.id), trial);
  EXPECT_EQ(*database->FindTrial(failed.id), failed);
  EXPECT_EQ(*database->HighestTrialRow(), 2);

  VerdictRow verdict = SampleVerdict(20, "tiled{a=1}");
  ASSERT_TRUE(database->InsertVerdict(verdict).ok());
  EXPECT_EQ(*database->LoadRounds(verdict.id), *verdict.rounds);
  verdict.rounds.reset();
  verdict.origin = "test";
  verdict.current = true;
  EXPECT_EQ(*database->FindVerdict(verdict.id), verdict);
}

TEST(Database, KeepsEverythingAcrossClosing) {
  TestDirectory directory;
  {
    std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
    ASSERT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
  }
  auto reader = Database::OpenReader(directory.File("a.db"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_FALSE((*reader)->writable());
  EXPECT_EQ((*reader)->FindTrial(SampleId(10))->schedule, "tiled{a=1}");
  const LogCounts counts = *(*reader)->Count();
  EXPECT_EQ(counts.workloads, 2);
  EXPECT_EQ(counts.trials, 1);
}

TEST(Database, RefusesToWriteThroughAReader) {
  TestDirectory directory;
  OpenWorld(directory.File("a.db"));
  auto reader = Database::OpenReader(directory.File("a.db"));
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*reader)->InsertTarget(SampleTarget())));
  EXPECT_TRUE(
      absl::IsFailedPrecondition((*reader)->CommitTrials({SampleTrial(10, "x{}", 1)}).status()));
}

TEST(Database, TakesTheSameRowTwiceAndRefusesAnotherUnderItsKey) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  EXPECT_TRUE(WriteWorld(*database).ok());
  EXPECT_EQ(database->Count()->runs, 1);
  TargetRow target = SampleTarget();
  target.text += " ";
  EXPECT_TRUE(absl::IsInvalidArgument(database->InsertTarget(target)));
  WorkloadRow workload = SampleWorkload();
  workload.canonical_text += " ";
  EXPECT_TRUE(absl::IsInvalidArgument(database->InsertWorkload(workload)));
}

TEST(Database, KnowsAWorkloadByEveryNameItWasGiven) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  WorkloadRow other = SampleWorkload();
  other.name = "projection";
  other.source = "D[a,b] = sum(c: E[a,c] * F[c,b])";
  ASSERT_TRUE(database->InsertWorkload(other).ok());
  EXPECT_EQ(database->Count()->workloads, 2);
  EXPECT_THAT(*database->ListWorkloads("projection"), ElementsAre(other));
  EXPECT_THAT(*database->ListWorkloads("qkv"), ElementsAre(SampleWorkload()));
  ASSERT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
  EXPECT_EQ(database->QueryTrials({.workload_name = "projection"})->size(), 1);
  EXPECT_EQ(database->QueryTrials({.workload_name = "unknown"})->size(), 0);
}

TEST(CommitTrials, MakesTheFirstResultTheTrialAndStoresLaterOnesAsLate) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  EXPECT_THAT(*database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}),
              ElementsAre(Committed::kFirst));
  EXPECT_THAT(*database->CommitTrials({SampleTrial(11, "tiled{a=1}", 1e-4)}),
              ElementsAre(Committed::kLate));
  EXPECT_EQ(database->QueryTrials({})->size(), 1);
  EXPECT_EQ(database->FindTrial(SampleId(10))->seconds, 1e-3);
  const std::vector<TrialRow> late = *database->ListLateTrials(SampleId(1));
  ASSERT_EQ(late.size(), 1);
  EXPECT_EQ(late[0].id, SampleId(11));
  EXPECT_THAT(late[0].late_reason, HasSubstr("already"));
  EXPECT_EQ(late[0].samples, SampleTrial(11, "", 1e-4).samples);
}

TEST(CommitTrials, IsIdempotentForAResultWhoseAcknowledgementWasLost) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  const TrialRow first = SampleTrial(10, "tiled{a=1}", 1e-3),
                 late = SampleTrial(11, "tiled{a=1}", 1e-4);
  ASSERT_TRUE(database->CommitTrials({first, late}).ok());
  EXPECT_THAT(*database->CommitTrials({first, late}),
              ElementsAre(Committed::kDuplicate, Committed::kDuplicate));
  EXPECT_EQ(database->Count()->trials, 1);
  EXPECT_EQ(database->Count()->late_trials, 1);
}

TEST(CommitTrials, StoresAsLateWhatTheCallerSaysIsLate) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  TrialRow trial = SampleTrial(10, "tiled{a=1}", 1e-3);
  trial.late_reason = "its enrolment was superseded";
  EXPECT_THAT(*database->CommitTrials({trial}), ElementsAre(Committed::kLate));
  EXPECT_EQ(database->Count()->trials, 0);
  EXPECT_EQ((*database->ListLateTrials(SampleId(1)))[0].late_reason, trial.late_reason);
}

TEST(CommitTrials, TakesABatchWholeOrNotAtAll) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  TrialRow bad = SampleTrial(11, "tiled{a=2}", 1e-3);
  for (const auto& spoil : std::vector<std::function<void(TrialRow&)>>{
           [](TrialRow& row) { row.seconds = std::nan(""); },
           [](TrialRow& row) { row.seconds = -1; },
           [](TrialRow& row) { row.seconds.reset(); },
           [](TrialRow& row) {
             row.failure = Failure{"crashed", ""};
           },
           [](TrialRow& row) { row.schedule = ""; },
           [](TrialRow& row) { row.run = SampleId(99); },
           [](TrialRow& row) { row.session = SampleId(99); },
           [](TrialRow& row) { row.session.reset(); },
           [](TrialRow& row) { row.workload_key = "zzzz"; },
           [](TrialRow& row) { row.target_key = "zzzz"; },
           [](TrialRow& row) { row.regime = "cache=warm"; },
           [](TrialRow& row) { row.resources_json = "{"; },
           [](TrialRow& row) { row.samples->clock_mhz.pop_back(); },
       }) {
    TrialRow row = bad;
    spoil(row);
    const auto committed = database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3), row});
    EXPECT_TRUE(absl::IsInvalidArgument(committed.status())) << committed.status();
    EXPECT_EQ(database->Count()->trials, 0);
  }
  EXPECT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3), bad}).ok());
}

TEST(Transaction, RollsBackWhenAnInnerWriteFailsEvenIfTheBodyIgnoresIt) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  const absl::Status status = database->Transaction([&] {
    EXPECT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
    EXPECT_FALSE(database->CommitTrials({SampleTrial(11, "", 1e-3)}).ok());
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(database->Count()->trials, 0);
  EXPECT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
}

TEST(Transaction, LetsReadsInsideItFindNothing) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  EXPECT_TRUE(database
                  ->Transaction([&] {
                    EXPECT_TRUE(
                        absl::IsNotFound(database->Best(kMatmulKey, kTargetKey, kRegime).status()));
                    EXPECT_TRUE(absl::IsNotFound(database->FindRun(SampleId(99)).status()));
                    return database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).status();
                  })
                  .ok());
  EXPECT_EQ(database->Count()->trials, 1);
}

TEST(Best, IsTheFastestOfTheSessionWithMostTrialsUntilThereIsAVerdict) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  EXPECT_TRUE(absl::IsNotFound(database->Best(kMatmulKey, kTargetKey, kRegime).status()));
  EXPECT_TRUE(absl::IsNotFound(database->Best("", "", "").status()));
  SessionRow second = SampleSession();
  second.id = SampleId(3);
  ASSERT_TRUE(database->InsertSession(second).ok());
  TrialRow elsewhere =
      SampleTrial(13, "tiled{a=4}", 1e-5);  // faster, in a session with fewer trials
  elsewhere.session = second.id;
  ASSERT_TRUE(
      database
          ->CommitTrials({SampleTrial(10, "tiled{a=1}", 3e-3), SampleTrial(11, "tiled{a=2}", 1e-3),
                          SampleTrial(12, "tiled{a=3}", 2e-3), elsewhere,
                          FailedTrial(14, "tiled{a=5}", "crashed")})
          .ok());
  BestAnswer best = *database->Best(kMatmulKey, kTargetKey, kRegime);
  EXPECT_EQ(best.kind, BestAnswer::Kind::kUnverified);
  EXPECT_EQ(best.trial->schedule, "tiled{a=2}");
  ASSERT_TRUE(database->InsertVerdict(SampleVerdict(20, "tiled{a=1}")).ok());
  best = *database->Best(kMatmulKey, kTargetKey, kRegime);
  EXPECT_EQ(best.kind, BestAnswer::Kind::kVerdict);
  EXPECT_EQ(best.verdicts[0].winner_schedule, "tiled{a=1}");
  EXPECT_TRUE(absl::IsNotFound(database->Best(kSoftmaxKey, kTargetKey, kRegime).status()));
}

TEST(Verdicts, TwoThatDoNotReplaceEachOtherAreContestedUntilAThirdReplacesBoth) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  ASSERT_TRUE(database->InsertVerdict(SampleVerdict(20, "tiled{a=1}")).ok());
  ASSERT_TRUE(database->InsertVerdict(SampleVerdict(21, "tiled{a=2}")).ok());
  BestAnswer best = *database->Best(kMatmulKey, kTargetKey, kRegime);
  EXPECT_EQ(best.kind, BestAnswer::Kind::kContested);
  ASSERT_EQ(best.verdicts.size(), 2);
  EXPECT_EQ(best.verdicts[0].id, SampleId(21));
  VerdictRow third = SampleVerdict(22, "tiled{a=3}");
  third.replaces = {SampleId(20), SampleId(21)};
  ASSERT_TRUE(database->InsertVerdict(third).ok());
  best = *database->Best(kMatmulKey, kTargetKey, kRegime);
  EXPECT_EQ(best.kind, BestAnswer::Kind::kVerdict);
  EXPECT_EQ(best.verdicts[0].id, third.id);
  EXPECT_EQ(best.verdicts[0].replaces, third.replaces);
  EXPECT_EQ(database->QueryVerdicts({})->size(), 1);
  EXPECT_EQ(database->QueryVerdicts({.current_only = false})->size(), 3);
}

TEST(Verdicts, AreCurrentOrNotInWhicheverOrderTheyArrive) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  VerdictRow newer = SampleVerdict(21, "tiled{a=2}");
  newer.replaces = {SampleId(20)};
  ASSERT_TRUE(database->InsertVerdict(newer).ok());
  ASSERT_TRUE(database->InsertVerdict(SampleVerdict(20, "tiled{a=1}")).ok());
  const BestAnswer best = *database->Best(kMatmulKey, kTargetKey, kRegime);
  EXPECT_EQ(best.kind, BestAnswer::Kind::kVerdict);
  EXPECT_EQ(best.verdicts[0].id, newer.id);
  EXPECT_FALSE(database->FindVerdict(SampleId(20))->current);
}

TEST(Verdicts, RefuseWhatIsNoVerdict) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  for (const auto& spoil : std::vector<std::function<void(VerdictRow&)>>{
           [](VerdictRow& row) { row.outcome = "better"; },
           [](VerdictRow& row) { row.ratio_low = 2; },
           [](VerdictRow& row) { row.ratio = std::nan(""); },
           [](VerdictRow& row) { row.replaces = {row.id}; },
           [](VerdictRow& row) { row.winner_schedule = ""; },
           [](VerdictRow& row) { row.rounds->seconds.pop_back(); },
           [](VerdictRow& row) { row.library_seconds = 0; },
           [](VerdictRow& row) { row.check_json = "nope"; },
           [](VerdictRow& row) { row.target_key = "zzzz"; },
       }) {
    VerdictRow row = SampleVerdict(20, "tiled{a=1}");
    spoil(row);
    EXPECT_TRUE(absl::IsInvalidArgument(database->InsertVerdict(row)));
  }
  EXPECT_EQ(database->Count()->verdicts, 0);
}

TEST(Query, FiltersAndPages) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  TrialRow softmax = SampleTrial(13, "row{}", 5e-4);
  softmax.workload_key = kSoftmaxKey;
  ASSERT_TRUE(database
                  ->CommitTrials({SampleTrial(10, "tiled{a=1}", 3e-3),
                                  FailedTrial(11, "tiled{a=2}", "crashed"),
                                  SampleTrial(12, "tiled{a=3}", 1e-3), softmax,
                                  FailedTrial(14, "tiled{a=4}", "wrong output"),
                                  FailedTrial(15, "tiled{a=5}", "wrong output")})
                  .ok());
  auto schedules = [&](const TrialFilter& filter) {
    std::vector<std::string> texts;
    const std::vector<TrialRow> trials = *database->QueryTrials(filter);
    for (const TrialRow& trial : trials) texts.push_back(trial.schedule);
    return texts;
  };
  using State = TrialFilter::State;
  EXPECT_THAT(schedules({.workload_key = kSoftmaxKey}), ElementsAre("row{}"));
  EXPECT_THAT(schedules({.workload_key = kMatmulKey, .state = State::kOk}),
              ElementsAre("tiled{a=1}", "tiled{a=3}"));
  EXPECT_THAT(schedules({.failure_kind = "crashed"}), ElementsAre("tiled{a=2}"));
  EXPECT_THAT(schedules({.target_kind = "cpu:test/avx2/2", .after_row = 4, .limit = 1}),
              ElementsAre("tiled{a=4}"));
  EXPECT_THAT(schedules({.through_row = 1}), ElementsAre("tiled{a=1}"));
  EXPECT_THAT(schedules({.order = TrialFilter::Order::kNewest, .limit = 2}),
              ElementsAre("tiled{a=5}", "tiled{a=4}"));
  EXPECT_THAT(schedules({.order = TrialFilter::Order::kFastest, .limit = 3}),
              ElementsAre("row{}", "tiled{a=3}", "tiled{a=1}"));
  EXPECT_THAT(schedules({.run = SampleId(99)}), ElementsAre());
  EXPECT_THAT(schedules({.workload_key = "' OR 1=1 --"}), ElementsAre());
  EXPECT_TRUE(absl::IsInvalidArgument(database->QueryTrials({.limit = 0}).status()));
  EXPECT_THAT(*database->CountFailures({.run = SampleId(1)}),
              ElementsAre(Pair("wrong output", 2), Pair("crashed", 1)));
}

TEST(Resume, GivesProposalsAndTrialsInTheirOrder) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  ProposalRow first{SampleId(1), 0, kMatmulKey, 0, 0, {"tiled{a=1}", "tiled{a=2}"}, 1600};
  ProposalRow second{SampleId(1), 0, kMatmulKey, 1, 1, {"tiled{a=3}"}, 1700};
  EXPECT_EQ(*database->LogProposal(first), 0);
  ASSERT_TRUE(database->CommitTrials({SampleTrial(11, "tiled{a=2}", 3e-3)}).ok());
  EXPECT_EQ(*database->LogProposal(second), 1);
  second.sequence = 1;
  ASSERT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 3e-3)}).ok());
  const ResumeState state = *database->LoadResumeState(SampleId(1));
  EXPECT_EQ(state.run.seed, 0xffffffffffffffffu);
  EXPECT_EQ(state.run.workloads, SampleRun().workloads);
  EXPECT_THAT(state.proposals, ElementsAre(first, second));
  ASSERT_EQ(state.trials.size(), 2);
  EXPECT_EQ(state.trials[0].schedule, "tiled{a=2}");
  EXPECT_EQ(state.trials[1].ordinal, 1);
  second.trained_on = 5;
  EXPECT_TRUE(absl::IsInvalidArgument(database->LogProposal(second).status()));
  EXPECT_TRUE(absl::IsNotFound(database->LoadResumeState(SampleId(99)).status()));
}

TEST(Runs, ChangeStateAndAreListedNewestFirst) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  RunRow second = SampleRun();
  second.id = SampleId(5);
  second.job = "job-1";
  ASSERT_TRUE(database->InsertRun(second).ok());
  EXPECT_EQ((*database->ListRuns({}))[0].id, second.id);
  EXPECT_EQ(database->ListRuns({.job = ""})->size(), 1);
  ASSERT_TRUE(database->SetRunState(SampleId(1), "finished", 9000).ok());
  EXPECT_EQ(database->ListRuns({.state = "finished"})->at(0).ended_unix_ns, 9000);
  EXPECT_TRUE(
      absl::IsInvalidArgument(database->SetRunState(SampleId(1), "sleeping", std::nullopt)));
  EXPECT_TRUE(absl::IsNotFound(database->SetRunState(SampleId(99), "finished", 1)));
}

TEST(AnchorTimes, AppendPerSessionAndWorkload) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  EXPECT_EQ(*database->AppendAnchorTime(SampleId(2), kMatmulKey, 1e-3), 0);
  EXPECT_EQ(*database->AppendAnchorTime(SampleId(2), kSoftmaxKey, 5e-4), 0);
  EXPECT_EQ(*database->AppendAnchorTime(SampleId(2), kMatmulKey, 1.1e-3), 1);
  EXPECT_FALSE(database->AppendAnchorTime(SampleId(2), kMatmulKey, 0).ok());
  EXPECT_THAT(*database->ListAnchorTimes(SampleId(2)),
              ElementsAre(AnchorTimeRow{SampleId(2), kMatmulKey, 0, 1e-3},
                          AnchorTimeRow{SampleId(2), kMatmulKey, 1, 1.1e-3},
                          AnchorTimeRow{SampleId(2), kSoftmaxKey, 0, 5e-4}));
}

TEST(Generations, GrowAcrossOpenings) {
  TestDirectory directory;
  EXPECT_EQ(*OpenWorld(directory.File("a.db"))->NextGeneration(1), 1);
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  EXPECT_EQ(*database->NextGeneration(2), 2);
  EXPECT_EQ(*database->NextGeneration(3), 3);
}

TEST(Evaluations, AreKeptPerRun) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  EvaluationRow row{SampleId(30), SampleId(1),           "ranker", 64,
                    128,          R"({"spearman":0.8})", 5000,     "test"};
  ASSERT_TRUE(database->InsertEvaluation(row).ok());
  EXPECT_THAT(*database->ListEvaluations(SampleId(1)), ElementsAre(row));
}

TEST(Rekey, RenamesAWorkloadOrJoinsItToTheOneThatHasTheKey) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  ASSERT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
  ASSERT_TRUE(database->InsertVerdict(SampleVerdict(20, "tiled{a=1}")).ok());
  WorkloadRow renamed = SampleWorkload();
  renamed.key = "dddd";
  renamed.canonical_version = 2;
  ASSERT_TRUE(database->Rekey({{kMatmulKey, renamed}}).ok());
  EXPECT_TRUE(database->Best("dddd", kTargetKey, kRegime).ok());
  EXPECT_TRUE(absl::IsNotFound(database->FindWorkload(kMatmulKey).status()));
  EXPECT_EQ(database->FindWorkload("dddd")->canonical_version, 2);

  // Both workloads were part of one run: joining them would mix its records.
  WorkloadRow joined = renamed;
  EXPECT_TRUE(absl::IsInvalidArgument(database->Rekey({{kSoftmaxKey, joined}})));
  EXPECT_EQ(database->Count()->workloads, 2);

  WorkloadRow third = SecondWorkload();
  third.key = "eeee";
  ASSERT_TRUE(database->InsertWorkload(third).ok());
  ASSERT_TRUE(database->Rekey({{"eeee", joined}}).ok());
  EXPECT_EQ(database->Count()->workloads, 2);
  EXPECT_EQ(database->ListWorkloads()->size(), 3);
}

TEST(CollectGarbage, DropsOldSamplesAndKeepsTimes) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  TrialRow recent = SampleTrial(11, "tiled{a=2}", 2e-3);
  recent.created_unix_ns = 9000;
  ASSERT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3), recent}).ok());
  ASSERT_TRUE(database->CollectGarbage(5000).ok());
  EXPECT_TRUE(absl::IsNotFound(database->LoadSamples(SampleId(10)).status()));
  EXPECT_TRUE(database->LoadSamples(SampleId(11)).ok());
  EXPECT_EQ(database->FindTrial(SampleId(10))->seconds, 1e-3);
}

TEST(Backup, IsACompleteLogAndOverwritesNothing) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  ASSERT_TRUE(database->CommitTrials({SampleTrial(10, "tiled{a=1}", 1e-3)}).ok());
  const absl::Status status = database->Backup(directory.File("b.db"));
  ASSERT_TRUE(status.ok()) << status;
  auto copy = Database::OpenReader(directory.File("b.db"));
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ((*copy)->FindTrial(SampleId(10))->seconds, 1e-3);
  EXPECT_TRUE(absl::IsAlreadyExists(database->Backup(directory.File("b.db"))));
}

TEST(Backup, OfADamagedLogIsRefused) {
  TestDirectory directory;
  const std::string path = directory.File("a.db");
  { OpenWorld(path); }
  auto reader = Database::OpenReader(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 * 4096);
    file << std::string(5 * 4096, 'x');
  }
  const absl::Status status = (*reader)->Backup(directory.File("b.db"));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(access(directory.File("b.db").c_str(), F_OK), 0);
}

TEST(Readers, SeeWhatIsCommittedWhileTheWriterWrites) {
  TestDirectory directory;
  std::unique_ptr<Database> database = OpenWorld(directory.File("a.db"));
  constexpr int kTrials = 200;
  std::thread reader_thread([&] {
    int64_t seen = 0;
    while (seen < kTrials) {
      auto reader = Database::OpenReader(directory.File("a.db"));
      ASSERT_TRUE(reader.ok()) << reader.status();
      for (int i = 0; i < 20; ++i) {
        const auto counts = (*reader)->Count();
        ASSERT_TRUE(counts.ok()) << counts.status();
        ASSERT_GE(counts->trials, seen);
        ASSERT_EQ(counts->trials % 2, 0);  // batches of two are never seen in half
        seen = counts->trials;
      }
    }
  });
  for (int i = 0; i < kTrials; i += 2) {
    TrialRow one = SampleTrial(0, "tiled{a=" + std::to_string(i) + "}", 1e-3), two = one;
    two.schedule += "b";
    one.id = Id::Random();
    two.id = Id::Random();
    ASSERT_TRUE(database->CommitTrials({one, two}).ok());
  }
  reader_thread.join();
}

}  // namespace
}  // namespace tilewright
