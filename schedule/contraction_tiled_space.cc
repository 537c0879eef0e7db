#include "schedule/contraction_tiled_space.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// Partial sums and packed copies may take this much, or four times the workload's own buffers if
// that is more.
constexpr int64_t kWorkspaceFloorBytes = int64_t{256} << 20;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

}  // namespace

TiledProblem StudyTiled(const Workload& workload, const Target& target,
                        std::shared_ptr<const Contraction> contraction) {
  const Contraction& c = *contraction;
  const Sizes high = workload.HighestSizes();
  TiledProblem p;
  p.target = target;
  p.batches = c.Batches(high);
  p.m = c.m.Extent(high);
  p.n = c.n.Extent(high);
  p.k = c.K(high);
  p.bytes = Info(c.accumulator).bytes;
  p.lanes = std::max(1, target.vector_bits / (8 * p.bytes));
  // Vectors of the output are loaded and stored as they lie, so columns must be neighbours.
  p.sums_in_output =
      workload.layout(c.output).type == c.accumulator && c.output_column_stride.Is(1);
  int64_t buffers = 0;
  for (int tensor : workload.parameters()) buffers += workload.BufferBytes(tensor, high);
  for (int tensor : workload.outputs()) buffers += workload.BufferBytes(tensor, high);
  p.workspace_limit = std::max(kWorkspaceFloorBytes, 4 * buffers);
  p.contraction = std::move(contraction);
  return p;
}

int64_t VectorRegisters(int64_t micro_m, int64_t vectors_n) {
  return micro_m * vectors_n + vectors_n + 1;
}

int64_t StripRows(int64_t extent, int64_t threads, int64_t strip) {
  return CeilDiv(CeilDiv(extent, strip), threads) * strip;
}

int64_t BatchesOf(const Contraction& c, const ContractionOperand& operand,
                  absl::Span<const int64_t> sizes) {
  int64_t count = 1;
  for (int axis : operand.batch) count *= c.batch[axis].Extent(sizes);
  return count;
}

// Cycles of one step of k, and the share of them in which fused multiply-adds keep the pipes full.
// Two loads a cycle (Zen 2 and later, Haswell and later: Agner Fog, "The microarchitecture of
// Intel, AMD and VIA CPUs"); an accumulator waits 4 cycles for its last addition; six instructions
// a cycle are taken in.
double IssueEfficiency(const Target& target, int64_t micro_m, int64_t vectors_n, int64_t unroll_k) {
  const double fmas = static_cast<double>(micro_m * vectors_n);
  const double loads = static_cast<double>(micro_m + vectors_n);
  const double arithmetic = fmas / std::max(1, target.fma_per_cycle);
  const double front_end = (fmas + loads + 4.0 / static_cast<double>(unroll_k)) / 6;
  return arithmetic / std::max({arithmetic, loads / 2, 4.0, front_end});
}

int64_t SharedPackingBytes(const TiledProblem& p, const ContractionOperand& operand, int64_t extent,
                           int64_t strip, absl::Span<const int64_t> high) {
  return BatchesOf(*p.contraction, operand, high) * RoundUp(extent, strip) * p.k * p.bytes;
}

