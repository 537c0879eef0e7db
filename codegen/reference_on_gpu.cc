// The reference kernel on a GPU: f64 accumulators, and the error bound E beside each value.
//
// One launch per statement, which goes through its points in one of three ways:
//   tiles   a sum of products of two exact tensors with enough rows and columns: a block takes 64 x
//   64
//           outputs at a time, operands pass through shared memory, each thread has 4 x 4 sums
//   teams   the reads are adjacent along a summed index: a warp, or a block where points are few,
//           takes a point and its threads take the terms in turn
//   points  a thread takes a point; neighbouring threads differ in the index along which most reads
//           are adjacent
#include "codegen/reference_on_gpu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/convert.h"
#include "codegen/reference_emitter.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "schedule/match_pointwise.h"

namespace tilewright {
namespace {

using llvm::Value;

constexpr int kBlock = 256;
constexpr int kWarp = 32;
constexpr int kWarps = kBlock / kWarp;
// Blocks that an SM has room for at the registers these kernels take.
constexpr int kBlocksPerCore = 4;

// Tiles: 16 x 16 threads, each with every sixteenth of 64 rows and of 64 columns.
constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kGrid = 16;
constexpr int kOwn = kTile / kGrid;
// f64 elements from one depth to the next: an odd number of them, so that threads that store
// neighbouring depths use different banks.
constexpr int kPitch = kTile + 1;
constexpr int64_t kOperandElements = int64_t{kDepth} * kPitch;
constexpr int64_t kTileElements = int64_t{kTile} * kTile;

// A statement's sum as a matrix product: out[batch, rows, columns] = sum over depth of a * b.
struct TiledSum {
  const Expr* reduce = nullptr;
  const Expr* a = nullptr;
  const Expr* b = nullptr;
  std::vector<int> batch;
  std::vector<int> rows;     // output indices of a only
  std::vector<int> columns;  // output indices of b only
};

double Count(const Workload& workload, absl::Span<const int> indices) {
  double count = 1;
  for (int index : indices) count *= static_cast<double>(workload.sizes()[index].high);
  return count;
}

std::vector<int> IndicesIn(const Expr& expr) {
  std::vector<int> found;
  Walk(expr, [&](const Expr& e) {
    for (const AffineIndex& subscript : e.subscripts) subscript.CollectIndices(&found);
    e.index_value.CollectIndices(&found);
  });
  return found;
}

bool Contains(absl::Span<const int> list, int index) {
  return std::find(list.begin(), list.end(), index) != list.end();
}

class GpuReference : public ReferenceEmitter {
 public:
  GpuReference(KernelModule& module, double u_acc) : ReferenceEmitter(module, u_acc) {}

  void Write() {
    for (const Statement& statement : workload_.program().statements) {
      tiled_.reset();
      team_ = 1;
      if (std::optional<TiledSum> sum = FindTiledSum(statement)) {
        WriteTiles(statement, *sum);
      } else {
        WritePoints(statement);
      }
    }
  }

 private:
  // ---- Points and teams

  void WritePoints(const Statement& statement) {
    const ReferenceLanes lanes = ChooseReferenceLanes(workload_, statement);
    const double points = Count(workload_, statement.indices);
    const double blocks_held = static_cast<double>(m_.target().cores) * kBlocksPerCore;
    if (lanes.index >= 0 && lanes.reduced) {
      team_index_ = lanes.index;
      team_ = points < blocks_held ? kBlock : kWarp;
    } else if (points * 4 < blocks_held && LongestReduced(statement) >= 0) {
      // Adjacent or not: threads without a point would have nothing to do.
      team_index_ = LongestReduced(statement);
      team_ = kBlock;
    }
    std::vector<int> order = statement.indices;
    if (lanes.index >= 0 && !lanes.reduced) {
      std::erase(order, lanes.index);
      order.push_back(lanes.index);
    }
    const DeviceLaunch launch = LaunchOf(points * team_ / kBlock, blocks_held, team_ == kBlock);
    const KernelModule::DeviceEntry entry =
        m_.BeginDeviceEntry(launch, {}, static_cast<int>(workload_.outputs().size()));
    shared_ = entry.shared;
    BeginStatement(entry);
    auto at = [&](Value* point) {
      EmitContext context = NewContext();
      SetIndicesFromPosition(m_, entry, order, point, &context);
      Store(statement, context);  // by all threads of a team: the same values
    };
    Value* count = PointCount(m_, entry, order);
    if (team_ == 1) {
      ForGridStride(m_, launch, count, at);
    } else {
      auto& b = m_.builder();
      Value* block = b.CreateZExt(m_.BlockInGrid(), b.getInt64Ty());
      Value* thread = b.CreateZExt(m_.ThreadInBlock(), b.getInt64Ty());
      const int teams = kBlock / team_;
      lane_ = b.CreateURem(thread, m_.Int(team_));
      Value* first =
          b.CreateNSWAdd(b.CreateNSWMul(block, m_.Int(teams)), b.CreateUDiv(thread, m_.Int(team_)));
      m_.For(first, count, int64_t{launch.grid[0]} * teams, "mine", at);
    }
    m_.EndEntry();
  }

