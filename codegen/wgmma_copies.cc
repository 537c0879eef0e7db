#include "codegen/wgmma_copies.h"

#include <algorithm>
#include <utility>

namespace tilewright {

using llvm::Value;

namespace {

// Bytes that a miss in L2 brings in at once; neighbours in k are wanted next.
constexpr int kL2PromotionBytes = 256;

Stride ConstantStride(int64_t value) { return Stride{{{value, {}}}}; }

Stride ExtentOf(const Workload& workload, absl::Span<const Axis> axes) {
  Stride::Term term;
  term.coefficient = 1;
  for (const Axis& axis : axes) {
    for (int index : axis.indices) {
      const SizeRange& range = workload.sizes()[index];
      if (range.fixed()) {
        term.coefficient *= range.low;
      } else {
        term.sizes.push_back(index);
      }
    }
  }
  std::sort(term.sizes.begin(), term.sizes.end());
  return Stride{{term}};
}

// A dimension that has one position needs a stride all the same.
TensorMap::Dim RowDim(const Workload& workload, const Axis& axis, const Stride& stride, int bytes) {
  return {ExtentOf(workload, {axis}), axis.indices.empty() ? ConstantStride(16 / bytes) : stride};
}

// A padded operand lies in the workspace as PlaceCopies says.
void MoveToCopy(const WgmmaOperandPlan& operand, const ContractionOperand& source,
                const Contraction& c, const Workload& workload, TensorMap* map) {
  map->buffer = TensorMap::kWorkspace;
  map->offset_bytes = operand.workspace_offset;
  map->dims[1].stride = ConstantStride(operand.pitch);
  int64_t stride = operand.pitch * operand.lines;
  for (size_t i = source.batch.size(); i-- > 0;) {
    map->dims[2 + i].stride = ConstantStride(stride);
    stride *= c.batch[source.batch[i]].Extent(workload.HighestSizes());
  }
}

TensorMap OperandMap(const Workload& workload, const ContractionWgmmaPlan& plan,
                     const WgmmaOperandPlan& operand) {
  const Contraction& c = *plan.contraction;
  const ContractionOperand& source = operand.is_a ? c.a : c.b;
  const Expr& read = *source.read;
  TensorMap map;
  map.buffer = workload.BufferOf(read.tensor);
  map.type = workload.layout(read.tensor).type;
  map.swizzle_bytes = kSwizzleBytes;
  map.l2_promotion_bytes = kL2PromotionBytes;
  const TensorMap::Dim rows =
      RowDim(workload, operand.is_a ? c.m : c.n, source.row_stride, Info(map.type).bytes);
  const TensorMap::Dim depth = {ExtentOf(workload, c.k), source.depth_stride};
  map.dims = {depth, rows};
  map.box = {operand.box_depth, operand.box_rows};
  if (operand.transposed) {
    std::swap(map.dims[0], map.dims[1]);
    std::swap(map.box[0], map.box[1]);
  }
  for (int axis : source.batch) {
    map.dims.push_back(
        {ExtentOf(workload, {c.batch[axis]}),
         *StrideAlong(workload, read.tensor, read.subscripts, c.batch[axis].lead())});
    map.box.push_back(1);
  }
  if (operand.padded) MoveToCopy(operand, source, c, workload, &map);
  return map;
}

// `unit` columns of the instruction's side at once.
TensorMap StoreMap(const Workload& workload, const ContractionWgmmaPlan& plan, int unit) {
  const Contraction& c = *plan.contraction;
  TensorMap map;
  map.buffer = workload.BufferOf(c.output);
  map.type = workload.layout(c.output).type;
  map.dims = {{ExtentOf(workload, {c.n}), ConstantStride(1)},
              RowDim(workload, c.m, c.output_row_stride, plan.output_bytes)};
  if (plan.swap) {
    map.box = {kSwizzleBytes / plan.output_bytes, unit};
    map.swizzle_bytes = kSwizzleBytes;
  } else {
    map.box = {unit, plan.consumer_rows};
    const int row_bytes = unit * plan.output_bytes;
    map.swizzle_bytes = row_bytes == 128 || row_bytes == 64 || row_bytes == 32 ? row_bytes : 0;
  }
  for (const Axis& axis : c.batch) {
    map.dims.push_back({ExtentOf(workload, {axis}),
                        *StrideAlong(workload, c.output, c.output_subscripts, axis.lead())});
    map.box.push_back(1);
  }
  return map;
}

void CopyOperand(WgmmaKernel& k, const StageRing& ring, const RingPosition& at,
                 const WgmmaTile& tile, Value* first_depth, bool is_rows) {
  const WgmmaOperandPlan& operand = is_rows ? k.plan.rows_operand : k.plan.columns_operand;
  const ContractionOperand& source = operand.is_a ? k.plan.contraction->a : k.plan.contraction->b;
  Value* map = k.entry.tensor_maps[is_rows ? kRowsMap : kColumnsMap];
  Value* row = is_rows ? tile.row : tile.column;
  Value* data = k.b.CreateAdd(ring.Data(at.stage), k.I32(operand.stage_offset));
  // A multicast half: the first CTA of a pair loads the first rows.
  if (operand.multicast) {
    const int64_t half = operand.boxes * operand.box_bytes;
    data = k.b.CreateAdd(data, k.b.CreateMul(k.rank, k.I32(half)));
    row = k.b.CreateAdd(row, k.b.CreateMul(k.rank, k.I32(operand.boxes * operand.box_rows)));
  }
  const int atoms = static_cast<int>(operand.stage_bytes / operand.atom_bytes);
  for (int atom = 0; atom < atoms; ++atom) {
    for (int box = 0; box < operand.boxes; ++box) {
      Value* to = k.b.CreateAdd(data, k.I32(atom * operand.atom_bytes + box * operand.box_bytes));
      Value* box_row = k.b.CreateAdd(row, k.I32(box * operand.box_rows));
      Value* box_depth = k.b.CreateAdd(first_depth, k.I32(atom * operand.box_depth));
      std::vector<Value*> coordinates = {box_depth, box_row};
      if (operand.transposed) std::swap(coordinates[0], coordinates[1]);
      for (int axis : source.batch) coordinates.push_back(tile.batch_positions[axis]);
      if (operand.multicast) {
        k.ptx.TmaLoadMulticast(map, to, ring.Full(at.stage), coordinates, 0b11);
      } else {
        k.ptx.TmaLoad(map, to, ring.Full(at.stage), coordinates);
      }
    }
  }
}

}  // namespace

std::vector<TensorMap> MakeWgmmaMaps(const Workload& workload, const ContractionWgmmaPlan& plan) {
  std::vector<TensorMap> maps = {OperandMap(workload, plan, plan.rows_operand),
                                 OperandMap(workload, plan, plan.columns_operand)};
  if (!plan.tma_store) return maps;
  maps.push_back(StoreMap(workload, plan, plan.store_unit()));
  const int tail = plan.tile_n % plan.store_unit();
  if (tail != 0) maps.push_back(StoreMap(workload, plan, tail));
  return maps;
}

void DemandMapAlignment(const std::vector<TensorMap>& maps, KernelModule* module) {
  for (const TensorMap& map : maps) {
    if (map.buffer == TensorMap::kWorkspace) continue;
    int64_t& alignment = module->alignments()[map.buffer];
    alignment = std::max<int64_t>(alignment, 16);
  }
}

void EmitStageCopies(WgmmaKernel& k, const StageRing& ring, const RingPosition& at,
                     const WgmmaTile& tile, Value* k_block) {
  k.ptx.MbarrierWait(ring.Empty(at.stage), at.parity);
  // What the peer multicasts lands here as well: always the whole stage.
  k.ptx.MbarrierExpect(ring.Full(at.stage), k.I32(k.plan.stage_bytes));
  Value* depth = k.b.CreateMul(k_block, k.I32(k.plan.tile_k));
  CopyOperand(k, ring, at, tile, depth, true);
  CopyOperand(k, ring, at, tile, depth, false);
}

}  // namespace tilewright
