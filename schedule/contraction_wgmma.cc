#include "schedule/contraction_wgmma.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "schedule/contraction_tiled_space.h"

namespace tilewright {
namespace {

constexpr char kWgmmaName[] = "contraction.wgmma";

// ---- What is asked again and again for one workload and target

struct PreparedWgmma {
  std::string workload;
  Target target;
  WgmmaProblem problem;
  SpaceWriter space{kWgmmaName};
};

// The last one is kept: a search asks for thousands of plans of one workload.
absl::StatusOr<std::shared_ptr<const PreparedWgmma>> PrepareWgmma(const Workload& workload,
                                                                  const Target& target) {
  thread_local std::shared_ptr<const PreparedWgmma> last;
  if (last != nullptr && last->workload == workload.canonical_text() && last->target == target)
    return last;
  absl::StatusOr<Contraction> contraction = MatchContraction(workload);
  if (!contraction.ok()) return contraction.status();
  absl::StatusOr<WgmmaProblem> problem =
      StudyWgmma(workload, target, std::make_shared<const Contraction>(*std::move(contraction)));
  if (!problem.ok()) return problem.status();
  auto prepared = std::make_shared<PreparedWgmma>();
  prepared->workload = workload.canonical_text();
  prepared->target = target;
  prepared->problem = *std::move(problem);
  WriteWgmmaSpace(prepared->problem, &prepared->space);
  last = prepared;
  return last;
}

absl::Status WgmmaApplies(const Workload& workload, const Target& target) {
  return PrepareWgmma(workload, target).status();
}

SpaceDefinition DefineWgmma(const Workload& workload, const Target& target) {
  return (*PrepareWgmma(workload, target))->space.definition();
}

// ---- The plan

void FillWgmmaDecisions(const WgmmaProblem& p, std::map<std::string, int64_t> values,
                        ContractionWgmmaPlan* plan) {
  auto number = [&](const char* name) { return static_cast<int>(values.at(name)); };
  plan->contraction = p.contraction;
  plan->type = p.type;
  plan->output_bytes = p.output_bytes;
  plan->swap = number("swap") == 1;
  plan->pingpong = number("mode") == 1;
  plan->consumers = plan->pingpong ? 2 : number("consumers");
  plan->tile_m = number("tile_m");
  plan->tile_n = number("tile_n");
  plan->tile_k = number("tile_k");
  plan->stages = number("stages");
  plan->promote = p.bytes == 1;
  plan->in_flight = plan->promote ? 0 : plan->pingpong ? 1 : number("in_flight");
  plan->cluster = static_cast<WgmmaCluster>(number("cluster"));
  plan->stream_k = static_cast<WgmmaStreamK>(plan->pingpong ? 0 : number("stream_k"));
  plan->group = number("group");
  plan->raster_rows = number("raster") == 0;
  plan->tma_store = number("store") == 1;
  plan->row_store = number("store") == 2;
  plan->store_columns = plan->tma_store ? std::min(plan->tile_n, number("store_columns")) : 0;
  plan->store_buffers = plan->tma_store ? number("store_buffers") : plan->row_store ? 1 : 0;
  if (plan->consumers > 1) {
    plan->producer_registers = number("producer_registers");
    plan->consumer_registers =
        static_cast<int>(ConsumerRegisters(plan->consumers, plan->producer_registers));
  }
  plan->consumer_rows =
      static_cast<int>(ConsumerRows(plan->pingpong, plan->consumers, plan->tile_m));
  plan->threads = kWarpgroup * (1 + plan->consumers);
}

}  // namespace

WgmmaOperandPlan PlanWgmmaOperand(const WgmmaProblem& p, const ContractionWgmmaPlan& plan,
                                  bool is_rows) {
  WgmmaOperandPlan operand;
  operand.is_a = is_rows != plan.swap;
  operand.transposed = operand.is_a ? p.a_transposed : p.b_transposed;
  operand.rows = is_rows ? plan.tile_m : plan.tile_n;
  operand.stage_bytes =
      OperandStageBytes(operand.rows, operand.transposed, int64_t{plan.tile_k} * p.bytes);
  operand.atom_bytes = OperandStageBytes(operand.rows, operand.transposed, kSwizzleBytes);
  // Pairs along m differ in m: what lies along n is shared.
  operand.multicast = plan.cluster == WgmmaCluster::kAlongM   ? !operand.is_a
                      : plan.cluster == WgmmaCluster::kAlongN ? operand.is_a
                                                              : false;
  const int halves = operand.multicast ? 2 : 1;
  operand.box_depth = p.atom_elements();
  operand.padded = operand.is_a ? p.a_padded : p.b_padded;
  if (operand.transposed) {
    operand.box_rows = 64;
    operand.boxes = static_cast<int>(RoundUp(operand.rows, 64) / 64 / halves);
  } else {
    operand.box_rows = static_cast<int>(operand.rows / halves);
    operand.boxes = 1;
  }
  operand.box_bytes = int64_t{operand.box_rows} * kSwizzleBytes;
  return operand;
}

int64_t PlaceCopies(const WgmmaProblem& p, ContractionWgmmaPlan* plan) {
  const Contraction& c = *p.contraction;
  int64_t taken = plan->flag_bytes;
  for (WgmmaOperandPlan* operand : {&plan->rows_operand, &plan->columns_operand}) {
    if (!operand->padded) continue;
    const int64_t rows = operand->is_a ? p.m : p.n;
    // Whole lines of L2: a row of a box is then one of them, not parts of two.
    operand->pitch = RoundUp(operand->transposed ? rows : p.k, 128 / p.bytes);
    operand->lines = operand->transposed ? p.k : rows;
    operand->workspace_offset = taken;
    const int64_t batches = BatchesOf(c, operand->is_a ? c.a : c.b, p.high);
    taken = RoundUp(taken + batches * operand->lines * operand->pitch * p.bytes, 256);
  }
  return taken;
}

namespace {

void MapSharedMemory(const WgmmaProblem& p, ContractionWgmmaPlan* plan) {
  plan->rows_operand = PlanWgmmaOperand(p, *plan, true);
  plan->columns_operand = PlanWgmmaOperand(p, *plan, false);
  plan->columns_operand.stage_offset = plan->rows_operand.stage_bytes;
  plan->stage_bytes = plan->rows_operand.stage_bytes + plan->columns_operand.stage_bytes;
  plan->staging_offset = plan->stages * plan->stage_bytes;
  plan->staging_bytes = plan->row_store ? RowStagingBytes(1, plan->tile_n, plan->output_bytes)
                                        : StagingBytes(plan->consumer_rows, plan->tile_n,
                                                       plan->store_columns, 1, plan->output_bytes);
  plan->full_offset =
      plan->staging_offset + plan->consumers * plan->store_buffers * plan->staging_bytes;
  plan->empty_offset = plan->full_offset + 8 * plan->stages;
  plan->shared_memory_bytes = plan->full_offset + BarrierBytes(plan->stages);
}

// Tiles of CTAs at `sizes`; a pair counts two even where one of them has nothing to do.
double TileCount(const ContractionWgmmaPlan& plan, absl::Span<const int64_t> sizes) {
  const Contraction& c = *plan.contraction;
  const int64_t m = c.m.Extent(sizes), n = c.n.Extent(sizes);
  int64_t tiles_m = CeilDiv(m, plan.swap ? plan.tile_n : plan.tile_m);
  int64_t tiles_n = CeilDiv(n, plan.swap ? plan.tile_m : plan.tile_n);
  if (plan.cluster == WgmmaCluster::kAlongM) tiles_m = RoundUp(tiles_m, 2);
  if (plan.cluster == WgmmaCluster::kAlongN) tiles_n = RoundUp(tiles_n, 2);
  return static_cast<double>(c.Batches(sizes)) * static_cast<double>(tiles_m * tiles_n);
}

void CountWgmma(const WgmmaProblem& p, const Workload& workload, absl::Span<const int64_t> sizes,
                ContractionWgmmaPlan* plan) {
  const Contraction& c = *p.contraction;
  const double m = static_cast<double>(c.m.Extent(sizes)),
               n = static_cast<double>(c.n.Extent(sizes));
  const double batches = static_cast<double>(c.Batches(sizes));
  const double k_blocks = static_cast<double>(CeilDiv(c.K(sizes), plan->tile_k));
  const double tiles = TileCount(*plan, sizes);
  const double tile_m = plan->tile_m, tile_n = plan->tile_n;
  const double useful = 2 * batches * m * n * static_cast<double>(c.K(sizes));
  plan->operations = 2 * tiles * tile_m * tile_n * k_blocks * plan->tile_k +
                     std::max(0.0, workload.Operations(sizes) - useful);

  // The busiest CTA's tiles: a wave is one tile on every CTA.
  // With stream-K the split tiles are shared evenly, but for a k block.
  const int64_t walkers = plan->grid / plan->pair_size();
  const auto split = static_cast<double>(SplitTiles(plan->stream_k,
                                                    static_cast<int64_t>(tiles) / plan->pair_size(),
                                                    static_cast<int64_t>(k_blocks), walkers));
  const double whole_tiles = tiles / plan->pair_size() - split;
  const double waves = std::ceil(whole_tiles / static_cast<double>(walkers)) +
                       std::ceil(split * k_blocks / static_cast<double>(walkers)) / k_blocks;
  plan->balance = tiles / (waves * p.target.cores);
  const double mma = MmaCycles(p, tile_m, tile_n);
  const double shared = SharedReadCycles(p, tile_m, tile_n);
  plan->issue_efficiency = std::min(1.0, mma / shared);
  const double rows_share = plan->rows_operand.multicast ? 0.5 : 1;
  const double columns_share = plan->columns_operand.multicast ? 0.5 : 1;
  const double output = batches * m * n * p.output_bytes;
  plan->l2_bytes = tiles * k_blocks *
                       (rows_share * static_cast<double>(plan->rows_operand.stage_bytes) +
                        columns_share * static_cast<double>(plan->columns_operand.stage_bytes)) +
                   output;
  plan->l1_bytes = tiles * shared * 128;
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  plan->l2_bytes += 2 * static_cast<double>(plan->workspace_bytes);

  plan->quantities = {
      {"shared_memory_bytes", "B", static_cast<double>(plan->shared_memory_bytes)},
      {"accumulators", "register",
       static_cast<double>(Accumulators(plan->consumer_rows, plan->tile_n))},
      {"consumer_registers", "register", static_cast<double>(plan->consumer_registers)},
      {"tiles", "tile", tiles},
      {"waves", "wave", tiles / plan->grid},
      {"wave_efficiency", "", tiles / (waves * plan->grid)},
      {"padding", "", plan->operations / std::max(1.0, workload.Operations(sizes))},
      {"k_blocks", "stage", k_blocks},
      {"launches", "", plan->rows_operand.padded || plan->columns_operand.padded ? 2.0 : 1.0},
      {"split_tiles", "tile", split * plan->pair_size()},
      {"mma_cycles", "cycle", mma},
      {"shared_read_cycles", "cycle", shared},
      {"bytes_in_flight", "B", static_cast<double>(plan->stages * plan->stage_bytes)},
      {"output_bytes_per_tile", "B", tile_m * tile_n * p.output_bytes},
  };
}

std::unique_ptr<Plan> MakeWgmmaPlan(const Workload& workload, const Target& target,
                                    absl::Span<const int64_t> numbers,
                                    absl::Span<const int64_t> sizes) {
  std::shared_ptr<const PreparedWgmma> prepared = *PrepareWgmma(workload, target);
  const WgmmaProblem& p = prepared->problem;
  auto plan = std::make_unique<ContractionWgmmaPlan>();
  FillWgmmaDecisions(p, prepared->space.AllNumbers(numbers), plan.get());
  MapSharedMemory(p, plan.get());
  plan->ahead_rows = (p.m > p.n) != plan->swap;
  const std::map<std::string, int64_t> values = prepared->space.AllNumbers(numbers);
  plan->ahead_bytes =
      AheadBytesOfRow(std::max<int64_t>(0, values.at("ahead")) * 1024,
                      plan->ahead_rows ? plan->tile_m : plan->tile_n, p.k * p.bytes);
  plan->tiles_at_highest = static_cast<int64_t>(TileCount(*plan, p.high));
  const int64_t most = target.cores / plan->cluster_size() * plan->cluster_size();
  const bool splits = plan->stream_k != WgmmaStreamK::kOff;
  plan->grid = static_cast<int>(splits ? most : std::min(most, plan->tiles_at_highest));
  if (splits) plan->flag_bytes = RoundUp(int64_t{4} * plan->grid * plan->consumers, 256);
  plan->partials_offset = PlaceCopies(p, plan.get());
  plan->workspace_bytes =
      plan->partials_offset + (splits ? int64_t{plan->grid} * plan->tile_m * plan->tile_n * 4 : 0);
  CountWgmma(p, workload, sizes, plan.get());
  return plan;
}

// ---- The default: what is best on paper

using WgmmaWishes = std::map<std::string, int64_t>;

// None where there is no whole wave to take one more of.
int64_t SplitTilesOf(const WgmmaProblem& p, const WgmmaWishes& wishes) {
  const int64_t tiles = TilesOfCtas(p, wishes.at("swap") == 1, wishes.at("tile_m"),
                                    wishes.at("tile_n"), wishes.at("cluster"));
  const auto stream_k = static_cast<WgmmaStreamK>(wishes.at("stream_k"));
  if (stream_k == WgmmaStreamK::kWave && tiles <= p.target.cores) return 0;
  return SplitTiles(stream_k, tiles, CeilDiv(p.k, wishes.at("tile_k")), p.target.cores);
}

// Cycles in which memory brings again what CTAs that share an operand read at different times,
// since they begin their shares of split tiles at different k; an SM has about 18 B a cycle of
// memory's rate. Shares of nearly whole tiles keep CTAs close together; others had more than half
// of their reads from memory (777 x 3584 x 18944 on an H200, 2026-11-30: 140 tiles took 142 us and
// 196 of about the same bytes 215).
double SplitReadCycles(const WgmmaProblem& p, const WgmmaWishes& wishes, double split) {
  const double k_blocks = static_cast<double>(CeilDiv(p.k, wishes.at("tile_k")));
  const double share = std::fmod(split * k_blocks / p.target.cores, k_blocks) / k_blocks;
  const bool together = split > 0.8 * p.target.cores && std::min(share, 1 - share) < 1.0 / 6;
  const auto rows = static_cast<double>(wishes.at("tile_m") + wishes.at("tile_n"));
  return (together ? 0.3 : 0.55) * rows * static_cast<double>(p.k * p.bytes) / 18;
}

// Cycles of the whole output on one wish: waves of tiles, each the longest of its multiplications,
// what shared memory and L2 feed them, and an epilogue that ping-pong hides. An SM takes about 50 B
// a cycle from L2 (with 46, 256 x 176 stood before 128 x 256, which was 1% faster at three shapes
// of an H200, 2026-11-30); an epilogue costs about 1,000 cycles and 16 B a cycle.
double WgmmaCost(const WgmmaProblem& p, const WgmmaWishes& wishes) {
  const bool swap = wishes.at("swap") == 1, pingpong = wishes.at("mode") == 1;
  const double tile_m = static_cast<double>(wishes.at("tile_m"));
  const double tile_n = static_cast<double>(wishes.at("tile_n"));
  const double tiles = static_cast<double>(p.batches) *
                       std::ceil(static_cast<double>(p.rows(swap)) / tile_m) *
                       std::ceil(static_cast<double>(p.columns(swap)) / tile_n);
  const auto split = static_cast<double>(SplitTilesOf(p, wishes));
  const double waves = std::ceil((tiles - split) / p.target.cores);
  // The output shares the way to L2; rows that end within a line of it are written in parts.
  const bool partial_lines = !swap && static_cast<int64_t>(tile_n) * p.output_bytes % 128 != 0;
  const double bytes = (tile_m + tile_n) * static_cast<double>(p.k * p.bytes) +
                       tile_m * tile_n * p.output_bytes * (partial_lines ? 1.25 : 1);
  const double feed = std::max(SharedReadCycles(p, tile_m, tile_n), bytes / 50);
  // An SM issues 128 threads' instructions a cycle.
  const double epilogue =
      1000 + tile_m * tile_n * (p.output_bytes / 16.0 + p.epilogue_instructions / 128);
  // Stores turned around cost a little.
  const double product = std::max(MmaCycles(p, tile_m, tile_n), feed) * (swap ? 1.02 : 1);
  // Sums of a split tile are written to memory and read again.
  const double exchange = split > 0 ? 6000 + 3 * 4 * tile_m * tile_n / 50 : 0;
  const double split_product = split > 0 ? std::max(product, SplitReadCycles(p, wishes, split)) : 0;
  return pingpong ? waves * std::max(product, epilogue) + epilogue
                  : waves * (product + epilogue) +
                        split / p.target.cores * (split_product + epilogue) + exchange;
}

// The most stages, at most eight, that leave room for the staged output; of twice the k where many
// would fit, which was 2% faster for 64 x 48 tiles on an H200 (2026-11-30).
void WishStages(const WgmmaProblem& p, WgmmaWishes* wishes) {
  const bool swap = wishes->at("swap") == 1, pingpong = wishes->at("mode") == 1;
  const int64_t tile_m = wishes->at("tile_m"), tile_n = wishes->at("tile_n");
  const int64_t stage = OperandStageBytes(tile_m, p.rows_transposed(swap), kSwizzleBytes) +
                        OperandStageBytes(tile_n, p.columns_transposed(swap), kSwizzleBytes);
  for (int64_t buffers : {2, 1}) {
    for (int64_t columns : {64, 32}) {
      const int64_t staging =
          p.tma_store ? StagingBytes(pingpong ? 2 * tile_m : tile_m, tile_n, columns, buffers,
                                     p.output_bytes)
                      : RowStagingBytes(wishes->at("consumers"), tile_n, p.output_bytes);
      (*wishes)["store_columns"] = tile_n > 32 ? columns : 32;
      (*wishes)["store_buffers"] = buffers;
      const int64_t room = p.target.shared_memory_bytes - staging;
      const int64_t atoms = 14 * stage < room && p.bytes > 1 && p.k > p.atom_elements() ? 2 : 1;
      (*wishes)["tile_k"] = atoms * p.atom_elements();
      (*wishes)["stages"] = std::min<int64_t>(8, room / (atoms * stage + BarrierBytes(1)));
      if ((*wishes)["stages"] >= 4) return;
    }
  }
}

struct RankedWishes {
  double cost = 0;
  WgmmaWishes wishes;
};

// All tiles, each with the rest of its decisions, the cheapest first.
std::vector<RankedWishes> RankWishes(const WgmmaProblem& p) {
  // An epilogue that computes needs registers beside the sums: ptxas 13.0 spills gelu or silu with
  // a bias and a residual at 192 of them, tanh at 160.
  auto most_sums = [&](int64_t consumers) {
    const int64_t limit = AccumulatorLimit(consumers, 24);
    if (p.epilogue_instructions == 0) return limit;
    return std::min<int64_t>(limit, p.epilogue_instructions <= 70 ? 176 : 128);
  };
  std::vector<RankedWishes> ranked;
  auto add = [&](int64_t swap, bool pingpong, int64_t tile_m, int64_t tile_n) {
    const int64_t consumers = pingpong || tile_m % 128 == 0 ? 2 : 1;
    const int64_t sums = SumsPerAccumulator(p.bytes) *
                         Accumulators(ConsumerRows(pingpong, consumers, tile_m), tile_n);
    const bool covers = tile_m - 64 < p.rows(swap) && tile_n - 8 < p.columns(swap);
    // Stores by rows want rows of n in a warp.
    if (!covers || sums > most_sums(consumers) || (swap == 1 && !p.tma_store)) return;
    for (int64_t stream_k : {0, 1, 2}) {
      WgmmaWishes wishes = {{"swap", swap},
                            {"mode", pingpong ? 1 : 0},
                            {"consumers", consumers},
                            {"tile_m", tile_m},
                            {"tile_n", tile_n},
                            {"producer_registers", 24},
                            {"tile_k", p.atom_elements()},
                            {"in_flight", consumers == 1 ? 1 : 0},
                            {"store", p.tma_store ? 1 : 2},
                            {"cluster", 0},
                            {"group", pingpong ? 16 : 8},
                            // Neighbours share the larger operand of a tile (H200, 2026-11-30: 256
                            // x 88 tiles 139 us, the other way 163; 128 x 208 381 and 395).
                            {"raster", tile_m > tile_n ? 1 : 0},
                            {"stream_k", stream_k},
                            {"ahead", 0}};
      if (stream_k > 0 && (pingpong || SplitTilesOf(p, wishes) == 0)) continue;
      // ptxas 13.0 spills 204 sums of one consumer where they also come from memory.
      if (stream_k > 0 && consumers == 1 && sums > 192) continue;
      const double cost = WgmmaCost(p, wishes);
      ranked.push_back({cost, std::move(wishes)});
    }
  };
  for (int64_t swap : {0, 1}) {
    for (bool pingpong : {false, true}) {
      for (int64_t tile_m : {64, 128, 192, 256}) {
        for (int64_t tile_n = 8; tile_n <= 256; tile_n += tile_n < 16 || swap == 1 ? 8 : 16)
          add(swap, pingpong, tile_m, tile_n);
      }
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedWishes& a, const RankedWishes& b) { return a.cost < b.cost; });
  return ranked;
}

Schedule DefaultWgmmaSchedule(const Workload& workload, const Target& target) {
  std::shared_ptr<const PreparedWgmma> prepared = *PrepareWgmma(workload, target);
  WgmmaWishes best;
  for (const RankedWishes& one : RankWishes(prepared->problem)) {
    if (one.wishes.at("stream_k") != 0) continue;
    best = one.wishes;
    break;
  }
  WishStages(prepared->problem, &best);
  return prepared->space.ClosestTo(best);
}

bool AsksAhead(const SpaceWriter& space) { return space.fixed().count("ahead") == 0; }

// The cheapest of each kind of tile, and the cheapest few of them in pairs and with a group of
// multiplications more in flight as well; the first also with lines asked of L2 ahead, 1-2% faster
// with dependent launch where kernels are short (H200, 2026-11-30).
std::vector<Schedule> SuggestWgmmaSchedules(const Workload& workload, const Target& target) {
  constexpr size_t kMostKinds = 13, kMostSplit = 5, kMostPairs = 2;
  constexpr double kWorstCost = 1.25;  // times the least
  std::shared_ptr<const PreparedWgmma> prepared = *PrepareWgmma(workload, target);
  const WgmmaProblem& p = prepared->problem;
  const std::vector<RankedWishes> ranked = RankWishes(p);
  std::set<std::vector<int64_t>> seen;
  size_t split_kinds = 0;
  std::vector<Schedule> suggestions;
  for (const RankedWishes& one : ranked) {
    if (seen.size() == kMostKinds || one.cost > kWorstCost * ranked.front().cost) break;
    WgmmaWishes wishes = one.wishes;
    const bool splits = wishes["stream_k"] > 0;
    if (splits && split_kinds == kMostSplit) continue;
    if (!seen.insert({wishes["swap"], wishes["mode"], wishes["tile_m"], wishes["stream_k"]}).second)
      continue;
    if (splits) ++split_kinds;
    WishStages(p, &wishes);
    suggestions.push_back(prepared->space.ClosestTo(wishes));
    if (splits || seen.size() > kMostPairs) continue;
    if (seen.size() == 1 && AsksAhead(prepared->space)) {
      wishes["ahead"] = 32;
      suggestions.push_back(prepared->space.ClosestTo(wishes));
      wishes["ahead"] = 0;
    }
    if (wishes["mode"] == 0 && p.bytes > 1) {
      wishes["in_flight"] = 1 - wishes["in_flight"];
      suggestions.push_back(prepared->space.ClosestTo(wishes));
      wishes["in_flight"] = 1 - wishes["in_flight"];
    }
    // The larger operand of a stage is the one to share.
    const bool columns_larger = wishes["tile_n"] > wishes["tile_m"];
    wishes["cluster"] = static_cast<int64_t>(
        columns_larger == (wishes["swap"] == 0) ? WgmmaCluster::kAlongM : WgmmaCluster::kAlongN);
    wishes["group"] = 16;
    suggestions.push_back(prepared->space.ClosestTo(wishes));
  }
  return suggestions;
}

}  // namespace

int ContractionWgmmaPlan::store_unit() const {
  return swap ? store_columns : std::min(store_columns, kSwizzleBytes / output_bytes);
}

Variant ContractionWgmmaVariant() {
  return {.name = kWgmmaName,
          .family = "contraction",
          .help = "Hopper tensor cores: TMA, persistent, warp-specialised",
          .backends = {"nvptx"},
          .applies = WgmmaApplies,
          .define = DefineWgmma,
          .plan = MakeWgmmaPlan,
          .default_schedule = DefaultWgmmaSchedule,
          .suggestions = SuggestWgmmaSchedules};
}

}  // namespace tilewright