namespace {

std::vector<DecisionValue> Below(absl::Span<const int64_t> numbers, int64_t bound) {
  std::vector<int64_t> kept;
  for (int64_t number : numbers) {
    if (number < bound) kept.push_back(number);
  }
  return IntegerValues(kept);
}

// Those below the extent, and the extent itself as `all`.
std::vector<DecisionValue> Tiles(absl::Span<const int64_t> numbers, int64_t extent) {
  std::vector<DecisionValue> values = Below(numbers, extent);
  values.push_back({extent, "all"});
  return values;
}

// Shares of the cores: every number of up to eight, then those of the forms 2^i and 3 * 2^i.
std::vector<DecisionValue> ThreadCounts(int cores, int64_t extent) {
  std::vector<int64_t> counts;
  for (int64_t t = 1; t <= std::min<int64_t>(cores, extent); ++t) {
    int64_t odd = t;
    while (odd % 2 == 0) odd /= 2;
    if (t <= 8 || odd == 1 || odd == 3 || t == cores) counts.push_back(t);
  }
  return IntegerValues(counts);
}

void DecideThreads(const TiledProblem& p, SpaceWriter* space) {
  const int cores = p.target.cores;
  space->Decide(
      "threads_batch",
      "Threads side by side along the batch. More loses when another role has work for all cores.",
      ThreadCounts(cores, p.batches));
  space->Decide(
      "threads_n",
      "Threads side by side along n. Each packs its own b and, unless packing is shared, all of a.",
      ThreadCounts(cores, p.n));
  space->Decide(
      "threads_m",
      "Threads side by side along m. Each packs its own a and, unless packing is shared, all of b.",
      ThreadCounts(cores, p.m));
  space->Constrain(
      "threads", {"threads_batch", "threads_n", "threads_m"},
      [cores](Numbers v) { return v[0] * v[1] * v[2] <= cores; },
      [cores](Numbers v) {
        return absl::StrCat("threads: ", v[0], " x ", v[1], " x ", v[2], " > ", cores, " cores");
      });
}

void DecideMicroTile(const TiledProblem& p, SpaceWriter* space) {
  space->Decide("micro_m",
                "Rows of the micro-tile held in registers (MR in BLIS). More reuses each vector of "
                "b oftener, until "
                "registers run out or rows are wasted on a short m.",
                Below({1, 2, 3, 4, 5, 6, 8, 10, 12, 14}, p.m + 1));
  std::vector<int64_t> vectors;
  for (int64_t v : {1, 2, 3, 4, 6, 8}) {
    if (v == 1 || (v - 1) * p.lanes < p.n) vectors.push_back(v);
  }
  space->Decide("vectors_n",
                "Vectors of columns of the micro-tile (NR / lanes in BLIS). More reuses each "
                "element of a oftener.",
                IntegerValues(vectors));
  const int registers = p.target.vector_registers;
  space->Constrain(
      "registers", {"micro_m", "vectors_n"},
      [registers](Numbers v) { return VectorRegisters(v[0], v[1]) <= registers; },
      [registers](Numbers v) {
        return absl::StrCat("registers: ", v[0], " x ", v[1], " accumulators + ", v[1], " + 1 > ",
                            registers);
      });
  space->Decide(
      "unroll_k",
      "Steps of k written out in the inner loop. More hides its counter, until code is large.",
      Below({1, 2, 4, 8}, p.k + 1));
}

void DecideTiles(const TiledProblem& p, SpaceWriter* space) {
  const int64_t lanes = p.lanes, bytes = p.bytes, m = p.m, n = p.n;
  space->Decide("tile_k",
                "Steps of k in a block (KC in BLIS): how long a strip is. Too long leaves L1, too "
                "short moves sums.",
                Tiles({32, 64, 128, 192, 256, 320, 384, 512, 768, 1024, 2048}, p.k));
  const int64_t l2 = p.target.l2_bytes;
  space->Constrain(
      "strips", {"micro_m", "vectors_n", "tile_k"},
      // The shortest blocks are always legal, so that every target has a schedule.
      [=](Numbers v) { return v[2] <= 32 || (v[0] + v[1] * lanes) * v[2] * bytes <= l2; },
      [=](Numbers v) {
        return absl::StrCat("strips: (", v[0], " rows + ", v[1] * lanes, " columns) x ", v[2],
                            " steps x ", bytes, " B > ", l2, " B of L2");
      });
  space->Decide("tile_m",
                "Rows of a block (MC in BLIS), rounded up to whole micro-tiles; `all`: every row "
                "of a thread.",
                Tiles({12, 24, 48, 96, 144, 192, 288, 384, 576, 768, 1152, 2304}, m));
  space->Constrain(
      "tile_m", {"threads_m", "micro_m", "tile_m"},
      [=](Numbers v) { return v[2] == m || RoundUp(v[2], v[1]) < StripRows(m, v[0], v[1]); },
      [=](Numbers v) {
        return absl::StrCat("tile_m: ", v[2], " covers the ", StripRows(m, v[0], v[1]),
                            " rows of a thread: say all");
      });
  space->Decide("tile_n",
                "Columns of a block (NC in BLIS), rounded up to whole micro-tiles; `all`: every "
                "column of a thread.",
                Tiles({32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096}, n));
  space->Constrain(
      "tile_n", {"threads_n", "vectors_n", "tile_n"},
      [=](Numbers v) {
        return v[2] == n || RoundUp(v[2], v[1] * lanes) < StripRows(n, v[0], v[1] * lanes);
      },
      [=](Numbers v) {
        return absl::StrCat("tile_n: ", v[2], " covers the ", StripRows(n, v[0], v[1] * lanes),
                            " columns of a thread: say all");
      });
}

void DecideLoops(const TiledProblem& p, SpaceWriter* space) {
  const int64_t m = p.m, n = p.n, k = p.k, lanes = p.lanes, bytes = p.bytes;
  space->Decide("order",
                "Order of the loops over blocks, outermost first. The operand of the outer two is "
                "packed least often.",
                {{0, "nkm"}, {1, "mkn"}, {2, "nmk"}}, {"tile_m", "tile_n", "tile_k"},
                [=](Numbers v) { return int{v[0] != m} + int{v[1] != n} + int{v[2] != k} >= 2; });
  space->Decide(
      "inner",
      "Which strips run fastest inside a block: the other operand's strip stays in L1 meanwhile.",
      {{0, "m"}, {1, "n"}}, {"micro_m", "vectors_n", "tile_m", "tile_n"},
      [=](Numbers v) { return v[2] > v[0] && v[3] > v[1] * lanes; });
  // The block whose strips run fastest is read once per strip of the other: from L2 if it fits, at
  // worst from L3.
  const int64_t cache = std::max(p.target.l3_bytes, 4 * p.target.l2_bytes);
  space->Constrain(
      "block", {"tile_k", "tile_m", "tile_n", "inner"},
      [=](Numbers v) {
        const int64_t rows = v[3] == kAbsent ? std::min(v[1], v[2]) : v[3] == 0 ? v[1] : v[2];
        return rows <= 32 || v[0] * rows * bytes <= cache;
      },
      [=](Numbers v) {
        const int64_t rows = v[3] == kAbsent ? std::min(v[1], v[2]) : v[3] == 0 ? v[1] : v[2];
        return absl::StrCat("block: ", rows, " x ", v[0], " steps x ", bytes, " B > ", cache,
                            " B of cache");
      });
}

void DecidePacking(const TiledProblem& p, const Workload& workload, SpaceWriter* space) {
  const Contraction& c = *p.contraction;
  auto values = [](bool in_place) {
    std::vector<DecisionValue> all = {{0, "none"}, {1, "private"}, {2, "shared"}};
    if (!in_place) all.erase(all.begin());
    return all;
  };
  space->Decide("pack_a",
                "Copies a to strips: none reads it in place, private per thread and block, shared "
                "once before.",
                values(c.a.plain));
  space->Decide("pack_b",
                "Copies b to strips: none reads it in place, private per thread and block, shared "
                "once before.",
                values(c.b.plain && c.b.row_stride.Is(1)));
  const Sizes high = workload.HighestSizes();
  const int64_t lanes = p.lanes, limit = p.workspace_limit;
  auto bytes = [p, high, lanes](Numbers v) {
    int64_t total = 0;
    if (v[2] == 2) total += SharedPackingBytes(p, p.contraction->a, p.m, v[0], high);
    if (v[3] == 2) total += SharedPackingBytes(p, p.contraction->b, p.n, v[1] * lanes, high);
    return total;
  };
  space->Constrain(
      "shared_packing", {"micro_m", "vectors_n", "pack_a", "pack_b"},
      [=](Numbers v) { return bytes(v) <= limit; },
      [=](Numbers v) { return absl::StrCat("shared_packing: ", bytes(v), " B > ", limit, " B"); });
  if (p.sums_in_output) return;
  // Partial sums in the workspace: for nkm the rows of a thread are all under way at once, for mkn
  // its columns.
  const int64_t m = p.m, n = p.n, k = p.k, element = p.bytes;
  auto sums = [=](Numbers v) {
    if (v[4] == k) return int64_t{0};
    const int64_t rows = v[5] == 0 ? StripRows(m, v[1], v[2])
                                   : std::min(RoundUp(v[6], v[2]), StripRows(m, v[1], v[2]));
    const int64_t columns =
        v[5] == 1 ? StripRows(n, v[0], v[3] * lanes)
                  : std::min(RoundUp(v[7], v[3] * lanes), StripRows(n, v[0], v[3] * lanes));
    return rows * columns * element * v[0] * v[1];
  };
  space->Constrain(
      "partial_sums",
      {"threads_n", "threads_m", "micro_m", "vectors_n", "tile_k", "order", "tile_m", "tile_n"},
      [=](Numbers v) { return sums(v) <= limit; },
      [=](Numbers v) { return absl::StrCat("partial_sums: ", sums(v), " B > ", limit, " B"); });
}

}  // namespace

void WriteTiledSpace(const Workload& workload, const TiledProblem& problem, SpaceWriter* space) {
  DecideThreads(problem, space);
  DecideMicroTile(problem, space);
  DecideTiles(problem, space);
  DecideLoops(problem, space);
  DecidePacking(problem, workload, space);
}

}  // namespace tilewright
