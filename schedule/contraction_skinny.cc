#include "schedule/contraction_skinny.h"

#include <algorithm>
#include <cmath>
#include <map>
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

// ---- Decisions

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
  for (int64_t atoms : {1, 2, 4}) {
    if (atoms == 1 || (atoms - 1) * p.atom_elements() < p.k)
      depths.push_back(atoms * p.atom_elements());
  }
  space->Decide("split",
                "CTAs of a cluster that share a tile's k (split-K). More busy SMs for short "
                "matrices, and one more meeting at the end; 4 and 8 leave some SMs out.",
                IntegerValues(splits));
  space->Decide("tile_k", "Elements of k in a stage. More saves barriers.", IntegerValues(depths));
  space->Decide("stages", "Stages of the ring: what is on its way from memory.",
                IntegerValues({2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24}));
  space->Decide("occupancy",
                "CTAs of an SM (minimum blocks in CUDA's launch bounds). More even out tiles, each "
                "with less shared memory.",
                IntegerValues({1, 2, 3, 4}));
  space->Decide("in_flight",
                "Groups of wgmma unfinished while the next is issued: 0 gives stages back earlier.",
                IntegerValues({0, 1}));
  const int64_t least_k = s->least_k;
  space->Constrain(
      "split_has_work", {"split", "tile_k"},
      [=](Numbers v) { return v[0] <= CeilDiv(least_k, v[1]); },
      [=](Numbers v) {
        return absl::StrCat(v[0], " CTAs share ", CeilDiv(least_k, v[1]), " stages of k");
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
  auto sums = [=](Numbers v) { return Accumulators(RoundUp(v[0], kWgmmaRows), columns); };
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
  plan->splits = number("split");
  plan->occupancy = number("occupancy");
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
  plan->tiles_at_highest = tiles * plan->splits;
  plan->grid = static_cast<int>(plan->tiles_at_highest);
  const double at = static_cast<double>(CeilDiv((s->swap ? c.n : c.m).Extent(sizes), plan->tile_m) *
                                        c.Batches(sizes));
  const double k_blocks = static_cast<double>(CeilDiv(c.K(sizes), plan->tile_k));
  const double resident = static_cast<double>(target.cores) * plan->occupancy;
  const double waves = std::ceil(at * plan->splits / resident);
  plan->operations = 2 * at * plan->consumer_rows * plan->tile_n * k_blocks * plan->tile_k;
  plan->balance = at * plan->splits / (waves * resident);
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  plan->l2_bytes = at * k_blocks * static_cast<double>(plan->stage_bytes);
  plan->quantities = {
      {"shared_memory_bytes", "B", static_cast<double>(plan->shared_memory_bytes)},
      {"accumulators", "register",
       static_cast<double>(Accumulators(plan->consumer_rows, plan->tile_n))},
      {"tiles", "tile", at * plan->splits},
      {"waves", "wave", at * plan->splits / resident},
      {"wave_efficiency", "", plan->balance},
      {"padding", "", plan->operations / std::max(1.0, workload.Operations(sizes))},
      {"k_blocks", "stage", k_blocks / plan->splits},
      {"bytes_in_flight", "B",
       static_cast<double>(plan->occupancy * plan->stages * plan->rows_operand.stage_bytes)},
      {"exchanged_bytes", "B",
       plan->splits > 1 ? at * plan->splits * static_cast<double>(plan->partial_bytes) : 0},
  };
  return plan;
}

// ---- The default: one wave that is as full as can be, with the most bytes in flight

Schedule DefaultSkinnySchedule(const Workload& workload, const Target& target) {
  std::shared_ptr<const PreparedSkinny> s = *PrepareSkinny(workload, target);
  std::map<std::string, int64_t> best;
  double least = -1;
  auto values = [&](const char* name) {
    for (const Decision& decision : s->space.definition().decisions) {
      if (decision.name != name) continue;
      std::vector<int64_t> numbers;
      for (const DecisionValue& value : decision.values) numbers.push_back(value.number);
      return numbers;
    }
    return std::vector<int64_t>{s->space.fixed().at(name)};
  };
  for (int64_t rows : values("rows")) {
    for (int64_t split : values("split")) {
      for (int64_t occupancy : {1, 2, 3, 4}) {
        for (int64_t tile_k : values("tile_k")) {
          int64_t stages = 0;
          for (int64_t candidate : values("stages")) {
            const int64_t bytes = SkinnySharedBytes(*s, rows, tile_k, candidate);
            if (bytes <= target.shared_memory_bytes &&
                occupancy * (bytes + kReservedSharedBytes) <= target.shared_memory_per_core_bytes)
              stages = candidate;
          }
          if (stages == 0 || split > CeilDiv(s->least_k, tile_k) ||
              Accumulators(RoundUp(rows, kWgmmaRows), s->tile_columns()) + 40 >
                  SkinnyRegisters(occupancy))
            continue;
          const double ctas =
              static_cast<double>(CeilDiv(s->rows, rows) * s->problem.batches * split);
          // Clusters of 4 and 8 reach 116 and 112 of 132 SMs.
          const double reach = split <= 2 ? 1 : split == 4 ? 116.0 / 132 : 112.0 / 132;
          const double resident = static_cast<double>(target.cores * occupancy) * reach;
          const double waves = std::ceil(ctas / resident);
          const double depth = static_cast<double>(CeilDiv(CeilDiv(s->problem.k, tile_k), split));
          // Bytes that an SM must bring in, at a speed that needs 40 KB in flight to be reached;
          // the meeting of a cluster costs about as much as 32 KB, a stage's barriers as 256 B.
          const double bytes = waves * static_cast<double>(occupancy) * depth *
                               static_cast<double>(SkinnyStageBytes(*s, rows, tile_k) + 256);
          const double flight = static_cast<double>(
              occupancy * std::min<int64_t>(stages, static_cast<int64_t>(depth)) *
              SkinnyStageBytes(*s, rows, tile_k));
          const double cost =
              bytes * std::max(1.0, 40960 / flight) + (split > 1 ? 32768 : 0) + 4096.0;
          if (least >= 0 && cost >= least) continue;
          least = cost;
          best = {{"rows", rows},     {"split", split},         {"tile_k", tile_k},
                  {"stages", stages}, {"occupancy", occupancy}, {"in_flight", 0}};
        }
      }
    }
  }
  Schedule schedule{kSkinnyName, {}};
  for (const Decision& decision : s->space.definition().decisions)
    schedule.decisions.emplace_back(decision.name, absl::StrCat(best.at(decision.name)));
  return schedule;
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
          .help = "Hopper tensor cores for at most 64 columns: one wave, deep pipelines, split-K",
          .backends = {"nvptx"},
          .applies = SkinnyApplies,
          .define = DefineSkinny,
          .plan = MakeSkinnyPlan,
          .default_schedule = DefaultSkinnySchedule};
}

}  // namespace tilewright
