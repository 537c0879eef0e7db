#include "schedule/contraction_simt.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/contraction_tiled_space.h"
#include "schedule/space_writer.h"

namespace tilewright {
namespace {

constexpr char kSimtName[] = "contraction.simt";
// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": of every
// architecture from 7.0 to 9.0.
constexpr int kWarpThreads = 32;
constexpr int kMostThreads = 1024;
constexpr int kMostRegisters = 255;
// What the driver keeps of each block's shared memory.
constexpr int64_t kReservedSharedBytes = 1024;
// Registers for counters and what the epilogue needs.
constexpr int64_t kOtherRegisters = 24;

// ---- What a workload and a target say, whatever the schedule

struct SimtProblem {
  std::shared_ptr<const Contraction> contraction;
  Target target;
  int64_t batches = 1, m = 1, n = 1, k = 1;  // the highest sizes
  ElementType accumulator = ElementType::kF32;
  OperandSource a;
  OperandSource b;
  double smallest_bytes = 4;
};

SimtProblem StudySimt(const Workload& workload, const Target& target,
                      std::shared_ptr<const Contraction> contraction) {
  const Contraction& c = *contraction;
  const Sizes high = workload.HighestSizes();
  SimtProblem p;
  p.target = target;
  p.batches = c.Batches(high);
  p.m = c.m.Extent(high);
  p.n = c.n.Extent(high);
  p.k = c.K(high);
  p.accumulator = c.accumulator;
  p.a = StudySource(workload, c.a);
  p.b = StudySource(workload, c.b);
  p.smallest_bytes = workload.SmallestParameterBytes();
  p.contraction = std::move(contraction);
  return p;
}

// ---- Quantities, each of the decisions it names

SharedOperand PlaceSimt(const SimtProblem& p, bool is_a, int64_t tile, int64_t tile_k,
                        int64_t stages) {
  return PlaceOperand(is_a ? p.a : p.b, is_a ? p.contraction->a : p.contraction->b, tile, tile_k,
                      /*asynchronous=*/stages > 1, p.accumulator, /*deep=*/false);
}

int64_t SharedBytes(const SimtProblem& p, int64_t tile_m, int64_t tile_n, int64_t tile_k,
                    int64_t stages, bool staged) {
  const int64_t ring = stages * (PlaceSimt(p, true, tile_m, tile_k, stages).stage_bytes +
                                 PlaceSimt(p, false, tile_n, tile_k, stages).stage_bytes);
  return std::max(ring, staged ? StagedBytes(tile_m, tile_n, p.accumulator) : int64_t{0});
}

int64_t Threads(int64_t tile_m, int64_t tile_n, int64_t thread_m, int64_t thread_n) {
  return (tile_m / thread_m) * (tile_n / thread_n);
}

// Depths per round: a vector of 16 bytes of accumulators where an operand lies along depth.
int StepK(const SimtProblem& p, bool depth_contiguous) {
  return depth_contiguous ? 16 / Info(p.accumulator).bytes : 1;
}

// What a schedule's registers depend on.
struct SimtThread {
  int64_t tile_m, tile_n, thread_m, thread_n, tile_k, stages;

