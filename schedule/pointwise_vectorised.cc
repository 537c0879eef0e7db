#include "schedule/pointwise_vectorised.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/compute_type.h"
#include "schedule/naive.h"

namespace tilewright {
namespace {

constexpr char kName[] = "pointwise.vectorised";

absl::Status Applies(const Workload& workload, const Target&) {
  absl::StatusOr<Pointwise> match = MatchPointwise(workload);
  if (!match.ok()) return match.status();
  if (match->statements.size() != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(kName, " writes one statement; the program has ", match->statements.size()));
  }
  if (match->axes.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(kName, " needs an output index; the output is one number"));
  }
  return absl::OkStatus();
}

// tile_columns * 8 / bits of an element >= ...: a tile holds at least one step of the inner loop.
Constraint TileHoldsStep(int element_bits) {
  Constraint constraint;
  constraint.name = "tile_holds_step";
  constraint.reads = {"vector", "unroll", "tile_columns"};
  auto step = [element_bits](Numbers n) {
    return std::max<int64_t>(1, n[0] / element_bits) * n[1];
  };
  constraint.holds = [step](Numbers n, absl::Span<const int64_t>) { return step(n) <= n[2]; };
  constraint.explain = [step, element_bits](Numbers n, absl::Span<const int64_t>) {
    return absl::StrCat(n[0], " bits / ", element_bits, " x ", n[1], " = ", step(n), " elements > ",
                        n[2]);
  };
  return constraint;
}

SpaceDefinition Define(const Workload& workload, const Target& target) {
  const Pointwise match = *MatchPointwise(workload);
  const int element_bits = 8 * Info(ComputeType(workload, *match.statements[0]->value)).bytes;
  const bool transposes = match.row_axis >= 0;
  SpaceDefinition definition;
  definition.variant = kName;
  definition.decisions = {
      {"vector",
       "bits of a vector register used (prefer-vector-width in LLVM); wider loses where tails are "
       "a large part",
       IntegerValues(VectorValues(target)),
       {},
       nullptr,
       ""},
      {"unroll",
       "vectors per step of the inner loop (unroll factor elsewhere); more lose registers and "
       "lengthen tails",
       IntegerValues({1, 2, 4, 8}),
       {},
       nullptr,
       ""},
      {"tile_columns",
       "output elements along the contiguous axis that a thread takes at once (grain size "
       "elsewhere); larger ones balance "
       "worse, and with a transposed read outgrow the cache",
       IntegerValues(transposes ? std::vector<int64_t>{16, 32, 64, 128, 256}
                                : std::vector<int64_t>{256, 1024, 4096, 16384, 65536}),
       {},
       nullptr,
       ""}};
  if (transposes) {
    definition.decisions.push_back({"tile_rows",
                                    "rows of a tile (XBLOCK beside YBLOCK in Triton); larger ones "
                                    "outgrow the cache and its associativity",
                                    IntegerValues({8, 16, 32, 64, 128}),
                                    {},
                                    nullptr,
                                    ""});
    definition.decisions.push_back({"shuffle",
                                    "1: square blocks of transposed reads are loaded as vectors "
                                    "and transposed in registers; 0: element by element; "
                                    "1 loses where blocks are cut off",
                                    IntegerValues({0, 1}),
                                    {},
                                    nullptr,
                                    ""});
  }
  definition.decisions.push_back(
      {"threads", kThreadsHelp, IntegerValues(ThreadValues(target)), {}, nullptr, ""});
  definition.constraints.push_back(TileHoldsStep(element_bits));
  return definition;
}

// Load and store instructions per vector, of which a core starts about two a cycle, against
// arithmetic.
double IssueEfficiency(const Workload& workload, const Statement& statement,
                       const PointwiseVectorisedPlan& plan) {
  double memory = 1;
  double arithmetic = 0;
  Walk(*statement.value, [&](const Expr& e) {
    if (e.kind == Expr::Kind::kRead) memory += 1;
    if (e.kind == Expr::Kind::kCall) arithmetic += 1;
  });
  const double used = std::min(1.0, 0.5 + 0.125 * plan.unroll);
  return used * std::max(arithmetic, 0.5) / (std::max(arithmetic, 0.5) + memory);
}

