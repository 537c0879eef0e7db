// The loops of pointwise.vectorised:
//
//   for each tile of this thread                     (outer axes x row tiles x column tiles, shared
//   evenly)
//     for each row of the tile                       (only with a transposed read)
//       for columns in steps of lanes * unroll       one wide vector, which LLVM splits into
//       registers for the rest in steps of lanes for the rest one by one
//
// With `shuffle`, rows go in blocks of `lanes`: a transposed read loads `lanes` vectors along its
// own contiguous axis and transposes them in registers, which serves all rows of the block.
#include "codegen/pointwise_vectorised.h"

#include <map>
#include <utility>
#include <vector>

#include "codegen/convert.h"
#include "codegen/emit_expr.h"
#include "codegen/kernel_module.h"
#include "codegen/loop_nest.h"
#include "codegen/tensor_access.h"
#include "llvm/IR/Constants.h"
#include "schedule/pointwise_vectorised.h"

namespace tilewright {
namespace {

using llvm::Value;

// A square block held as rows becomes its columns: log2(n) rounds that swap ever smaller
// off-diagonal halves.
std::vector<Value*> TransposeBlock(KernelModule& m, std::vector<Value*> rows) {
  const int n = static_cast<int>(rows.size());
  for (int half = n / 2; half > 0; half /= 2) {
    std::vector<int> low(n);
    std::vector<int> high(n);
    for (int lane = 0; lane < n; ++lane) {
      const bool upper = (lane & half) != 0;
      low[lane] = upper ? n + (lane ^ half) : lane;
      high[lane] = upper ? n + lane : lane ^ half;
    }
    for (int i = 0; i < n; ++i) {
      if ((i & half) != 0) continue;
      Value* a = rows[i];
      Value* b = rows[i | half];
      rows[i] = m.builder().CreateShuffleVector(a, b, low);
      rows[i | half] = m.builder().CreateShuffleVector(a, b, high);
    }
  }
  return rows;
}

class PointwiseWriter {
 public:
  PointwiseWriter(KernelModule& module, const PointwiseVectorisedPlan& plan)
      : m_(module),
        plan_(plan),
        statement_(*plan.match.statements[0]),
        subscripts_(SubscriptsOf(statement_)),
        compute_(ComputeType(module.workload(), *statement_.value)),
        entry_(module.BeginEntry(plan.threads)),
        access_(module, entry_),
        columns_(Extent(plan.match.lane_axis)),
        rows_(plan.match.row_axis >= 0 ? Extent(plan.match.row_axis) : module.Int(1)) {}

  void Write() {
    Value* column_tiles = m_.CeilDiv(columns_, plan_.tile_columns);
    Value* row_tiles = m_.CeilDiv(rows_, plan_.tile_rows);
    Value* tiles = m_.builder().CreateNSWMul(column_tiles, row_tiles);
    for (size_t i = 0; i < plan_.match.axes.size(); ++i) {
      if (IsOuter(i)) tiles = m_.builder().CreateNSWMul(tiles, Extent(static_cast<int>(i)));
    }
    const Share share = ShareOf(m_, entry_, tiles);
    m_.For(share.begin, share.end, 1, "tile",
           [&](Value* tile) { Tile(tile, column_tiles, row_tiles); });
    m_.EndEntry();
  }

 private:
  bool IsOuter(size_t axis) const {
    return static_cast<int>(axis) != plan_.match.lane_axis &&
           static_cast<int>(axis) != plan_.match.row_axis;
  }

  Value* Extent(int axis) { return PointCount(m_, entry_, plan_.match.axes[axis].indices); }

  // Takes the remainder by `extent` off *position.
  Value* TakeDigit(Value** position, Value* extent) {
    auto& b = m_.builder();
    Value* quotient = b.CreateUDiv(*position, extent);
    Value* digit = b.CreateNSWSub(*position, b.CreateNSWMul(quotient, extent));
    *position = quotient;
    return digit;
  }

  void SetAxis(int axis, Value* position, EmitContext* context) {
    for (int index : plan_.match.axes[axis].indices) context->index_values[index] = m_.Int(0);
    context->index_values[plan_.match.axes[axis].lead()] = position;
  }