  int64_t threads() const { return Threads(tile_m, tile_n, thread_m, thread_n); }
};

// An estimate of what ptxas will need: sums, one round of operands, copies, and the rest.
int64_t Registers(const SimtProblem& p, const SimtThread& t) {
  const int64_t words = Info(p.accumulator).bytes / 4;
  const SharedOperand a = PlaceSimt(p, true, t.tile_m, t.tile_k, t.stages);
  const SharedOperand b = PlaceSimt(p, false, t.tile_n, t.tile_k, t.stages);
  const int64_t operands =
      t.thread_m * StepK(p, a.depth_contiguous) + t.thread_n * StepK(p, b.depth_contiguous);
  return words * (t.thread_m * t.thread_n + operands) +
         CopyRegisters(a, p.contraction->a, t.tile_k, t.threads()) +
         CopyRegisters(b, p.contraction->b, t.tile_k, t.threads()) + kOtherRegisters;
}

// ---- The space

std::vector<DecisionValue> TilesUpTo(int64_t extent) {
  std::vector<int64_t> numbers;
  for (int64_t tile : {16, 32, 64, 128, 256}) {
    numbers.push_back(tile);
    if (tile >= extent) break;
  }
  return IntegerValues(numbers);
}

void DecideTiles(const SimtProblem& p, SpaceWriter* space) {
  space->Decide("tile_m",
                "Rows of a block's tile (BLOCK_M in Triton). More reuses b oftener, until blocks "
                "are too few for all SMs.",
                TilesUpTo(p.m));
  space->Decide("tile_n", "Columns of a block's tile (BLOCK_N in Triton).", TilesUpTo(p.n));
  space->Decide("thread_m",
                "Rows of a thread's sums. More reuses each element of b from shared memory, until "
                "registers run out.",
                IntegerValues({1, 2, 4, 8}));
  space->Decide("thread_n", "Columns of a thread's sums.", IntegerValues({1, 2, 4, 8}));
  space->Constrain(
      "threads", {"tile_m", "tile_n", "thread_m", "thread_n"},
      [](Numbers v) {
        const int64_t threads = Threads(v[0], v[1], v[2], v[3]);
        return threads >= kWarpThreads && threads <= kMostThreads;
      },
      [](Numbers v) {
        return absl::StrCat("threads: ", v[0], " x ", v[1], " sums / ", v[2], " x ", v[3], " = ",
                            Threads(v[0], v[1], v[2], v[3]), ", accepted: ", kWarpThreads, " to ",
                            kMostThreads);
      });
}

void DecideDepth(const SimtProblem& p, SpaceWriter* space) {
  std::vector<int64_t> depths;
  for (int64_t depth : {8, 16, 32, 64}) {
    depths.push_back(depth);
    if (depth >= p.k) break;
  }
  space->Decide("tile_k",
                "Depth of a step (BLOCK_K in Triton). More means fewer barriers, until shared "
                "memory holds too few stages.",
                IntegerValues(depths));
  space->Decide("stages",
                "Steps that are in shared memory at once (num_stages in Triton): all but one are "
                "on their way. More hides memory's latency, until fewer blocks fit.",
                IntegerValues({1, 2, 3, 4}));
  space->Decide("epilogue",
                "Where sums are finished: in registers, or after passing through shared memory, so "
                "that neighbouring threads store neighbouring elements.",
                {{0, "registers"}, {1, "shared"}});
  space->Decide("group_m",
                "Rows of tiles that are taken together (GROUP_M in Triton), so that their operands "
                "are in L2 together.",
                IntegerValues({1, 4, 8}), {"tile_m"}, [m = p.m](Numbers v) { return m > v[0]; });
}

void DecideBlocks(const SimtProblem& p, SpaceWriter* space) {
  const Target& target = p.target;
  space->Decide("blocks_per_core",
                "Blocks that every SM has room for (minBlocksPerMultiprocessor in CUDA): limits "
                "registers. More hides latency.",
                IntegerValues({1, 2, 3, 4}));
  auto thread = [](Numbers v) { return SimtThread{v[0], v[1], v[2], v[3], v[4], v[5]}; };
  space->Constrain(
      "registers",
      {"tile_m", "tile_n", "thread_m", "thread_n", "tile_k", "stages", "blocks_per_core"},
      [=](Numbers v) {
        const int64_t own = Registers(p, thread(v));
        return own <= kMostRegisters &&
               own * thread(v).threads() * v[6] <= target.registers_per_core;
      },
      [=](Numbers v) {
        return absl::StrCat("registers: ", Registers(p, thread(v)), " of at most ", kMostRegisters,
                            " x ", thread(v).threads(), " threads x ", v[6], " blocks > ",
                            target.registers_per_core);
      });
  space->Constrain(
      "resident_threads", {"tile_m", "tile_n", "thread_m", "thread_n", "blocks_per_core"},
      [=](Numbers v) { return Threads(v[0], v[1], v[2], v[3]) * v[4] <= target.threads_per_core; },
      [=](Numbers v) {
        return absl::StrCat("resident_threads: ", Threads(v[0], v[1], v[2], v[3]), " x ", v[4],
                            " blocks > ", target.threads_per_core);
      });
  auto bytes = [=](Numbers v) { return SharedBytes(p, v[0], v[1], v[2], v[3], v[4] == 1); };
  space->Constrain(
      "shared_memory", {"tile_m", "tile_n", "tile_k", "stages", "epilogue", "blocks_per_core"},
      [=](Numbers v) {
        return bytes(v) <= target.shared_memory_bytes &&
               (bytes(v) + kReservedSharedBytes) * v[5] <= target.shared_memory_per_core_bytes;
      },
      [=](Numbers v) {
        return absl::StrCat("shared_memory: ", v[5], " blocks x (", bytes(v), " B + ",
                            kReservedSharedBytes, " B) > ", target.shared_memory_per_core_bytes,
                            " B of an SM, or a block's > ", target.shared_memory_bytes, " B");
      });
}

struct PreparedSimt {
  std::string workload;
  SimtProblem problem;
  SpaceWriter space{kSimtName};
};

// The last one is kept: a search asks for thousands of plans of one workload.
absl::StatusOr<std::shared_ptr<const PreparedSimt>> PrepareSimt(const Workload& workload,
                                                                const Target& target) {
  thread_local std::shared_ptr<const PreparedSimt> last;
  if (last != nullptr && last->workload == workload.canonical_text() &&
      last->problem.target == target)
    return last;
  absl::StatusOr<Contraction> contraction = MatchContraction(workload);
  if (!contraction.ok()) return contraction.status();
  auto prepared = std::make_shared<PreparedSimt>();
  prepared->workload = workload.canonical_text();
  prepared->problem =
      StudySimt(workload, target, std::make_shared<const Contraction>(*std::move(contraction)));
  DecideTiles(prepared->problem, &prepared->space);
  DecideDepth(prepared->problem, &prepared->space);
  DecideBlocks(prepared->problem, &prepared->space);
  last = prepared;
  return last;
}

// ---- The plan

void ArrangeThreads(ContractionSimtPlan* plan) {
  plan->threads_m = static_cast<int>(plan->tile_m / plan->thread_m);
  plan->threads_n = static_cast<int>(plan->tile_n / plan->thread_n);
  plan->block = plan->threads_m * plan->threads_n;
  // As near to 4 x 8 as there are threads along both.
  plan->warp_n = std::min(8, plan->threads_n);
  plan->warp_m = kWarpThreads / plan->warp_n;
  if (plan->warp_m > plan->threads_m) {
    plan->warp_m = plan->threads_m;
    plan->warp_n = kWarpThreads / plan->warp_m;
  }
}

void CountSimtTraffic(const SimtProblem& p, const Workload& workload,
                      absl::Span<const int64_t> sizes, ContractionSimtPlan* plan) {
  const Contraction& c = *p.contraction;
  const double m = static_cast<double>(c.m.Extent(sizes)),
               n = static_cast<double>(c.n.Extent(sizes)), k = static_cast<double>(c.K(sizes)),
               batches = static_cast<double>(c.Batches(sizes));
  const double tile_m = static_cast<double>(plan->tile_m),
               tile_n = static_cast<double>(plan->tile_n);
  const double steps = std::ceil(k / static_cast<double>(plan->tile_k));
  const double depth = steps * static_cast<double>(plan->tile_k);
  const double tiles = batches * std::ceil(m / tile_m) * std::ceil(n / tile_n);
  const double useful = 2 * batches * m * n * k;
  const double stored_a = Info(p.a.stored).bytes, stored_b = Info(p.b.stored).bytes;
  const double shared_a = Info(plan->a.type).bytes, shared_b = Info(plan->b.type).bytes;
  plan->operations =
      2 * tiles * tile_m * tile_n * depth + std::max(0.0, workload.Operations(sizes) - useful);
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  plan->l2_bytes = tiles * k * (tile_m * stored_a + tile_n * stored_b) +
                   batches * m * n * Info(workload.layout(c.output).type).bytes;
  const double warps = plan->block / kWarpThreads;
  plan->l1_bytes = tiles * depth *
                   (warps * (plan->warp_m * plan->thread_m * shared_a +
                             plan->warp_n * plan->thread_n * shared_b) +
                    tile_m * shared_a + tile_n * shared_b);
  const double sms = std::min<double>(p.target.cores, tiles);
  const double waves = std::ceil(tiles / (sms * plan->blocks_per_core));
  plan->threads = static_cast<int>(sms);
  plan->balance = tiles / (sms * std::ceil(tiles / sms));
  // One depth of a thread: multiply-adds, loads of up to 16 bytes, conversions of narrow elements.
  const double adds = plan->thread_m * plan->thread_n;
  const double words = Info(p.accumulator).bytes / 4.0;
  const double loads = (plan->thread_m + plan->thread_n) * words / 4;
  const double conversions = (plan->a.type != p.accumulator ? plan->thread_m : 0) +
                             (plan->b.type != p.accumulator ? plan->thread_n : 0);
  const double mix = adds / (adds + loads + conversions);
  plan->issue_efficiency = mix * p.target.OperationsPerCycle(Info(p.accumulator).bytes) /
                           p.target.PeakOperationsPerCycle(static_cast<int>(p.smallest_bytes));
  plan->quantities = {
      {"padding", "", plan->operations / std::max(1.0, workload.Operations(sizes))},
      {"tiles", "tile", tiles},
      {"waves", "", waves},
      {"wave_efficiency", "", tiles / (waves * sms * plan->blocks_per_core)},
      {"steps_per_tile", "", steps},
      {"shared_memory_bytes", "B", static_cast<double>(plan->shared_bytes)},
      {"registers", "register",
       static_cast<double>(Registers(p, {plan->tile_m, plan->tile_n, plan->thread_m, plan->thread_n,
                                         plan->tile_k, plan->stages}))},
      {"resident_threads", "thread", static_cast<double>(plan->block * plan->blocks_per_core)},
      {"loads_per_fma", "", loads / adds},
      {"bytes_in_flight", "B",
       static_cast<double>((plan->a.stage_bytes + plan->b.stage_bytes) *
                           std::max(1, plan->stages - 1) * plan->blocks_per_core)},
      {"copied_operands", "", static_cast<double>(plan->a.copied + plan->b.copied)},
  };
}

std::unique_ptr<Plan> MakeSimtPlan(const Workload& workload, const Target& target,
                                   absl::Span<const int64_t> numbers,
                                   absl::Span<const int64_t> sizes) {
  std::shared_ptr<const PreparedSimt> prepared = *PrepareSimt(workload, target);
  const SimtProblem& p = prepared->problem;
  std::map<std::string, int64_t> values = prepared->space.AllNumbers(numbers);
  auto plan = std::make_unique<ContractionSimtPlan>();
  plan->contraction = p.contraction;
  plan->tile_m = values["tile_m"];
  plan->tile_n = values["tile_n"];
  plan->tile_k = values["tile_k"];
  plan->thread_m = static_cast<int>(values["thread_m"]);
  plan->thread_n = static_cast<int>(values["thread_n"]);
  plan->stages = static_cast<int>(values["stages"]);
  plan->staged_epilogue = values["epilogue"] == 1;
  plan->group_m = values["group_m"] == kAbsent ? 1 : static_cast<int>(values["group_m"]);
  plan->blocks_per_core = static_cast<int>(values["blocks_per_core"]);
  ArrangeThreads(plan.get());
  plan->a = PlaceSimt(p, true, plan->tile_m, plan->tile_k, plan->stages);
  plan->b = PlaceSimt(p, false, plan->tile_n, plan->tile_k, plan->stages);
  plan->step_k = StepK(p, plan->a.depth_contiguous || plan->b.depth_contiguous);
  plan->shared_bytes =
      SharedBytes(p, plan->tile_m, plan->tile_n, plan->tile_k, plan->stages, plan->staged_epilogue);
  const double tiles = static_cast<double>(p.batches) *
                       static_cast<double>(CeilDiv(p.m, plan->tile_m)) *
                       static_cast<double>(CeilDiv(p.n, plan->tile_n));
  plan->grid =
      static_cast<int>(std::min(tiles, static_cast<double>(target.cores) * plan->blocks_per_core));
  CountSimtTraffic(p, workload, sizes, plan.get());
  return plan;
}

// ---- The default: the tile whose rounds of all SMs take least

// What a decision may be at most, or is where there is no choice.
int64_t MostOf(const SpaceWriter& space, const char* name) {
  for (const Decision& decision : space.definition().decisions) {
    if (decision.name == name) return decision.values.back().number;
  }
  return space.fixed().at(name);
}

// The shapes worth a default, cut to what the extents allow; the last is always legal.
std::vector<SimtThread> DefaultShapes(const SpaceWriter& space) {
  std::vector<SimtThread> shapes = {
      {128, 128, 8, 8}, {128, 64, 8, 4}, {64, 128, 4, 8}, {64, 64, 4, 4}, {32, 64, 4, 4},
      {64, 32, 4, 4},   {32, 32, 4, 4},  {16, 64, 2, 4},  {64, 16, 4, 2}, {16, 16, 2, 2}};
  for (SimtThread& shape : shapes) {
    shape.tile_m = std::min(shape.tile_m, MostOf(space, "tile_m"));
    shape.tile_n = std::min(shape.tile_n, MostOf(space, "tile_n"));
    while (shape.threads() < kWarpThreads)
      (shape.thread_m >= shape.thread_n ? shape.thread_m : shape.thread_n) /= 2;
    shape.tile_k = std::min<int64_t>(16, MostOf(space, "tile_k"));
    shape.stages = 3;
  }
  return shapes;
}

Schedule DefaultSimtSchedule(const Workload& workload, const Target& target) {
  std::shared_ptr<const PreparedSimt> prepared = *PrepareSimt(workload, target);
  const SimtProblem& p = prepared->problem;
  const std::vector<SimtThread> shapes = DefaultShapes(prepared->space);
  const SimtThread* chosen = &shapes.back();
  double least = -1;
  for (const SimtThread& shape : shapes) {
    const int64_t registers = Registers(p, shape);
    if (registers > kMostRegisters || registers * shape.threads() > target.registers_per_core)
      continue;
    const double tiles = static_cast<double>(p.batches) *
                         static_cast<double>(CeilDiv(p.m, shape.tile_m)) *
                         static_cast<double>(CeilDiv(p.n, shape.tile_n));
    // Rounds of all SMs times the work of a tile, dearer where a thread reuses less.
    const double work =
        static_cast<double>(shape.tile_m * shape.tile_n) *
        (1 + 1.0 / static_cast<double>(shape.thread_m) + 1.0 / static_cast<double>(shape.thread_n));
    const double cost = std::ceil(tiles / p.target.cores) * work;
    if (least >= 0 && cost >= least) continue;
    least = cost;
    chosen = &shape;
  }
  const std::map<std::string, int64_t> wishes = {
      {"tile_m", chosen->tile_m},
      {"tile_n", chosen->tile_n},
      {"thread_m", chosen->thread_m},
      {"thread_n", chosen->thread_n},
      {"tile_k", chosen->tile_k},
      {"stages", chosen->stages},
      {"epilogue", p.contraction->plain_epilogue ? 0 : 1},
      {"group_m", 8},
      {"blocks_per_core", 1},
  };
  return prepared->space.ClosestTo(wishes);
}

}  // namespace

Variant ContractionSimtVariant() {
  return {.name = kSimtName,
          .family = "contraction",
          .help = "tiles through shared memory, sums in registers, ordinary arithmetic",
          .backends = {"nvptx"},
          .applies = [](const Workload& workload,
                        const Target& target) { return PrepareSimt(workload, target).status(); },
          .define =
              [](const Workload& workload, const Target& target) {
                return (*PrepareSimt(workload, target))->space.definition();
              },
          .plan = MakeSimtPlan,
          .default_schedule = DefaultSimtSchedule};
}

}  // namespace tilewright
