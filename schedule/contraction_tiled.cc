#include "schedule/contraction_tiled.h"

#include <algorithm>
#include <functional>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewright {
namespace {

constexpr char kName[] = "contraction.tiled";
// Partial sums and packed copies may take this much, or four times the workload's own buffers if that is more.
constexpr int64_t kWorkspaceFloorBytes = int64_t{256} << 20;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// ---- What the space needs to know of workload and target ---------------------------------------------------------

// Everything at the highest sizes.
struct Problem {
  std::shared_ptr<const Contraction> contraction;
  Target target;
  int64_t batches, m, n, k;
  int bytes;  // of an accumulator
  int lanes;
  bool sums_in_output;
  int64_t workspace_limit;
};

Problem Study(const Workload& workload, const Target& target, std::shared_ptr<const Contraction> contraction) {
  const Contraction& c = *contraction;
  const Sizes high = workload.HighestSizes();
  Problem p;
  p.target = target;
  p.batches = c.Batches(high);
  p.m = c.m.Extent(high);
  p.n = c.n.Extent(high);
  p.k = c.K(high);
  p.bytes = Info(c.accumulator).bytes;
  p.lanes = std::max(1, target.vector_bits / (8 * p.bytes));
  // Vectors of the output are loaded and stored as they lie, so columns must be neighbours.
  p.sums_in_output = workload.layout(c.output).type == c.accumulator && c.output_column_stride.Is(1);
  int64_t buffers = 0;
  for (int tensor : workload.parameters()) buffers += workload.BufferBytes(tensor, high);
  for (int tensor : workload.outputs()) buffers += workload.BufferBytes(tensor, high);
  p.workspace_limit = std::max(kWorkspaceFloorBytes, 4 * buffers);
  p.contraction = std::move(contraction);
  return p;
}

// ---- Quantities: each a function of the decisions it names -------------------------------------------------------

// Accumulators, the vectors of b and one broadcast element of a.
int64_t VectorRegisters(int64_t micro_m, int64_t vectors_n) { return micro_m * vectors_n + vectors_n + 1; }

int64_t StripRows(int64_t extent, int64_t threads, int64_t strip) {
  return CeilDiv(CeilDiv(extent, strip), threads) * strip;
}

int64_t BatchesOf(const Contraction& c, const ContractionOperand& operand, absl::Span<const int64_t> sizes) {
  int64_t count = 1;
  for (int axis : operand.batch) count *= c.batch[axis].Extent(sizes);
  return count;
}

// Cycles of one step of k, and the share of them in which fused multiply-adds keep the pipes full. Two loads a cycle (Zen 2 and
// later, Haswell and later: Agner Fog, "The microarchitecture of Intel, AMD and VIA CPUs"); an accumulator waits 4 cycles for its
// last addition; six instructions a cycle are taken in.
double IssueEfficiency(const Target& target, int64_t micro_m, int64_t vectors_n, int64_t unroll_k) {
  const double fmas = static_cast<double>(micro_m * vectors_n);
  const double loads = static_cast<double>(micro_m + vectors_n);
  const double arithmetic = fmas / std::max(1, target.fma_per_cycle);
  const double front_end = (fmas + loads + 4.0 / static_cast<double>(unroll_k)) / 6;
  return arithmetic / std::max({arithmetic, loads / 2, 4.0, front_end});
}

// ---- The space ---------------------------------------------------------------------------------------------------

// Writes a definition in which decisions that have one value only do not appear; what reads them gets that value.
class SpaceWriter {
 public:
  SpaceWriter() { definition_.variant = kName; }

  void Decide(std::string name, std::string help, std::vector<DecisionValue> values,
              const std::vector<std::string>& depends_on = {}, const std::function<bool(Numbers)>& present = nullptr) {
    if (values.size() == 1) {
      fixed_[name] = values[0].number;
      return;
    }
    Decision decision;
    decision.name = std::move(name);
    decision.help = std::move(help);
    decision.values = std::move(values);
    if (present) {
      Reader reader = Resolve(depends_on);
      if (reader.names.empty()) {
        if (!present(reader.numbers)) {
          fixed_[decision.name] = kAbsent;
          return;
        }
      } else {
        decision.depends_on = reader.names;
        decision.present = [reader, present](Numbers given) { return present(reader.All(given)); };
      }
    }
    definition_.decisions.push_back(std::move(decision));
  }

