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
// The largest micro-tile that may be chosen; every block but the last of a thread is larger.
constexpr int64_t kMostMicroRows = 14;
constexpr int64_t kMostMicroColumns = 96;

}  // namespace

TiledProblem StudyTiled(const Workload& workload, const Target& target,
                        std::shared_ptr<const Contraction> contraction) {
  const Contraction& c = *contraction;
  const Sizes high = workload.HighestSizes();
  TiledProblem p;
  p.target = target;
  p.high = high;
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
                           int64_t strip) {
  return BatchesOf(*p.contraction, operand, p.high) * RoundUp(extent, strip) * p.k * p.bytes;
}

std::vector<DecisionValue> ThreadCounts(int cores, int64_t extent) {
  std::vector<int64_t> counts;
  for (int64_t t = 1; t <= std::min<int64_t>(cores, extent); ++t) {
    int64_t odd = t;
    while (odd % 2 == 0) odd /= 2;
    if (t <= 8 || odd == 1 || odd == 3 || t == cores) counts.push_back(t);
  }
  return IntegerValues(counts);
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

// Decisions that constraints read together stand together: first all of m, then all of n.
void DecideThreads(const TiledProblem& p, SpaceWriter* space) {
  space->Decide(
      "threads_batch",
      "Threads side by side along the batch. More loses when another role has work for all cores.",
      ThreadCounts(p.target.cores, p.batches));
}

void DecideRows(const TiledProblem& p, SpaceWriter* space) {
  const int64_t m = p.m;
  space->Decide(
      "threads_m",
      "Threads side by side along m. Each packs its own a and, unless packing is shared, all of b.",
      ThreadCounts(p.target.cores, m));
  space->Decide("micro_m",
                "Rows of the micro-tile held in registers (MR in BLIS). More reuses each vector of "
                "b oftener, until registers run out or rows are wasted on a short m.",
                Below({1, 2, 3, 4, 5, 6, 8, 10, 12, kMostMicroRows}, m + 1));
  space->Decide("tile_m",
                "Rows of a block (MC in BLIS), rounded up to whole micro-tiles; `all`: every row "
                "of a thread.",
                Tiles({24, 48, 96, 144, 192, 288, 384, 576, 768, 1152, 2304}, m));
  space->Constrain(
      "tile_m", {"threads_m", "micro_m", "tile_m"},
      [=](Numbers v) { return v[2] == m || RoundUp(v[2], v[1]) < StripRows(m, v[0], v[1]); },
      [=](Numbers v) {
        return absl::StrCat(v[2], " covers the ", StripRows(m, v[0], v[1]),
                            " rows of a thread: say all");
      });
}

void DecideColumns(const TiledProblem& p, SpaceWriter* space) {
  const int64_t lanes = p.lanes, n = p.n;
  space->Decide(
      "threads_n",
      "Threads side by side along n. Each packs its own b and, unless packing is shared, all of a.",
      ThreadCounts(p.target.cores, n));
  const int cores = p.target.cores;
  space->Constrain(
      "threads", {"threads_batch", "threads_m", "threads_n"},
      [cores](Numbers v) { return v[0] * v[1] * v[2] <= cores; },
      [cores](Numbers v) {
        return absl::StrCat(v[0], " x ", v[1], " x ", v[2], " > ", cores, " cores");
      });
  std::vector<int64_t> vectors;
  for (int64_t v : {1, 2, 3, 4, 6, 8}) {
    if (v == 1 || (v * lanes <= kMostMicroColumns && (v - 1) * lanes < n)) vectors.push_back(v);
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
        return absl::StrCat(v[0], " x ", v[1], " accumulators + ", v[1], " + 1 > ", registers);
      });
  space->Decide("tile_n",
                "Columns of a block (NC in BLIS), rounded up to whole micro-tiles; `all`: every "
                "column of a thread.",
                Tiles({128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096}, n));
  space->Constrain(
      "tile_n", {"threads_n", "vectors_n", "tile_n"},
      [=](Numbers v) {
        return v[2] == n || RoundUp(v[2], v[1] * lanes) < StripRows(n, v[0], v[1] * lanes);
      },
      [=](Numbers v) {
        return absl::StrCat(v[2], " covers the ", StripRows(n, v[0], v[1] * lanes),
                            " columns of a thread: say all");
      });
}

