#include "schedule/row_reduction_fused.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/compute_type.h"
#include "schedule/match_pointwise.h"
#include "schedule/naive.h"
#include "schedule/pointwise_vectorised.h"

namespace tilewright {
namespace {

constexpr char kName[] = "row_reduction.fused";

absl::Status Applies(const Workload& workload, const Target&) {
  absl::StatusOr<RowReduction> match = MatchRowReduction(workload);
  if (!match.ok()) return match.status();
  if (match->not_fusable.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(kName, ": ", match->not_fusable));
}

// Only lanes along the columns have a row to keep values of.
bool CanKeep(const RowReduction& match) {
  return match.kept != nullptr && match.lanes_along_columns;
}

SpaceDefinition Define(const Workload& workload, const Target& target) {
  const RowReduction match = *MatchRowReduction(workload);
  SpaceDefinition definition;
  definition.variant = kName;
  definition.decisions = {
      {"vector",
       "bits of a vector register used (prefer-vector-width in LLVM); wider loses on short rows",
       IntegerValues(VectorValues(target)),
       {},
       nullptr,
       ""},
      {"unroll",
       "vectors per step, each with its own accumulator (num_warps' role in Triton); more hide the "
       "latency of additions and "
       "lose registers and short rows",
       IntegerValues({1, 2, 4, 8}),
       {},
       nullptr,
       ""}};
  if (CanKeep(match)) {
    definition.decisions.push_back(
        {"keep",
         "1: the exp (or other costly part) that two passes share is stored by the first and "
         "loaded by the later ones; 0: it "
         "is computed again. 1 loses where rows outgrow the L1 cache and the part is cheap",
         IntegerValues({0, 1}),
         {},
         nullptr,
         ""});
  }
  definition.decisions.push_back(
      {"threads", kThreadsHelp, IntegerValues(ThreadValues(target)), {}, nullptr, ""});
  return definition;
}

double Points(absl::Span<const int> indices, absl::Span<const int64_t> sizes) {
  double points = 1;
  for (int index : indices) points *= static_cast<double>(sizes[index]);
  return points;
}

// Bytes that the loads of all passes move per element of a row.
double BytesPerElement(const Workload& workload, const RowReduction& match) {
  double bytes = 0;
  const Program& program = workload.program();
  for (const Statement& statement : program.statements) {
    Walk(*statement.value, [&](const Expr& e) {
      if (e.kind != Expr::Kind::kRead || FindWriterOf(program, e.tensor) != nullptr) return;
      for (int index : match.columns) {
        if (FixedStride(workload, e.tensor, e.subscripts, index) == 0) return;
      }
      bytes += Info(workload.layout(e.tensor).type).bytes;
    });
    if (!program.tensors[statement.tensor].is_output ||
        statement.indices.size() <= match.rows.size())
      continue;
    bytes += Info(workload.layout(statement.tensor).type).bytes;
  }
  return bytes;
}

std::unique_ptr<Plan> MakePlan(const Workload& workload, const Target& target,
                               absl::Span<const int64_t> numbers, absl::Span<const int64_t> sizes) {
  auto plan = std::make_unique<RowReductionFusedPlan>();
  plan->match = *MatchRowReduction(workload);
  plan->vector_bits = static_cast<int>(numbers[0]);
  plan->unroll = static_cast<int>(numbers[1]);
  plan->keep = CanKeep(plan->match) && numbers[2] == 1;
  plan->threads = static_cast<int>(numbers.back());
  if (plan->keep) {
    const double elements = Points(plan->match.columns, workload.HighestSizes());
    // At most f64; a line apart, so that threads do not share one.
    plan->kept_row_bytes = (static_cast<int64_t>(elements) * 8 + 127) / 64 * 64;
    plan->workspace_bytes = plan->kept_row_bytes * plan->threads;
  }

  const double rows = Points(plan->match.rows, sizes);
  const double columns = Points(plan->match.columns, sizes);
  const int lanes = plan->Lanes(ElementType::kF32);
  const double step = static_cast<double>(lanes) * plan->unroll;
  const double element_bytes = BytesPerElement(workload, plan->match);
  double items = rows;  // what is shared between threads
  if (!plan->match.lanes_along_columns) {
    const double last = static_cast<double>(sizes[plan->match.rows.back()]);
    items = rows / last * std::ceil(last / step);
  }
  plan->operations = workload.Operations(sizes);
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  plan->l1_bytes = rows * columns * (element_bytes + (plan->keep ? 8.0 : 0.0));
  // A row that outgrows a cache is fetched again by every pass.
  const double row_bytes = columns * element_bytes / std::max(1, plan->match.passes);
  const double passes = plan->match.lanes_along_columns ? plan->match.passes : 1;
  plan->l2_bytes =
      plan->memory_bytes * (row_bytes > static_cast<double>(target.l1_bytes) ? passes : 1);
  plan->l3_bytes =
      plan->memory_bytes * (row_bytes > static_cast<double>(target.l2_bytes) ? passes : 1);
  // One accumulator waits about four cycles for each addition.
  plan->issue_efficiency =
      std::min(1.0, plan->unroll / 4.0) * lanes / std::max(1.0, target.vector_bits / 32.0);
  plan->balance = items / (std::ceil(items / plan->threads) * plan->threads);
  const double along = plan->match.lanes_along_columns
                           ? static_cast<double>(sizes[plan->match.columns.back()])
                           : static_cast<double>(sizes[plan->match.rows.back()]);
  plan->quantities = {{"passes", "pass", static_cast<double>(plan->match.passes)},
                      {"rows", "row", rows},
                      {"row_bytes", "B", row_bytes},
                      {"step_elements", "element", step},
                      {"tail_share", "", std::fmod(along, lanes) / along},
                      {"kept_row_bytes", "B", static_cast<double>(plan->kept_row_bytes)}};
  return plan;
}

Schedule Default(const Workload& workload, const Target& target) {
  Schedule schedule{kName,
                    {{"vector", absl::StrCat(VectorValues(target).back())}, {"unroll", "4"}}};
  if (CanKeep(*MatchRowReduction(workload))) schedule.decisions.emplace_back("keep", "1");
  schedule.decisions.emplace_back("threads", absl::StrCat(target.cores));
  return schedule;
}

}  // namespace

int RowReductionFusedPlan::Lanes(ElementType compute) const {
  return std::max(1, vector_bits / (8 * Info(compute).bytes));
}

Variant RowReductionFusedVariant() {
  return {kName,
          "row_reduction",
          "all statements in one launch, rows by thread, vectors with several accumulators",
          {"host"},
          Applies,
          Define,
          MakePlan,
          Default};
}

}  // namespace tilewright
