#include "search/production.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/codegen/two_launches.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kUnrolled[] = "test.two_launches{unroll=2}";

class ProductionTest : public ::testing::Test {
 protected:
  ProductionTest() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/production_test_XXXXXX");
    directory_ = mkdtemp(pattern.data());
    absl::StatusOr<std::unique_ptr<Database>> log =
        Database::OpenWriter(At("tuning.db"), {.origin = "here"});
    EXPECT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    options_ = {.name = "ops", .target = TwoLaunchesTarget(), .catalogue = TwoLaunchesCatalogue()};
  }
  ~ProductionTest() override {
    log_.reset();
    fs::remove_all(directory_);
  }

  std::string At(const std::string& name) const { return (directory_ / name).string(); }

  TuneTask MakeTask(const std::string& name, const std::string& sizes = "n=1..100") {
    TuneTask task{.name = name,
                  .source = "Y[n] = X[n] + 6",
                  .sizes = sizes,
                  .types = "f32",
                  .workload = Make(sizes)};
    EXPECT_TRUE(Workload::Make(task.source, {.sizes = sizes, .types = "f32"}, &task.names).ok());
    task.regime.at = task.workload.HighestSizes();
    absl::Status registered = RegisterTask(*log_, task, options_.target);
    EXPECT_TRUE(registered.ok()) << registered;
    return task;
  }
  static Workload Make(const std::string& sizes) {
    return *Workload::Make("Y[n] = X[n] + 6", {.sizes = sizes, .types = "f32"});
  }

  // The digests of the kernel that this program writes for the task's workload.
  Digests DigestsOf(const TuneTask& task, const std::string& schedule) {
    absl::StatusOr<Kernel> kernel =
        WriteKernel({task.workload, options_.target, *ParseSchedule(schedule)}, options_.catalogue);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return kernel->digests;
  }

  VerdictRow MakeVerdict(const TuneTask& task, const std::string& schedule = kUnrolled) {
    const Digests digests = DigestsOf(task, schedule);
    VerdictRow verdict;
    verdict.id = Id::Random();
    verdict.workload_key = task.workload.key();
    verdict.target_key = TargetKey(options_.target);
    verdict.regime = task.regime.ToString(task.workload);
    verdict.winner_schedule = schedule;
    verdict.winner_ir_digest = digests.ir;
    verdict.winner_binary_digest = digests.binary;
    verdict.rival_schedule = "test.two_launches{unroll=1}";
    verdict.outcome = "faster";
    verdict.ratio = 1.25;
    verdict.ratio_low = 1.2;
    verdict.ratio_high = 1.3;
    verdict.environment = {"uuid", "driver", ToolchainId(options_.target), "clock", ""};
    return verdict;
  }
  void Insert(const VerdictRow& verdict) {
    absl::Status inserted = log_->InsertVerdict(verdict);
    ASSERT_TRUE(inserted.ok()) << inserted;
  }

  ProductionReport MustBuild(const std::vector<TuneTask>& tasks) {
    absl::StatusOr<ProductionReport> report =
        BuildProduction(log_.get(), tasks, options_, At("ops"));
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }

  fs::path directory_;
  std::unique_ptr<Database> log_;
  ProductionOptions options_;
};

TEST_F(ProductionTest, AVerdictsWinnerIsExactAndMaybeStrict) {
  const TuneTask task = MakeTask("add_six");
  Insert(MakeVerdict(task));
  options_.strict = true;
  const ProductionReport report = MustBuild({task});
  ASSERT_EQ(report.rows.size(), 1);
  EXPECT_EQ(report.rows[0].schedule.ToString(), kUnrolled);
  EXPECT_EQ(report.rows[0].provenance.kind, "verdict");
  EXPECT_THAT(report.rows[0].inexact, IsEmpty());
  EXPECT_TRUE(report.written);
  EXPECT_TRUE(fs::exists(At("ops/manifest.json")));
}

