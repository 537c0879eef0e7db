// What measures candidates finds what is wrong with them: every fault of the zoo always, its races
// nearly always, and nothing in kernels that are right. All of it goes through Workbench::Screen,
// which is what a worker calls for a candidate.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "measure/workbench.h"
#include "schedule/variant.h"
#include "tests/gpu/faulty_kernels.h"
#include "tests/gpu/gpu.h"

namespace tilewright {
namespace {

constexpr int kRuns = 20;  // of a fault that must always be caught
constexpr int kRaceRuns = 100;
constexpr int kRacesCaught = 95;
constexpr int kRightKernels = 1000;
constexpr uint64_t kSeed = 20261130;

bool Has(const KernelFault& fault, const Schedule& schedule) {
  return std::find(fault.variants.begin(), fault.variants.end(), schedule.variant) !=
         fault.variants.end();
}

absl::StatusOr<ProductKernel> WriteSubject(const Target& target, const FaultSubject& subject) {
  const absl::StatusOr<Schedule> schedule = ParseSchedule(subject.schedule);
  if (!schedule.ok()) return schedule.status();
  return WriteProductKernel(target, subject.shape, *schedule);
}

TEST(KernelZoo, EachFaultHasItsPlaceInEachKindOfKernel) {
  const absl::StatusOr<Target> target = FindTarget("cuda:h200");
  ASSERT_TRUE(target.ok()) << target.status();
  for (const FaultSubject& subject : AllFaultSubjects()) {
    SCOPED_TRACE(subject.name);
    const absl::StatusOr<ProductKernel> right = WriteSubject(*target, subject);
    ASSERT_TRUE(right.ok()) << right.status();
    for (const KernelFault& fault : AllKernelFaults()) {
      SCOPED_TRACE(fault.name);
      if (!Has(fault, right->schedule)) continue;
      const absl::StatusOr<Kernel> wrong = fault.make(*right);
      ASSERT_TRUE(wrong.ok()) << wrong.status();
      EXPECT_NE(*wrong, right->kernel);
    }
  }
}

// Screens one fault `runs` times; how often it was caught, and as what.
int Caught(Workbench& bench, const ProductKernel& right, const Kernel& wrong, int runs,
           std::map<std::string, int>* kinds) {
  int caught = 0;
  for (int run = 0; run < runs; ++run) {
    const ScreenOutcome outcome = bench.Screen(right.schedule, wrong);
    if (!outcome.failure) continue;
    ++caught;
    ++(*kinds)[std::string(Info(outcome.failure->kind).name)];
  }
  return caught;
}

TEST(GpuZoo, EveryFaultIsCaughtAndRacesNearlyAlways) {
  TILEWRIGHT_SKIP_WITHOUT_GPU();
  const absl::StatusOr<std::unique_ptr<Workbench>> bench = Workbench::Make(*device, {});
  ASSERT_TRUE(bench.ok()) << bench.status();
  std::printf("  %-20s %-50s %8s  %s\n", "kernel", "fault", "caught", "as");
  for (const FaultSubject& subject : AllFaultSubjects()) {
    SCOPED_TRACE(subject.name);
    const absl::StatusOr<ProductKernel> right = WriteSubject(device->target, subject);
    if (absl::IsFailedPrecondition(right.status())) continue;  // the device has no such kernels
    ASSERT_TRUE(right.ok()) << right.status();
    SessionSpec spec{right->workload, {}, right->schedule};
    spec.regime.at = right->workload.HighestSizes();
    spec.run_timeout = absl::Seconds(2);
    const absl::Status opened = (*bench)->OpenSession(spec);
    ASSERT_TRUE(opened.ok()) << opened;
    const ScreenOutcome unchanged = (*bench)->Screen(right->schedule, right->kernel);
    ASSERT_FALSE(unchanged.failure.has_value()) << unchanged.failure->text;
    for (const KernelFault& fault : AllKernelFaults()) {
      SCOPED_TRACE(fault.name);
      if (!Has(fault, right->schedule)) continue;
      const absl::StatusOr<Kernel> wrong = fault.make(*right);
      ASSERT_TRUE(wrong.ok()) << wrong.status();
      const int runs = fault.race ? kRaceRuns : kRuns;
      std::map<std::string, int> kinds;
      const int caught = Caught(**bench, *right, *wrong, runs, &kinds);
      std::printf("  %-20s %-50s %4d/%-3d  %s\n", subject.name.c_str(), fault.name.c_str(), caught,
                  runs, absl::StrJoin(kinds, ", ", absl::PairFormatter(" ")).c_str());
      std::fflush(stdout);
      EXPECT_GE(caught, fault.race ? kRacesCaught : runs);
    }
    const ScreenOutcome after = (*bench)->Screen(right->schedule, right->kernel);
    EXPECT_FALSE(after.failure.has_value()) << after.failure->text;
  }
  EXPECT_FALSE((*bench)->quarantined());
}

// ---- Right kernels

struct RandomProduct {
  std::string expression, sizes, types;
  uint64_t seed = 0;
};

RandomProduct DrawProduct(std::mt19937_64& random) {
  static constexpr const char* kExpressions[] = {
      "C[m,n] = sum(k: A[m,k] * B[n,k])",
      "C[m,n] = sum(k: A[m,k] * B[k,n])",
      "C[m,n] = sum(k: A[k,m] * B[n,k])",
      "C[m,n] = relu(sum(k: A[m,k] * B[n,k]) + bias[n])",
      "C[m,n] = sum(k: A[m,k] * B[n,k]) + R[m,n]",
      "C[b,m,n] = sum(k: A[b,m,k] * B[b,n,k])",
  };
  static constexpr const char* kTypes[] = {"bf16", "bf16", "f16", "f32", "e4m3,C:bf16", "i8,C:i32"};
  RandomProduct product;
  product.types = kTypes[random() % std::size(kTypes)];
  // Bias and residual want types of their own where products are narrow.
  const bool narrow = product.types.find(',') != std::string::npos;
  product.expression = kExpressions[random() % (narrow ? 3 : std::size(kExpressions))];
  // Every third shape is odd throughout.
  const bool odd = random() % 3 == 0;
  auto size = [&](int64_t most) {
    const int64_t value = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most));
    return odd ? value | 1 : (value + 15) / 16 * 16;
  };
  product.sizes =
      absl::StrCat("m=", size(random() % 2 == 0 ? 64 : 400), " n=", size(400), " k=", size(500));
  if (product.expression.find("b,") != std::string::npos) absl::StrAppend(&product.sizes, " b=3");
  product.seed = random();
  return product;
}