  // [begin, begin + tile) cut off at extent; a constant length where the tiles divide the extent.
  Share TileRange(Value* number, int64_t tile, Value* extent) {
    auto& b = m_.builder();
    auto* constant = llvm::dyn_cast<llvm::ConstantInt>(extent);
    Value* begin = b.CreateNSWMul(number, m_.Int(tile));
    if (constant != nullptr && constant->getSExtValue() <= tile) return {m_.Int(0), extent};
    if (constant != nullptr && constant->getSExtValue() % tile == 0) return {begin, nullptr};
    return {begin, m_.Min(b.CreateNSWAdd(begin, m_.Int(tile)), extent)};
  }

  void Tile(Value* tile, Value* column_tiles, Value* row_tiles) {
    EmitContext context;
    context.index_values.resize(entry_.sizes.size(), nullptr);
    context.sizes = entry_.sizes;
    context.compute = compute_;
    Value* column_tile = TakeDigit(&tile, column_tiles);
    Value* row_tile = TakeDigit(&tile, row_tiles);
    for (size_t i = plan_.match.axes.size(); i-- > 0;) {
      if (IsOuter(i))
        SetAxis(static_cast<int>(i), TakeDigit(&tile, Extent(static_cast<int>(i))), &context);
    }
    const Share columns = TileRange(column_tile, plan_.tile_columns, columns_);
    if (plan_.match.row_axis < 0) return Columns(columns, context);
    const Share rows = TileRange(row_tile, plan_.tile_rows, rows_);
    Value* row_end = rows.end != nullptr
                         ? rows.end
                         : m_.builder().CreateNSWAdd(rows.begin, m_.Int(plan_.tile_rows));
    Value* done = rows.begin;
    if (plan_.shuffle) {
      done = MultipleBelow(rows.begin, row_end, plan_.lanes);
      m_.For(rows.begin, done, plan_.lanes, "row_block", [&](Value* row) {
        SetAxis(plan_.match.row_axis, row, &context);
        Blocks(columns, row, context);
      });
    }
    m_.For(done, row_end, 1, "row", [&](Value* row) {
      SetAxis(plan_.match.row_axis, row, &context);
      Columns(columns, context);
    });
  }

  // The largest begin + k * step that is no more than end.
  Value* MultipleBelow(Value* begin, Value* end, int64_t step) {
    auto& b = m_.builder();
    Value* length = b.CreateNSWSub(end, begin);
    return b.CreateNSWSub(end, b.CreateURem(length, m_.Int(step)));
  }

  // The columns of one row.
  void Columns(const Share& columns, EmitContext context) {
    const int64_t wide = static_cast<int64_t>(plan_.lanes) * plan_.unroll;
    auto loop = [&](Value* begin, Value* end, int lanes) {
      m_.For(begin, end, lanes, lanes == 1 ? "element" : "vector", [&](Value* column) {
        SetAxis(plan_.match.lane_axis, column, &context);
        context.lanes = lanes;
        context.lane_index = plan_.match.axes[plan_.match.lane_axis].lead();
        EmitContext full = context;
        full.read = [&](const Expr& read) { return access_.Read(read, full); };
        access_.Write(statement_.tensor, subscripts_, EmitExpr(m_, *statement_.value, full), full);
      });
    };
    // Where the length is a constant, relative positions are, so loops without iterations vanish.
    Value* end = columns.end != nullptr ? columns.end : nullptr;
    auto* constant = end == nullptr ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(end);
    if (end == nullptr || constant != nullptr) {
      const int64_t length = end == nullptr ? plan_.tile_columns : constant->getSExtValue();
      auto at = [&](int64_t n) { return m_.builder().CreateNSWAdd(columns.begin, m_.Int(n)); };
      const int64_t after_wide = length / wide * wide;
      const int64_t after_narrow = length / plan_.lanes * plan_.lanes;
      if (after_wide > 0) loop(columns.begin, at(after_wide), static_cast<int>(wide));
      if (after_narrow > after_wide) loop(at(after_wide), at(after_narrow), plan_.lanes);
      if (length > after_narrow) loop(at(after_narrow), at(length), 1);
      return;
    }
    Value* after_wide = MultipleBelow(columns.begin, end, wide);
    loop(columns.begin, after_wide, static_cast<int>(wide));
    Value* after_narrow = after_wide;
    if (plan_.unroll > 1) {
      after_narrow = MultipleBelow(after_wide, end, plan_.lanes);
      loop(after_wide, after_narrow, plan_.lanes);
    }
    if (plan_.lanes > 1) loop(after_narrow, end, 1);
  }

