#include "schedule/contraction_direct.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedule/contraction_tiled_space.h"
#include "schedule/shared_operand.h"
#include "schedule/space_writer.h"

namespace tilewright {
namespace {

constexpr char kDirectName[] = "contraction.direct";
// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": of every
// architecture from 7.0 to 9.0.
constexpr int kWarpThreads = 32;
constexpr int kMostRegisters = 255;
constexpr int kMostBlocks = 32;  // of an SM
constexpr int64_t kMostGrid = (int64_t{1} << 31) - 1;
constexpr int64_t kReservedSharedBytes = 1024;  // of each block, kept by the driver
// Registers for counters and what the epilogue needs.
constexpr int64_t kOtherRegisters = 36;
// Beyond these the operands are worth copying to shared memory once for many threads.
constexpr int64_t kFewRows = 16;
constexpr int64_t kShortK = 64;
constexpr int64_t kFewOutputs = 65536;

// ---- What a workload and a target say, whatever the schedule

struct DirectProblem {
  std::shared_ptr<const Contraction> contraction;
  Target target;
  int64_t batches = 1, m = 1, n = 1, k = 1;  // the highest sizes
  bool fixed_m = true, fixed_n = true, fixed_k = true;
  ElementType accumulator = ElementType::kF32;
  OperandSource a;
  OperandSource b;
  int64_t a_pitch = 1, b_pitch = 1;  // elements from a row to the next, or from a depth
  bool k_first = true;
  double smallest_bytes = 4;
  double compulsory_bytes = 0;
};

bool IsFixed(const Workload& workload, const std::vector<Axis>& axes) {
  for (const Axis& axis : axes) {
    for (int index : axis.indices) {
      if (!workload.sizes()[index].fixed()) return false;
    }
  }
  return true;
}

int64_t PitchOf(const ContractionOperand& operand, const OperandSource& source,
                absl::Span<const int64_t> sizes) {
  if (!operand.linear) return 1;
  return std::abs((source.along_depth ? operand.row_stride : operand.depth_stride).Evaluate(sizes));
}

DirectProblem StudyDirect(const Workload& workload, const Target& target,
                          std::shared_ptr<const Contraction> contraction) {
  const Contraction& c = *contraction;
  const Sizes high = workload.HighestSizes();
  DirectProblem p;
  p.target = target;
  p.batches = c.Batches(high);
  p.m = c.m.Extent(high);
  p.n = c.n.Extent(high);
  p.k = c.K(high);
  p.fixed_m = IsFixed(workload, {c.m});
  p.fixed_n = IsFixed(workload, {c.n});
  p.fixed_k = IsFixed(workload, c.k);
  p.accumulator = c.accumulator;
  p.a = StudySource(workload, c.a);
  p.b = StudySource(workload, c.b);
  p.a_pitch = PitchOf(c.a, p.a, high);
  p.b_pitch = PitchOf(c.b, p.b, high);
  // As the larger operand lies.
  const bool b_larger = p.n >= p.m;
  p.k_first = (b_larger ? p.b : p.a).along_depth || !(b_larger ? c.b : c.a).linear;
  p.smallest_bytes = workload.SmallestParameterBytes();
  p.compulsory_bytes = workload.CompulsoryBytes(high);
  p.contraction = std::move(contraction);
  return p;
}

// ---- Quantities, each of the decisions it names

int64_t PowerOfTwoFrom(int64_t number) {
  int64_t power = 1;
  while (power < number) power *= 2;
  return power;
}

// Depths that one load may bring: whole pieces at aligned addresses.
int64_t MostDepthLanes(const DirectProblem& p, const OperandSource& source) {
  if (!source.plain || !source.along_depth || !p.fixed_k) return 1;
  int64_t lanes = source.aligned_bytes / Info(source.stored).bytes;
  while (lanes > 1 && p.k % lanes != 0) lanes /= 2;
  return std::max<int64_t>(1, lanes);
}

DirectOperand PlaceDirect(const DirectProblem& p, bool is_a, int64_t own, int64_t vector_k) {
  const OperandSource& source = is_a ? p.a : p.b;
  DirectOperand operand;
  if (vector_k <= MostDepthLanes(p, source)) operand.depth_lanes = static_cast<int>(vector_k);
  const bool fixed = is_a ? p.fixed_m : p.fixed_n;
  if (!source.plain || source.along_depth || !fixed) return operand;
  const int64_t most = source.aligned_bytes / Info(source.stored).bytes;
  while (2 * operand.row_lanes <= most && own % (2 * operand.row_lanes) == 0 &&
         (is_a ? p.m : p.n) % (2 * operand.row_lanes) == 0)
    operand.row_lanes *= 2;
  return operand;
}

// What a schedule's code depends on.
struct DirectThread {
  int64_t block, threads_k, threads_n, rows, columns, vector_k, unroll;