struct BuiltProduct {
  std::optional<Workload> workload;
  std::vector<Schedule> schedules;
  std::vector<BuildOutcome> built;
  std::string error;
};

// A uniform sample of every variant's schedules, built.
BuiltProduct BuildProduct(Workbench& bench, const Target& target, const RandomProduct& product,
                          int of_a_variant) {
  BuiltProduct result;
  absl::StatusOr<Workload> workload =
      Workload::Make(product.expression, {product.sizes, product.types});
  const auto space = workload.ok()
                         ? ScheduleSpace::Make(*workload, target, AllVariants())
                         : absl::StatusOr<std::shared_ptr<const ScheduleSpace>>(workload.status());
  if (!space.ok()) {
    result.error = std::string(space.status().message());
    return result;
  }
  std::mt19937_64 random(product.seed);
  for (const Space::Part& part : (*space)->space().Parts()) {
    for (int i = 0; i < of_a_variant; ++i) {
      result.schedules.push_back(
          (*space)->space().At(part.begin + UniformIndex(random, part.end - part.begin)));
    }
  }
  result.workload = *std::move(workload);
  result.built = bench.Build(*result.workload, result.schedules, absl::Seconds(30));
  return result;
}

// Draws and builds products ahead of who takes them, on one thread: builders live as long as the
// thread that started them.
class ProductBuilder {
 public:
  ProductBuilder(Workbench& bench, Target target, uint64_t seed, int of_a_variant)
      : thread_([this, &bench, target = std::move(target), seed, of_a_variant] {
          std::mt19937_64 random(seed);
          for (;;) {
            const RandomProduct product = DrawProduct(random);
            BuiltProduct built = BuildProduct(bench, target, product, of_a_variant);
            std::unique_lock<std::mutex> lock(mutex_);
            changed_.wait(lock, [this] { return stopping_ || !ready_; });
            if (stopping_) return;
            ready_.emplace(product, std::move(built));
            changed_.notify_all();
          }
        }) {}
  ~ProductBuilder() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  std::pair<RandomProduct, BuiltProduct> Next() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return ready_.has_value(); });
    auto next = *std::move(ready_);
    ready_.reset();
    changed_.notify_all();
    return next;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::pair<RandomProduct, BuiltProduct>> ready_;
  bool stopping_ = false;
  std::thread thread_;
};

TEST(GpuZoo, AThousandRightKernelsPass) {
  TILEWRIGHT_SKIP_WITHOUT_GPU();
  constexpr int kOfAVariant = 10;
  const absl::StatusOr<std::unique_ptr<Workbench>> bench = Workbench::Make(*device, {});
  ASSERT_TRUE(bench.ok()) << bench.status();
  int passed = 0;
  int failed = 0;
  int not_built = 0;
  int products = 0;
  std::map<std::string, int> by_variant;
  // A GPU's builds go on while it measures.
  ProductBuilder builder(**bench, device->target, kSeed, kOfAVariant);
  while (passed + failed < kRightKernels) {
    const auto [product, built] = builder.Next();
    SCOPED_TRACE(absl::StrCat(product.expression, " ", product.sizes, " ", product.types));
    ASSERT_TRUE(built.error.empty()) << built.error;
    SessionSpec spec{*built.workload, {}, built.schedules.back()};
    spec.regime.at = built.workload->HighestSizes();
    spec.input_seed = product.seed;
    const absl::Status opened = (*bench)->OpenSession(spec);
    ASSERT_TRUE(opened.ok()) << opened;
    ++products;
    for (size_t i = 0; i < built.schedules.size() && passed + failed < kRightKernels; ++i) {
      if (!built.built[i].kernel) {
        ++not_built;
        continue;
      }
      const ScreenOutcome outcome = (*bench)->Screen(built.schedules[i], *built.built[i].kernel);
      ++by_variant[built.schedules[i].variant];
      ++(outcome.failure ? failed : passed);
      EXPECT_FALSE(outcome.failure.has_value())
          << built.schedules[i].ToString() << ": " << Info(outcome.failure->kind).name << ": "
          << outcome.failure->text;
    }
  }
  std::printf("  %d right kernels of %d products pass, %d fail (%d schedules do not build): %s\n",
              passed, products, failed, not_built,
              absl::StrJoin(by_variant, ", ", absl::PairFormatter(" ")).c_str());
}

}  // namespace
}  // namespace tilewright