std::unique_ptr<Plan> MakePlan(const Workload& workload, const Target& target,
                               absl::Span<const int64_t> numbers, absl::Span<const int64_t> sizes) {
  auto plan = std::make_unique<PointwiseVectorisedPlan>();
  plan->match = *MatchPointwise(workload);
  const Statement& statement = *plan->match.statements[0];
  const bool transposes = plan->match.row_axis >= 0;
  const int element_bits = 8 * Info(ComputeType(workload, *statement.value)).bytes;
  plan->lanes = static_cast<int>(std::max<int64_t>(1, numbers[0] / element_bits));
  plan->unroll = static_cast<int>(numbers[1]);
  plan->tile_columns = numbers[2];
  if (transposes) {
    plan->tile_rows = numbers[3];
    plan->shuffle = numbers[4] == 1 && plan->lanes > 1;
  }
  plan->threads = static_cast<int>(numbers.back());

  double points = 1;
  for (const FusedAxis& axis : plan->match.axes) points *= static_cast<double>(axis.Extent(sizes));
  const double columns = static_cast<double>(plan->match.axes[plan->match.lane_axis].Extent(sizes));
  const double column_tiles = std::ceil(columns / static_cast<double>(plan->tile_columns));
  double row_tiles = 1;
  double rows = 1;
  if (transposes) {
    rows = static_cast<double>(plan->match.axes[plan->match.row_axis].Extent(sizes));
    row_tiles = std::ceil(rows / static_cast<double>(plan->tile_rows));
  }
  const double tiles = points / (columns * rows) * column_tiles * row_tiles;
  double element_bytes = Info(workload.layout(statement.tensor).type).bytes;
  Walk(*statement.value, [&](const Expr& e) {
    if (e.kind == Expr::Kind::kRead) element_bytes += Info(workload.layout(e.tensor).type).bytes;
  });
  plan->operations = workload.Operations(sizes);
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  plan->l1_bytes = points * element_bytes;
  plan->l2_bytes = plan->memory_bytes;
  plan->l3_bytes = plan->memory_bytes;
  if (transposes) {
    // A tile narrower than a cache line along the read's contiguous axis moves lines more than
    // once.
    const double line = target.cache_line_bytes;
    const double tile_bytes = static_cast<double>(plan->tile_rows) * element_bytes / 2;
    const double waste = std::max(1.0, line / tile_bytes);
    plan->l2_bytes *= 0.5 + 0.5 * waste;
    const double tile_lines =
        static_cast<double>(plan->tile_columns) * line + tile_bytes * plan->tile_columns;
    if (tile_lines > static_cast<double>(target.l1_bytes)) plan->l2_bytes *= 2;
  }
  plan->issue_efficiency = IssueEfficiency(workload, statement, *plan);
  plan->balance = tiles / (std::ceil(tiles / plan->threads) * plan->threads);
  const double step = plan->lanes * plan->unroll;
  const double last = std::fmod(columns, static_cast<double>(plan->tile_columns));
  plan->quantities = {{"tiles", "tile", tiles},
                      {"step_elements", "element", step},
                      {"tail_share", "", std::fmod(last, plan->lanes) / columns},
                      {"tile_bytes", "B",
                       static_cast<double>(plan->tile_rows * plan->tile_columns) * element_bytes}};
  return plan;
}

Schedule Default(const Workload& workload, const Target& target) {
  const Pointwise match = *MatchPointwise(workload);
  Schedule schedule{kName, {}};
  schedule.decisions = {{"vector", absl::StrCat(VectorValues(target).back())}, {"unroll", "2"}};
  if (match.row_axis >= 0) {
    schedule.decisions.insert(schedule.decisions.end(),
                              {{"tile_columns", "64"}, {"tile_rows", "64"}, {"shuffle", "1"}});
  } else {
    schedule.decisions.emplace_back("tile_columns", "4096");
  }
  schedule.decisions.emplace_back("threads", absl::StrCat(target.cores));
  return schedule;
}

}  // namespace

std::vector<int64_t> VectorValues(const Target& target) {
  std::vector<int64_t> values;
  for (int64_t bits = 128; bits <= target.vector_bits; bits *= 2) values.push_back(bits);
  if (values.empty()) values.push_back(0);
  return values;
}

Variant PointwiseVectorisedVariant() {
  return {kName,
          "pointwise",
          "one statement in vectors along the output, tiles for transposed reads",
          {"host"},
          Applies,
          Define,
          MakePlan,
          Default};
}

}  // namespace tilewright
