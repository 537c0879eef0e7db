#include "schedule/contraction_wgmma_space.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedule/contraction_tiled_space.h"

namespace tilewright {
namespace {

// Coordinates are 32-bit, and tensor maps have at most five dimensions: two and three of the batch.
constexpr int64_t kMostExtent = int64_t{1} << 31;
constexpr size_t kMostBatchAxes = 3;

absl::Status NoWgmma(absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat("contraction.wgmma: ", reason));
}

bool StartsAtItsTensor(absl::Span<const AffineIndex> subscripts) {
  for (const AffineIndex& subscript : subscripts) {
    if (subscript.constant != 0) return false;
    for (const AffineTerm& term : subscript.terms) {
      if (term.kind != AffineTerm::Kind::kIndex) return false;
    }
  }
  return true;
}

// Every batch axis in `axes` moves the tensor by a stride that a tensor map can have.
bool BatchFitsTma(const Workload& workload, const Contraction& c, int tensor,
                  absl::Span<const AffineIndex> subscripts, absl::Span<const int> axes, int bytes) {
  if (axes.size() > kMostBatchAxes) return false;
  for (int axis : axes) {
    std::optional<Stride> stride = StrideAlong(workload, tensor, subscripts, c.batch[axis].lead());
    if (!stride.has_value() || !IsTmaStride(*stride, bytes)) return false;
  }
  return true;
}

struct OperandStudy {
  bool transposed = false;  // the operand's rows are contiguous; else its k is
  bool padded = false;      // it must be copied first
};

absl::StatusOr<OperandStudy> StudyOperand(const Workload& workload, const Contraction& c,
                                          const ContractionOperand& operand, const Axis& row,
                                          absl::string_view name) {
  if (!operand.linear || operand.value.get() != operand.read) {
    return NoWgmma(absl::StrCat("operand ", name, " is not read as it lies in memory"));
  }
  const Expr& read = *operand.read;
  const int bytes = Info(workload.layout(read.tensor).type).bytes;
  if (!StartsAtItsTensor(read.subscripts)) {
    return NoWgmma(absl::StrCat("operand ", name, " does not begin where its tensor does"));
  }
  if (operand.batch.size() > kMostBatchAxes) {
    return NoWgmma(absl::StrCat("operand ", name, " has more than three batch axes"));
  }
  const bool has_rows = !row.indices.empty();
  bool aligned_batch =
      BatchFitsTma(workload, c, read.tensor, read.subscripts, operand.batch, bytes);
  if (operand.depth_stride.Is(1))
    return OperandStudy{false,
                        !aligned_batch || (has_rows && !IsTmaStride(operand.row_stride, bytes))};
  if (has_rows && operand.row_stride.Is(1)) {
    if (bytes == 2)
      return OperandStudy{true, !aligned_batch || !IsTmaStride(operand.depth_stride, bytes)};
    return NoWgmma(absl::StrCat("operand ", name, " of 8-bit elements must be contiguous along k"));
  }
  return NoWgmma(absl::StrCat("operand ", name, " must be contiguous along k or its rows"));
}

// Functions are polynomials and divisions (codegen/math.cc), reads a load and its address.
double EpilogueInstructions(const Expr& epilogue) {
  double count = 0;
  Walk(epilogue, [&](const Expr& e) {
    if (e.kind == Expr::Kind::kRead) count += 10;
    if (e.kind != Expr::Kind::kCall) return;
    switch (e.function) {
      case Function::kExp:
      case Function::kLog:
      case Function::kTanh:
      case Function::kErf:
      case Function::kSigmoid:
        count += 80;
        break;
      case Function::kGelu:
      case Function::kSilu:
        count += 40;
        break;
      case Function::kDiv:
      case Function::kSqrt:
      case Function::kRsqrt:
        count += 15;
        break;
      default:
        count += 2;
    }
  });
  return count;
}

std::vector<DecisionValue> Steps(int64_t first, int64_t last, int64_t step) {
  std::vector<int64_t> numbers;
  for (int64_t number = first; number <= last; number += step) numbers.push_back(number);
  return IntegerValues(numbers);
}

}  // namespace

