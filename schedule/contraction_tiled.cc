#include "schedule/contraction_tiled.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "schedule/contraction_tiled_space.h"

namespace tilewright {
namespace {

constexpr char kTiledName[] = "contraction.tiled";

// ---- What is asked again and again for one workload and target
// ---------------------------------------------------

struct PreparedTiled {
  std::string workload;
  Target target;
  TiledProblem problem;
  SpaceWriter space{kTiledName};
};

// The last one is kept: a search asks for thousands of plans of one workload.
absl::StatusOr<std::shared_ptr<const PreparedTiled>> PrepareTiled(const Workload& workload,
                                                                  const Target& target) {
  thread_local std::shared_ptr<const PreparedTiled> last;
  if (last != nullptr && last->workload == workload.canonical_text() && last->target == target)
    return last;
  absl::StatusOr<Contraction> contraction = MatchContraction(workload);
  if (!contraction.ok()) return contraction.status();
  auto prepared = std::make_shared<PreparedTiled>();
  prepared->workload = workload.canonical_text();
  prepared->target = target;
  prepared->problem =
      StudyTiled(workload, target, std::make_shared<const Contraction>(*std::move(contraction)));
  WriteTiledSpace(prepared->problem, &prepared->space);
  last = prepared;
  return last;
}

absl::Status TiledApplies(const Workload& workload, const Target& target) {
  absl::StatusOr<std::shared_ptr<const PreparedTiled>> prepared = PrepareTiled(workload, target);
  if (!prepared.ok()) return prepared.status();
  return absl::OkStatus();
}

SpaceDefinition DefineTiled(const Workload& workload, const Target& target) {
  return (*PrepareTiled(workload, target))->space.definition();
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
void MapWorkspace(const TiledProblem& p, ContractionTiledPlan* plan) {
  int64_t offset = 0;
  auto take = [](int64_t* at, int64_t bytes) {
    const int64_t begin = *at;
    *at = RoundUp(begin + bytes, 64);
    return begin;
  };
  if (plan->pack_a == Packing::kShared) {
    plan->shared_a_offset =
        take(&offset, SharedPackingBytes(p, p.contraction->a, p.m, plan->micro_m));
  }
  if (plan->pack_b == Packing::kShared) {
    plan->shared_b_offset =
        take(&offset, SharedPackingBytes(p, p.contraction->b, p.n, plan->micro_n()));
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

std::unique_ptr<Plan> MakeTiledPlan(const Workload& workload, const Target& target,
                                    absl::Span<const int64_t> numbers,
                                    absl::Span<const int64_t> sizes) {
  std::shared_ptr<const PreparedTiled> prepared = *PrepareTiled(workload, target);
  auto plan = std::make_unique<ContractionTiledPlan>();
  FillDecisions(prepared->problem, prepared->space.AllNumbers(numbers), plan.get());
  MapWorkspace(prepared->problem, plan.get());
  CountTraffic(prepared->problem, workload, sizes, plan.get());
  return plan;
}

// ---- The default: what is best on paper

// Values of a decision, or the one it has where there is no choice.
std::vector<int64_t> TiledNumbers(const SpaceWriter& space, std::string_view name) {
  for (const Decision& decision : space.definition().decisions) {
    if (decision.name != name) continue;
    std::vector<int64_t> numbers;
    for (const DecisionValue& value : decision.values) numbers.push_back(value.number);
    return numbers;
  }
  return {space.fixed().at(std::string(name))};
}

// The largest that is at most `most`, else the first.
int64_t AtMost(const std::vector<int64_t>& numbers, int64_t most) {
  int64_t best = numbers[0];
  for (int64_t number : numbers) {
    if (number <= most) best = number;
  }
  return best;
}

using Wishes = std::map<std::string, int64_t>;

// The micro-tile that takes the fewest cycles for the whole output, padding included.
void WishMicroTile(const TiledProblem& p, const SpaceWriter& space, Wishes* wishes) {
  double least = -1;
  for (int64_t rows : TiledNumbers(space, "micro_m")) {
    for (int64_t vectors : TiledNumbers(space, "vectors_n")) {
      if (VectorRegisters(rows, vectors) > p.target.vector_registers) continue;
      const double tiles =
          static_cast<double>(CeilDiv(p.m, rows) * CeilDiv(p.n, vectors * p.lanes));
      const double fmas = static_cast<double>(rows * vectors);
      // Among equals the one that loads least.
      const double cycles = tiles * fmas / IssueEfficiency(p.target, rows, vectors, 4) *
                            (1 + 0.1 * static_cast<double>(rows + vectors) / fmas);
      if (least >= 0 && cycles >= least) continue;
      least = cycles;
      (*wishes)["micro_m"] = rows;
      (*wishes)["vectors_n"] = vectors;
    }
  }
}

// Whole batches first: they share nothing. Then the grid whose busiest thread has least to do;
// copying an element costs about as much as 48 multiply-adds (AMD Zen 3, gemm_bench).
void WishThreads(const TiledProblem& p, const SpaceWriter& space, Wishes* wishes) {
  const int64_t cores = p.target.cores;
  (*wishes)["threads_batch"] = p.batches >= cores ? cores : 1;
  (*wishes)["threads_m"] = (*wishes)["threads_n"] = 1;
  if (p.batches >= cores) return;
  double least = -1;
  for (int64_t threads_m : TiledNumbers(space, "threads_m")) {
    for (int64_t threads_n : TiledNumbers(space, "threads_n")) {
      if (threads_m * threads_n > cores) continue;
      const double rows = static_cast<double>(StripRows(p.m, threads_m, (*wishes)["micro_m"]));
      const double columns =
          static_cast<double>(StripRows(p.n, threads_n, (*wishes)["vectors_n"] * p.lanes));
      const double cost = rows * columns + 48 * (rows + columns);
      if (least >= 0 && cost >= least) continue;
      least = cost;
      (*wishes)["threads_m"] = threads_m;
      (*wishes)["threads_n"] = threads_n;
    }
  }
}

// A strip of b fills three quarters of L1, a block of a half of L2, a block of b a share of L3.
void WishTiles(const TiledProblem& p, const SpaceWriter& space, Wishes* wishes) {
  const int64_t micro_m = (*wishes)["micro_m"], micro_n = (*wishes)["vectors_n"] * p.lanes;
  const int64_t steps = p.target.l1_bytes * 3 / 4 / (micro_n * p.bytes);
  const int64_t tile_k = (*wishes)["tile_k"] =
      AtMost(TiledNumbers(space, "tile_k"), std::max<int64_t>(32, steps));
  const int64_t l2_rows = p.target.l2_bytes / 2 / (tile_k * p.bytes);
  const int64_t own_l3 = std::max(p.target.l3_bytes / p.target.cores, p.target.l2_bytes) / 2;
  int64_t l3_columns = own_l3 / (tile_k * p.bytes);
  if (!p.sums_in_output && tile_k < p.k) {
    l3_columns =
        std::min(l3_columns, p.workspace_limit / 2 /
                                 (p.target.cores * p.bytes * std::max<int64_t>(l2_rows, 24)));
  }
  auto tile = [&](const char* name, int64_t room, int64_t own, int64_t strip) {
    const std::vector<int64_t> numbers = TiledNumbers(space, name);
    const int64_t number = own <= room ? numbers.back() : AtMost(numbers, room);
    (*wishes)[name] = RoundUp(number, strip) >= own ? numbers.back() : number;
  };
  tile("tile_m", l2_rows, StripRows(p.m, (*wishes)["threads_m"], micro_m), micro_m);
  tile("tile_n", l3_columns, StripRows(p.n, (*wishes)["threads_n"], micro_n), micro_n);
  (*wishes)["unroll_k"] = 4;
  (*wishes)["order"] = p.sums_in_output ? 0 : 2;
  (*wishes)["inner"] = 0;
}

// An operand that few rows of the other use is not worth copying, nor is one of few rows; a large
// one that several threads, or all batches, would copy alike is copied once for all.
void WishPacking(const TiledProblem& p, Wishes* wishes) {
  auto wish = [&](const ContractionOperand& operand, int64_t rows, int64_t uses, int64_t repeats) {
    if (uses <= 4 || rows <= 4) return 0;
    const int64_t bytes = SharedPackingBytes(p, operand, rows + 128, 1);
    return repeats > 1 && bytes > p.target.l2_bytes && bytes <= p.workspace_limit / 2 ? 2 : 1;
  };
  const int64_t a_repeats =
      (*wishes)["threads_n"] * (p.contraction->a.batch.empty() ? p.batches : 1);
  const int64_t b_repeats =
      (*wishes)["threads_m"] * (p.contraction->b.batch.empty() ? p.batches : 1);
  (*wishes)["pack_a"] = wish(p.contraction->a, p.m, p.n, a_repeats);
  (*wishes)["pack_b"] = wish(p.contraction->b, p.n, p.m, b_repeats);
  // Read in place and once, rows of b are best taken a few at a time: whole lines, few pages.
  if ((*wishes)["pack_b"] == 0 && p.m <= 4) (*wishes)["tile_k"] = 32;
}

Schedule DefaultTiledSchedule(const Workload& workload, const Target& target) {
  std::shared_ptr<const PreparedTiled> prepared = *PrepareTiled(workload, target);
  const TiledProblem& p = prepared->problem;
  Wishes wishes;
  WishMicroTile(p, prepared->space, &wishes);
  WishThreads(p, prepared->space, &wishes);
  WishTiles(p, prepared->space, &wishes);
  WishPacking(p, &wishes);
  return prepared->space.ClosestTo(wishes);
}

}  // namespace

Variant ContractionTiledVariant() {
  return {.name = kTiledName,
          .family = "contraction",
          .help = "blocked for the caches, packed strips, a micro-tile in vector registers",
          .backends = {"host"},
          .applies = TiledApplies,
          .define = DefineTiled,
          .plan = MakeTiledPlan,
          .default_schedule = DefaultTiledSchedule};
}

}  // namespace tilewright
