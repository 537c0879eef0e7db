#include "codegen/wgmma_tiles.h"

namespace tilewright {

using llvm::Value;

namespace {

// Tiles of a pair along the instruction's rows (columns).
int RowsOfPair(const ContractionWgmmaPlan& plan) { return plan.columns_operand.multicast ? 2 : 1; }
int ColumnsOfPair(const ContractionWgmmaPlan& plan) { return plan.rows_operand.multicast ? 2 : 1; }

}  // namespace

TileWalk::TileWalk(WgmmaKernel& kernel) : k_(kernel) {
  const ContractionWgmmaPlan& plan = k_.plan;
  Value* rows = k_.CeilDiv(k_.rows, plan.tile_m * RowsOfPair(plan));
  Value* columns = k_.CeilDiv(k_.columns, plan.tile_n * ColumnsOfPair(plan));
  along_ = plan.raster_rows ? rows : columns;
  across_ = plan.raster_rows ? columns : rows;
  count_ = k_.b.CreateNUWMul(k_.b.CreateNUWMul(along_, across_), k_.batches);
}

void TileWalk::ForEach(Value* first, int step, const std::function<void(const WgmmaTile&)>& body) {
  const int walkers = k_.plan.grid / k_.plan.cluster_size();
  Value* own = k_.ptx.BlockIndex();
  if (k_.plan.cluster_size() > 1) own = k_.b.CreateLShr(own, 1);
  DeviceVariable number(k_.m, "tile");
  number.Set(k_.b.CreateAdd(own, k_.b.CreateNUWMul(first, k_.I32(walkers))));
  While(
      k_.m, "tile", [&] { return k_.b.CreateICmpULT(number.Get(), count_); },
      [&] {
        Value* now = number.Get();
        WgmmaTile tile = At(now);
        tile.another = k_.b.CreateICmpULT(k_.b.CreateAdd(now, k_.I32(walkers)), count_);
        body(tile);
        number.Set(k_.b.CreateAdd(now, k_.I32(int64_t{walkers} * step)));
      });
}

WgmmaTile TileWalk::At(Value* number) {
  const ContractionWgmmaPlan& plan = k_.plan;
  llvm::IRBuilder<>& b = k_.b;
  WgmmaTile tile{};
  Value* per_batch = b.CreateNUWMul(along_, across_);
  tile.batch = k_.I32(0);
  if (!plan.contraction->batch.empty()) {
    tile.batch = b.CreateUDiv(number, per_batch);
    number = b.CreateSub(number, b.CreateMul(tile.batch, per_batch));
  }
  Value* rest = tile.batch;
  tile.batch_positions.resize(plan.contraction->batch.size());
  for (size_t i = plan.contraction->batch.size(); i-- > 0;) {
    Value* extent = k_.Extent(plan.contraction->batch[i]);
    tile.batch_positions[i] = i == 0 ? rest : b.CreateURem(rest, extent);
    rest = b.CreateUDiv(rest, extent);
  }

  Value *x, *y;
  if (plan.group == 1) {
    x = b.CreateUDiv(number, across_);
    y = b.CreateSub(number, b.CreateMul(x, across_));
  } else {
    Value* per_group = b.CreateNUWMul(across_, k_.I32(plan.group));
    Value* group = b.CreateUDiv(number, per_group);
    Value* within = b.CreateSub(number, b.CreateMul(group, per_group));
    Value* first = b.CreateMul(group, k_.I32(plan.group));
    Value* left = b.CreateSub(along_, first);
    Value* full = b.CreateICmpULT(k_.I32(plan.group), left);
    Value* size = b.CreateSelect(full, k_.I32(plan.group), left);
    y = b.CreateUDiv(within, size);
    x = b.CreateAdd(first, b.CreateSub(within, b.CreateMul(y, size)));
  }
  Value* row = plan.raster_rows ? x : y;
  Value* column = plan.raster_rows ? y : x;
  if (RowsOfPair(plan) == 2) row = b.CreateAdd(b.CreateShl(row, 1), k_.rank);
  if (ColumnsOfPair(plan) == 2) column = b.CreateAdd(b.CreateShl(column, 1), k_.rank);
  tile.row = b.CreateMul(row, k_.I32(plan.tile_m));
  tile.column = b.CreateMul(column, k_.I32(plan.tile_n));
  return tile;
}

}  // namespace tilewright