bool IsTmaStride(const Stride& stride, int bytes) {
  if (stride.terms.empty()) return false;
  for (const Stride::Term& term : stride.terms) {
    if (term.coefficient <= 0 || term.coefficient * bytes % 16 != 0) return false;
  }
  return true;
}

absl::StatusOr<WgmmaProblem> StudyWgmma(const Workload& workload, const Target& target,
                                        std::shared_ptr<const Contraction> contraction) {
  const Contraction& c = *contraction;
  WgmmaProblem p;
  if (target.llvm_cpu != "sm_90a") {
    return NoWgmma(absl::StrCat("needs sm_90a; ", target.kind, " has ", target.llvm_cpu));
  }
  if (c.accumulator != ElementType::kF32 || c.compute != ElementType::kF32) {
    return NoWgmma("sums and epilogue are computed in f32 only");
  }
  absl::StatusOr<OperandStudy> a = StudyOperand(workload, c, c.a, c.m, "a");
  if (!a.ok()) return a.status();
  absl::StatusOr<OperandStudy> b = StudyOperand(workload, c, c.b, c.n, "b");
  if (!b.ok()) return b.status();
  p.type = workload.layout(c.a.read->tensor).type;
  const ElementType other = workload.layout(c.b.read->tensor).type;
  if (p.type != other || (p.type != ElementType::kF16 && p.type != ElementType::kBF16 &&
                          p.type != ElementType::kE4M3)) {
    return NoWgmma(absl::StrCat("operands must both be f16, bf16 or e4m3, not ",
                                std::string(Info(p.type).name), " and ",
                                std::string(Info(other).name)));
  }
  p.bytes = Info(p.type).bytes;
  p.a_transposed = a->transposed;
  p.b_transposed = b->transposed;
  p.a_padded = a->padded;
  p.b_padded = b->padded;
  p.target = target;
  p.high = workload.HighestSizes();
  p.ranges.assign(workload.sizes().begin(), workload.sizes().end());
  p.batches = c.Batches(p.high);
  p.m = c.m.Extent(p.high);
  p.n = c.n.Extent(p.high);
  p.k = c.K(p.high);
  for (int64_t extent : {p.batches, p.m, p.n, p.k}) {
    if (extent >= kMostExtent) return NoWgmma("no extent may be 2^31 or more");
  }
  const ElementType output = workload.layout(c.output).type;
  p.output_bytes = Info(output).bytes;
  std::vector<int> axes;
  for (size_t i = 0; i < c.batch.size(); ++i) axes.push_back(static_cast<int>(i));
  p.tma_store = (output == ElementType::kF16 || output == ElementType::kBF16) &&
                c.output_column_stride.Is(1) && StartsAtItsTensor(c.output_subscripts) &&
                (c.m.indices.empty() || IsTmaStride(c.output_row_stride, p.output_bytes)) &&
                BatchFitsTma(workload, c, c.output, c.output_subscripts, axes, p.output_bytes);
  if (!c.plain_epilogue) p.epilogue_instructions = EpilogueInstructions(*c.epilogue);
  p.contraction = std::move(contraction);
  return p;
}

// ---- Quantities

int64_t ConsumerRows(bool pingpong, int64_t consumers, int64_t tile_m) {
  return pingpong ? tile_m : tile_m / consumers;
}

int64_t Accumulators(int64_t consumer_rows, int64_t tile_n) {
  return consumer_rows * tile_n / kWarpgroup;
}

int64_t ConsumerRegisters(int64_t consumers, int64_t producer_registers) {
  if (consumers == 1) return 0;
  const int64_t per_warpgroup = 65536 / kWarpgroup - producer_registers;
  return std::min<int64_t>(240, per_warpgroup / consumers / 8 * 8);
}

int64_t AccumulatorLimit(int64_t consumers, int64_t producer_registers) {
  if (consumers == 1) return 208;
  return ConsumerRegisters(consumers, producer_registers) - 32;
}

