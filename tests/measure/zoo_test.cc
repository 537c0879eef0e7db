// Every animal of the zoo is caught, under the right name, and the next right kernel is measured as
// if nothing had been.
#include "tests/fakes/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "measure/workbench.h"

namespace tilewright {
namespace {

Workload Product(const std::string& sizes) {
  WorkloadOptions options;
  options.sizes = sizes;
  options.types = "f32";
  absl::StatusOr<Workload> workload = Workload::Make("C[m,n] = sum(k: A[m,k] * B[k,n])", options);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

class Zoo : public testing::Test {
 protected:
  // A small last-level cache makes few sets, so that the tests are quick.
  void Open(const std::string& sizes, int64_t last_level_bytes = 1 << 20) {
    absl::StatusOr<DeviceDescription> device = DescribeCpu(0);
    ASSERT_TRUE(device.ok()) << device.status();
    device->target.l3_bytes = last_level_bytes;
    WorkbenchOptions options;
    options.executable = ZOO_WORKER;
    absl::StatusOr<std::unique_ptr<Workbench>> bench = Workbench::Make(*device, options);
    ASSERT_TRUE(bench.ok()) << bench.status();
    bench_ = *std::move(bench);
    Session(sizes, 1);
  }

  void Session(const std::string& sizes, uint64_t seed) {
    SessionSpec spec{Product(sizes), {}, ZooSchedule("none"), seed};
    spec.regime.at = spec.workload.HighestSizes();
    spec.run_timeout = absl::Seconds(1);
    const absl::Status status = bench_->OpenSession(spec);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(bench_->session().anchor, ZooSchedule("none"));
    workload_.emplace(spec.workload);
  }

  BuildOutcome BuildOne(const std::string& fault) {
    const Schedule schedules[] = {ZooSchedule(fault)};
    return bench_->Build(*workload_, schedules, absl::Seconds(3))[0];
  }

  ScreenOutcome ScreenOne(const std::string& fault) {
    const BuildOutcome built = BuildOne(fault);
    if (built.failure) {
      ScreenOutcome outcome;
      outcome.failure = built.failure;
      return outcome;
    }
    return bench_->Screen(ZooSchedule(fault), *built.kernel);
  }

  std::unique_ptr<Workbench> bench_;
  std::optional<Workload> workload_;
};

TEST_F(Zoo, EveryFaultIsCaughtAndTheNextRightKernelIsMeasured) {
  Open("m=121,n=136,k=130");
  for (const ZooAnimal& animal : ZooAnimals()) {
    SCOPED_TRACE(animal.fault);
    const BuildOutcome built = BuildOne(animal.fault);
    ASSERT_EQ(built.failure.has_value(), animal.at_build)
        << (built.failure ? built.failure->text : "");
    const ScreenOutcome outcome = ScreenOne(animal.fault);
    if (animal.accepted.empty()) {
      EXPECT_FALSE(outcome.failure.has_value()) << outcome.failure->text;
      continue;
    }
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_NE(std::find(animal.accepted.begin(), animal.accepted.end(), outcome.failure->kind),
              animal.accepted.end())
        << Info(outcome.failure->kind).name << ": " << outcome.failure->text;
    EXPECT_FALSE(outcome.failure->text.empty());
    const ScreenOutcome next = ScreenOne("none");
    EXPECT_FALSE(next.failure.has_value()) << next.failure->text;
    EXPECT_GT(next.seconds, 0);
    EXPECT_GT(next.anchor_seconds, 0);
  }
  EXPECT_FALSE(bench_->quarantined());
  // Runners were replaced, and each replacement timed the anchor again.
  EXPECT_GT(bench_->session().anchor_seconds.size(), 5u);
}

TEST_F(Zoo, FaultsAreCaughtAtSizesThatAreOnlyChecked) {
  Open("m=1..90,n=100,k=110");
  for (const char* fault : {"drop_term", "unwritten_tail", "one_past_the_end"}) {
    EXPECT_TRUE(ScreenOne(fault).failure.has_value()) << fault;
  }
  EXPECT_FALSE(ScreenOne("none").failure.has_value());
}

TEST_F(Zoo, RightKernelsPassOnEverySeed) {
  Open("m=3,n=5,k=7", 4096);
  int screenings = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const std::string sizes =
        absl::StrCat("m=", 1 + seed % 13, ",n=", 1 + seed % 7, ",k=", 1 + seed * 5);
    Session(sizes, seed);
    const BuildOutcome built = BuildOne("none");
    ASSERT_TRUE(built.kernel.has_value());
    for (int i = 0; i < 6; ++i, ++screenings) {
      const ScreenOutcome outcome = bench_->Screen(ZooSchedule("none"), *built.kernel);
      // A product this small may take less time than a launch costs, never less than physics
      // allows.
      ASSERT_FALSE(outcome.failure.has_value()) << sizes << ": " << outcome.failure->text;
    }
  }
  EXPECT_EQ(screenings, 240);
}

TEST_F(Zoo, FinalsGoOnWithoutTheEntrantThatEndsTheRunner) {
  Open("m=64,n=64,k=64");
  std::vector<Kernel> kernels;
  for (const char* fault : {"none", "second_thread_crashes", "drop_term", "none"}) {
    kernels.push_back(*BuildOne(fault).kernel);
  }
  const FinalsOutcome outcome = bench_->Finals(kernels, 6, absl::Milliseconds(1), 5);
  ASSERT_EQ(outcome.entrants.size(), 4u);
  for (int e : {0, 3}) {
    EXPECT_FALSE(outcome.entrants[e].failure.has_value());
    EXPECT_EQ(outcome.entrants[e].round_seconds.size(), 6u);
  }
  ASSERT_TRUE(outcome.entrants[1].failure.has_value());
  EXPECT_EQ(outcome.entrants[1].failure->kind, FailureKind::kCrashed);
  ASSERT_TRUE(outcome.entrants[2].failure.has_value());
  EXPECT_EQ(outcome.entrants[2].failure->kind, FailureKind::kWrongOutput);
}

TEST_F(Zoo, AFailingAnchorGivesWayToTheDefault) {
  Open("m=40,n=40,k=40");
  SessionSpec spec{*workload_, {}, ZooSchedule("drop_term")};
  spec.regime.at = spec.workload.HighestSizes();
  const absl::Status status = bench_->OpenSession(spec);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_NE(bench_->session().anchor, ZooSchedule("drop_term"));
  ASSERT_EQ(bench_->session().anchor_failures.size(), 1u);
  EXPECT_EQ(bench_->session().anchor_failures[0].kind, FailureKind::kWrongOutput);
}

}  // namespace
}  // namespace tilewright
