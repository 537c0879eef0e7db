#include "schedule/contraction_dot.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/contraction_tiled_space.h"
#include "schedule/space_writer.h"

namespace tilewright {
namespace {

constexpr char kDotName[] = "contraction.dot";
// With more rows than this, packing pays (contraction.tiled).
constexpr int64_t kMostRows = 8;

struct PreparedDot {
  TiledProblem problem;
  SpaceWriter space{kDotName};
};

absl::Status CheckOperand(const ContractionOperand& operand, const char* which) {
  if (operand.linear && operand.depth_stride.Is(1)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(kDotName, ": the summed index of operand ", which,
                   " is not contiguous; contraction.tiled takes any layout"));
}

void WriteDotSpace(const TiledProblem& p, SpaceWriter* space) {
  const int cores = p.target.cores;
  space->Decide("threads_batch", "Threads side by side along the batch.",
                ThreadCounts(cores, p.batches));
  space->Decide("threads_n", "Threads side by side along the columns.", ThreadCounts(cores, p.n));
  space->Constrain(
      "threads", {"threads_batch", "threads_n"},
      [cores](Numbers v) { return v[0] * v[1] <= cores; },
      [cores](Numbers v) { return absl::StrCat(v[0], " x ", v[1], " > ", cores, " cores"); });
  auto below = [](std::vector<int64_t> numbers, int64_t most) {
    std::erase_if(numbers, [most](int64_t number) { return number > most && number > 1; });
    return IntegerValues(numbers);
  };
  space->Decide(
      "rows",
      "Rows of a that share each vector of b. More reads b less often, until registers run out.",
      below({1, 2, 3, 4, 6, 8}, p.m));
  space->Decide(
      "columns",
      "Columns of b read side by side. More keeps more of memory busy, until registers run out.",
      below({1, 2, 3, 4, 6, 8, 12}, p.n));
  const int registers = p.target.vector_registers;
  space->Constrain(
      "registers", {"rows", "columns"},
      [=](Numbers v) { return v[0] * v[1] + v[0] + 1 <= registers; },
      [=](Numbers v) {
        return absl::StrCat(v[0], " x ", v[1], " sums + ", v[0], " + 1 > ", registers);
      });
  space->Decide("unroll_k",
                "Vectors of each column in a step of the inner loop. More hides its counter.",
                below({1, 2, 4}, std::max<int64_t>(1, p.k / p.lanes)));
}

absl::StatusOr<std::shared_ptr<const PreparedDot>> PrepareDot(const Workload& workload,
                                                              const Target& target) {
  thread_local std::string last_workload;
  thread_local Target last_target;
  thread_local std::shared_ptr<const PreparedDot> last;
  if (last != nullptr && last_workload == workload.canonical_text() && last_target == target)
    return last;
  absl::StatusOr<Contraction> contraction = MatchContraction(workload);
  if (!contraction.ok()) return contraction.status();
  for (auto [operand, which] :
       {std::make_pair(&contraction->a, "a"), std::make_pair(&contraction->b, "b")}) {
    absl::Status status = CheckOperand(*operand, which);
    if (!status.ok()) return status;
  }
  auto prepared = std::make_shared<PreparedDot>();
  prepared->problem =
      StudyTiled(workload, target, std::make_shared<const Contraction>(*std::move(contraction)));
  if (prepared->problem.m > kMostRows) {
    return absl::FailedPreconditionError(
        absl::StrCat(kDotName, ": ", prepared->problem.m, " rows, more than ", kMostRows,
                     ": contraction.tiled copies operands once and reuses them"));
  }
  WriteDotSpace(prepared->problem, &prepared->space);
  last_workload = workload.canonical_text();
  last_target = target;
  last = prepared;
  return last;
}

std::unique_ptr<Plan> MakeDotPlan(const Workload& workload, const Target& target,
                                  absl::Span<const int64_t> numbers,
                                  absl::Span<const int64_t> sizes) {
  std::shared_ptr<const PreparedDot> prepared = *PrepareDot(workload, target);
  const TiledProblem& p = prepared->problem;
  const Contraction& c = *p.contraction;
  std::map<std::string, int64_t> values = prepared->space.AllNumbers(numbers);
  auto plan = std::make_unique<ContractionDotPlan>();
  plan->contraction = p.contraction;
  plan->lanes = p.lanes;
  plan->threads_batch = static_cast<int>(values["threads_batch"]);
  plan->threads_n = static_cast<int>(values["threads_n"]);
  plan->threads = plan->threads_batch * plan->threads_n;
  plan->rows = static_cast<int>(values["rows"]);
  plan->columns = static_cast<int>(values["columns"]);
  plan->unroll_k = static_cast<int>(values["unroll_k"]);

  const double m = static_cast<double>(c.m.Extent(sizes)),
               n = static_cast<double>(c.n.Extent(sizes));
  const double k = static_cast<double>(c.K(sizes)), batches = static_cast<double>(c.Batches(sizes));
  const double groups_m = std::ceil(m / plan->rows), groups_n = std::ceil(n / plan->columns);
  const double own_n = std::ceil(groups_n / plan->threads_n),
               own_batches = std::ceil(batches / plan->threads_batch);
  const double tiles = batches * groups_m * groups_n;
  const double fmas = plan->rows * plan->columns;
  const double loads = plan->rows + plan->columns;
  const double arithmetic = fmas / std::max(1, target.fma_per_cycle);
  plan->operations =
      2 * tiles * fmas * k + std::max(0.0, workload.Operations(sizes) - 2 * batches * m * n * k);
  plan->balance = batches * groups_n / (plan->threads * own_batches * own_n);
  plan->issue_efficiency = arithmetic / std::max({arithmetic, loads / 2, 4.0 / plan->unroll_k});
  const double a_bytes = Info(workload.layout(c.a.read->tensor).type).bytes;
  const double b_bytes = Info(workload.layout(c.b.read->tensor).type).bytes;
  plan->l1_bytes = tiles * k * (plan->rows * a_bytes + plan->columns * b_bytes);
  // b is read once for every group of rows; a stays near.
  plan->l2_bytes = plan->l3_bytes = batches * groups_m * n * k * b_bytes;
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  plan->quantities = {
      {"padding", "", plan->operations / std::max(1.0, workload.Operations(sizes))},
      {"accumulators", "register", fmas},
      {"loads_per_fma", "", loads / fmas},
      {"streams", "column", static_cast<double>(plan->columns)},
      {"steps_per_tile", "", k},
  };
  return plan;
}

Schedule DefaultDotSchedule(const Workload& workload, const Target& target) {
  std::shared_ptr<const PreparedDot> prepared = *PrepareDot(workload, target);
  const TiledProblem& p = prepared->problem;
  const int64_t rows = std::min<int64_t>(p.m, 4);
  std::map<std::string, int64_t> wishes = {
      {"threads_batch", p.batches >= target.cores ? target.cores : 1},
      {"threads_n", p.batches >= target.cores ? 1 : target.cores},
      {"rows", rows},
      {"columns", std::min<int64_t>(4, (target.vector_registers - rows - 1) / rows)},
      {"unroll_k", 2},
  };
  return prepared->space.ClosestTo(wishes);
}

}  // namespace

Variant ContractionDotVariant() {
  return {.name = kDotName,
          .family = "contraction",
          .help = "few rows: dot products along a contiguous k, nothing copied",
          .backends = {"host"},
          .applies = [](const Workload& workload,
                        const Target& target) { return PrepareDot(workload, target).status(); },
          .define =
              [](const Workload& workload, const Target& target) {
                return (*PrepareDot(workload, target))->space.definition();
              },
          .plan = MakeDotPlan,
          .default_schedule = DefaultDotSchedule};
}

}  // namespace tilewright