  DeviceLaunch LaunchOf(double blocks, double most, bool exchanges) const {
    DeviceLaunch launch;
    launch.grid[0] = static_cast<int>(std::max(1.0, std::min(std::ceil(blocks), most)));
    launch.block = kBlock;
    if (exchanges) launch.shared_memory_bytes = kWarps * sizeof(double);
    return launch;
  }

  int LongestReduced(const Statement& statement) const {
    int longest = -1;
    Walk(*statement.value, [&](const Expr& e) {
      for (int index : e.reduce_indices) {
        const int64_t size = workload_.sizes()[index].high;
        if (size >= kBlock && (longest < 0 || size > workload_.sizes()[longest].high))
          longest = index;
      }
    });
    return longest;
  }

  Bounded Reduce(const Expr& reduce, const EmitContext& context) override {
    if (tiled_.has_value() && &reduce == tiled_reduce_) return *tiled_;
    auto& b = m_.builder();
    const bool rounds = AccumulatorRoundoff(reduce) > 0;
    const Totals totals = NewTotals(reduce.reduce, 1);
    TermKind kind;
    EmitContext inner = context;
    std::vector<int> indices = reduce.reduce_indices;
    const bool by_team = team_ > 1 && Contains(indices, team_index_);
    if (by_team) std::erase(indices, team_index_);
    ForEach(m_, *entry_, indices, &inner, [&] {
      if (!by_team) {
        kind = AddTerm(reduce, inner, totals, rounds);
        return;
      }
      m_.For(lane_, entry_->sizes[team_index_], team_, "mine", [&](Value* i) {
        inner.index_values[team_index_] = i;
        kind = AddTerm(reduce, inner, totals, rounds);
      });
    });
    auto total = [&](llvm::AllocaInst* slot, ReduceOp op, bool needed) {
      Value* value = b.CreateLoad(slot->getAllocatedType(), slot);
      return by_team && needed ? OfTeam(value, op) : value;
    };
    const bool sums = reduce.reduce == ReduceOp::kSum;
    return Finish(reduce,
                  {total(totals.value, reduce.reduce, true),
                   total(totals.magnitude, ReduceOp::kSum, sums && (rounds || kind.relative > 0)),
                   total(totals.error, sums ? ReduceOp::kSum : ReduceOp::kMax, kind.error)},
                  kind);
  }

  // One number of all threads of a team, in each of them.
  Value* OfTeam(Value* value, ReduceOp op) {
    auto& b = m_.builder();
    for (int distance = kWarp / 2; distance >= 1; distance /= 2)
      value = EmitReduceStep(m_, op, value, FromLane(value, distance));
    if (team_ == kWarp) return value;
    Value* warp = b.CreateUDiv(lane_, m_.Int(kWarp));
    m_.Barrier();  // what was exchanged before has been read
    m_.StoreElements(ElementType::kF64, value, shared_, warp, 1);
    m_.Barrier();
    Value* all = nullptr;
    for (int i = 0; i < kWarps; ++i) {
      Value* one = m_.LoadElements(ElementType::kF64, shared_, m_.Int(i), 1, ElementType::kF64);
      all = all == nullptr ? one : EmitReduceStep(m_, op, all, one);
    }
    return all;
  }

  // The value in the lane whose number differs by `distance`, a power of two.
  Value* FromLane(Value* value, int distance) {
    auto& b = m_.builder();
    Value* bits = b.CreateBitCast(value, llvm::FixedVectorType::get(b.getInt32Ty(), 2));
    for (uint64_t half = 0; half < 2; ++half) {
      Value* moved =
          b.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
                            {b.getInt32(0xffffffffu), b.CreateExtractElement(bits, half),
                             b.getInt32(static_cast<uint32_t>(distance)), b.getInt32(kWarp - 1)});
      bits = b.CreateInsertElement(bits, moved, half);
    }
    return b.CreateBitCast(bits, b.getDoubleTy());
  }

  // ---- Tiles