void DecideDepth(const TiledProblem& p, SpaceWriter* space) {
  const int64_t lanes = p.lanes, bytes = p.bytes, k = p.k, l2 = p.target.l2_bytes;
  space->Decide("tile_k",
                "Steps of k in a block (KC in BLIS): how long a strip is. Too long leaves L1, too "
                "short moves sums.",
                Tiles({32, 64, 128, 192, 256, 320, 384, 512, 768, 1024, 2048}, k));
  // The shortest blocks are always legal, so that every target has a schedule.
  auto fits = [=](int64_t rows, int64_t vectors, int64_t steps) {
    return steps <= 32 || (rows + vectors * lanes) * steps * bytes <= l2;
  };
  if (!fits(kMostMicroRows, kMostMicroColumns / lanes, k)) {
    space->Constrain(
        "strips", {"micro_m", "vectors_n", "tile_k"},
        [=](Numbers v) { return fits(v[0], v[1], v[2]); },
        [=](Numbers v) {
          return absl::StrCat("(", v[0], " rows + ", v[1] * lanes, " columns) x ", v[2],
                              " steps x ", bytes, " B > ", l2, " B of L2");
        });
  }
  // One of the two blocks is read once per strip of the other: from L2 if it fits, at worst from
  // L3.
  const int64_t cache = std::max(p.target.l3_bytes, 4 * l2);
  if (std::min(p.m, p.n) * k * bytes > cache) {
    space->Constrain(
        "block", {"tile_m", "tile_n", "tile_k"},
        [=](Numbers v) {
          const int64_t rows = std::min(v[0], v[1]);
          return rows <= 24 || rows * v[2] * bytes <= cache;
        },
        [=](Numbers v) {
          return absl::StrCat("min(", v[0], ", ", v[1], ") x ", v[2], " steps x ", bytes, " B > ",
                              cache, " B of cache");
        });
  }
  space->Decide(
      "unroll_k",
      "Steps of k written out in the inner loop. More hides its counter, until code is large.",
      Below({1, 2, 4, 8}, k + 1));
}

void DecideLoops(const TiledProblem& p, SpaceWriter* space) {
  const int64_t m = p.m, n = p.n, k = p.k, lanes = p.lanes;
  space->Decide("order",
                "Order of the loops over blocks, outermost first. The operand of the outer two is "
                "packed least often.",
                {{0, "nkm"}, {1, "mkn"}, {2, "nmk"}}, {"tile_m", "tile_n", "tile_k"},
                [=](Numbers v) { return int{v[0] != m} + int{v[1] != n} + int{v[2] != k} >= 2; });
  const std::string help =
      "Which strips run fastest inside a block: the other operand's strip stays in L1 meanwhile.";
  const std::vector<DecisionValue> values = {{0, "m"}, {1, "n"}};
  // Blocks of a larger problem have several strips of both.
  if (m > kMostMicroRows && n > kMostMicroColumns) {
    space->Decide("inner", help, values);
  } else {
    space->Decide("inner", help, values, {"micro_m", "vectors_n"},
                  [=](Numbers v) { return m > v[0] && n > v[1] * lanes; });
  }
}

void DecidePacking(const TiledProblem& p, SpaceWriter* space) {
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
  // Upper bounds: a last strip that is all padding but one row.
  const int64_t all_a = SharedPackingBytes(p, c.a, p.m + kMostMicroRows, 1);
  const int64_t all_b = SharedPackingBytes(p, c.b, p.n + kMostMicroColumns, 1);
  const int64_t limit = p.workspace_limit;
  if (all_a + all_b > limit) {
    auto bytes = [=](Numbers v) { return (v[0] == 2 ? all_a : 0) + (v[1] == 2 ? all_b : 0); };
    space->Constrain(
        "shared_packing", {"pack_a", "pack_b"}, [=](Numbers v) { return bytes(v) <= limit; },
        [=](Numbers v) { return absl::StrCat(bytes(v), " B > ", limit, " B"); });
  }
}

// Partial sums in the workspace: for nmk a block of each thread, else in all as much as the output.
void BoundPartialSums(const TiledProblem& p, SpaceWriter* space) {
  const int64_t cores = p.target.cores, limit = p.workspace_limit, k = p.k, bytes = p.bytes,
                m = p.m, n = p.n;
  const int64_t whole = (m + cores * kMostMicroRows) * (n + cores * kMostMicroColumns) * bytes;
  if (p.sums_in_output || whole <= limit) return;
  auto sums = [=](Numbers v) {
    if (v[2] == k) return int64_t{0};
    return v[3] != 2 ? whole : (v[0] + kMostMicroRows) * (v[1] + kMostMicroColumns) * cores * bytes;
  };
  space->Constrain(
      "partial_sums", {"tile_m", "tile_n", "tile_k", "order"},
      [=](Numbers v) { return (v[0] <= 24 && v[1] <= 128) || sums(v) <= limit; },
      [=](Numbers v) { return absl::StrCat(sums(v), " B > ", limit, " B"); });
}

}  // namespace

void WriteTiledSpace(const TiledProblem& problem, SpaceWriter* space) {
  DecideThreads(problem, space);
  DecideRows(problem, space);
  DecideColumns(problem, space);
  DecideDepth(problem, space);
  DecideLoops(problem, space);
  DecidePacking(problem, space);
  BoundPartialSums(problem, space);
}

}  // namespace tilewright