TEST_F(ProductionTest, StrictListsEveryWorkloadThatIsNotExactAndWritesNothing) {
  const TuneTask decided = MakeTask("decided");
  const TuneTask unknown = MakeTask("unknown", "n=1..7");
  const TuneTask rewritten = MakeTask("rewritten", "n=1..9");
  Insert(MakeVerdict(decided));
  VerdictRow stale = MakeVerdict(rewritten);
  stale.winner_ir_digest = std::string(64, 'a');
  Insert(stale);
  options_.strict = true;
  const ProductionReport report = MustBuild({decided, unknown, rewritten});
  EXPECT_THAT(report.rows[0].inexact, IsEmpty());
  EXPECT_THAT(report.rows[1].inexact, HasSubstr("no record"));
  EXPECT_THAT(report.rows[2].inexact, HasSubstr("rewritten"));
  EXPECT_FALSE(report.written);
  EXPECT_FALSE(fs::exists(At("ops")));
  options_.strict = false;
  EXPECT_TRUE(MustBuild({decided, unknown, rewritten}).written);
}

TEST_F(ProductionTest, AnUnknownWorkloadTakesTheNearestWinnerOrElseTheDefault) {
  const TuneTask unknown = MakeTask("unknown", "n=1..128");
  ProductionReport report = MustBuild({unknown});
  EXPECT_EQ(report.rows[0].provenance.kind, "default");
  EXPECT_EQ(report.rows[0].schedule.ToString(), "test.two_launches{unroll=1}");
  Insert(MakeVerdict(MakeTask("far", "n=1..1000000"), "test.two_launches{unroll=1}"));
  Insert(MakeVerdict(MakeTask("near", "n=1..100")));
  report = MustBuild({unknown});
  EXPECT_EQ(report.rows[0].provenance.kind, "unmeasured");
  EXPECT_THAT(report.rows[0].provenance.detail, HasSubstr("near"));
  EXPECT_EQ(report.rows[0].schedule.ToString(), kUnrolled);
  EXPECT_THAT(report.rows[0].inexact, HasSubstr("unmeasured"));
}

TEST_F(ProductionTest, AGpusVerdictIsExactWhereTheSameToolsAreFoundAndReplays) {
  options_.target = *FindTarget("cuda:h200");
  options_.catalogue = DefaultCatalogue();
  options_.strict = true;
  TuneTask task = MakeTask("add_six");
  task.regime.chain = Regime::Chain::kDependent;
  auto space = ScheduleSpace::Make(task.workload, options_.target, options_.catalogue.variants);
  ASSERT_TRUE(space.ok()) << space.status();
  const VerdictRow verdict = MakeVerdict(task, (*space)->DefaultSchedule().ToString());
  Insert(verdict);
  ProductionReport report = MustBuild({task});
  EXPECT_THAT(report.rows[0].inexact, IsEmpty());
  ASSERT_TRUE(report.written);
  const absl::StatusOr<Pack> pack = ReadPack(At("ops"));
  ASSERT_TRUE(pack.ok()) << pack.status();
  EXPECT_TRUE(pack->entries[0].item.dependent_launch);
  const auto replayed = Replay(*log_, verdict.id, options_.catalogue);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_TRUE(replayed->same());

  TuneTask other = MakeTask("other", "n=1..90");
  VerdictRow assembled_elsewhere = MakeVerdict(other, (*space)->DefaultSchedule().ToString());
  assembled_elsewhere.winner_binary_digest = std::string(64, 'b');
  Insert(assembled_elsewhere);
  report = MustBuild({other});
  EXPECT_THAT(report.rows[0].inexact, HasSubstr("binary: expected bbbbbbbbbbbbbbbb"));
  EXPECT_FALSE(report.written);
}