  // A read of exact elements; a cast of one is a factor that only rounds relatively.
  bool IsExactFactor(const Expr& expr, ElementType compute) const {
    if (expr.kind == Expr::Kind::kRead) return IsExact(expr.tensor);
    const bool rounds = expr.kind == Expr::Kind::kCall &&
                        ((expr.function == Function::kCast && Info(expr.cast_type).is_float) ||
                         expr.function == Function::kTf32);
    if (!rounds || expr.operands[0]->kind != Expr::Kind::kRead) return false;
    const Expr& read = *expr.operands[0];
    return IsExact(read.tensor) && ValueType(workload_, read.tensor) == compute;
  }

  std::optional<TiledSum> FindTiledSum(const Statement& statement) const {
    TiledSum sum;
    int reductions = 0;
    Walk(*statement.value, [&](const Expr& e) {
      if (e.kind != Expr::Kind::kReduce) return;
      ++reductions;
      sum.reduce = &e;
    });
    if (reductions != 1 || sum.reduce->reduce != ReduceOp::kSum) return std::nullopt;
    const Expr& term = *sum.reduce->operands[0];
    if (term.kind != Expr::Kind::kCall || term.function != Function::kMul ||
        term.operands.size() != 2)
      return std::nullopt;
    const ElementType compute = ComputeType(workload_, term);
    for (const ExprPtr& factor : term.operands) {
      if (!IsExactFactor(*factor, compute)) return std::nullopt;
    }
    sum.a = term.operands[0].get();
    sum.b = term.operands[1].get();
    // The output's last index runs along columns, so that stores are adjacent.
    if (!statement.indices.empty() && Contains(IndicesIn(*sum.a), statement.indices.back()))
      std::swap(sum.a, sum.b);
    const std::vector<int> of_a = IndicesIn(*sum.a);
    const std::vector<int> of_b = IndicesIn(*sum.b);
    for (int index : statement.indices) {
      const bool in_a = Contains(of_a, index), in_b = Contains(of_b, index);
      (in_a == in_b ? sum.batch : in_a ? sum.rows : sum.columns).push_back(index);
    }
    constexpr double kLeast = 16;  // rows and columns worth a tile
    if (Count(workload_, sum.rows) < kLeast || Count(workload_, sum.columns) < kLeast)
      return std::nullopt;
    return sum;
  }

  void WriteTiles(const Statement& statement, const TiledSum& sum) {
    auto& b = m_.builder();
    DeviceLaunch launch;
    launch.block = kBlock;
    launch.minimum_blocks = 2;
    launch.shared_memory_bytes =
        std::max(2 * kOperandElements, 2 * kTileElements) * static_cast<int64_t>(sizeof(double));
    const double tiles = Count(workload_, sum.batch) *
                         std::ceil(Count(workload_, sum.rows) / kTile) *
                         std::ceil(Count(workload_, sum.columns) / kTile);
    launch.grid[0] = static_cast<int>(
        std::min(tiles, static_cast<double>(m_.target().cores) * launch.minimum_blocks));
    const KernelModule::DeviceEntry entry =
        m_.BeginDeviceEntry(launch, {}, static_cast<int>(workload_.outputs().size()));
    shared_ = entry.shared;
    BeginStatement(entry);
    thread_ = b.CreateZExt(m_.ThreadInBlock(), b.getInt64Ty());
    rows_ = PointCount(m_, entry, sum.rows);
    columns_ = PointCount(m_, entry, sum.columns);
    Value* tiles_down = m_.CeilDiv(rows_, kTile);
    Value* tiles_across = m_.CeilDiv(columns_, kTile);
    Value* per_batch = b.CreateNSWMul(tiles_down, tiles_across);
    Value* all = b.CreateNSWMul(PointCount(m_, entry, sum.batch), per_batch);
    Value* block = b.CreateZExt(m_.BlockInGrid(), b.getInt64Ty());
    m_.For(block, all, launch.grid[0], "tile", [&](Value* tile) {
      EmitContext context = NewContext();
      Value* batch = b.CreateUDiv(tile, per_batch);
      Value* rest = b.CreateURem(tile, per_batch);
      SetIndicesFromPosition(m_, entry, sum.batch, batch, &context);
      Value* row = b.CreateNSWMul(b.CreateUDiv(rest, tiles_across), m_.Int(kTile));
      Value* column = b.CreateNSWMul(b.CreateURem(rest, tiles_across), m_.Int(kTile));
      const TermKind kind = SumTile(sum, context, row, column);
      FinishTile(statement, sum, context, row, column, kind);
    });
    m_.EndEntry();
  }

