#include "codegen/output_tiles.h"

#include "schedule/shared_operand.h"

namespace tilewright {

using llvm::Value;

OutputTiles::OutputTiles(KernelModule& module, const Contraction& contraction,
                         const KernelModule::DeviceEntry& entry, const ContractionReads& reads,
                         const Shape& shape)
    : m_(module),
      b_(module.builder()),
      c_(contraction),
      entry_(entry),
      reads_(reads),
      shape_(shape) {
  rows_ = reads_.Extent(c_.m);
  columns_ = reads_.Extent(c_.n);
  thread_ = b_.CreateZExt(m_.ThreadInBlock(), b_.getInt64Ty());
}

void OutputTiles::ForTiles(const std::function<void()>& body) {
  Value* tiles_m = m_.CeilDiv(rows_, shape_.tile_m);
  Value* tiles_n = m_.CeilDiv(columns_, shape_.tile_n);
  Value* per_batch = b_.CreateNSWMul(tiles_m, tiles_n);
  Value* all = b_.CreateNSWMul(reads_.BatchCount(), per_batch);
  Value* block = b_.CreateZExt(m_.BlockInGrid(), b_.getInt64Ty());
  auto one = [&](Value* tile) {
    indices_ = reads_.AtBatch(b_.CreateUDiv(tile, per_batch));
    // In groups of group_m rows of tiles, column by column within a group.
    Value* number = b_.CreateURem(tile, per_batch);
    Value* group_tiles = b_.CreateNSWMul(tiles_n, m_.Int(shape_.group_m));
    Value* within = b_.CreateURem(number, group_tiles);
    Value* first = b_.CreateNSWMul(b_.CreateUDiv(number, group_tiles), m_.Int(shape_.group_m));
    Value* height = m_.Min(b_.CreateNSWSub(tiles_m, first), m_.Int(shape_.group_m));
    Value* row = b_.CreateNSWAdd(first, b_.CreateURem(within, height));
    first_row_ = b_.CreateNSWMul(row, m_.Int(shape_.tile_m));
    first_column_ = b_.CreateNSWMul(b_.CreateUDiv(within, height), m_.Int(shape_.tile_n));
    body();
  };
  if (shape_.one_each) {
    m_.If(b_.CreateICmpSLT(block, all), [&] { one(block); });
  } else {
    m_.For(block, all, shape_.grid, "tile", one);
  }
}

void OutputTiles::Finish(Value* y, Value* x, Value* sum) {
  Value* row = b_.CreateNSWAdd(first_row_, y);
  Value* column = b_.CreateNSWAdd(first_column_, x);
  Value* inside = b_.CreateAnd(b_.CreateICmpSLT(row, rows_), b_.CreateICmpSLT(column, columns_));
  m_.If(inside, [&] {
    std::vector<Value*> indices = indices_;
    if (!c_.m.indices.empty()) indices[c_.m.lead()] = row;
    if (!c_.n.indices.empty()) indices[c_.n.lead()] = column;
    Value* offset = reads_.Offset(c_.output, c_.output_subscripts, indices_);
    offset = b_.CreateNSWAdd(offset, b_.CreateNSWMul(row, reads_.Of(c_.output_row_stride)));
    offset = b_.CreateNSWAdd(offset, b_.CreateNSWMul(column, reads_.Of(c_.output_column_stride)));
    m_.StoreElements(m_.workload().layout(c_.output).type, reads_.Epilogue(sum, indices, 1),
                     reads_.Buffer(c_.output), offset, 1);
  });
}

Value* OutputTiles::StagedAt(Value* row, Value* column) {
  return b_.CreateNSWAdd(b_.CreateNSWMul(row, m_.Int(StagedPitch(shape_.tile_n))), column);
}

void OutputTiles::Stage(Value* row, Value* column, Value* sum) {
  m_.StoreElements(c_.accumulator, sum, entry_.shared, StagedAt(row, column), 1);
}

void OutputTiles::FinishStaged() {
  m_.Barrier();
  m_.For(thread_, m_.Int(shape_.tile_m * shape_.tile_n), shape_.block, "point", [&](Value* at) {
    Value* row = b_.CreateUDiv(at, m_.Int(shape_.tile_n));
    Value* column = b_.CreateURem(at, m_.Int(shape_.tile_n));
    Finish(
        row, column,
        m_.LoadElements(c_.accumulator, entry_.shared, StagedAt(row, column), 1, c_.accumulator));
  });
  m_.Barrier();  // before the next tile's copies
}

}  // namespace tilewright