TEST_F(ProductionTest, ALibrarysTimeIsToldAndItsKernelNeverPacked) {
  const TuneTask task = MakeTask("add_six");
  VerdictRow verdict = MakeVerdict(task);
  verdict.winner_seconds = 1e-3;
  verdict.library_seconds = 8e-4;
  Insert(verdict);
  const TuneTask library = MakeTask("library", "n=1..70");
  VerdictRow impossible = MakeVerdict(library);
  impossible.winner_schedule = "contraction.library{name=cublaslt algo=1}";
  Insert(impossible);
  const ProductionReport report = MustBuild({task, library});
  EXPECT_THAT(report.rows[0].against_library, ::testing::Optional(::testing::DoubleEq(0.8)));
  EXPECT_EQ(report.rows[1].schedule.variant, "test.two_launches");
  EXPECT_NE(report.rows[1].provenance.kind, "verdict");
  EXPECT_FALSE(report.rows[1].against_library.has_value());
  EXPECT_THAT(report.warnings, ::testing::Contains(HasSubstr("contraction.library")));
}

TEST_F(ProductionTest, AContestedVerdictIsNotExact) {
  const TuneTask task = MakeTask("add_six");
  Insert(MakeVerdict(task));
  Insert(MakeVerdict(task));
  EXPECT_THAT(MustBuild({task}).rows[0].inexact, HasSubstr("contested"));
}

TEST_F(ProductionTest, AnImportedVerdictCountsOnlyFromATrustedOrigin) {
  const TuneTask task = MakeTask("add_six");
  VerdictRow verdict = MakeVerdict(task);
  verdict.origin = "elsewhere";
  Insert(verdict);
  EXPECT_THAT(MustBuild({task}).rows[0].inexact, HasSubstr("elsewhere"));
  options_.trusted_origins = {"elsewhere"};
  EXPECT_THAT(MustBuild({task}).rows[0].inexact, IsEmpty());
}

TEST_F(ProductionTest, ARecordThatDoesNotParseIsAMissWithAWarning) {
  const TuneTask task = MakeTask("add_six");
  VerdictRow verdict = MakeVerdict(task);
  verdict.winner_schedule = "test.gone{x=1}";
  Insert(verdict);
  const ProductionReport report = MustBuild({task});
  EXPECT_EQ(report.rows[0].provenance.kind, "default");
  ASSERT_EQ(report.warnings.size(), 1);
  EXPECT_THAT(report.warnings[0], HasSubstr(verdict.id.ToHex()));
}

TEST_F(ProductionTest, AStrictBuildFromAnOlderPackNeedsNoWriter) {
  const TuneTask task = MakeTask("add_six");
  Insert(MakeVerdict(task));
  MustBuild({task});
  options_.strict = true;
  options_.reuse = At("ops");
  options_.catalogue.writers = {};
  const ProductionReport report = MustBuild({task});
  EXPECT_TRUE(report.written);
  EXPECT_TRUE(report.rows[0].reused);
}

TEST_F(ProductionTest, WithoutALogEveryWorkloadGetsItsDefault) {
  const TuneTask task = MakeTask("add_six");
  absl::StatusOr<ProductionReport> report = BuildProduction(nullptr, {task}, options_, At("ops"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->rows[0].provenance.kind, "default");
}

TEST_F(ProductionTest, ReplayWritesTheSameKernelAgain) {
  const TuneTask task = MakeTask("add_six");
  const VerdictRow verdict = MakeVerdict(task);
  Insert(verdict);
  absl::StatusOr<ReplayReport> report = Replay(*log_, verdict.id, options_.catalogue, At("dump"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->same());
  EXPECT_EQ(report->record, "verdict");
  EXPECT_EQ(report->toolchain_then, report->toolchain_now);
  EXPECT_FALSE(fs::is_empty(At("dump")));
}

TEST_F(ProductionTest, ReplayShowsADigestThatIsNotMet) {
  const TuneTask task = MakeTask("add_six");
  VerdictRow verdict = MakeVerdict(task);
  verdict.winner_binary_digest = std::string(64, 'b');
  Insert(verdict);
  absl::StatusOr<ReplayReport> report = Replay(*log_, verdict.id, options_.catalogue);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->same());
  EXPECT_EQ(Replay(*log_, Id::Random(), options_.catalogue).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tilewright