  // Brings 64 positions of `indices` from `first` at 16 depths from `depth` to shared memory, 0
  // where there are none. Threads run along whichever of the two the factor is adjacent in.
  Bounded Stage(const Expr& factor, const TiledSum& sum, const EmitContext& context,
                const std::vector<int>& indices, Value* first, Value* extent, Value* depth,
                Value* depths, int64_t offset) {
    auto& b = m_.builder();
    const int last = sum.reduce->reduce_indices.back();
    bool along_depth = false;
    Walk(factor, [&](const Expr& e) {
      if (e.kind != Expr::Kind::kRead) return;
      const auto stride = FixedStride(workload_, e.tensor, e.subscripts, last);
      along_depth = stride.has_value() && *stride == 1;
    });
    Bounded element;
    const ElementType compute = ComputeType(workload_, *sum.reduce->operands[0]);
    for (int i = 0; i < kTile * kDepth / kBlock; ++i) {
      Value* k = along_depth ? b.CreateURem(thread_, m_.Int(kDepth))
                             : b.CreateNSWAdd(b.CreateUDiv(thread_, m_.Int(kTile)),
                                              m_.Int(int64_t{i} * (kBlock / kTile)));
      Value* row = along_depth ? b.CreateNSWAdd(b.CreateUDiv(thread_, m_.Int(kDepth)),
                                                m_.Int(int64_t{i} * (kBlock / kDepth)))
                               : b.CreateURem(thread_, m_.Int(kTile));
      llvm::AllocaInst* slot = m_.Local(b.getDoubleTy(), "element");
      b.CreateStore(ComputeConstant(m_, ElementType::kF64, 1, 0), slot);
      Value* position = b.CreateNSWAdd(first, row);
      Value* at_depth = b.CreateNSWAdd(depth, k);
      Value* there =
          b.CreateAnd(b.CreateICmpSLT(position, extent), b.CreateICmpSLT(at_depth, depths));
      m_.If(there, [&] {
        EmitContext inner = context;
        SetIndicesFromPosition(m_, *entry_, indices, position, &inner);
        SetIndicesFromPosition(m_, *entry_, sum.reduce->reduce_indices, at_depth, &inner);
        element = EvaluateIn(factor, compute, inner);
        b.CreateStore(element.value, slot);
      });
      Value* to =
          b.CreateNSWAdd(b.CreateNSWMul(k, m_.Int(kPitch)), b.CreateNSWAdd(row, m_.Int(offset)));
      m_.StoreElements(ElementType::kF64, b.CreateLoad(b.getDoubleTy(), slot), shared_, to, 1);
    }
    return element;
  }

  // The sums of a tile, and of the terms' magnitudes, to shared memory: 64 x 64 each.
  TermKind SumTile(const TiledSum& sum, const EmitContext& context, Value* row, Value* column) {
    auto& b = m_.builder();
    const bool rounds = AccumulatorRoundoff(*sum.reduce) > 0;
    Value* own_row = b.CreateUDiv(thread_, m_.Int(kGrid));
    Value* own_column = b.CreateURem(thread_, m_.Int(kGrid));
    std::array<llvm::AllocaInst*, kOwn * kOwn> sums, magnitudes;
    Value* zero = ComputeConstant(m_, ElementType::kF64, 1, 0);
    for (int i = 0; i < kOwn * kOwn; ++i) {
      sums[i] = m_.Local(b.getDoubleTy(), "sum");
      magnitudes[i] = m_.Local(b.getDoubleTy(), "magnitude");
      b.CreateStore(zero, sums[i]);
      b.CreateStore(zero, magnitudes[i]);
    }
    TermKind kind;
    Value* depths = PointCount(m_, *entry_, sum.reduce->reduce_indices);
    m_.For(m_.Int(0), depths, kDepth, "depth", [&](Value* depth) {
      m_.Barrier();  // the last round, or the last tile's sums, have been read
      const Bounded a = Stage(*sum.a, sum, context, sum.rows, row, rows_, depth, depths, 0);
      const Bounded c = Stage(*sum.b, sum, context, sum.columns, column, columns_, depth, depths,
                              kOperandElements);
      const ElementType compute = ComputeType(workload_, *sum.reduce->operands[0]);
      kind.relative =
          BoundEmitter::RelativeOfProduct(a.relative, c.relative, Info(compute).unit_roundoff);
      m_.Barrier();
      m_.For(
          m_.Int(0), m_.Int(kDepth), 1, "step",
          [&](Value* k) {
            AddProducts(k, own_row, own_column, rounds || kind.relative > 0, sums, magnitudes);
          },
          /*unroll=*/4);
    });
    m_.Barrier();
    for (int i = 0; i < kOwn; ++i) {
      for (int j = 0; j < kOwn; ++j) {
        Value* y = b.CreateNSWAdd(own_row, m_.Int(i * kGrid));
        Value* x = b.CreateNSWAdd(own_column, m_.Int(j * kGrid));
        Value* at = b.CreateNSWAdd(b.CreateNSWMul(y, m_.Int(kTile)), x);
        m_.StoreElements(ElementType::kF64, b.CreateLoad(b.getDoubleTy(), sums[i * kOwn + j]),
                         shared_, at, 1);
        m_.StoreElements(ElementType::kF64, b.CreateLoad(b.getDoubleTy(), magnitudes[i * kOwn + j]),
                         shared_, b.CreateNSWAdd(at, m_.Int(kTileElements)), 1);
      }
    }
    m_.Barrier();
    return kind;
  }

