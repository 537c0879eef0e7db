#include "schedule/contraction_skinny.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/contraction_tiled_space.h"

namespace tilewright {
namespace {

constexpr char kSkinnyName[] = "contraction.skinny";
constexpr int kSkinnyThreads = kWarpgroup + 32;
// What the system keeps of an SM's shared memory for each CTA (CUDA C++ Programming Guide,
// "Technical Specifications per Compute Capability", 9.0).
constexpr int64_t kReservedSharedBytes = 1024;
constexpr int64_t kMostSkinnyWorkspace = int64_t{64} << 20;

struct PreparedSkinny {
  std::string workload;
  Target target;
  WgmmaProblem problem;
  bool swap = true;
  int64_t rows = 1, columns = 1;  // the highest
  int64_t least_k = 1;
  SpaceWriter space{kSkinnyName};

  int tile_columns() const { return static_cast<int>(RoundUp(columns, 8)); }
};

int64_t SkinnyStageBytes(const PreparedSkinny& s, int64_t rows, int64_t tile_k) {
  const int64_t tile_k_bytes = tile_k * s.problem.bytes;
  return OperandStageBytes(rows, s.problem.rows_transposed(s.swap), tile_k_bytes) +
         OperandStageBytes(s.tile_columns(), s.problem.columns_transposed(s.swap), tile_k_bytes);
}

// Elements of one column of partial sums; 4 more than the rows keep columns on different banks.
int64_t PartialPitch(int64_t rows) { return RoundUp(rows, kWgmmaRows) + 4; }

// Ring, barriers and room for what the last stage's instructions read beyond their tile; at least
// the partial sums, which take the ring's place.
int64_t SkinnySharedBytes(const PreparedSkinny& s, int64_t rows, int64_t tile_k, int64_t stages) {
  const int64_t ring = stages * SkinnyStageBytes(s, rows, tile_k) + BarrierBytes(stages) +
                       OverreadRows(rows) * kSwizzleBytes;
  const int64_t partial = PartialPitch(rows) * s.tile_columns() * 4 + BarrierBytes(stages);
  return std::max(ring, partial);
}

// Of each of the tile's rows, no more than the CTA's share of k.
int64_t AheadBytes(const PreparedSkinny& s, const std::map<std::string, int64_t>& values) {
  const int64_t tile_k = values.at("tile_k");
  const int64_t shares = values.at("split") * values.at("groups");
  const int64_t share = CeilDiv(CeilDiv(s.problem.k, tile_k), shares) * tile_k * s.problem.bytes;
  return AheadBytesOfRow(values.at("ahead") * 1024 / values.at("occupancy"), values.at("rows"),
                         share);
}

// ---- Decisions

// How copies are asked for, and what happens before earlier grids have ended and later ones begin.
void DecideCopies(const PreparedSkinny& s, SpaceWriter* space) {
  const WgmmaProblem& p = s.problem;
  // Rows that lie in memory as they are read; copies of operands are not there yet.
  const bool in_rows = MayAskAhead(p, !s.swap);
  space->Decide("ahead",
                "KB of the matrix for each SM that are asked of L2 before earlier grids have ended "
                "(dependent launch): memory does not rest between two grids. Without dependent "
                "launch it is of no use.",
                in_rows ? IntegerValues({0, 16, 32, 64}) : IntegerValues({0}), {}, nullptr, "0");
  space->Decide(
      "later",
      "When later grids may start (dependent launch): at once, when this one's copies are all "
      "asked "
      "for, or when half of the last ones are used. It matters where an SM has room for them; CTAs "
      "that start while others end may share SMs unevenly.",
      {{0, "begin"}, {1, "copied"}, {2, "half"}}, {}, nullptr, "begin");
}

void WriteSkinnySpace(PreparedSkinny* s) {
  const PreparedSkinny self = *s;  // what the constraints keep
  const WgmmaProblem& p = s->problem;
  SpaceWriter* space = &s->space;
  // MN-major tiles come in whole atoms of 64 rows.
  const int step = p.rows_transposed(s->swap) ? 64 : 8;
  std::vector<int64_t> rows;
  for (int64_t r = std::max(16, step); r <= 256; r += step) {
    if (r - step < s->rows) rows.push_back(r);
  }
  if (rows.empty()) rows.push_back(std::max(16, step));
  space->Decide("rows",
                "Rows of the matrix in a tile. Small tiles fill the device and split evenly, large "
                "ones keep more bytes in flight.",
                IntegerValues(rows));
  std::vector<int64_t> splits, depths;
  for (int64_t split : {1, 2, 4, 8}) {
    if (split <= CeilDiv(s->least_k, p.atom_elements())) splits.push_back(split);
  }
  for (int64_t atoms : {1, 2, 4, 8}) {
    // 8-bit sums are promoted once in a stage: after 128 products.
    if (atoms > 1 && p.bytes == 1) break;
    if (atoms == 1 || (atoms - 1) * p.atom_elements() < p.k)
      depths.push_back(atoms * p.atom_elements());
  }
  space->Decide("split",
                "CTAs of a cluster that share a tile's k (split-K). More busy SMs for short "
                "matrices, and one more meeting at the end; 4 and 8 leave some SMs out.",
                IntegerValues(splits));
  std::vector<int64_t> groups;
  for (int64_t group : {1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 33, 44, 64, 66, 128, 132}) {
    const bool small =
        group * p.batches * RoundUp(s->rows, 256) * s->tile_columns() * 4 <= kMostSkinnyWorkspace;
    if (group == 1 || (small && group <= CeilDiv(s->least_k, p.atom_elements())))
      groups.push_back(group);
  }
  space->Decide(
      "groups",
      "Shares of k of the whole grid, added up by a second launch: for tiles that are too "
      "few and k that is very long.",
      IntegerValues(groups), {}, nullptr, "1");
  space->Decide("tile_k", "Elements of k in a stage. More saves barriers.", IntegerValues(depths));
  space->Decide("stages", "Stages of the ring: what is on its way from memory.",
                IntegerValues({2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24}));
  space->Decide("occupancy",
                "CTAs of an SM (minimum blocks in CUDA's launch bounds). More even out tiles, each "
                "with less shared memory.",
                IntegerValues({1, 2, 3, 4}));
  space->Decide("in_flight",
                "Groups of wgmma unfinished while the next is issued: 0 gives stages back earlier.",
                p.bytes == 1 ? IntegerValues({0}) : IntegerValues({0, 1}));
  space->Decide("k_order",
                "turned: tiles begin their k at different places, so that CTAs read different "
                "columns of the matrix at a time.",
                {{0, "same"}, {1, "turned"}}, {}, nullptr, "same");
  DecideCopies(*s, space);
  const int64_t least_k = s->least_k;
  space->Constrain(
      "split_has_work", {"split", "groups", "tile_k"},
      [=](Numbers v) { return v[0] * v[1] <= CeilDiv(least_k, v[2]); },
      [=](Numbers v) {
        return absl::StrCat(v[0], " CTAs x ", v[1], " groups share ", CeilDiv(least_k, v[2]),
                            " stages of k");
      });
  const int64_t all_rows = s->rows, batches = p.batches, cores = p.target.cores;
  auto ctas = [=](Numbers v) { return CeilDiv(all_rows, v[0]) * batches * v[1] * v[2]; };
  space->Constrain(
      "groups_are_one_wave", {"rows", "split", "groups", "occupancy"},
      [=](Numbers v) { return v[2] == 1 || ctas(v) <= cores * v[3]; },
      [=](Numbers v) {
        return absl::StrCat(ctas(v), " CTAs > ", cores, " SMs x ", v[3], " with groups");
      });
  const int64_t block_limit = p.target.shared_memory_bytes;
  const int64_t core_limit = p.target.shared_memory_per_core_bytes;
  auto bytes = [self](Numbers v) { return SkinnySharedBytes(self, v[0], v[1], v[2]); };
  space->Constrain(
      "shared_memory", {"rows", "tile_k", "stages", "occupancy"},
      [=](Numbers v) {
        return bytes(v) <= block_limit && v[3] * (bytes(v) + kReservedSharedBytes) <= core_limit;
      },
      [=](Numbers v) {
        return absl::StrCat(v[3], " CTAs x (", bytes(v), " B + ", kReservedSharedBytes, " B) > ",
                            core_limit, " B, or one of them > ", block_limit, " B");
      });
  const int64_t columns = s->tile_columns();
  const int64_t each = SumsPerAccumulator(p.bytes);
  auto sums = [=](Numbers v) { return each * Accumulators(RoundUp(v[0], kWgmmaRows), columns); };
  space->Constrain(
      "registers", {"rows", "occupancy"},
      [=](Numbers v) { return sums(v) + 40 <= SkinnyRegisters(v[1]); },
      [=](Numbers v) {
        return absl::StrCat(sums(v), " accumulators + 40 registers > ", SkinnyRegisters(v[1]));
      });
}

absl::StatusOr<std::shared_ptr<const PreparedSkinny>> PrepareSkinny(const Workload& workload,
                                                                    const Target& target) {
  thread_local std::shared_ptr<const PreparedSkinny> last;
  if (last != nullptr && last->workload == workload.canonical_text() && last->target == target)
    return last;
  absl::StatusOr<Contraction> contraction = MatchContraction(workload);
  if (!contraction.ok()) return contraction.status();
  absl::StatusOr<WgmmaProblem> problem =
      StudyWgmma(workload, target, std::make_shared<const Contraction>(*std::move(contraction)));
  if (!problem.ok()) return problem.status();
  auto s = std::make_shared<PreparedSkinny>();
  s->workload = workload.canonical_text();
  s->target = target;
  s->problem = *std::move(problem);
  s->swap = s->problem.n >= s->problem.m;
  s->rows = s->problem.rows(s->swap);
  s->columns = s->problem.columns(s->swap);
  s->least_k = s->problem.contraction->K(workload.LowestSizes());
  if (s->columns > kSkinnyColumns) {
    return absl::FailedPreconditionError(
        absl::StrCat("contraction.skinny: the shorter side may have at most ", kSkinnyColumns,
                     ", not ", s->columns));
  }
  WriteSkinnySpace(s.get());
  last = s;
  return last;
}

absl::Status SkinnyApplies(const Workload& workload, const Target& target) {
  return PrepareSkinny(workload, target).status();
}

SpaceDefinition DefineSkinny(const Workload& workload, const Target& target) {
  return (*PrepareSkinny(workload, target))->space.definition();
}

// ---- The plan

std::unique_ptr<Plan> MakeSkinnyPlan(const Workload& workload, const Target& target,
                                     absl::Span<const int64_t> numbers,
                                     absl::Span<const int64_t> sizes) {
  std::shared_ptr<const PreparedSkinny> s = *PrepareSkinny(workload, target);
  const WgmmaProblem& p = s->problem;
  const std::map<std::string, int64_t> values = s->space.AllNumbers(numbers);
  auto number = [&](const char* name) { return static_cast<int>(values.at(name)); };
  auto plan = std::make_unique<ContractionSkinnyPlan>();
  plan->contraction = p.contraction;
  plan->type = p.type;
  plan->output_bytes = p.output_bytes;
  plan->swap = s->swap;
  plan->consumers = 1;
  plan->tile_m = number("rows");
  plan->tile_n = s->tile_columns();
  plan->tile_k = number("tile_k");
  plan->stages = number("stages");
  plan->in_flight = number("in_flight");
  plan->promote = p.bytes == 1;
  plan->splits = number("split");
  plan->groups = number("groups");
  plan->occupancy = number("occupancy");
  plan->turned = number("k_order") == 1;
  plan->ahead_bytes = AheadBytes(*s, values);
  plan->later = static_cast<LaterGrids>(number("later"));
  plan->tma_store = false;
  plan->store_columns = plan->store_buffers = 0;
  plan->consumer_rows = static_cast<int>(RoundUp(plan->tile_m, kWgmmaRows));
  plan->threads = kSkinnyThreads;
  plan->rows_operand = PlanWgmmaOperand(p, *plan, true);
  plan->columns_operand = PlanWgmmaOperand(p, *plan, false);
  plan->columns_operand.stage_offset = plan->rows_operand.stage_bytes;
  plan->stage_bytes = plan->rows_operand.stage_bytes + plan->columns_operand.stage_bytes;
  plan->partial_pitch = static_cast<int>(PartialPitch(plan->tile_m));
  plan->partial_bytes = int64_t{plan->partial_pitch} * plan->tile_n * 4;
  const int64_t ring =
      plan->stages * plan->stage_bytes + OverreadRows(plan->tile_m) * kSwizzleBytes;
  plan->full_offset = RoundUp(std::max(ring, plan->partial_bytes), 16);
  plan->empty_offset = plan->full_offset + 8 * plan->stages;
  plan->shared_memory_bytes = plan->full_offset + BarrierBytes(plan->stages);

  const Contraction& c = *p.contraction;
  const int64_t tiles = CeilDiv(s->rows, plan->tile_m) * p.batches;
  plan->tiles_at_highest = tiles * plan->splits * plan->groups;
  plan->grid = static_cast<int>(plan->tiles_at_highest);
  plan->sums_offset = PlaceCopies(p, plan.get());
  const int64_t sums = int64_t{plan->tile_m} * plan->tile_n * 4;
  plan->workspace_bytes = plan->sums_offset + (plan->groups > 1 ? plan->groups * tiles * sums : 0);
  const double at = static_cast<double>(CeilDiv((s->swap ? c.n : c.m).Extent(sizes), plan->tile_m) *
                                        c.Batches(sizes));
  const double shares = plan->splits * plan->groups;
  const double k_blocks = static_cast<double>(CeilDiv(c.K(sizes), plan->tile_k));
  const double resident = static_cast<double>(target.cores) * plan->occupancy;
  const double waves = std::ceil(at * shares / resident);
  plan->operations = 2 * at * plan->consumer_rows * plan->tile_n * k_blocks * plan->tile_k;
  plan->balance = at * shares / (waves * resident);
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  plan->l2_bytes = at * k_blocks * static_cast<double>(plan->stage_bytes) +
                   2 * static_cast<double>(plan->workspace_bytes);
  plan->quantities = {
      {"shared_memory_bytes", "B", static_cast<double>(plan->shared_memory_bytes)},
      {"accumulators", "register",
       static_cast<double>(Accumulators(plan->consumer_rows, plan->tile_n))},
      {"tiles", "tile", at * shares},
      {"waves", "wave", at * shares / resident},
      {"launches", "", plan->groups > 1 ? 2.0 : 1.0},
      {"wave_efficiency", "", plan->balance},
      {"padding", "", plan->operations / std::max(1.0, workload.Operations(sizes))},
      {"k_blocks", "stage", k_blocks / shares},
      {"bytes_in_flight", "B",
       static_cast<double>(plan->occupancy * plan->stages * plan->rows_operand.stage_bytes)},
      {"ahead_bytes", "B", static_cast<double>(plan->occupancy * plan->tile_m * plan->ahead_bytes)},
      {"exchanged_bytes", "B",
       plan->splits > 1 ? at * plan->splits * static_cast<double>(plan->partial_bytes) : 0},
  };
  return plan;
}

// ---- The default: what is best on paper

struct SkinnyChoice {
  int64_t rows, split, groups, tile_k, stages, occupancy;
};

// The most stages that fit, at most 16; 0: not even the fewest do.
int64_t MostStages(const PreparedSkinny& s, const SkinnyChoice& choice,
                   const std::vector<int64_t>& stages) {
  const Target& target = s.problem.target;
  int64_t most = 0;
  for (int64_t candidate : stages) {
    const int64_t bytes = SkinnySharedBytes(s, choice.rows, choice.tile_k, candidate);
    if (candidate <= 16 && bytes <= target.shared_memory_bytes &&
        choice.occupancy * (bytes + kReservedSharedBytes) <= target.shared_memory_per_core_bytes)
      most = candidate;
  }
  return most;
}

// Time in bytes that an SM could have brought in, 32 KB of them a microsecond (H200, 2026-11-30):
// what it must bring in, the shared operand from L2 at a tenth of the price, 700 B for a stage's
// barriers, up to 4% for gaps that no other CTA of the SM fills; more for less than four stages, as
// one of them is being used, and for want of bytes in flight below 64 KB; 8 KB and three times its
// partial sums where a cluster exchanges them; 160 KB for a second launch and what that reads.
double SkinnyCost(const PreparedSkinny& s, const SkinnyChoice& choice) {
  const WgmmaProblem& p = s.problem;
  const int64_t tile_k_bytes = choice.tile_k * p.bytes;
  const double ctas =
      static_cast<double>(CeilDiv(s.rows, choice.rows) * p.batches * choice.split * choice.groups);
  // Clusters of 4 and 8 reach 116 and 112 of 132 SMs.
  const double reach = choice.split <= 2 ? 1 : choice.split == 4 ? 116.0 / 132 : 112.0 / 132;
  const double resident = static_cast<double>(p.target.cores * choice.occupancy) * reach;
  // The last of several waves is seldom whole; where CTAs follow one another the ring runs dry.
  const double rounds = ctas / resident;
  const double waves = rounds <= 1
                           ? 1
                           : std::min(std::ceil(rounds), rounds + 0.25) +
                                 0.02 * (rounds - 1) / static_cast<double>(choice.occupancy);
  const double depth =
      static_cast<double>(CeilDiv(CeilDiv(p.k, choice.tile_k), choice.split * choice.groups));
  const double rows_bytes =
      static_cast<double>(OperandStageBytes(choice.rows, p.rows_transposed(s.swap), tile_k_bytes));
  const double columns_bytes = static_cast<double>(
      OperandStageBytes(s.tile_columns(), p.columns_transposed(s.swap), tile_k_bytes));
  const double occupancy = static_cast<double>(choice.occupancy);
  // An instruction of 64 rows and 16 of k takes about 40 cycles, however few of them count: 744 B.
  const double instructions = static_cast<double>(tile_k_bytes / kWgmmaDepthBytes *
                                                  (RoundUp(choice.rows, kWgmmaRows) / kWgmmaRows));
  const double each = std::max(rows_bytes + columns_bytes / 10, 744 * instructions);
  const double bytes = waves * depth * (occupancy * each + 700) * (1 + 0.04 / occupancy) *
                       (1 + 0.12 * static_cast<double>(std::max<int64_t>(0, 4 - choice.stages)) /
                                std::min(2.0, occupancy));
  const double flight = occupancy * std::min(static_cast<double>(choice.stages), depth) *
                        (rows_bytes + columns_bytes);
  const double partial =
      static_cast<double>(PartialPitch(choice.rows)) * s.tile_columns() * 4 * occupancy;
  double cost = bytes * std::max(1.0, 65536 / flight) + waves * partial;
  if (choice.split > 1) cost += waves * (8192 + 3 * partial);
  if (choice.groups > 1)
    cost += 160e3 + 2 * partial * ctas / static_cast<double>(choice.split) /
                        static_cast<double>(p.target.cores);
  return cost;
}

bool IsLegal(const PreparedSkinny& s, const SkinnyChoice& choice) {
  const WgmmaProblem& p = s.problem;
  const int64_t sums = SumsPerAccumulator(p.bytes) *
                       Accumulators(RoundUp(choice.rows, kWgmmaRows), s.tile_columns());
  const int64_t ctas = CeilDiv(s.rows, choice.rows) * p.batches * choice.split * choice.groups;
  return choice.stages > 0 && sums + 40 <= SkinnyRegisters(choice.occupancy) &&
         choice.split * choice.groups <= CeilDiv(s.least_k, choice.tile_k) &&
         (choice.groups == 1 || ctas <= p.target.cores * choice.occupancy);
}

struct RankedChoice {
  double cost = 0;
  SkinnyChoice choice;
};

// All legal ones, each with the most stages, the cheapest first.
std::vector<RankedChoice> RankChoices(const PreparedSkinny& s) {
  auto values = [&](const char* name) {
    for (const Decision& decision : s.space.definition().decisions) {
      if (decision.name != name) continue;
      std::vector<int64_t> numbers;
      for (const DecisionValue& value : decision.values) numbers.push_back(value.number);
      return numbers;
    }
    return std::vector<int64_t>{s.space.fixed().at(name)};
  };
  const std::vector<int64_t> stages = values("stages"), splits = values("split"),
                             groups = values("groups"), depths = values("tile_k");
  std::vector<RankedChoice> ranked;
  for (int64_t rows : values("rows")) {
    for (int64_t split : splits) {
      for (int64_t group : groups) {
        for (int64_t occupancy : {1, 2, 3, 4}) {
          for (int64_t tile_k : depths) {
            SkinnyChoice choice{rows, split, group, tile_k, 0, occupancy};
            choice.stages = MostStages(s, choice, stages);
            if (IsLegal(s, choice)) ranked.push_back({SkinnyCost(s, choice), choice});
          }
        }
      }
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedChoice& a, const RankedChoice& b) { return a.cost < b.cost; });
  return ranked;
}

// Turned k was 1-3% faster for at most 16 tokens with one CTA on an SM (H200, 2026-11-30), and no
// faster or slower otherwise.
std::map<std::string, int64_t> WishesOf(const PreparedSkinny& s, const SkinnyChoice& choice) {
  const bool turned = s.tile_columns() <= 16 && choice.occupancy == 1 && choice.groups == 1;
  return {{"rows", choice.rows},
          {"split", choice.split},
          {"groups", choice.groups},
          {"tile_k", choice.tile_k},
          {"stages", choice.stages},
          {"occupancy", choice.occupancy},
          {"in_flight", 0},
          {"k_order", turned ? 1 : 0},
          {"ahead", 0},
          {"later", 0}};
}

Schedule DefaultSkinnySchedule(const Workload& workload, const Target& target) {
  std::shared_ptr<const PreparedSkinny> s = *PrepareSkinny(workload, target);
  return s->space.ClosestTo(WishesOf(*s, RankChoices(*s).front().choice));
}

// The cheapest of each kind. The first ones also with 32 KB asked of L2 ahead: 1-5% faster with
// dependent launch, and 64 KB less so (H200, 2026-11-30). The first also with k the other way; and
// with half a ring, so that the next grid's CTAs find room before this one's end: 3-6% faster with
// 32 tokens, slower for some other shapes.
std::vector<Schedule> SuggestSkinnySchedules(const Workload& workload, const Target& target) {
  constexpr size_t kMostKinds = 6, kMostAhead = 3;
  constexpr double kWorstCost = 1.25;  // times the least
  std::shared_ptr<const PreparedSkinny> s = *PrepareSkinny(workload, target);
  const std::vector<RankedChoice> ranked = RankChoices(*s);
  std::set<std::vector<int64_t>> seen;
  std::vector<Schedule> suggestions;
  for (const RankedChoice& one : ranked) {
    if (seen.size() == kMostKinds || one.cost > kWorstCost * ranked.front().cost) break;
    const SkinnyChoice& choice = one.choice;
    if (!seen.insert({choice.split, choice.groups > 1, choice.occupancy, choice.tile_k}).second)
      continue;
    const std::map<std::string, int64_t> wishes = WishesOf(*s, choice);
    auto suggest = [&](std::map<std::string, int64_t> changes) {
      changes.insert(wishes.begin(), wishes.end());
      suggestions.push_back(s->space.ClosestTo(changes));
    };
    suggest({});
    if (seen.size() <= kMostAhead) suggest({{"ahead", 32}});
    if (seen.size() > 1) continue;
    suggest({{"k_order", 1 - wishes.at("k_order")}});
    const int64_t half_ring = std::max<int64_t>(2, choice.stages / 2);
    suggest({{"stages", half_ring}, {"ahead", 32}, {"later", choice.split > 1 ? 2 : 1}});
  }
  return suggestions;
}

}  // namespace

int64_t OverreadRows(int64_t tile_rows) { return RoundUp(tile_rows, kWgmmaRows) - tile_rows; }

int64_t SkinnyRegisters(int64_t occupancy) {
  const int64_t warps = occupancy * (kSkinnyThreads / 32);
  // A warp's registers come in units of 256: 8 for each thread.
  return std::min<int64_t>(255, 65536 / warps / 256 * 8);
}

Variant ContractionSkinnyVariant() {
  return {.name = kSkinnyName,
          .family = "contraction",
          .help = "Hopper tensor cores for at most 128 columns: one wave, deep pipelines, split-K",
          .backends = {"nvptx"},
          .applies = SkinnyApplies,
          .define = DefineSkinny,
          .plan = MakeSkinnyPlan,
          .default_schedule = DefaultSkinnySchedule,
          .suggestions = SuggestSkinnySchedules};
}

}  // namespace tilewright
