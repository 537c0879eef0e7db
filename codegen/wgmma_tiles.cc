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
  walkers_ = plan.grid / plan.cluster_size();
  walker_ = k_.ptx.BlockIndex();
  if (plan.cluster_size() > 1) walker_ = k_.b.CreateLShr(walker_, 1);
  if (plan.stream_k != WgmmaStreamK::kOff) split_ = SplitTileCount();
}

// SplitTiles of schedule/contraction_wgmma_space.h, at the call's sizes.
Value* TileWalk::SplitTileCount() const {
  llvm::IRBuilder<>& b = k_.b;
  Value* over = b.CreateURem(count_, k_.I32(walkers_));
  Value* split = over;
  if (k_.plan.stream_k == WgmmaStreamK::kWave) {
    Value* waves = b.CreateICmpUGT(count_, k_.I32(walkers_));
    split = b.CreateAdd(over, b.CreateSelect(waves, k_.I32(walkers_), k_.I32(0)));
  }
  Value* enough = b.CreateICmpUGE(b.CreateMul(split, k_.k_blocks), k_.I32(kLeastShare * walkers_));
  enough = b.CreateAnd(enough, b.CreateICmpNE(over, k_.I32(0)));
  return b.CreateSelect(enough, split, k_.I32(0));
}

Value* TileWalk::ShareBegin(Value* walker) const {
  Value* units = k_.b.CreateNUWMul(split_, k_.k_blocks);
  return k_.b.CreateUDiv(k_.b.CreateNUWMul(walker, units), k_.I32(walkers_));
}

Value* TileWalk::HasFirst() const { return k_.b.CreateICmpULT(walker_, count_); }

void TileWalk::ForEach(Value* first, int step, const std::function<void(const WgmmaTile&)>& body) {
  if (split_ != nullptr) return ForEachPart(body);
  DeviceVariable number(k_.m, "tile");
  number.Set(k_.b.CreateAdd(walker_, k_.b.CreateNUWMul(first, k_.I32(walkers_))));
  While(
      k_.m, "tile", [&] { return k_.b.CreateICmpULT(number.Get(), count_); },
      [&] {
        Value* now = number.Get();
        WgmmaTile tile = At(now);
        tile.another = k_.b.CreateICmpULT(k_.b.CreateAdd(now, k_.I32(walkers_)), count_);
        body(tile);
        number.Set(k_.b.CreateAdd(now, k_.I32(int64_t{walkers_} * step)));
      });
}

// Shares are walked backwards: the part with a tile's last block adds up what CTAs with smaller
// numbers have left of it, which they did first. So nobody waits for a CTA that starts later.
void TileWalk::ForEachPart(const std::function<void(const WgmmaTile&)>& body) {
  llvm::IRBuilder<>& b = k_.b;
  Value* begin = ShareBegin(walker_);
  Value* first_whole = b.CreateAdd(split_, walker_);
  DeviceVariable number(k_.m, "tile"), end(k_.m, "end");  // of the share, exclusive
  auto tile_of_last = [&](Value* share_end) {
    return b.CreateUDiv(b.CreateSub(share_end, k_.I32(1)), k_.k_blocks);
  };
  Value* share_end = ShareBegin(b.CreateAdd(walker_, k_.I32(1)));
  end.Set(share_end);
  number.Set(
      b.CreateSelect(b.CreateICmpULT(begin, share_end), tile_of_last(share_end), first_whole));
  While(
      k_.m, "tile", [&] { return b.CreateICmpULT(number.Get(), count_); },
      [&] {
        Value* now = number.Get();
        Value* last = end.Get();
        Value* shared = b.CreateICmpULT(now, split_);
        Value* tile_begin = b.CreateMul(now, k_.k_blocks);
        Value* starts_here = b.CreateICmpULT(begin, tile_begin);
        Value* part_begin = b.CreateSelect(starts_here, tile_begin, begin);
        Value* tile_end = b.CreateAdd(tile_begin, k_.k_blocks);
        WgmmaTile tile = At(now);
        tile.first_block = b.CreateSelect(shared, b.CreateSub(part_begin, tile_begin), k_.I32(0));
        tile.blocks = b.CreateSelect(shared, b.CreateSub(last, part_begin), k_.k_blocks);
        tile.first_unit = b.CreateSelect(shared, tile_begin, k_.I32(-1));
        tile.ends = b.CreateOr(b.CreateNot(shared), b.CreateICmpEQ(last, tile_end));
        tile.another = b.getTrue();  // asked only by ping-pong
        body(tile);
        Value* more = b.CreateICmpUGT(part_begin, begin);
        Value* next_shared = b.CreateSelect(more, b.CreateSub(now, k_.I32(1)), first_whole);
        end.Set(part_begin);
        number.Set(b.CreateSelect(shared, next_shared, b.CreateAdd(now, k_.I32(walkers_))));
      });
}

WgmmaTile TileWalk::At(Value* number) {
  const ContractionWgmmaPlan& plan = k_.plan;
  llvm::IRBuilder<>& b = k_.b;
  WgmmaTile tile{};
  tile.first_block = k_.I32(0);
  tile.blocks = k_.k_blocks;
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