  int64_t threads_m() const { return block / (threads_k * threads_n); }
  int64_t tile_m() const { return threads_m() * rows; }
  int64_t tile_n() const { return threads_n * columns; }
  // Threads of a warp that share a sum.
  int64_t lanes_k(bool k_first) const {
    const int64_t stride = k_first ? 1 : threads_n;
    return std::clamp<int64_t>(kWarpThreads / std::min<int64_t>(stride, kWarpThreads), 1,
                               threads_k);
  }
};

// Registers that a round's loads of one operand fill, before they are widened.
int64_t LoadedRegisters(const OperandSource& source, const DirectOperand& place, int64_t own,
                        int64_t vector_k) {
  const int64_t lanes = int64_t{place.depth_lanes} * place.row_lanes;
  const int64_t loads = own * vector_k / lanes;
  return loads * CeilDiv(lanes * Info(source.stored).bytes, 4);
}

// An estimate of what ptxas 13.0 will need: at most a few less than it took of 235 measured
// schedules, up to twice as many where k is so short that rounds are unrolled into one.
int64_t RegistersOfDirect(const DirectProblem& p, const DirectThread& t) {
  const int64_t words = Info(p.accumulator).bytes / 4;
  const Contraction& c = *p.contraction;
  const int64_t own = t.rows + t.columns;
  int64_t loaded =
      LoadedRegisters(p.a, PlaceDirect(p, true, t.rows, t.vector_k), t.rows, t.vector_k) +
      LoadedRegisters(p.b, PlaceDirect(p, false, t.columns, t.vector_k), t.columns, t.vector_k);
  constexpr int64_t kComputed = 12;  // an element whose indices are computed
  if (!c.a.linear) loaded += kComputed * t.rows * t.vector_k;
  if (!c.b.linear) loaded += kComputed * t.columns * t.vector_k;
  const int64_t widened = words * own * std::min<int64_t>(t.vector_k, 4);
  return words * t.rows * t.columns + t.unroll * loaded + widened + 2 * own + kOtherRegisters;
}

int64_t PartsOf(const DirectProblem& p, const DirectThread& t) {
  return t.threads_k / t.lanes_k(p.k_first);
}

int64_t SharedBytesOfDirect(const DirectProblem& p, const DirectThread& t) {
  const int64_t parts = PartsOf(p, t);
  return parts == 1 ? 0 : parts * t.tile_m() * t.tile_n() * Info(p.accumulator).bytes;
}

int64_t ResidentBlocks(const DirectProblem& p, const DirectThread& t) {
  const int64_t registers = RoundUp(RegistersOfDirect(p, t), 8);
  return std::max<int64_t>(1, std::min({int64_t{kMostBlocks}, p.target.threads_per_core / t.block,
                                        p.target.registers_per_core / (registers * t.block),
                                        p.target.shared_memory_per_core_bytes /
                                            (SharedBytesOfDirect(p, t) + kReservedSharedBytes)}));
}

int64_t TilesOfDirect(const DirectProblem& p, const DirectThread& t) {
  return p.batches * CeilDiv(p.m, t.tile_m()) * CeilDiv(p.n, t.tile_n());
}

// Lines of 128 bytes that a warp's load of one operand touches. `lanes_rows` of its threads have
// different rows, `lanes_k` different depths.
double LinesOfLoad(const OperandSource& source, const DirectOperand& place, int64_t pitch,
                   double lanes_rows, double lanes_k) {
  const double bytes = Info(source.stored).bytes;
  const double segments = source.along_depth ? lanes_rows : lanes_k;
  const double segment =
      bytes * (source.along_depth ? lanes_k * place.depth_lanes : lanes_rows * place.row_lanes);
  const double spread = (segments - 1) * static_cast<double>(pitch) * bytes + segment;
  return std::max(1.0, std::min(segments * std::ceil(segment / 128), std::ceil(spread / 128)));
}

// One round of one thread: loads, lines that they touch in a warp, and multiply-adds.
struct DirectRound {
  double loads_a = 0, loads_b = 0;
  double lines = 0;  // of all its loads
  double conversions = 0;
  double products = 0;
};

DirectRound CountRound(const DirectProblem& p, const DirectThread& t) {
  const DirectOperand a = PlaceDirect(p, true, t.rows, t.vector_k);
  const DirectOperand b = PlaceDirect(p, false, t.columns, t.vector_k);
  const auto vector = static_cast<double>(t.vector_k);
  const auto lanes_k = static_cast<double>(t.lanes_k(p.k_first));
  const double lanes_n = std::min<double>(static_cast<double>(t.threads_n), kWarpThreads / lanes_k);
  const double lanes_m = std::max(1.0, kWarpThreads / lanes_k / lanes_n);
  DirectRound round;
  round.loads_a = static_cast<double>(t.rows) * vector / a.depth_lanes / a.row_lanes;
  round.loads_b = static_cast<double>(t.columns) * vector / b.depth_lanes / b.row_lanes;
  round.lines = round.loads_a * LinesOfLoad(p.a, a, p.a_pitch, lanes_m, lanes_k) +
                round.loads_b * LinesOfLoad(p.b, b, p.b_pitch, lanes_n, lanes_k);
  // Integer arithmetic on 8-bit floats, one instruction for 16 bits.
  auto widening = [&](const OperandSource& source) {
    if (source.stored == p.accumulator) return 0.0;
    return Info(source.stored).bytes == 1 && p.accumulator != ElementType::kI32 ? 8.0 : 1.0;
  };
  round.conversions = vector * (static_cast<double>(t.rows) * widening(p.a) +
                                static_cast<double>(t.columns) * widening(p.b));
  round.products = vector * static_cast<double>(t.rows * t.columns);
  return round;
}

// ---- The space

void WriteDirectSpace(const DirectProblem& p, SpaceWriter* space) {
  auto powers = [](int64_t most, int64_t highest) {
    std::vector<int64_t> numbers;
    for (int64_t number = 1; number <= highest && number <= PowerOfTwoFrom(most); number *= 2)
      numbers.push_back(number);
    return IntegerValues(numbers);
  };
  space->Decide("block", "Threads of a block. More lose where outputs are few.",
                IntegerValues({32, 64, 128, 256, 512}));
  space->Decide("threads_k",
                "Threads that share a sum's k (split-K in a block). More where outputs are few and "
                "k is long.",
                powers(p.k, 512));
  space->Decide("threads_n", "Threads side by side along the columns; the rest have rows.",
                powers(p.n, 256));
  space->Decide("rows",
                "Rows of a thread's sums. More reads b less often, until registers run out or "
                "threads are too few.",
                powers(p.m, 16));
  std::vector<int64_t> columns;
  for (int64_t number = 1; number <= 8 && number <= p.n; ++number) columns.push_back(number);
  space->Decide("columns", "Columns of a thread's sums.", IntegerValues(columns));
  space->Decide("vector_k",
                "Neighbouring depths of a thread, one load where they are aligned. More saves "
                "loads, and needs a longer k to keep the threads busy.",
                powers(std::max(MostDepthLanes(p, p.a), MostDepthLanes(p, p.b)), 8));
  space->Decide("unroll",
                "Rounds of k whose loads are issued together. More hides memory's latency, until "
                "registers run out.",
                powers(p.k, 8));
  // Every SM could hold a block for each output.
  const bool few = p.batches * p.m * p.n <= int64_t{p.target.cores} * kMostBlocks;
  space->Decide("blocks",
                "each: every tile has a block of its own; resident: as many blocks as the device "
                "holds take tiles in turn, and keep in registers what their tiles share.",
                few ? std::vector<DecisionValue>{{0, "each"}}
                    : std::vector<DecisionValue>{{0, "each"}, {1, "resident"}});
  space->Constrain(
      "threads", {"block", "threads_k", "threads_n"}, [](Numbers v) { return v[1] * v[2] <= v[0]; },
      [](Numbers v) {
        return absl::StrCat("threads: ", v[1], " x ", v[2], " > a block of ", v[0]);
      });
  const Target& target = p.target;
  auto registers = [=](Numbers v) {
    return RegistersOfDirect(p, {v[0], 1, 1, v[1], v[2], v[3], v[4]});
  };
  space->Constrain(
      "registers", {"block", "rows", "columns", "vector_k", "unroll"},
      [=](Numbers v) {
        return registers(v) <= kMostRegisters && registers(v) * v[0] <= target.registers_per_core;
      },
      [=](Numbers v) {
        return absl::StrCat("registers: ", registers(v), " of at most ", kMostRegisters, " x ",
                            v[0], " threads > ", target.registers_per_core);
      });
  auto bytes = [=](Numbers v) {
    return SharedBytesOfDirect(p, {v[0], v[1], v[2], v[3], v[4], 1, 1});
  };
  space->Constrain(
      "shared_memory", {"block", "threads_k", "threads_n", "rows", "columns"},
      [=](Numbers v) { return v[1] * v[2] > v[0] || bytes(v) <= target.shared_memory_bytes; },
      [=](Numbers v) {
        return absl::StrCat("shared_memory: ", bytes(v), " B of partial sums > ",
                            target.shared_memory_bytes, " B");
      });
}

struct PreparedDirect {
  std::string workload;
  DirectProblem problem;
  SpaceWriter space{kDirectName};
};

absl::Status CheckWorthwhile(const DirectProblem& p) {
  if (std::min(p.m, p.n) <= kFewRows || p.k <= kShortK || p.batches * p.m * p.n <= kFewOutputs)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(kDirectName, ": ", p.m, " x ", p.n, " outputs of ", p.k,
                   " products; accepted: at most ", kFewRows, " rows or columns, ", kShortK,
                   " products or ", kFewOutputs, " outputs; contraction.simt reuses operands"));
}

// The last one is kept: a search asks for thousands of plans of one workload.
absl::StatusOr<std::shared_ptr<const PreparedDirect>> PrepareDirect(const Workload& workload,
                                                                    const Target& target) {
  thread_local std::shared_ptr<const PreparedDirect> last;
  if (last != nullptr && last->workload == workload.canonical_text() &&
      last->problem.target == target)
    return last;
  absl::StatusOr<Contraction> contraction = MatchContraction(workload);
  if (!contraction.ok()) return contraction.status();
  auto prepared = std::make_shared<PreparedDirect>();
  prepared->workload = workload.canonical_text();
  prepared->problem =
      StudyDirect(workload, target, std::make_shared<const Contraction>(*std::move(contraction)));
  if (absl::Status status = CheckWorthwhile(prepared->problem); !status.ok()) return status;
  WriteDirectSpace(prepared->problem, &prepared->space);
  last = prepared;
  return last;
}

// ---- The plan

void CountDirectTraffic(const DirectProblem& p, const DirectThread& t, const Workload& workload,
                        absl::Span<const int64_t> sizes, ContractionDirectPlan* plan) {
  const Contraction& c = *p.contraction;
  const double m = static_cast<double>(c.m.Extent(sizes)),
               n = static_cast<double>(c.n.Extent(sizes)), k = static_cast<double>(c.K(sizes)),
               batches = static_cast<double>(c.Batches(sizes));
  const double tile_m = static_cast<double>(plan->tile_m()),
               tile_n = static_cast<double>(plan->tile_n());
  const double tiles = batches * std::ceil(m / tile_m) * std::ceil(n / tile_n);
  const double rounds = std::ceil(k / static_cast<double>(t.threads_k * t.vector_k));
  const double useful = 2 * batches * m * n * k;
  const DirectRound round = CountRound(p, t);
  const double warps = static_cast<double>(t.block) / kWarpThreads;
  plan->operations =
      2 * tiles * tile_m * tile_n * k + std::max(0.0, workload.Operations(sizes) - useful);
  plan->memory_bytes = workload.CompulsoryBytes(sizes);
  plan->l2_bytes = tiles * k * (tile_m * Info(p.a.stored).bytes + tile_n * Info(p.b.stored).bytes) +
                   batches * m * n * Info(workload.layout(c.output).type).bytes;
  plan->l1_bytes = 128 * tiles * warps * rounds * round.lines;
  const double sms = std::min<double>(p.target.cores, tiles);
  const double waves = std::ceil(tiles / (sms * static_cast<double>(ResidentBlocks(p, t))));
  plan->threads = static_cast<int>(sms);
  plan->balance = tiles / (sms * std::ceil(tiles / sms));
  // Threads that share k wait for the one with the most rounds.
  const double filled = k / (rounds * static_cast<double>(t.threads_k * t.vector_k));
  const double others = 1.5 * (round.loads_a + round.loads_b) + round.conversions;
  const double mix = filled * round.products / (round.products + others);
  plan->issue_efficiency = mix * p.target.OperationsPerCycle(Info(p.accumulator).bytes) /
                           p.target.PeakOperationsPerCycle(static_cast<int>(p.smallest_bytes));
  plan->quantities = {
      {"padding", "", plan->operations / std::max(1.0, workload.Operations(sizes))},
      {"tiles", "tile", tiles},
      {"waves", "", waves},
      {"steps_per_tile", "", rounds},
      {"shared_memory_bytes", "B", static_cast<double>(plan->shared_bytes)},
      {"registers", "register", static_cast<double>(RegistersOfDirect(p, t))},
      {"resident_threads", "thread", static_cast<double>(t.block * ResidentBlocks(p, t))},
      {"loads_per_fma", "", (round.loads_a + round.loads_b) / round.products},
      {"lines_per_load", "line", round.lines / (round.loads_a + round.loads_b)},
      {"parts", "", static_cast<double>(plan->parts)},
  };
}

std::unique_ptr<Plan> MakeDirectPlan(const Workload& workload, const Target& target,
                                     absl::Span<const int64_t> numbers,
                                     absl::Span<const int64_t> sizes) {
  std::shared_ptr<const PreparedDirect> prepared = *PrepareDirect(workload, target);
  const DirectProblem& p = prepared->problem;
  std::map<std::string, int64_t> values = prepared->space.AllNumbers(numbers);
  const DirectThread t{values["block"],   values["threads_k"], values["threads_n"], values["rows"],
                       values["columns"], values["vector_k"],  values["unroll"]};
  auto plan = std::make_unique<ContractionDirectPlan>();
  plan->contraction = p.contraction;
  plan->block = static_cast<int>(t.block);
  plan->threads_k = static_cast<int>(t.threads_k);
  plan->threads_n = static_cast<int>(t.threads_n);
  plan->threads_m = static_cast<int>(t.threads_m());
  plan->k_first = p.k_first;
  plan->rows = static_cast<int>(t.rows);
  plan->columns = static_cast<int>(t.columns);
  plan->vector_k = static_cast<int>(t.vector_k);
  plan->unroll = static_cast<int>(t.unroll);
  plan->a = PlaceDirect(p, true, t.rows, t.vector_k);
  plan->b = PlaceDirect(p, false, t.columns, t.vector_k);
  plan->lanes_k = static_cast<int>(t.lanes_k(p.k_first));
  plan->parts = static_cast<int>(PartsOf(p, t));
  plan->shared_bytes = SharedBytesOfDirect(p, t);
  const int64_t tiles = TilesOfDirect(p, t);
  const bool resident = values["blocks"] == 1;
  plan->grid =
      static_cast<int>(std::min(tiles, resident ? target.cores * ResidentBlocks(p, t) : kMostGrid));
  plan->several_tiles = plan->grid < tiles;
  CountDirectTraffic(p, t, workload, sizes, plan.get());
  return plan;
}

// ---- The default: what takes least on paper

// Cycles of the busiest SM: what its warps issue, the lines they touch in L1, its share of the ways
// to L2 and memory (50 and 18 B a cycle), and the latency of each group of rounds, about 800 cycles
// from memory: the longest of them, and a tenth of the others, which it does not hide wholly;
// beside that one such latency, and what it takes that parts of a sum meet.
double DirectCost(const DirectProblem& p, const DirectThread& t) {
  const auto tiles = static_cast<double>(TilesOfDirect(p, t));
  const double per_sm = std::ceil(tiles / p.target.cores);
  const double waves = std::ceil(per_sm / static_cast<double>(ResidentBlocks(p, t)));
  const double rounds =
      std::ceil(static_cast<double>(p.k) / static_cast<double>(t.threads_k * t.vector_k));
  const double groups = std::ceil(rounds / static_cast<double>(t.unroll));
  const double warps = static_cast<double>(t.block) / kWarpThreads;
  const DirectRound round = CountRound(p, t);
  const auto sums = static_cast<double>(t.rows * t.columns);
  const double steps = std::log2(static_cast<double>(t.lanes_k(p.k_first)));
  const double parts = static_cast<double>(PartsOf(p, t));
  const double issued =
      rounds * (1.5 * (round.loads_a + round.loads_b) + round.conversions + round.products) +
      sums * (2 * steps + 10);
  const double issue = per_sm * warps * issued / 4;
  const double lines = per_sm * warps * rounds * round.lines;
  const double l2 = per_sm * static_cast<double>(p.k) *
                    static_cast<double>(t.tile_m() * Info(p.a.stored).bytes +
                                        t.tile_n() * Info(p.b.stored).bytes) /
                    50;
  const double memory = p.compulsory_bytes / p.target.cores / 18;
  const double latency = 800 * groups * waves;
  const double meeting = steps * (30 + 2 * sums) + (parts > 1 ? 150 + 20 * parts : 0) +
                         sums * (t.threads_k == 1 ? 8 : 4);
  const double longest = std::max({issue, lines, l2, memory, latency});
  const double overlapped = issue + lines + l2 + memory + latency - longest;
  return longest + 0.1 * overlapped + 800 + meeting;
}

struct RankedThread {
  double cost = 0;
  DirectThread thread;
};

// Some of each kind, the cheapest first; the first of all, which is always legal, at the end.
std::vector<RankedThread> RankThreads(const DirectProblem& p) {
  const int64_t vector_k =
      std::min<int64_t>(8, std::max(MostDepthLanes(p, p.a), MostDepthLanes(p, p.b)));
  const int64_t most_k = PowerOfTwoFrom(CeilDiv(p.k, vector_k));
  std::vector<RankedThread> ranked;
  auto add = [&](DirectThread t) {
    const int64_t rounds = CeilDiv(p.k, t.threads_k * t.vector_k);
    t.unroll = 1;
    // A quarter less than what is allowed: the estimate is rough.
    while (t.unroll < std::min<int64_t>(8, rounds)) {
      DirectThread more = t;
      more.unroll *= 2;
      if (RegistersOfDirect(p, more) > kMostRegisters * 3 / 4) break;
      t = more;
    }
    const int64_t registers = RegistersOfDirect(p, t);
    if (registers > kMostRegisters || registers * t.block > p.target.registers_per_core ||
        SharedBytesOfDirect(p, t) > p.target.shared_memory_bytes)
      return;
    ranked.push_back({DirectCost(p, t), t});
  };
  for (int64_t block : {64, 128, 256}) {
    for (int64_t threads_k = 1; threads_k <= std::min(block, most_k); threads_k *= 2) {
      for (int64_t rows = 1; rows <= 16 && rows <= PowerOfTwoFrom(p.m); rows *= 2) {
        for (int64_t columns = 1; columns <= std::min<int64_t>(8, p.n); ++columns) {
          const int64_t threads_n =
              std::min({block / threads_k, PowerOfTwoFrom(CeilDiv(p.n, columns)), int64_t{256}});
          add({block, threads_k, threads_n, rows, columns, vector_k, 1});
          if (threads_n > 32) add({block, threads_k, 32, rows, columns, vector_k, 1});
        }
      }
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedThread& x, const RankedThread& y) { return x.cost < y.cost; });
  ranked.push_back({HUGE_VAL, {64, 1, 1, 1, 1, 1, 1}});
  return ranked;
}

Schedule ScheduleOf(const PreparedDirect& prepared, const DirectThread& t, bool resident) {
  return prepared.space.ClosestTo({{"block", t.block},
                                   {"threads_k", t.threads_k},
                                   {"threads_n", t.threads_n},
                                   {"rows", t.rows},
                                   {"columns", t.columns},
                                   {"vector_k", t.vector_k},
                                   {"unroll", t.unroll},
                                   {"blocks", resident ? 1 : 0}});
}

Schedule DefaultDirectSchedule(const Workload& workload, const Target& target) {
  std::shared_ptr<const PreparedDirect> prepared = *PrepareDirect(workload, target);
  return ScheduleOf(*prepared, RankThreads(prepared->problem).front().thread, false);
}

// A long matrix that Hopper's tensor cores read in place, by TMA: contraction.skinny is there
// first.
bool TensorCoresReadInPlace(const DirectProblem& p) {
  const OperandSource& larger = p.n >= p.m ? p.b : p.a;
  const bool small = p.k <= kShortK || p.batches * p.m * p.n <= kFewOutputs / 16;
  const bool multiplied = larger.stored == ElementType::kBF16 ||
                          larger.stored == ElementType::kF16 || larger.stored == ElementType::kE4M3;
  return p.target.llvm_cpu == "sm_90a" && multiplied && larger.aligned_bytes == 16 && !small;
}

// The cheapest of each way to share k, and the first that have whole sums with fewer blocks too.
std::vector<Schedule> SuggestDirectSchedules(const Workload& workload, const Target& target) {
  constexpr size_t kMostKinds = 6, kMostResident = 2;
  constexpr double kWorstCost = 1.4;  // times the least
  std::shared_ptr<const PreparedDirect> prepared = *PrepareDirect(workload, target);
  if (TensorCoresReadInPlace(prepared->problem)) return {};
  const std::vector<RankedThread> ranked = RankThreads(prepared->problem);
  std::set<std::pair<int64_t, int64_t>> seen;
  std::vector<Schedule> suggestions;
  for (const RankedThread& one : ranked) {
    if (seen.size() == kMostKinds || one.cost > kWorstCost * ranked.front().cost) break;
    const DirectThread& t = one.thread;
    if (!seen.insert({t.threads_k, t.rows * t.columns}).second) continue;
    suggestions.push_back(ScheduleOf(*prepared, t, false));
    if (t.threads_k == 1 && seen.size() <= kMostResident)
      suggestions.push_back(ScheduleOf(*prepared, t, true));
  }
  return suggestions;
}

}  // namespace

Variant ContractionDirectVariant() {
  return {.name = kDirectName,
          .family = "contraction",
          .help =
              "small outputs, few rows or a short k: operands straight to registers, k shared "
              "by threads",
          .backends = {"nvptx"},
          .applies = [](const Workload& workload,
                        const Target& target) { return PrepareDirect(workload, target).status(); },
          .define =
              [](const Workload& workload, const Target& target) {
                return (*PrepareDirect(workload, target))->space.definition();
              },
          .plan = MakeDirectPlan,
          .default_schedule = DefaultDirectSchedule,
          .suggestions = SuggestDirectSchedules};
}

}  // namespace tilewright