  void Constrain(std::string name, const std::vector<std::string>& reads, const std::function<bool(Numbers)>& holds,
                 const std::function<std::string(Numbers)>& explain) {
    Reader reader = Resolve(reads);
    if (reader.names.empty()) return;  // nothing to choose
    definition_.constraints.push_back(
        {std::move(name), reader.names,
         [reader, holds](Numbers given, absl::Span<const int64_t>) { return holds(reader.All(given)); },
         [reader, explain](Numbers given, absl::Span<const int64_t>) { return explain(reader.All(given)); },
         {},
         {}});
  }

  const SpaceDefinition& definition() const { return definition_; }
  const std::map<std::string, int64_t>& fixed() const { return fixed_; }

 private:
  // Some of the numbers are given, the others known.
  struct Reader {
    std::vector<std::string> names;
    std::vector<int64_t> numbers;
    std::vector<size_t> given_at;
    std::vector<int64_t> All(Numbers given) const {
      std::vector<int64_t> all = numbers;
      for (size_t i = 0; i < given_at.size(); ++i) all[given_at[i]] = given[i];
      return all;
    }
  };
  Reader Resolve(const std::vector<std::string>& reads) const {
    Reader reader;
    for (const std::string& name : reads) {
      auto found = fixed_.find(name);
      if (found == fixed_.end()) {
        reader.given_at.push_back(reader.numbers.size());
        reader.names.push_back(name);
        reader.numbers.push_back(0);
      } else {
        reader.numbers.push_back(found->second);
      }
    }
    return reader;
  }

