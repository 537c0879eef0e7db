#include "schedule/contraction_tiled.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "schedule/contraction_tiled_space.h"

namespace tilewright {
namespace {

constexpr char kName[] = "contraction.tiled";

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// ---- What is asked again and again for one workload and target
// ---------------------------------------------------

struct Prepared {
  std::string workload;
  Target target;
  TiledProblem problem;
  SpaceWriter space{kName};
};

// The last one is kept: a search asks for thousands of plans of one workload.
absl::StatusOr<std::shared_ptr<const Prepared>> Prepare(const Workload& workload,
                                                        const Target& target) {
  thread_local std::shared_ptr<const Prepared> last;
  if (last != nullptr && last->workload == workload.canonical_text() && last->target == target)
    return last;
  absl::StatusOr<Contraction> contraction = MatchContraction(workload);
  if (!contraction.ok()) return contraction.status();
  auto prepared = std::make_shared<Prepared>();
  prepared->workload = workload.canonical_text();
  prepared->target = target;
  prepared->problem =
      StudyTiled(workload, target, std::make_shared<const Contraction>(*std::move(contraction)));
  WriteTiledSpace(workload, prepared->problem, &prepared->space);
  last = prepared;
  return last;
}

absl::Status Applies(const Workload& workload, const Target& target) {
  absl::StatusOr<std::shared_ptr<const Prepared>> prepared = Prepare(workload, target);
  if (!prepared.ok()) return prepared.status();
  return absl::OkStatus();
}

SpaceDefinition Define(const Workload& workload, const Target& target) {
  return (*Prepare(workload, target))->space.definition();
}

// ---- The plan
// ----------------------------------------------------------------------------------------------------

void FillDecisions(const TiledProblem& p, std::map<std::string, int64_t> values,
                   ContractionTiledPlan* plan) {
  auto packing = [](int64_t number) {
    return number == 0 ? Packing::kNone : number == 1 ? Packing::kPrivate : Packing::kShared;
  };
  plan->contraction = p.contraction;
  plan->lanes = p.lanes;
  plan->accumulator_bytes = p.bytes;
  plan->threads_batch = static_cast<int>(values["threads_batch"]);
  plan->threads_m = static_cast<int>(values["threads_m"]);
  plan->threads_n = static_cast<int>(values["threads_n"]);
  plan->threads = plan->threads_batch * plan->threads_m * plan->threads_n;
  plan->micro_m = static_cast<int>(values["micro_m"]);
  plan->vectors_n = static_cast<int>(values["vectors_n"]);
  plan->unroll_k = static_cast<int>(values["unroll_k"]);
  plan->tile_k = values["tile_k"];
  plan->tile_m = std::min(RoundUp(values["tile_m"], plan->micro_m),
                          StripRows(p.m, plan->threads_m, plan->micro_m));
  plan->tile_n = std::min(RoundUp(values["tile_n"], plan->micro_n()),
                          StripRows(p.n, plan->threads_n, plan->micro_n()));
  plan->order = values["order"] == 1   ? BlockOrder::kMKN
                : values["order"] == 2 ? BlockOrder::kNMK
                                       : BlockOrder::kNKM;
  plan->inner_m = values["inner"] != 1;
  plan->pack_a = packing(values["pack_a"]);
  plan->pack_b = packing(values["pack_b"]);
  plan->one_k_block = plan->tile_k >= p.k;
  plan->sums_in_output = p.sums_in_output;
}

// Areas begin on cache lines.
void MapWorkspace(const TiledProblem& p, const Workload& workload, ContractionTiledPlan* plan) {
  const Sizes high = workload.HighestSizes();
  int64_t offset = 0;
  auto take = [](int64_t* at, int64_t bytes) {
    const int64_t begin = *at;
    *at = RoundUp(begin + bytes, 64);
    return begin;
  };
  if (plan->pack_a == Packing::kShared) {
    plan->shared_a_offset =
        take(&offset, SharedPackingBytes(p, p.contraction->a, p.m, plan->micro_m, high));
  }
  if (plan->pack_b == Packing::kShared) {
    plan->shared_b_offset =
        take(&offset, SharedPackingBytes(p, p.contraction->b, p.n, plan->micro_n(), high));
  }
  plan->threads_offset = offset;
  int64_t own = 0;
  if (plan->pack_a == Packing::kPrivate) {
    plan->private_a_offset = take(&own, plan->tile_m * plan->tile_k * p.bytes);
  }
  if (plan->pack_b != Packing::kShared) {
    const int64_t columns = plan->pack_b == Packing::kPrivate ? plan->tile_n : plan->micro_n();
    plan->private_b_offset = take(&own, columns * plan->tile_k * p.bytes);
  }
  if (!plan->sums_in_output && !plan->one_k_block) {
    const int64_t rows = plan->order == BlockOrder::kNKM
                             ? StripRows(p.m, plan->threads_m, plan->micro_m)
                             : plan->tile_m;
    plan->c_block_columns = plan->order == BlockOrder::kMKN
                                ? StripRows(p.n, plan->threads_n, plan->micro_n())
                                : plan->tile_n;
    plan->c_block_offset = take(&own, rows * plan->c_block_columns * p.bytes);
  }
  // Threads start on pages of their own: they never share a line, and a page lies with the core
  // that writes it first.
  plan->thread_bytes = own == 0 ? 0 : RoundUp(own, 4096);
  plan->workspace_bytes = offset + plan->thread_bytes * plan->threads;
}

// Bytes and operations, at `sizes`.
void CountTraffic(const TiledProblem& p, const Workload& workload, absl::Span<const int64_t> sizes,
                  ContractionTiledPlan* plan) {
  const Contraction& c = *p.contraction;
  const double m = static_cast<double>(c.m.Extent(sizes)),
               n = static_cast<double>(c.n.Extent(sizes));
  const double k = static_cast<double>(c.K(sizes)), batches = static_cast<double>(c.Batches(sizes));
  const double mr = plan->micro_m, nr = static_cast<double>(plan->micro_n()), b = p.bytes;
  const double strips_m = std::ceil(m / mr), strips_n = std::ceil(n / nr);
  const double own_m = std::ceil(strips_m / plan->threads_m),
               own_n = std::ceil(strips_n / plan->threads_n);
  const double own_batches = std::ceil(batches / plan->threads_batch);
  const double tiles = batches * strips_m * strips_n;
  const double blocks_m = std::ceil(own_m * mr / static_cast<double>(plan->tile_m));
  const double blocks_n = std::ceil(own_n * nr / static_cast<double>(plan->tile_n));
  const double blocks_k = std::ceil(k / static_cast<double>(plan->tile_k));
  const double useful = 2 * batches * m * n * k;
  plan->operations = 2 * tiles * mr * nr * k + std::max(0.0, workload.Operations(sizes) - useful);
  plan->balance = tiles / (plan->threads * own_batches * own_m * own_n);
  plan->issue_efficiency =
      IssueEfficiency(p.target, plan->micro_m, plan->vectors_n, plan->unroll_k);

  // Elements copied into strips, over all threads.
  const double repeats_a = plan->order == BlockOrder::kMKN ? 1 : blocks_n;
  const double repeats_b = plan->order == BlockOrder::kNKM ? 1 : blocks_m;
  auto copied = [&](Packing packing, const ContractionOperand& operand, double own, double all,
                    double repeats) {
    if (packing == Packing::kNone) return 0.0;
    if (packing == Packing::kShared)
      return static_cast<double>(BatchesOf(c, operand, sizes)) * all * k;
    return plan->threads * own_batches * own * k * repeats;
  };
  const double packed_a = copied(plan->pack_a, c.a, own_m * mr, strips_m * mr, repeats_a);
  const double packed_b = copied(plan->pack_b, c.b, own_n * nr, strips_n * nr, repeats_b);
  const double pack_bytes = 2 * b * (packed_a + packed_b);
  const double sums = tiles * mr * nr * b * (2 * blocks_k - 1);

  const double streamed = plan->inner_m ? mr : nr;
  const double resident = plan->inner_m ? nr : mr;
  const double kc = std::min(k, static_cast<double>(plan->tile_k));
  const bool fits_l1 = resident * kc * b <= 0.75 * static_cast<double>(p.target.l1_bytes);
  const double resident_reads = (plan->inner_m ? strips_n * nr * blocks_m * plan->threads_m
                                               : strips_m * mr * blocks_n * plan->threads_n) *
                                batches * k * b;
  plan->l1_bytes = tiles * k * (mr + nr) * b + sums + pack_bytes;
  plan->l2_bytes =
      tiles * k * (fits_l1 ? streamed : mr + nr) * b + resident_reads + sums + pack_bytes;
  const double block_rows = static_cast<double>(plan->inner_m ? plan->tile_m : plan->tile_n);
  const double block_bytes = block_rows * kc * b;
  const bool fits_l2 = block_bytes <= 0.75 * static_cast<double>(p.target.l2_bytes);
  const double block_reads = (plan->inner_m ? strips_m * mr * blocks_n * plan->threads_n
                                            : strips_n * nr * blocks_m * plan->threads_m) *
                             batches * k * b;
  plan->l3_bytes =
      (fits_l2 ? block_reads : tiles * k * streamed * b) + resident_reads + sums + pack_bytes;
  const double compulsory = workload.CompulsoryBytes(sizes);
  const bool leaves_l3 = compulsory + pack_bytes > 2 * static_cast<double>(p.target.l3_bytes);
  plan->memory_bytes = compulsory + (leaves_l3 ? pack_bytes + (sums - tiles * mr * nr * b) : 0.0);

  const double panel_a = static_cast<double>(plan->tile_m) * kc * b,
               panel_b = static_cast<double>(plan->tile_n) * kc * b;
  const double step = mr * plan->vectors_n + mr + plan->vectors_n;
  plan->quantities = {
      {"padding", "", plan->operations / std::max(1.0, workload.Operations(sizes))},
      {"accumulators", "register", mr * plan->vectors_n},
      {"vector_registers", "register",
       static_cast<double>(VectorRegisters(plan->micro_m, plan->vectors_n))},
      {"loads_per_fma", "", (mr + plan->vectors_n) / (mr * plan->vectors_n)},
      {"micro_tiles", "tile", tiles * blocks_k},
      {"steps_per_tile", "", kc},
      {"packed_a_elements", "element", packed_a},
      {"packed_b_elements", "element", packed_b},
      {"pack_bytes", "B", pack_bytes},
      {"partial_sum_bytes", "B", sums},
      {"resident_strip_of_l1", "", resident * kc * b / static_cast<double>(p.target.l1_bytes)},
      {"streamed_strip_of_l1", "", streamed * kc * b / static_cast<double>(p.target.l1_bytes)},
      {"panel_a_of_l2", "", panel_a / static_cast<double>(p.target.l2_bytes)},
      {"panel_b_of_l2", "", panel_b / static_cast<double>(p.target.l2_bytes)},
      {"panels_of_l3", "",
       p.target.l3_bytes == 0
           ? 0
           : (panel_a + panel_b) * plan->threads / static_cast<double>(p.target.l3_bytes)},
      {"blocks_m", "", blocks_m},
      {"blocks_n", "", blocks_n},
      {"blocks_k", "", blocks_k},
      {"micro_code", "instruction", step * (plan->unroll_k + (plan->unroll_k > 1 ? 1 : 0))},
      {"launches", "",
       plan->pack_a == Packing::kShared || plan->pack_b == Packing::kShared ? 2.0 : 1.0},
  };
}

std::unique_ptr<Plan> MakePlan(const Workload& workload, const Target& target,
                               absl::Span<const int64_t> numbers, absl::Span<const int64_t> sizes) {
  std::shared_ptr<const Prepared> prepared = *Prepare(workload, target);
  auto plan = std::make_unique<ContractionTiledPlan>();
  FillDecisions(prepared->problem, prepared->space.AllNumbers(numbers), plan.get());
  MapWorkspace(prepared->problem, workload, plan.get());
  CountTraffic(prepared->problem, workload, sizes, plan.get());
  return plan;
}

// ---- The default
// -------------------------------------------------------------------------------------------------

// The micro-tile that takes the fewest cycles for the whole output, padding included.
std::pair<int64_t, int64_t> BestMicroTile(const TiledProblem& p, const Decision* micro_m,
                                          const Decision* vectors_n) {
  const std::vector<DecisionValue> one = {{1, "1"}};
  std::pair<int64_t, int64_t> best = {1, 1};
  double least = -1;
  for (const DecisionValue& rows : micro_m != nullptr ? micro_m->values : one) {
    for (const DecisionValue& vectors : vectors_n != nullptr ? vectors_n->values : one) {
      const int64_t mr = rows.number, nv = vectors.number;
      if (VectorRegisters(mr, nv) > p.target.vector_registers) continue;
      const double tiles = static_cast<double>(CeilDiv(p.m, mr) * CeilDiv(p.n, nv * p.lanes));
      const double cycles = tiles * static_cast<double>(mr * nv) /
                            IssueEfficiency(p.target, mr, nv, 4) *
                            (1 + 0.1 * static_cast<double>(mr + nv) / static_cast<double>(mr * nv));
      if (least >= 0 && cycles >= least) continue;
      least = cycles;
      best = {mr, nv};
    }
  }
  return best;
}

const Decision* FindDecision(const SpaceDefinition& definition, std::string_view name) {
  for (const Decision& decision : definition.decisions) {
    if (decision.name == name) return &decision;
  }
  return nullptr;
}

// The largest value whose number is at most `most`, else the first.
const DecisionValue& AtMost(const Decision& decision, int64_t most) {
  const DecisionValue* best = &decision.values[0];
  for (const DecisionValue& value : decision.values) {
    if (value.number <= most) best = &value;
  }
  return *best;
}

Schedule DefaultSchedule(const Workload& workload, const Target& target) {
  std::shared_ptr<const Prepared> prepared = *Prepare(workload, target);
  const TiledProblem& p = prepared->problem;
  const Contraction& c = *p.contraction;
  const SpaceDefinition& definition = prepared->space.definition();
  auto [micro_m, vectors_n] =
      BestMicroTile(p, FindDecision(definition, "micro_m"), FindDecision(definition, "vectors_n"));
  const int64_t micro_n = vectors_n * p.lanes;
  // Whole batches first: they share nothing. Then the longer side, counted in micro-tiles.
  const int64_t cores = target.cores;
  int64_t threads_batch = p.batches >= cores ? cores : 1;
  int64_t threads_m = 1, threads_n = 1;
  if (threads_batch == 1) {
    (CeilDiv(p.m, micro_m) >= CeilDiv(p.n, micro_n) ? threads_m : threads_n) = cores;
  }
  // A strip of b fills half of L1, a block of a half of L2, a block of b a share of L3.
  const int64_t tile_k = std::max<int64_t>(32, target.l1_bytes / 2 / (micro_n * p.bytes));
  const int64_t own_l3 =
      std::max(target.l3_bytes / std::max<int64_t>(1, cores), target.l2_bytes) / 2;
  std::map<std::string, int64_t> wanted = {
      {"threads_batch", threads_batch},
      {"threads_m", threads_m},
      {"threads_n", threads_n},
      {"micro_m", micro_m},
      {"vectors_n", vectors_n},
      {"unroll_k", 4},
      {"tile_k", tile_k},
  };
  Schedule schedule{kName, {}};
  std::map<std::string, int64_t> chosen = prepared->space.fixed();
  for (const Decision& decision : definition.decisions) {
    if (decision.present) {
      std::vector<int64_t> reads;
      for (const std::string& name : decision.depends_on) reads.push_back(chosen.at(name));
      if (!decision.present(reads)) {
        chosen[decision.name] = kAbsent;
        continue;
      }
    }
    const DecisionValue* value = nullptr;
    if (wanted.contains(decision.name)) {
      value = &AtMost(decision, wanted.at(decision.name));
    } else if (decision.name == "tile_m" || decision.name == "tile_n") {
      const bool is_m = decision.name == "tile_m";
      const int64_t room = (is_m ? target.l2_bytes / 2 : own_l3) / (chosen.at("tile_k") * p.bytes);
      const int64_t own = is_m ? StripRows(p.m, chosen.at("threads_m"), micro_m)
                               : StripRows(p.n, chosen.at("threads_n"), micro_n);
      const int64_t strip = is_m ? micro_m : micro_n;
      value = own <= room ? &decision.values.back() : &AtMost(decision, std::max<int64_t>(room, 1));
      if (RoundUp(value->number, strip) >= own) value = &decision.values.back();
    } else if (decision.name == "order") {
      value = &decision.values[p.sums_in_output ? 0 : 2];
    } else if (decision.name == "inner") {
      value = &decision.values[0];
    } else {
      // Few rows do not repay copying b; else private copies, or one shared copy where every batch
      // would repeat it.
      const bool is_a = decision.name == "pack_a";
      const ContractionOperand& operand = is_a ? c.a : c.b;
      const int64_t uses = is_a ? p.n : p.m;
      std::string token = uses <= 4 && decision.values[0].token == "none" ? "none" : "private";
      if (p.batches > 1 && operand.batch.empty() && p.batches >= cores) token = "shared";
      for (const DecisionValue& v : decision.values) {
        if (v.token == token) value = &v;
      }
    }
    chosen[decision.name] = value->number;
    schedule.decisions.emplace_back(decision.name, value->token);
  }
  return schedule;
}

}  // namespace

Variant ContractionTiledVariant() {
  return {.name = kName,
          .family = "contraction",
          .help = "blocked for the caches, packed strips, a micro-tile in vector registers",
          .backends = {"host"},
          .applies = Applies,
          .define = Define,
          .plan = MakePlan,
          .default_schedule = DefaultSchedule};
}

}  // namespace tilewright
