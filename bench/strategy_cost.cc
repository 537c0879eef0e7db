// What it costs to propose, by strategy: milliseconds per batch of 16 over a run of 400 results,
// with the model's training where there is one, in spaces of several sizes. CPU time is what counts
// where the machine is shared.
//
//   strategy_cost [SEEDS]
//
// Costs are made up (a bowl over the digits of the index, a tenth fails), so that a strategy has
// something to follow. The bar: <= 20 ms per batch, training included.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench/large_space.h"
#include "schedule/operators.h"
#include "schedule/variant.h"
#include "search/model_surrogate.h"
#include "search/search_state.h"
#include "search/strategy.h"

namespace tilewright {
namespace {

constexpr int kResults = 400;
constexpr int kBatch = 16;

struct Subject {
  std::string name;
  std::shared_ptr<const Space> space;
  std::shared_ptr<const ScheduleSpace> schedules;  // null: no workload's, so no model
};

absl::StatusOr<Subject> WorkloadSubject(const std::string& type, const std::string& target_kind) {
  const std::string sizes = "m=1024,n=1024,k=1024";
  const auto expanded = ExpandOperator("matmul", sizes);
  if (!expanded.ok()) return expanded.status();
  const absl::StatusOr<Workload> workload =
      Workload::Make(expanded->expression, {expanded->sizes, type});
  if (!workload.ok()) return workload.status();
  const absl::StatusOr<Target> target = FindTarget(target_kind);
  if (!target.ok()) return target.status();
  absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
      ScheduleSpace::Make(*workload, *target, AllVariants());
  if (!space.ok()) return space.status();
  return Subject{"matmul " + type + " on " + target_kind,
                 std::shared_ptr<const Space>(*space, &(*space)->space()), *space};
}

double MadeUpCost(absl::uint128 index, absl::uint128 count) {
  double cost = 1;
  for (absl::uint128 part = count; part > 16; part /= 16) {
    const double place = static_cast<double>(index % part) / static_cast<double>(part);
    cost += (place - 0.3) * (place - 0.3);
  }
  return cost;
}

absl::Status Measure(const Subject& subject, const StrategyChoice& choice, int seeds) {
  double total = 0;
  double cpu = 0;
  double greatest = 0;
  int batches = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    std::unique_ptr<LearningSurrogate> surrogate;
    if (subject.schedules != nullptr) {
      absl::StatusOr<std::unique_ptr<LearningSurrogate>> made = NewModelSurrogate(
          subject.schedules, subject.schedules->workload().HighestSizes(), "", {});
      if (!made.ok()) return made.status();
      surrogate = *std::move(made);
    }
    const std::unique_ptr<SearchState> search =
        SearchState::Make(subject.space.get(), choice, seed, {}, surrogate.get());
    for (int results = 0; results < kResults; results += kBatch) {
      const std::clock_t cpu_start = std::clock();
      const auto start = std::chrono::steady_clock::now();
      const Batch batch = search->Propose(kBatch);
      const std::chrono::duration<double, std::milli> elapsed =
          std::chrono::steady_clock::now() - start;
      cpu += 1e3 * static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
      total += elapsed.count();
      greatest = std::max(greatest, elapsed.count());
      ++batches;
      for (absl::uint128 index : batch.indices) {
        Result result{.index = index, .cost = std::nullopt, .session = "made up"};
        if (index % 10 != 0) result.cost = MadeUpCost(index, subject.space->Count());
        search->Commit(result);
      }
    }
  }
  std::printf("%-32s %-14s %9.3f %9.3f %9.3f\n", subject.name.c_str(), choice.row->name.c_str(),
              cpu / batches, total / batches, greatest);
  return absl::OkStatus();
}

absl::Status Run(int seeds) {
  std::vector<Subject> subjects;
  for (const auto& [type, target] :
       {std::pair("f32", "cuda:h200"), std::pair("bf16", "cuda:h200")}) {
    absl::StatusOr<Subject> subject = WorkloadSubject(type, target);
    if (!subject.ok()) return subject.status();
    subjects.push_back(*std::move(subject));
  }
  absl::StatusOr<std::unique_ptr<VariantSpace>> large = VariantSpace::Make(HopperGemm(), {{}});
  if (!large.ok()) return large.status();
  subjects.push_back({"bench.wgmma, no model", *std::move(large), nullptr});
  for (const Subject& subject : subjects) {
    std::printf("%s: %.3g schedules\n", subject.name.c_str(),
                static_cast<double>(subject.space->Count()));
  }
  std::printf("%-32s %-14s %9s %9s %9s  ms per batch of %d\n", "space", "strategy", "CPU",
              "elapsed", "greatest", kBatch);
  for (const Subject& subject : subjects) {
    for (const StrategyRow& row : AllStrategies()) {
      const absl::Status measured = Measure(subject, *ParseStrategy(row.name), seeds);
      if (!measured.ok()) return measured;
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  const absl::Status status = tilewright::Run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 1);
  if (!status.ok()) std::fprintf(stderr, "strategy_cost: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