  SpaceDefinition definition_;
  std::map<std::string, int64_t> fixed_;
};

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

void DecideThreads(const Problem& p, SpaceWriter* space) {
  const int cores = p.target.cores;
  space->Decide("threads_batch", "Threads side by side along the batch. More loses when another role has work for all cores.",
                ThreadCounts(cores, p.batches));
  space->Decide("threads_n",
                "Threads side by side along n. Each packs its own b and, unless packing is shared, all of a.",
                ThreadCounts(cores, p.n));
  space->Decide("threads_m",
                "Threads side by side along m. Each packs its own a and, unless packing is shared, all of b.",
                ThreadCounts(cores, p.m));
  space->Constrain(
      "threads", {"threads_batch", "threads_n", "threads_m"},
      [cores](Numbers v) { return v[0] * v[1] * v[2] <= cores; },
      [cores](Numbers v) { return absl::StrCat("threads: ", v[0], " x ", v[1], " x ", v[2], " > ", cores, " cores"); });
}

void DecideMicroTile(const Problem& p, SpaceWriter* space) {
  space->Decide("micro_m",
                "Rows of the micro-tile held in registers (MR in BLIS). More reuses each vector of b oftener, until "
                "registers run out or rows are wasted on a short m.",
                Below({1, 2, 3, 4, 5, 6, 8, 10, 12, 14}, p.m + 1));
  std::vector<int64_t> vectors;
  for (int64_t v : {1, 2, 3, 4, 6, 8}) {
    if (v == 1 || (v - 1) * p.lanes < p.n) vectors.push_back(v);
  }
  space->Decide("vectors_n",
                "Vectors of columns of the micro-tile (NR / lanes in BLIS). More reuses each element of a oftener.",
                IntegerValues(vectors));
  const int registers = p.target.vector_registers;
  space->Constrain(
      "registers", {"micro_m", "vectors_n"},
      [registers](Numbers v) { return VectorRegisters(v[0], v[1]) <= registers; },
      [registers](Numbers v) {
        return absl::StrCat("registers: ", v[0], " x ", v[1], " accumulators + ", v[1], " + 1 > ", registers);
      });
  space->Decide("unroll_k", "Steps of k written out in the inner loop. More hides its counter, until code is large.",
                Below({1, 2, 4, 8}, p.k + 1));
}

void DecideTiles(const Problem& p, SpaceWriter* space) {
  const int64_t lanes = p.lanes, bytes = p.bytes, m = p.m, n = p.n;
  space->Decide("tile_k", "Steps of k in a block (KC in BLIS): how long a strip is. Too long leaves L1, too short moves sums.",
                Tiles({32, 64, 128, 192, 256, 320, 384, 512, 768, 1024, 2048}, p.k));
  const int64_t l2 = p.target.l2_bytes;
  space->Constrain(
      "strips", {"micro_m", "vectors_n", "tile_k"},
      // The shortest blocks are always legal, so that every target has a schedule.
      [=](Numbers v) { return v[2] <= 32 || (v[0] + v[1] * lanes) * v[2] * bytes <= l2; },
      [=](Numbers v) {
        return absl::StrCat("strips: (", v[0], " rows + ", v[1] * lanes, " columns) x ", v[2], " steps x ", bytes,
                            " B > ", l2, " B of L2");
      });
  space->Decide("tile_m", "Rows of a block (MC in BLIS), rounded up to whole micro-tiles; `all`: every row of a thread.",
                Tiles({12, 24, 48, 96, 144, 192, 288, 384, 576, 768, 1152, 2304}, m));
  space->Constrain(
      "tile_m", {"threads_m", "micro_m", "tile_m"},
      [=](Numbers v) { return v[2] == m || RoundUp(v[2], v[1]) < StripRows(m, v[0], v[1]); },
      [=](Numbers v) {
        return absl::StrCat("tile_m: ", v[2], " covers the ", StripRows(m, v[0], v[1]), " rows of a thread: say all");
      });
  space->Decide("tile_n", "Columns of a block (NC in BLIS), rounded up to whole micro-tiles; `all`: every column of a thread.",
                Tiles({32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096}, n));
  space->Constrain(
      "tile_n", {"threads_n", "vectors_n", "tile_n"},
      [=](Numbers v) { return v[2] == n || RoundUp(v[2], v[1] * lanes) < StripRows(n, v[0], v[1] * lanes); },
      [=](Numbers v) {
        return absl::StrCat("tile_n: ", v[2], " covers the ", StripRows(n, v[0], v[1] * lanes),
                            " columns of a thread: say all");
      });
}

void DecideLoops(const Problem& p, SpaceWriter* space) {
  const int64_t m = p.m, n = p.n, k = p.k, lanes = p.lanes, bytes = p.bytes;
  space->Decide("order", "Order of the loops over blocks, outermost first. The operand of the outer two is packed least often.",
                {{0, "nkm"}, {1, "mkn"}, {2, "nmk"}}, {"tile_m", "tile_n", "tile_k"},
                [=](Numbers v) { return int{v[0] != m} + int{v[1] != n} + int{v[2] != k} >= 2; });
  space->Decide("inner", "Which strips run fastest inside a block: the other operand's strip stays in L1 meanwhile.",
                {{0, "m"}, {1, "n"}}, {"micro_m", "vectors_n", "tile_m", "tile_n"},
                [=](Numbers v) { return v[2] > v[0] && v[3] > v[1] * lanes; });
  // The block whose strips run fastest is read once per strip of the other: from L2 if it fits, at worst from L3.
  const int64_t cache = std::max(p.target.l3_bytes, 4 * p.target.l2_bytes);
  space->Constrain(
      "block", {"tile_k", "tile_m", "tile_n", "inner"},
      [=](Numbers v) {
        const int64_t rows = v[3] == kAbsent ? std::min(v[1], v[2]) : v[3] == 0 ? v[1] : v[2];
        return rows <= 32 || v[0] * rows * bytes <= cache;
      },
      [=](Numbers v) {
        const int64_t rows = v[3] == kAbsent ? std::min(v[1], v[2]) : v[3] == 0 ? v[1] : v[2];
        return absl::StrCat("block: ", rows, " x ", v[0], " steps x ", bytes, " B > ", cache, " B of cache");
      });
}

int64_t SharedBytes(const Problem& p, const ContractionOperand& operand, int64_t extent, int64_t strip, absl::Span<const int64_t> high) {
  return BatchesOf(*p.contraction, operand, high) * RoundUp(extent, strip) * p.k * p.bytes;
}

void DecidePacking(const Problem& p, const Workload& workload, SpaceWriter* space) {
  const Contraction& c = *p.contraction;
  auto values = [](bool in_place) {
    std::vector<DecisionValue> all = {{0, "none"}, {1, "private"}, {2, "shared"}};
    if (!in_place) all.erase(all.begin());
    return all;
  };
  space->Decide("pack_a", "Copies a to strips: none reads it in place, private per thread and block, shared once before.",
                values(c.a.plain));
  space->Decide("pack_b", "Copies b to strips: none reads it in place, private per thread and block, shared once before.",
                values(c.b.plain && c.b.row_stride.Is(1)));
  const Sizes high = workload.HighestSizes();
  const int64_t lanes = p.lanes, limit = p.workspace_limit;
  auto bytes = [p, high, lanes](Numbers v) {
    int64_t total = 0;
    if (v[2] == 2) total += SharedBytes(p, p.contraction->a, p.m, v[0], high);
    if (v[3] == 2) total += SharedBytes(p, p.contraction->b, p.n, v[1] * lanes, high);
    return total;
  };
  space->Constrain(
      "shared_packing", {"micro_m", "vectors_n", "pack_a", "pack_b"}, [=](Numbers v) { return bytes(v) <= limit; },
      [=](Numbers v) { return absl::StrCat("shared_packing: ", bytes(v), " B > ", limit, " B"); });
  if (p.sums_in_output) return;
  // Partial sums in the workspace: for nkm the rows of a thread are all under way at once, for mkn its columns.
  const int64_t m = p.m, n = p.n, k = p.k, element = p.bytes;
  auto sums = [=](Numbers v) {
    if (v[4] == k) return int64_t{0};
    const int64_t rows = v[5] == 0 ? StripRows(m, v[1], v[2]) : std::min(RoundUp(v[6], v[2]), StripRows(m, v[1], v[2]));
    const int64_t columns = v[5] == 1 ? StripRows(n, v[0], v[3] * lanes)
                                      : std::min(RoundUp(v[7], v[3] * lanes), StripRows(n, v[0], v[3] * lanes));
    return rows * columns * element * v[0] * v[1];
  };
  space->Constrain(
      "partial_sums", {"threads_n", "threads_m", "micro_m", "vectors_n", "tile_k", "order", "tile_m", "tile_n"},
      [=](Numbers v) { return sums(v) <= limit; },
      [=](Numbers v) { return absl::StrCat("partial_sums: ", sums(v), " B > ", limit, " B"); });
}

// ---- What is asked again and again for one workload and target ---------------------------------------------------

struct Prepared {
  std::string workload;
  Target target;
  Problem problem;
  SpaceWriter space;
};

// The last one is kept: a search asks for thousands of plans of one workload.
absl::StatusOr<std::shared_ptr<const Prepared>> Prepare(const Workload& workload, const Target& target) {
  thread_local std::shared_ptr<const Prepared> last;
  if (last != nullptr && last->workload == workload.canonical_text() && last->target == target) return last;
  absl::StatusOr<Contraction> contraction = MatchContraction(workload);
  if (!contraction.ok()) return contraction.status();
  auto prepared = std::make_shared<Prepared>();
  prepared->workload = workload.canonical_text();
  prepared->target = target;
  prepared->problem = Study(workload, target, std::make_shared<const Contraction>(*std::move(contraction)));
  DecideThreads(prepared->problem, &prepared->space);
  DecideMicroTile(prepared->problem, &prepared->space);
  DecideTiles(prepared->problem, &prepared->space);
  DecideLoops(prepared->problem, &prepared->space);
  DecidePacking(prepared->problem, workload, &prepared->space);
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

// ---- The plan ----------------------------------------------------------------------------------------------------

std::map<std::string, int64_t> ByName(const SpaceWriter& space, absl::Span<const int64_t> numbers) {
  std::map<std::string, int64_t> values = space.fixed();
  const std::vector<Decision>& decisions = space.definition().decisions;
  for (size_t i = 0; i < decisions.size(); ++i) values[decisions[i].name] = numbers[i];
  return values;
}

void FillDecisions(const Problem& p, std::map<std::string, int64_t> values, ContractionTiledPlan* plan) {
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
  plan->tile_m = std::min(RoundUp(values["tile_m"], plan->micro_m), StripRows(p.m, plan->threads_m, plan->micro_m));
  plan->tile_n = std::min(RoundUp(values["tile_n"], plan->micro_n()), StripRows(p.n, plan->threads_n, plan->micro_n()));
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
void MapWorkspace(const Problem& p, const Workload& workload, ContractionTiledPlan* plan) {
  const Sizes high = workload.HighestSizes();
  int64_t offset = 0;
  auto take = [](int64_t* at, int64_t bytes) {
    const int64_t begin = *at;
    *at = RoundUp(begin + bytes, 64);
    return begin;
  };
  if (plan->pack_a == Packing::kShared) {
    plan->shared_a_offset = take(&offset, SharedBytes(p, p.contraction->a, p.m, plan->micro_m, high));
  }
  if (plan->pack_b == Packing::kShared) {
    plan->shared_b_offset = take(&offset, SharedBytes(p, p.contraction->b, p.n, plan->micro_n(), high));
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
    const int64_t rows =
        plan->order == BlockOrder::kNKM ? StripRows(p.m, plan->threads_m, plan->micro_m) : plan->tile_m;
    plan->c_block_columns =
        plan->order == BlockOrder::kMKN ? StripRows(p.n, plan->threads_n, plan->micro_n()) : plan->tile_n;
    plan->c_block_offset = take(&own, rows * plan->c_block_columns * p.bytes);
  }
  // Threads start on pages of their own: they never share a line, and a page lies with the core that writes it first.
  plan->thread_bytes = own == 0 ? 0 : RoundUp(own, 4096);
  plan->workspace_bytes = offset + plan->thread_bytes * plan->threads;
}

// Bytes and operations, at `sizes`.
void CountTraffic(const Problem& p, const Workload& workload, absl::Span<const int64_t> sizes,
                  ContractionTiledPlan* plan) {
  const Contraction& c = *p.contraction;
  const double m = static_cast<double>(c.m.Extent(sizes)), n = static_cast<double>(c.n.Extent(sizes));
  const double k = static_cast<double>(c.K(sizes)), batches = static_cast<double>(c.Batches(sizes));
  const double mr = plan->micro_m, nr = static_cast<double>(plan->micro_n()), b = p.bytes;
  const double strips_m = std::ceil(m / mr), strips_n = std::ceil(n / nr);
  const double own_m = std::ceil(strips_m / plan->threads_m), own_n = std::ceil(strips_n / plan->threads_n);
  const double own_batches = std::ceil(batches / plan->threads_batch);
  const double tiles = batches * strips_m * strips_n;
  const double blocks_m = std::ceil(own_m * mr / static_cast<double>(plan->tile_m));
  const double blocks_n = std::ceil(own_n * nr / static_cast<double>(plan->tile_n));
  const double blocks_k = std::ceil(k / static_cast<double>(plan->tile_k));
  const double useful = 2 * batches * m * n * k;
  plan->operations = 2 * tiles * mr * nr * k + std::max(0.0, workload.Operations(sizes) - useful);
  plan->balance = tiles / (plan->threads * own_batches * own_m * own_n);
  plan->issue_efficiency = IssueEfficiency(p.target, plan->micro_m, plan->vectors_n, plan->unroll_k);

  // Elements copied into strips, over all threads.
  const double repeats_a = plan->order == BlockOrder::kMKN ? 1 : blocks_n;
  const double repeats_b = plan->order == BlockOrder::kNKM ? 1 : blocks_m;
  auto copied = [&](Packing packing, const ContractionOperand& operand, double own, double all, double repeats) {
    if (packing == Packing::kNone) return 0.0;
    if (packing == Packing::kShared) return static_cast<double>(BatchesOf(c, operand, sizes)) * all * k;
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
  plan->l2_bytes = tiles * k * (fits_l1 ? streamed : mr + nr) * b + resident_reads + sums + pack_bytes;
  const double block_rows = static_cast<double>(plan->inner_m ? plan->tile_m : plan->tile_n);
  const double block_bytes = block_rows * kc * b;
  const bool fits_l2 = block_bytes <= 0.75 * static_cast<double>(p.target.l2_bytes);
  const double block_reads = (plan->inner_m ? strips_m * mr * blocks_n * plan->threads_n
                                            : strips_n * nr * blocks_m * plan->threads_m) *
                             batches * k * b;
  plan->l3_bytes = (fits_l2 ? block_reads : tiles * k * streamed * b) + resident_reads + sums + pack_bytes;
  const double compulsory = workload.CompulsoryBytes(sizes);
  const bool leaves_l3 = compulsory + pack_bytes > 2 * static_cast<double>(p.target.l3_bytes);
  plan->memory_bytes = compulsory + (leaves_l3 ? pack_bytes + (sums - tiles * mr * nr * b) : 0.0);

  const double panel_a = static_cast<double>(plan->tile_m) * kc * b, panel_b = static_cast<double>(plan->tile_n) * kc * b;
  const double step = mr * plan->vectors_n + mr + plan->vectors_n;
  plan->quantities = {
      {"padding", "", plan->operations / std::max(1.0, workload.Operations(sizes))},
      {"accumulators", "register", mr * plan->vectors_n},
      {"vector_registers", "register", static_cast<double>(VectorRegisters(plan->micro_m, plan->vectors_n))},
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
       p.target.l3_bytes == 0 ? 0 : (panel_a + panel_b) * plan->threads / static_cast<double>(p.target.l3_bytes)},
      {"blocks_m", "", blocks_m},
      {"blocks_n", "", blocks_n},
      {"blocks_k", "", blocks_k},
      {"micro_code", "instruction", step * (plan->unroll_k + (plan->unroll_k > 1 ? 1 : 0))},
      {"launches", "", plan->pack_a == Packing::kShared || plan->pack_b == Packing::kShared ? 2.0 : 1.0},
  };
}

std::unique_ptr<Plan> MakePlan(const Workload& workload, const Target& target, absl::Span<const int64_t> numbers,
                               absl::Span<const int64_t> sizes) {
  std::shared_ptr<const Prepared> prepared = *Prepare(workload, target);
  auto plan = std::make_unique<ContractionTiledPlan>();
  FillDecisions(prepared->problem, ByName(prepared->space, numbers), plan.get());
  MapWorkspace(prepared->problem, workload, plan.get());
  CountTraffic(prepared->problem, workload, sizes, plan.get());
  return plan;
}

// ---- The default -------------------------------------------------------------------------------------------------

// The micro-tile that takes the fewest cycles for the whole output, padding included.
std::pair<int64_t, int64_t> BestMicroTile(const Problem& p, const Decision* micro_m, const Decision* vectors_n) {
  const std::vector<DecisionValue> one = {{1, "1"}};
  std::pair<int64_t, int64_t> best = {1, 1};
  double least = -1;
  for (const DecisionValue& rows : micro_m != nullptr ? micro_m->values : one) {
    for (const DecisionValue& vectors : vectors_n != nullptr ? vectors_n->values : one) {
      const int64_t mr = rows.number, nv = vectors.number;
      if (VectorRegisters(mr, nv) > p.target.vector_registers) continue;
      const double tiles = static_cast<double>(CeilDiv(p.m, mr) * CeilDiv(p.n, nv * p.lanes));
      const double cycles = tiles * static_cast<double>(mr * nv) / IssueEfficiency(p.target, mr, nv, 4) *
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
  const Problem& p = prepared->problem;
  const Contraction& c = *p.contraction;
  const SpaceDefinition& definition = prepared->space.definition();
  auto [micro_m, vectors_n] = BestMicroTile(p, FindDecision(definition, "micro_m"), FindDecision(definition, "vectors_n"));
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
  const int64_t own_l3 = std::max(target.l3_bytes / std::max<int64_t>(1, cores), target.l2_bytes) / 2;
  std::map<std::string, int64_t> wanted = {
      {"threads_batch", threads_batch}, {"threads_m", threads_m}, {"threads_n", threads_n}, {"micro_m", micro_m},
      {"vectors_n", vectors_n},         {"unroll_k", 4},          {"tile_k", tile_k},
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
      const int64_t own = is_m ? StripRows(p.m, chosen.at("threads_m"), micro_m) : StripRows(p.n, chosen.at("threads_n"), micro_n);
      const int64_t strip = is_m ? micro_m : micro_n;
      value = own <= room ? &decision.values.back() : &AtMost(decision, std::max<int64_t>(room, 1));
      if (RoundUp(value->number, strip) >= own) value = &decision.values.back();
    } else if (decision.name == "order") {
      value = &decision.values[p.sums_in_output ? 0 : 2];
    } else if (decision.name == "inner") {
      value = &decision.values[0];
    } else {
      // Few rows do not repay copying b; else private copies, or one shared copy where every batch would repeat it.
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