  void AddProducts(Value* k, Value* own_row, Value* own_column, bool magnitude,
                   const std::array<llvm::AllocaInst*, kOwn * kOwn>& sums,
                   const std::array<llvm::AllocaInst*, kOwn * kOwn>& magnitudes) {
    auto& b = m_.builder();
    auto load = [&](Value* own, int i, int64_t offset) {
      Value* at = b.CreateNSWAdd(b.CreateNSWMul(k, m_.Int(kPitch)),
                                 b.CreateNSWAdd(own, m_.Int(offset + int64_t{i} * kGrid)));
      return m_.LoadElements(ElementType::kF64, shared_, at, 1, ElementType::kF64);
    };
    auto add = [&](llvm::AllocaInst* slot, Value* x, Value* y) {
      Value* before = b.CreateLoad(b.getDoubleTy(), slot);
      b.CreateStore(b.CreateIntrinsic(llvm::Intrinsic::fma, {b.getDoubleTy()}, {x, y, before}),
                    slot);
    };
    auto size = [&](Value* x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
    std::array<Value*, kOwn> rows, columns;
    for (int i = 0; i < kOwn; ++i) {
      rows[i] = load(own_row, i, 0);
      columns[i] = load(own_column, i, kOperandElements);
    }
    for (int i = 0; i < kOwn; ++i) {
      for (int j = 0; j < kOwn; ++j) {
        add(sums[i * kOwn + j], rows[i], columns[j]);
        if (magnitude) add(magnitudes[i * kOwn + j], size(rows[i]), size(columns[j]));
      }
    }
  }

  // Evaluates the statement at the tile's points, from the sums in shared memory.
  void FinishTile(const Statement& statement, const TiledSum& sum, const EmitContext& context,
                  Value* row, Value* column, const TermKind& kind) {
    auto& b = m_.builder();
    tiled_reduce_ = sum.reduce;
    m_.For(thread_, m_.Int(kTileElements), kBlock, "point", [&](Value* at) {
      Value* y = b.CreateNSWAdd(row, b.CreateUDiv(at, m_.Int(kTile)));
      Value* x = b.CreateNSWAdd(column, b.CreateURem(at, m_.Int(kTile)));
      m_.If(b.CreateAnd(b.CreateICmpSLT(y, rows_), b.CreateICmpSLT(x, columns_)), [&] {
        EmitContext inner = context;
        SetIndicesFromPosition(m_, *entry_, sum.rows, y, &inner);
        SetIndicesFromPosition(m_, *entry_, sum.columns, x, &inner);
        auto value = [&](int64_t offset) {
          return m_.LoadElements(ElementType::kF64, shared_, b.CreateNSWAdd(at, m_.Int(offset)), 1,
                                 ElementType::kF64);
        };
        tiled_ = Finish(*sum.reduce, {value(0), value(kTileElements), nullptr}, kind);
        Store(statement, inner);
      });
    });
    tiled_.reset();
  }

  // Of the statement being written.
  Value* shared_ = nullptr;
  int team_ = 1;         // threads that share a point
  int team_index_ = -1;  // the reduced index whose positions they take in turn
  Value* lane_ = nullptr;
  Value* thread_ = nullptr;
  Value* rows_ = nullptr;
  Value* columns_ = nullptr;
  // The sum of the point being finished, in tiles.
  const Expr* tiled_reduce_ = nullptr;
  std::optional<Bounded> tiled_;
};

}  // namespace

void WriteReferenceOnGpu(KernelModule* module, double u_acc) {
  module->AllowSpills();
  GpuReference(*module, u_acc).Write();
}

}  // namespace tilewright