int64_t OperandStageBytes(int64_t rows, bool transposed, int64_t tile_k_bytes) {
  return (transposed ? RoundUp(rows, 64) : rows) * tile_k_bytes;
}

int64_t StagingBytes(int64_t rows, int64_t tile_n, int64_t store_columns, int64_t buffers,
                     int output_bytes) {
  return rows * std::min(tile_n, store_columns) * output_bytes * buffers;
}

int64_t RowPitchBytes(int64_t tile_n, int output_bytes) {
  return RoundUp(tile_n * output_bytes, 128) + 16;
}

int64_t RowStagingBytes(int64_t consumers, int64_t tile_n, int output_bytes) {
  return consumers * kWgmmaRows * RowPitchBytes(tile_n, output_bytes);
}

int64_t BarrierBytes(int64_t stages) { return 2 * 8 * stages; }

int64_t TilesOfCtas(const WgmmaProblem& p, bool swap, int64_t tile_m, int64_t tile_n,
                    int64_t cluster) {
  int64_t along_m = CeilDiv(p.m, swap ? tile_n : tile_m);
  int64_t along_n = CeilDiv(p.n, swap ? tile_m : tile_n);
  if (static_cast<WgmmaCluster>(cluster) == WgmmaCluster::kAlongM) along_m = RoundUp(along_m, 2);
  if (static_cast<WgmmaCluster>(cluster) == WgmmaCluster::kAlongN) along_n = RoundUp(along_n, 2);
  return p.batches * along_m * along_n;
}

int64_t SplitTiles(WgmmaStreamK stream_k, int64_t tiles, int64_t k_blocks, int64_t walkers) {
  const int64_t over = tiles % walkers;
  if (stream_k == WgmmaStreamK::kOff || over == 0) return 0;
  const int64_t split = over + (stream_k == WgmmaStreamK::kWave && tiles > walkers ? walkers : 0);
  return split * k_blocks < kLeastShare * walkers ? 0 : split;
}

int64_t AheadBytesOfRow(int64_t bytes, int64_t rows, int64_t most) {
  if (bytes == 0) return 0;
  const int64_t lines = std::max<int64_t>(1, bytes / rows / kLineBytes);
  return std::min(lines, CeilDiv(most, kLineBytes)) * kLineBytes;
}

int StoresInFlight(int group, int groups, int buffers) {
  // Positions count back from this group through earlier tiles; the same buffer comes again within
  // one tile and `buffers` groups.
  int since = 0;
  for (int position = group - 1;; --position, ++since) {
    const int in_tile = ((position % groups) + groups) % groups;
    if (in_tile % buffers == group % buffers) return since;
  }
}

double MmaCycles(const WgmmaProblem& p, double rows, double columns) {
  const double per_cycle = p.target.tensor_operations_per_cycle * (p.bytes == 1 ? 2 : 1);
  return 2 * rows * columns * static_cast<double>(RoundUp(p.k, p.atom_elements())) / per_cycle;
}

double SharedReadCycles(const WgmmaProblem& p, double rows, double columns) {
  const double steps = static_cast<double>(CeilDiv(p.k * p.bytes, kWgmmaDepthBytes));
  return steps * rows / kWgmmaRows * (16 + columns / 4);
}

// ---- Decisions