  // `lanes` rows at once, in square blocks; what is left of the columns goes row by row.
  void Blocks(const Share& columns, Value* row, EmitContext context) {
    Value* end = columns.end != nullptr
                     ? columns.end
                     : m_.builder().CreateNSWAdd(columns.begin, m_.Int(plan_.tile_columns));
    Value* done = MultipleBelow(columns.begin, end, plan_.lanes);
    m_.For(columns.begin, done, plan_.lanes, "block", [&](Value* column) {
      SetAxis(plan_.match.lane_axis, column, &context);
      Block(row, column, context);
    });
    m_.For(done, end, 1, "column", [&](Value* column) {
      m_.For(m_.Int(0), m_.Int(plan_.lanes), 1, "row", [&](Value* i) {
        EmitContext full = context;
        SetAxis(plan_.match.lane_axis, column, &full);
        SetAxis(plan_.match.row_axis, m_.builder().CreateNSWAdd(row, i), &full);
        full.read = [&](const Expr& read) { return access_.Read(read, full); };
        access_.Write(statement_.tensor, subscripts_, EmitExpr(m_, *statement_.value, full), full);
      });
    });
  }

  void Block(Value* row, Value* column, const EmitContext& context) {
    std::map<const Expr*, std::vector<Value*>> transposed;
    Walk(*statement_.value, [&](const Expr& e) {
      if (e.kind == Expr::Kind::kRead && IsTransposed(e))
        transposed[&e] = LoadBlock(e, column, context);
    });
    for (int i = 0; i < plan_.lanes; ++i) {
      EmitContext full = context;
      full.lanes = plan_.lanes;
      full.lane_index = plan_.match.axes[plan_.match.lane_axis].lead();
      SetAxis(plan_.match.row_axis, m_.builder().CreateNSWAdd(row, m_.Int(i)), &full);
      full.read = [&](const Expr& read) {
        auto found = transposed.find(&read);
        return found != transposed.end() ? found->second[i] : access_.Read(read, full);
      };
      access_.Write(statement_.tensor, subscripts_, EmitExpr(m_, *statement_.value, full), full);
    }
  }

  bool IsTransposed(const Expr& read) {
    const Workload& workload = m_.workload();
    const auto& axes = plan_.match.axes;
    const auto along_rows =
        FixedStride(workload, read.tensor, read.subscripts, axes[plan_.match.row_axis].lead());
    const auto along_lanes =
        FixedStride(workload, read.tensor, read.subscripts, axes[plan_.match.lane_axis].lead());
    return along_rows == 1 && along_lanes != 0 && along_lanes != 1;
  }

  // Element [i] is the read at row + i, in lanes along the columns.
  std::vector<Value*> LoadBlock(const Expr& read, Value* column, const EmitContext& context) {
    std::vector<Value*> vectors;
    for (int i = 0; i < plan_.lanes; ++i) {
      EmitContext along_rows = context;
      along_rows.lanes = plan_.lanes;
      along_rows.lane_index = plan_.match.axes[plan_.match.row_axis].lead();
      SetAxis(plan_.match.lane_axis, m_.builder().CreateNSWAdd(column, m_.Int(i)), &along_rows);
      vectors.push_back(access_.Read(read, along_rows));
    }
    return TransposeBlock(m_, std::move(vectors));
  }

  KernelModule& m_;
  const PointwiseVectorisedPlan& plan_;
  const Statement& statement_;
  std::vector<AffineIndex> subscripts_;
  ElementType compute_;
  KernelModule::Entry entry_;
  TensorAccess access_;
  Value* columns_;  // extent of the lane axis
  Value* rows_;     // extent of the row axis
};

}  // namespace

absl::Status WritePointwiseVectorised(const Candidate&, const Plan& plan, KernelModule* module) {
  PointwiseWriter(*module, static_cast<const PointwiseVectorisedPlan&>(plan)).Write();
  return absl::OkStatus();
}

}  // namespace tilewright
