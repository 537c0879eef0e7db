#include "schedule/naive.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/compute_type.h"
#include "schedule/match.h"
#include "schedule/match_pointwise.h"
#include "schedule/match_row_reduction.h"

namespace tilewright {
namespace {

constexpr int64_t kPlacementAlignment = 64;

double Points(absl::Span<const int> indices, absl::Span<const int64_t> sizes) {
  double points = 1;
  for (int index : indices) points *= static_cast<double>(sizes[index]);
  return points;
}

// Adds the loads of an expression evaluated `times` times, `inner` being the index of the innermost
// loop around it; on a GPU the index that neighbouring threads differ in.
void AddLoads(const Workload& workload, const Target& target, absl::Span<const int64_t> sizes,
              const Expr& expr, double times, int inner, LoadTraffic* traffic) {
  if (expr.kind == Expr::Kind::kRead) {
    const int bytes = Info(ValueType(workload, expr.tensor)).bytes;
    const std::vector<int64_t> strides = workload.Strides(expr.tensor, sizes);
    int64_t step = 0;
    for (size_t d = 0; d < expr.subscripts.size(); ++d) {
      for (const AffineTerm& term : expr.subscripts[d].terms) {
        if (term.kind == AffineTerm::Kind::kIndex && term.index == inner)
          step += term.coefficient * strides[d];
      }
    }
    // A GPU moves sectors of 32 bytes.
    const int64_t line = target.is_gpu() ? 32 : target.cache_line_bytes;
    const int64_t moved = std::min<int64_t>(std::abs(step) * bytes, line);
    traffic->l1_bytes += times * bytes;
    traffic->l2_bytes += times * static_cast<double>(moved);
    return;
  }
  if (expr.kind == Expr::Kind::kReduce) {
    times *= Points(expr.reduce_indices, sizes);
    if (!target.is_gpu()) inner = expr.reduce_indices.back();
  }
  for (const ExprPtr& operand : expr.operands)
    AddLoads(workload, target, sizes, *operand, times, inner, traffic);
}

bool IsReadLater(const Program& program, int tensor) {
  bool found = false;
  for (const Statement& statement : program.statements) {
    Walk(*statement.value,
         [&](const Expr& e) { found |= e.kind == Expr::Kind::kRead && e.tensor == tensor; });
  }
  return found;
}

}  // namespace

const char kThreadsHelp[] =
    "threads of a launch (OMP_NUM_THREADS elsewhere); more lose where a thread's share is smaller "
    "than what starting it costs";

const char kBlockHelp[] =
    "threads of a block; more lose where points are too few to give every SM a block";

std::vector<int64_t> ThreadValues(const Target& target) {
  std::vector<int64_t> values;
  for (int64_t n = 1; n < target.cores; n *= 2) values.push_back(n);
  values.push_back(target.cores);
  return values;
}

LoadTraffic CountNaiveLoads(const Workload& workload, const Target& target,
                            absl::Span<const int64_t> sizes) {
  LoadTraffic traffic;
  for (const Statement& statement : workload.program().statements) {
    const int inner = statement.indices.empty() ? -1 : statement.indices.back();
    AddLoads(workload, target, sizes, *statement.value, Points(statement.indices, sizes), inner,
             &traffic);
  }
  return traffic;
}

namespace {

// A GPU's part of the plan, whose points and traffic are known.
void PlanGrids(const Workload& workload, const Target& target, absl::Span<const int64_t> sizes,
               NaivePlan* plan) {
  const int64_t resident =
      int64_t{target.cores} * std::max(1, target.threads_per_core / plan->block);
  const Sizes high = workload.HighestSizes();
  int largest = 1;
  double rounds = 0;  // the most points that one thread has, all statements
  double points = 0;
  double threads = 0;
  for (const Statement& statement : workload.program().statements) {
    const double blocks = std::ceil(Points(statement.indices, high) / plan->block);
    const int grid = static_cast<int>(std::min(blocks, static_cast<double>(resident)));
    plan->grids.push_back(grid);
    largest = std::max(largest, grid);
    const double count = Points(statement.indices, sizes);
    const double own = std::ceil(count / (static_cast<double>(grid) * plan->block));
    points += count;
    rounds += own;
    threads += own * grid * plan->block;
  }
  plan->threads = std::min(target.cores, largest);
  plan->l3_bytes = 0;
  // Two loads and their addresses for each multiply-add.
  constexpr double kArithmeticShare = 1.0 / 8;
  plan->issue_efficiency = kArithmeticShare * target.OperationsPerCycle(4) /
                           target.PeakOperationsPerCycle(workload.SmallestParameterBytes());
  plan->balance = points / std::max(1.0, threads);
  plan->quantities.push_back({"blocks", "block", static_cast<double>(largest)});
  plan->quantities.push_back({"points_per_thread", "point", rounds});
}

std::unique_ptr<Plan> PlanNaive(const Workload& workload, const Target& target,
                                absl::Span<const int64_t> numbers,
                                absl::Span<const int64_t> sizes) {
  auto plan = std::make_unique<NaivePlan>();
  const Program& program = workload.program();
  if (target.is_gpu()) {
    plan->block = static_cast<int>(numbers[0]);
  } else {
    plan->threads = static_cast<int>(numbers[0]);
  }
  double stored_bytes = 0;
  double rounds = 0;  // the longest thread's points, all statements
  double points = 0;
  for (const Statement& statement : program.statements) {
    const int tensor = statement.tensor;
    const double count = Points(statement.indices, sizes);
    points += count;
    rounds += std::ceil(count / plan->threads);
    const ElementType type = ValueType(workload, tensor);
    const bool has_buffer = program.tensors[tensor].is_output;
    stored_bytes += count * Info(type).bytes;
    if (!IsReadLater(program, tensor) || (has_buffer && workload.layout(tensor).type == type))
      continue;
    plan->placements.push_back({tensor, plan->workspace_bytes, type});
    int64_t bytes = Info(type).bytes;
    for (int64_t size : workload.Shape(tensor, workload.HighestSizes())) bytes *= size;
    plan->workspace_bytes +=
        (bytes + kPlacementAlignment - 1) / kPlacementAlignment * kPlacementAlignment;
  }
  const LoadTraffic traffic = CountNaiveLoads(workload, target, sizes);
  plan->operations = workload.Operations(sizes);
  plan->l1_bytes = traffic.l1_bytes + stored_bytes;
  plan->l2_bytes = traffic.l2_bytes + stored_bytes;
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  // What does not stay in L2 is read again from L3.
  plan->l3_bytes = plan->memory_bytes > static_cast<double>(target.l2_bytes) ? plan->l2_bytes
                                                                             : plan->memory_bytes;
  // A scalar chain: one lane, and each addition waits about four cycles for the last.
  const int lanes = std::max(1, target.vector_bits / 32);
  plan->issue_efficiency = 1.0 / (4.0 * lanes * std::max(1, target.fma_per_cycle));
  plan->balance = points / (rounds * plan->threads);
  plan->quantities = {{"launches", "launch", static_cast<double>(program.statements.size())},
                      {"points", "point", points}};
  if (target.is_gpu()) PlanGrids(workload, target, sizes, plan.get());
  return plan;
}

Variant NaiveVariant(const std::string& family, const std::string& help,
                     std::function<absl::Status(const Workload&, const Target&)> applies) {
  const std::string name = family + ".naive";
  Variant variant{name,    family,    help,   {"host", "nvptx"}, std::move(applies),
                  nullptr, PlanNaive, nullptr};
  variant.define = [name](const Workload&, const Target& target) {
    SpaceDefinition definition;
    definition.variant = name;
    if (target.is_gpu()) {
      definition.decisions.push_back(
          {"block", kBlockHelp, IntegerValues({64, 128, 256, 512}), {}, nullptr, ""});
      return definition;
    }
    definition.decisions.push_back(
        {"threads", kThreadsHelp, IntegerValues(ThreadValues(target)), {}, nullptr, ""});
    return definition;
  };
  variant.default_schedule = [name](const Workload&, const Target& target) {
    if (target.is_gpu()) return Schedule{name, {{"block", "128"}}};
    return Schedule{name, {{"threads", absl::StrCat(target.cores)}}};
  };
  return variant;
}

}  // namespace

Variant ContractionNaiveVariant() {
  return NaiveVariant(
      "contraction", "loops over output points, the sum innermost",
      [](const Workload& workload, const Target&) { return MatchContraction(workload).status(); });
}

Variant PointwiseNaiveVariant() {
  return NaiveVariant(
      "pointwise", "loops over output points, statement by statement",
      [](const Workload& workload, const Target&) { return MatchPointwise(workload).status(); });
}

Variant RowReductionNaiveVariant() {
  return NaiveVariant(
      "row_reduction", "loops over output points, statement by statement",
      [](const Workload& workload, const Target&) { return MatchRowReduction(workload).status(); });
}

}  // namespace tilewright