namespace {

void DecideWgmmaTile(const WgmmaProblem& p, SpaceWriter* space) {
  space->Decide("swap",
                "1 gives the instruction's 64 rows to n and its columns to m (swap_ab in CUTLASS): "
                "m is padded to 8, not 64. Loses where the output's columns then lie apart.",
                IntegerValues({0, 1}));
  space->Decide("mode",
                "cooperative: consumers share a tile by rows; pingpong: two take turns with whole "
                "tiles, so epilogues are hidden, at half the tile.",
                {{0, "cooperative"}, {1, "pingpong"}});
  space->Decide("consumers",
                "Warpgroups that multiply. More hold a larger tile, with fewer registers each.",
                IntegerValues({1, 2, 3}), {"mode"}, [](Numbers v) { return v[0] == 0; });
  space->Decide("tile_m",
                "Rows of the tile: of all consumers together, or of each in turn (pingpong).",
                Steps(64, 256, 64));
  space->Decide("tile_n",
                "Columns of the tile. Larger tiles read less per operation, until waves of tiles "
                "no longer fill the device.",
                Steps(8, 256, 8));
  const int64_t rows[2] = {p.rows(false), p.rows(true)};
  const int64_t columns[2] = {p.columns(false), p.columns(true)};
  space->Constrain(
      "covers_rows", {"swap", "tile_m"}, [=](Numbers v) { return v[1] - 64 < rows[v[0]]; },
      [=](Numbers v) {
        return absl::StrCat("tile_m ", v[1], " has 64 rows more than the ", rows[v[0]],
                            " there are");
      });
  space->Constrain(
      "covers_columns", {"swap", "tile_n"}, [=](Numbers v) { return v[1] - 8 < columns[v[0]]; },
      [=](Numbers v) {
        return absl::StrCat("tile_n ", v[1], " has 8 columns more than the ", columns[v[0]],
                            " there are");
      });
}

int64_t ConsumerCount(int64_t pingpong, int64_t consumers) { return pingpong == 1 ? 2 : consumers; }

void ConstrainConsumers(const WgmmaProblem& p, SpaceWriter* space) {
  space->Decide("producer_registers",
                "setmaxnreg of the producer; consumers share what it leaves of 64K registers.",
                IntegerValues({24, 40}), {"mode", "consumers"},
                [](Numbers v) { return ConsumerCount(v[0], v[1]) > 1; });
  space->Constrain(
      "consumer_rows", {"mode", "consumers", "tile_m"},
      [](Numbers v) {
        const int64_t consumers = ConsumerCount(v[0], v[1]);
        return v[0] == 1 || v[2] % (consumers * kWgmmaRows) == 0;
      },
      [](Numbers v) {
        return absl::StrCat(v[2], " rows cannot be shared by ", v[1], " consumers in blocks of 64");
      });
  const int64_t sums = SumsPerAccumulator(p.bytes);
  auto accumulators = [sums](Numbers v) {
    return sums * Accumulators(ConsumerRows(v[0] == 1, ConsumerCount(v[0], v[1]), v[2]), v[3]);
  };
  auto limit = [](Numbers v) { return AccumulatorLimit(ConsumerCount(v[0], v[1]), v[4]); };
  space->Constrain(
      "accumulators", {"mode", "consumers", "tile_m", "tile_n", "producer_registers"},
      [=](Numbers v) { return accumulators(v) <= limit(v); },
      [=](Numbers v) {
        return absl::StrCat(accumulators(v), " accumulators per thread > ", limit(v));
      });
  // ptxas 13.0 gives up (C7602): m64n256 needs 154 registers at entry, where 512 threads have 128.
  space->Constrain(
      "entry_registers", {"mode", "consumers", "tile_n"},
      [](Numbers v) { return ConsumerCount(v[0], v[1]) < 3 || v[2] <= 192; },
      [](Numbers v) {
        return absl::StrCat("three consumers cannot have instructions of ", v[2], " columns > 192");
      });
}

void DecideWgmmaPipeline(const WgmmaProblem& p, SpaceWriter* space) {
  std::vector<int64_t> depths;
  for (int atoms : {1, 2, 4}) {
    // 8-bit sums are promoted once in a stage: after 128 products.
    if (atoms > 1 && p.bytes == 1) break;
    if (atoms == 1 || (atoms - 1) * p.atom_elements() < p.k)
      depths.push_back(int64_t{atoms} * p.atom_elements());
  }
  space->Decide("tile_k", "Elements of k in a stage. More saves barriers, and holds fewer stages.",
                IntegerValues(depths));
  space->Decide("stages",
                "Stages of the ring (num_stages in Triton, kPipeStages in CUTLASS). More hide "
                "latency, until shared memory runs out.",
                IntegerValues({2, 3, 4, 5, 6, 7, 8, 10, 12, 16}));
  space->Decide(
      "in_flight",
      "Groups of wgmma unfinished while the next is issued (K_PIPE_MMAS in CUTLASS): 1 "
      "keeps the tensor cores fed, 0 gives stages back earlier. Ping-pong always has 1: only "
      "one consumer multiplies at a time.",
      p.bytes == 1 ? IntegerValues({0}) : IntegerValues({0, 1}), {"mode"},
      [](Numbers v) { return v[0] == 0; });
  space->Decide("cluster",
                "Pairs of CTAs whose tiles are neighbours along m (2m) or n (2n) load the operand "
                "they share once, by multicast. Pairs wait for each other.",
                {{0, "1"}, {1, "2m"}, {2, "2n"}});
  auto halves = [p](Numbers v) {
    if (v[1] == 0) return true;
    const bool swap = v[0] == 1;
    const bool shares_columns = (v[1] == 1) != swap;
    const int64_t rows = shares_columns ? v[3] : v[2];
    const bool transposed = shares_columns ? p.columns_transposed(swap) : p.rows_transposed(swap);
    return rows % (transposed ? 128 : 16) == 0;
  };
  space->Constrain("multicast_halves", {"swap", "cluster", "tile_m", "tile_n"}, halves,
                   [](Numbers v) {
                     return absl::StrCat("the shared side of a ", v[2], " x ", v[3],
                                         " tile has no halves of whole swizzle atoms");
                   });
  space->Decide("group",
                "Tiles side by side along `raster` before the next ones of the other axis "
                "(GROUP_M in Triton): how long both operands stay in L2.",
                IntegerValues({1, 2, 4, 8, 16}));
  space->Decide("raster", "The axis along which neighbouring CTAs take neighbouring tiles.",
                {{0, "rows"}, {1, "columns"}});
}

// The most k blocks that 32 bits can number in a share's arithmetic: two waves of tiles, times
// walkers.
int64_t MostSplitBlocks(int64_t cores) { return (int64_t{1} << 31) / (2 * cores * cores); }

void DecideWgmmaStreamK(const WgmmaProblem& p, SpaceWriter* space) {
  // Pairs of walkers and tiles at the highest sizes; with ranges others occur.
  space->Decide(
      "stream_k",
      "Tiles that are split along k between CTAs so that all end together (stream-K): those beyond "
      "whole waves (remainder), or these and one wave more, in fewer parts each (wave). Sums meet "
      "in memory.",
      {{0, "off"}, {1, "remainder"}, {2, "wave"}}, {"mode"}, [](Numbers v) { return v[0] == 0; },
      "off");
  bool ranged = false;
  for (const SizeRange& range : p.ranges) ranged |= !range.fixed();
  auto tiles = [p](Numbers v) { return TilesOfCtas(p, v[0] == 1, v[1], v[2], v[3]); };
  auto walkers = [p](Numbers v) { return p.target.cores / (v[3] == 0 ? 1 : 2); };
  space->Constrain(
      "stream_k", {"swap", "tile_m", "tile_n", "cluster", "tile_k", "stream_k"},
      [=](Numbers v) {
        if (v[5] <= 0) return true;  // off, or absent
        const int64_t k_blocks = CeilDiv(p.k, v[4]);
        if (k_blocks > MostSplitBlocks(p.target.cores)) return false;
        const int64_t all = tiles(v) / (v[3] == 0 ? 1 : 2);
        if (v[5] == 2 && all <= walkers(v)) return false;
        return ranged || SplitTiles(static_cast<WgmmaStreamK>(v[5]), all, k_blocks, walkers(v)) > 0;
      },
      [=](Numbers v) {
        return absl::StrCat(tiles(v), " tiles of ", CeilDiv(p.k, v[4]), " k blocks on ",
                            p.target.cores, " SMs leave nothing to split");
      });
}

void DecideWgmmaAhead(const WgmmaProblem& p, SpaceWriter* space) {
  // Kernels of at most about 20 us on an H200: longer ones have little to win.
  const double operations = 2.0 * static_cast<double>(p.batches * p.m) * static_cast<double>(p.n) *
                            static_cast<double>(p.k);
  const bool useful = MayAskAhead(p, p.m > p.n) && operations < 8e9;
  space->Decide(
      "ahead",
      "KB of the longer operand's rows that each CTA asks of L2 before earlier grids "
      "have ended (dependent launch), so that memory does not rest between two grids.",
      useful ? IntegerValues({0, 16, 32}) : IntegerValues({0}), {"stream_k"},
      [](Numbers v) { return v[0] <= 0; }, "0");
}

void DecideWgmmaStore(const WgmmaProblem& p, SpaceWriter* space) {
  std::vector<DecisionValue> stores = {{0, "direct"}};
  stores.push_back(p.tma_store ? DecisionValue{1, "tma"} : DecisionValue{2, "rows"});
  space->Decide("store",
                "tma: the output passes through shared memory and leaves in whole lines; rows: the "
                "same without TMA, a row of a warp at a time; direct: each thread stores what it "
                "holds.",
                stores);
  if (!p.tma_store) {
    space->Constrain(
        "rows_lie_along_n", {"swap", "store"}, [](Numbers v) { return v[0] == 0 || v[1] != 2; },
        [](Numbers) { return std::string("with swap=1 a warp has no rows of n: store=direct"); });
  }
  const std::vector<std::string> reads =
      p.tma_store ? std::vector<std::string>{"store"} : std::vector<std::string>{};
  auto staged = [](Numbers v) { return !v.empty() && v[0] == 1; };
  space->Decide("store_columns", "Columns of the tile that are staged at once.",
                IntegerValues({32, 64, 128, 256}), reads, staged);
  space->Decide("store_buffers",
                "Staging areas used in turn: 2 lets one be filled while the other leaves.",
                IntegerValues({1, 2}), reads, staged);
  space->Constrain(
      "store_columns", {"store", "tile_n", "store_columns"},
      [](Numbers v) { return v[0] == 0 || v[2] == 32 || v[2] / 2 < v[1]; },
      [](Numbers v) {
        return absl::StrCat("store_columns ", v[2], " is twice the ", v[1], " columns of a tile");
      });
}

void ConstrainSharedMemory(const WgmmaProblem& p, SpaceWriter* space) {
  struct Bytes {
    int64_t stage, staging, barriers;
  };
  auto bytes = [p](Numbers v) {
    const bool swap = v[0] == 1;
    const int64_t tile_m = v[2], tile_n = v[3], tile_k_bytes = v[4] * p.bytes;
    const int64_t consumers = ConsumerCount(v[1], v[9]);
    Bytes result;
    result.stage = OperandStageBytes(tile_m, p.rows_transposed(swap), tile_k_bytes) +
                   OperandStageBytes(tile_n, p.columns_transposed(swap), tile_k_bytes);
    result.staging = v[6] == 0   ? 0
                     : v[6] == 2 ? RowStagingBytes(consumers, tile_n, p.output_bytes)
                                 : StagingBytes(v[1] == 1 ? 2 * tile_m : tile_m, tile_n, v[7], v[8],
                                                p.output_bytes);
    result.barriers = BarrierBytes(v[5]);
    return result;
  };
  const int64_t limit = p.target.shared_memory_bytes;
  space->Constrain(
      "shared_memory",
      {"swap", "mode", "tile_m", "tile_n", "tile_k", "stages", "store", "store_columns",
       "store_buffers", "consumers"},
      [=](Numbers v) {
        const Bytes b = bytes(v);
        return v[5] * b.stage + b.staging + b.barriers <= limit;
      },
      [=](Numbers v) {
        const Bytes b = bytes(v);
        return absl::StrCat(v[5], " stages x ", b.stage, " B + ", b.staging, " B + ", b.barriers,
                            " B > ", limit, " B");
      });
}

}  // namespace

void WriteWgmmaSpace(const WgmmaProblem& problem, SpaceWriter* space) {
  DecideWgmmaTile(problem, space);
  ConstrainConsumers(problem, space);
  DecideWgmmaStore(problem, space);
  DecideWgmmaPipeline(problem, space);
  DecideWgmmaStreamK(problem, space);
  DecideWgmmaAhead(problem, space);
  ConstrainSharedMemory(problem, space);
}

}  // namespace tilewright
