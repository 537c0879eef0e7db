// One entry, one tile for each CTA or, with split-K, for each cluster:
//
//   producer warp: copies of this CTA's k blocks         wgmma_copies
//   consumer warpgroup: their product                    wgmma_mainloop
//     partial sums go to shared memory, over the ring
//   the cluster meets
//   consumer warpgroup: a share of the tile's elements: partial sums of all CTAs, in their order,
//   are
//     added, finished and stored
//
// With groups the sums go to the workspace instead, and a second entry adds those of all groups, in
// their order, finishes and stores.
#include "codegen/contraction_skinny.h"

#include "codegen/contraction_reads.h"
#include "codegen/wgmma_ahead.h"
#include "codegen/wgmma_copies.h"
#include "codegen/wgmma_epilogue.h"
#include "codegen/wgmma_kernel.h"
#include "codegen/wgmma_mainloop.h"
#include "codegen/wgmma_padding.h"
#include "codegen/wgmma_pipeline.h"
#include "codegen/wgmma_tiles.h"
#include "schedule/contraction_skinny.h"

namespace tilewright {
namespace {

using llvm::Value;

constexpr int kAdditionThreads = 128;

// Element of the workspace where a group leaves its sum of an element of the output, i64.
Value* PlaceInWorkspace(WgmmaKernel& k, const ContractionSkinnyPlan& plan, Value* group,
                        Value* batch, Value* column, Value* row) {
  llvm::IRBuilder<>& b = k.b;
  auto wide = [&](Value* value) { return b.CreateZExt(value, b.getInt64Ty()); };
  Value* pitch = b.CreateNUWMul(k.CeilDiv(k.rows, plan.tile_m), k.I32(plan.tile_m));
  Value* matrix = b.CreateAdd(b.CreateMul(wide(group), wide(k.batches)), wide(batch));
  Value* line = b.CreateAdd(b.CreateMul(matrix, k.m.Int(plan.tile_n)), wide(column));
  return b.CreateAdd(b.CreateAdd(b.CreateMul(line, wide(pitch)), wide(row)),
                     k.m.Int(plan.sums_offset / 4));
}

// Finishes one sum, or two neighbours along n, and stores the result.
void FinishSums(WgmmaKernel& k, const ContractionReads& reads, std::vector<Value*> indices,
                const std::vector<Value*>& sums, Value* row, Value* column) {
  llvm::IRBuilder<>& b = k.b;
  const int width = static_cast<int>(sums.size());
  Value* sum = sums[0];
  if (width == 2) {
    sum = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getFloatTy(), 2));
    for (uint64_t i = 0; i < 2; ++i) sum = b.CreateInsertElement(sum, sums[i], i);
  }
  const Contraction& c = *k.plan.contraction;
  const Axis& row_axis = k.plan.swap ? c.n : c.m;
  const Axis& column_axis = k.plan.swap ? c.m : c.n;
  auto set = [&](const Axis& axis, Value* position) {
    if (!axis.indices.empty()) indices[axis.lead()] = b.CreateZExt(position, b.getInt64Ty());
  };
  set(row_axis, row);
  set(column_axis, column);
  Value* value = reads.Epilogue(sum, indices, width);
  const ElementType type = k.m.workload().layout(c.output).type;
  Value* at = reads.Offset(c.output, c.output_subscripts, indices);
  if (width == 1) return k.m.StoreElements(type, value, reads.Buffer(c.output), at, 1);
  Value* packed = k.ptx.PackPair(type, b.CreateExtractElement(value, uint64_t{0}),
                                 b.CreateExtractElement(value, uint64_t{1}));
  b.CreateAlignedStore(packed, b.CreateGEP(b.getInt16Ty(), reads.Buffer(c.output), at),
                       llvm::Align(4));
}

// The second entry of a kernel with groups: a thread for each element, or pair of neighbours.
void WriteAdditionOfGroups(KernelModule& module, const ContractionSkinnyPlan& plan,
                           const DeviceLaunch& launch) {
  WgmmaKernel k(module, plan, launch, {});
  llvm::IRBuilder<>& b = k.b;
  ContractionReads reads(module, *plan.contraction, k.entry);
  k.ptx.LetLaterGridsStart();
  k.ptx.WaitForEarlierGrids();
  const int width = plan.swap && StoresInPairs(module.workload(), *plan.contraction) ? 2 : 1;
  Value* per_column = k.CeilDiv(k.rows, width);
  Value* per_batch = b.CreateNUWMul(per_column, k.columns);
  Value* count = b.CreateNUWMul(per_batch, k.batches);
  DeviceVariable number(module, "element");
  number.Set(b.CreateAdd(b.CreateMul(k.ptx.BlockIndex(), k.I32(launch.block)), k.thread));
  While(
      module, "element", [&] { return b.CreateICmpULT(number.Get(), count); },
      [&] {
        Value* now = number.Get();
        Value* batch = b.CreateUDiv(now, per_batch);
        Value* in_batch = b.CreateSub(now, b.CreateMul(batch, per_batch));
        Value* column = b.CreateUDiv(in_batch, per_column);
        Value* row =
            b.CreateMul(b.CreateSub(in_batch, b.CreateMul(column, per_column)), k.I32(width));
        std::vector<Value*> sums;
        for (int group = 0; group < plan.groups; ++group) {
          Value* at = PlaceInWorkspace(k, plan, k.I32(group), batch, column, row);
          for (int i = 0; i < width; ++i) {
            Value* place =
                b.CreateGEP(b.getFloatTy(), k.entry.workspace, b.CreateAdd(at, module.Int(i)));
            Value* part = b.CreateAlignedLoad(b.getFloatTy(), place, llvm::Align(4));
            if (group == 0) {
              sums.push_back(part);
            } else {
              sums[i] = b.CreateFAdd(sums[i], part);
            }
          }
        }
        const std::vector<Value*> indices = reads.AtBatch(b.CreateZExt(batch, b.getInt64Ty()));
        FinishSums(k, reads, indices, sums, row, column);
        number.Set(b.CreateAdd(now, k.I32(int64_t{launch.grid[0]} * launch.block)));
      });
  module.EndEntry();
}

class SkinnyWriter {
 public:
  SkinnyWriter(KernelModule& module, const ContractionSkinnyPlan& plan, const DeviceLaunch& launch,
               const std::vector<TensorMap>& maps)
      : plan_(plan), k_(module, plan, launch, maps), reads_(module, *plan.contraction, k_.entry) {}

  void Write() {
    StageRing::Initialise(k_);
    k_.ptx.Barrier(k_.I32(0), plan_.threads);
    if (plan_.later == LaterGrids::kBegin) k_.ptx.LetLaterGridsStart();
    if (plan_.ahead_bytes > 0) {
      FindTile();
      AskAhead();
      k_.ptx.WaitForEarlierGrids();
    } else {
      k_.ptx.WaitForEarlierGrids();
      FindTile();
    }
    k_.m.If(exists_, [&] {
      k_.m.If(
          k_.IsProducer(), [&] { Produce(); }, [&] { Consume(); });
      Meet();
      k_.m.If(k_.b.CreateNot(k_.IsProducer()), [&] { FinishShare(); });
      // Shared memory must outlive those who read it.
      if (plan_.splits > 1) k_.ptx.ClusterBarrier();
    });
    k_.m.EndEntry();
  }

 private:
  // All CTAs of a cluster have the same tile, and k blocks first_block_ … of their own.
  void FindTile() {
    llvm::IRBuilder<>& b = k_.b;
    Value* number = k_.ptx.BlockIndex();
    if (plan_.splits > 1) number = b.CreateUDiv(number, k_.I32(plan_.splits));
    Value* row_tiles = k_.CeilDiv(k_.rows, plan_.tile_m);
    Value* tiles = b.CreateNUWMul(row_tiles, k_.batches);
    exists_ = b.CreateICmpULT(number, b.CreateNUWMul(tiles, k_.I32(plan_.groups)));
    group_ = k_.I32(0);
    if (plan_.groups > 1) {
      group_ = b.CreateUDiv(number, tiles);
      number = b.CreateSub(number, b.CreateMul(group_, tiles));
    }
    tile_.batch = k_.I32(0);
    Value* row_tile = number;
    if (!plan_.contraction->batch.empty()) {
      tile_.batch = b.CreateUDiv(number, row_tiles);
      row_tile = b.CreateSub(number, b.CreateMul(tile_.batch, row_tiles));
    }
    tile_.row = b.CreateMul(row_tile, k_.I32(plan_.tile_m));
    tile_.column = k_.I32(0);
    Value* rest = tile_.batch;
    tile_.batch_positions.resize(plan_.contraction->batch.size());
    for (size_t i = plan_.contraction->batch.size(); i-- > 0;) {
      Value* extent = k_.Extent(plan_.contraction->batch[i]);
      tile_.batch_positions[i] = i == 0 ? rest : b.CreateURem(rest, extent);
      rest = b.CreateUDiv(rest, extent);
    }
    rank_ = plan_.splits == 1 ? k_.I32(0) : k_.ptx.ClusterRank();
    first_block_ = k_.I32(0);
    const int shares = plan_.splits * plan_.groups;
    if (shares > 1) FindShare(shares);
    if (plan_.turned) turn_ = b.CreateURem(row_tile, k_.k_blocks);
  }

  void FindShare(int shares) {
    llvm::IRBuilder<>& b = k_.b;
    auto begin = [&](Value* share) {
      return b.CreateUDiv(b.CreateNUWMul(share, k_.k_blocks), k_.I32(shares));
    };
    Value* share = b.CreateAdd(b.CreateMul(group_, k_.I32(plan_.splits)), rank_);
    first_block_ = begin(share);
    k_.k_blocks = b.CreateSub(begin(b.CreateAdd(share, k_.I32(1))), first_block_);
  }

  // The k block that a tile takes as its `number`-th.
  Value* Block(Value* number) const {
    if (!plan_.turned) return k_.b.CreateAdd(number, first_block_);
    Value* turned = k_.b.CreateAdd(number, turn_);
    Value* wraps = k_.b.CreateICmpUGE(turned, k_.k_blocks);
    turned = k_.b.CreateSelect(wraps, k_.b.CreateSub(turned, k_.k_blocks), turned);
    return k_.b.CreateAdd(turned, first_block_);
  }

  // By the consumers: the producer has copies to ask for as soon as it may.
  void AskAhead() {
    llvm::IRBuilder<>& b = k_.b;
    AheadLines ahead;
    ahead.first_row = tile_.row;
    ahead.batch_positions = tile_.batch_positions;
    ahead.first_depth = b.CreateMul(Block(k_.I32(0)), k_.I32(plan_.tile_k));
    if (plan_.turned) {
      ahead.wrap_depth = b.CreateMul(k_.k_blocks, k_.I32(plan_.tile_k));
      ahead.end_depth =
          b.CreateAdd(b.CreateMul(first_block_, k_.I32(plan_.tile_k)), ahead.wrap_depth);
    }
    ahead.bytes_of_row = plan_.ahead_bytes;
    k_.m.If(b.CreateAnd(exists_, b.CreateNot(k_.IsProducer())), [&] { EmitAskAhead(k_, ahead); });
  }

  void Produce() {
    k_.m.If(k_.b.CreateICmpEQ(k_.in_group, k_.I32(0)), [&] {
      StageRing ring(k_, 1);
      DeviceVariable block(k_.m, "k_block");
      block.Set(k_.I32(0));
      While(
          k_.m, "copy", [&] { return k_.b.CreateICmpULT(block.Get(), k_.k_blocks); },
          [&] {
            const RingPosition at = ring.Get();
            EmitStageCopies(k_, ring, at, tile_, Block(block.Get()));
            ring.Set(ring.Next(at));
            block.Set(k_.b.CreateAdd(block.Get(), k_.I32(1)));
          });
      if (plan_.later == LaterGrids::kHalf) AwaitUse(ring, plan_.stages / 2);
    });
    if (plan_.later == LaterGrids::kBegin) return;
    k_.ptx.WarpBarrier();
    k_.ptx.LetLaterGridsStart();
  }

  // Until that many of the last stages, the oldest ones, have been used. Those that were never
  // filled are empty already.
  void AwaitUse(StageRing& ring, int stages) {
    for (int i = 0; i < stages; ++i) {
      const RingPosition at = ring.Get();
      k_.ptx.MbarrierWait(ring.Empty(at.stage), at.parity);
      ring.Set(ring.Next(at));
    }
  }

  // Partial sums in columns: element (row, column) at column * pitch + row. The pitch, 4 beyond a
  // multiple of 32, lets a warp's 8 rows x 4 columns fall on 32 banks.
  void Consume() {
    StageRing ring(k_, 0);
    const std::vector<Value*> sums = EmitMainloop(k_, ring, k_.k_blocks);
    llvm::IRBuilder<>& b = k_.b;
    Value* lane = b.CreateAnd(k_.thread, k_.I32(31));
    Value* row = b.CreateAdd(b.CreateShl(b.CreateLShr(k_.in_group, 5), 4), b.CreateLShr(lane, 2));
    Value* column = b.CreateShl(b.CreateAnd(lane, k_.I32(3)), 1);
    Value* element = b.CreateAdd(b.CreateMul(column, k_.I32(plan_.partial_pitch)), row);
    Value* start = b.CreateAdd(k_.shared, b.CreateShl(element, 2));
    size_t next = 0;
    for (int block = 0; block < plan_.consumer_rows / kWgmmaRows; ++block) {
      for (int piece = 0; piece < plan_.tile_n / 8; ++piece) {
        for (int half = 0; half < 2; ++half) {
          for (int i = 0; i < 2; ++i) {
            const int64_t offset =
                int64_t{8 * piece + i} * plan_.partial_pitch + block * kWgmmaRows + 8 * half;
            k_.ptx.StoreShared(b.CreateAdd(start, k_.I32(4 * offset)), sums[next++]);
          }
        }
      }
    }
  }

  void Meet() {
    if (plan_.splits > 1) {
      k_.ptx.ClusterBarrier();
    } else {
      k_.ptx.Barrier(k_.I32(0), plan_.threads);
    }
  }

  // Elements of the tile in turn, two at once where two neighbours of the output make one store.
  void FinishShare() {
    llvm::IRBuilder<>& b = k_.b;
    const int width = StoresPairs() ? 2 : 1;
    const int fast = plan_.swap ? plan_.tile_m / width : plan_.tile_n;
    const int count = plan_.tile_m * plan_.tile_n / width;
    std::vector<Value*> partials;
    for (int cta = 0; cta < plan_.splits; ++cta) {
      partials.push_back(plan_.splits == 1 ? k_.shared
                                           : k_.ptx.AddressInCluster(k_.shared, k_.I32(cta)));
    }
    indices_ = reads_.AtBatch(b.CreateZExt(tile_.batch, b.getInt64Ty()));
    DeviceVariable number(k_.m, "element");
    number.Set(b.CreateAdd(k_.in_group, b.CreateMul(rank_, k_.I32(kWarpgroup))));
    While(
        k_.m, "element", [&] { return b.CreateICmpULT(number.Get(), k_.I32(count)); },
        [&] {
          Value* now = number.Get();
          Value* slow = b.CreateUDiv(now, k_.I32(fast));
          Value* quick = b.CreateSub(now, b.CreateMul(slow, k_.I32(fast)));
          Value* row = plan_.swap ? b.CreateMul(quick, k_.I32(width)) : slow;
          Value* column = plan_.swap ? slow : quick;
          Value* output_row = b.CreateAdd(row, tile_.row);
          Value* exists = b.CreateAnd(b.CreateICmpULT(output_row, k_.rows),
                                      b.CreateICmpULT(column, k_.columns));
          k_.m.If(exists, [&] { FinishElement(partials, row, column, output_row, width); });
          number.Set(b.CreateAdd(now, k_.I32(int64_t{plan_.splits} * kWarpgroup)));
        });
  }

  void FinishElement(const std::vector<Value*>& partials, Value* row, Value* column,
                     Value* output_row, int width) {
    llvm::IRBuilder<>& b = k_.b;
    Value* offset =
        b.CreateShl(b.CreateAdd(b.CreateMul(column, k_.I32(plan_.partial_pitch)), row), 2);
    std::vector<Value*> sums;
    for (Value* partial : partials) {
      const std::vector<Value*> part =
          k_.ptx.LoadShared(b.CreateAdd(partial, offset), width, plan_.splits > 1);
      if (sums.empty()) {
        sums = part;
        continue;
      }
      for (int i = 0; i < width; ++i) sums[i] = b.CreateFAdd(sums[i], part[i]);
    }
    if (plan_.groups > 1) {
      Value* at = PlaceInWorkspace(k_, plan_, group_, tile_.batch, column, output_row);
      for (int i = 0; i < width; ++i) {
        Value* place = b.CreateAdd(at, k_.m.Int(i));
        b.CreateAlignedStore(sums[i], b.CreateGEP(b.getFloatTy(), k_.entry.workspace, place),
                             llvm::Align(4));
      }
      return;
    }
    FinishSums(k_, reads_, indices_, sums, output_row, column);
  }

  // Two neighbours along n as one aligned store of 4 bytes, everywhere.
  bool StoresPairs() const {
    return plan_.swap && StoresInPairs(k_.m.workload(), *plan_.contraction);
  }

  const ContractionSkinnyPlan& plan_;
  WgmmaKernel k_;
  ContractionReads reads_;
  WgmmaTile tile_{};
  Value* exists_ = nullptr;
  Value* rank_ = nullptr;
  Value* group_ = nullptr;
  Value* first_block_ = nullptr;
  Value* turn_ = nullptr;
  std::vector<Value*> indices_;
};

}  // namespace

absl::Status WriteContractionSkinny(const Candidate& candidate, const Plan& plan,
                                    KernelModule* module) {
  const auto& skinny = static_cast<const ContractionSkinnyPlan&>(plan);
  DeviceLaunch launch;
  launch.grid = {skinny.grid, 1, 1};
  launch.block = skinny.threads;
  launch.cluster = skinny.splits;
  launch.shared_memory_bytes = skinny.shared_memory_bytes;
  launch.dependent_launch = true;
  launch.minimum_blocks = skinny.occupancy;
  const std::vector<TensorMap> maps = MakeWgmmaMaps(candidate.workload, skinny);
  DemandMapAlignment(maps, module);
  DemandPairAlignment(skinny, module);
  module->workspace().bytes = skinny.workspace_bytes;
  WriteOperandCopies(module, skinny);
  SkinnyWriter(*module, skinny, launch, maps).Write();
  if (skinny.groups == 1) return absl::OkStatus();
  DeviceLaunch addition;
  addition.block = kAdditionThreads;
  const int64_t elements = (skinny.workspace_bytes - skinny.sums_offset) / 4 / skinny.groups;
  addition.grid = {
      static_cast<int>(std::min<int64_t>(4 * candidate.target.cores,
                                         (elements + kAdditionThreads - 1) / kAdditionThreads)),
      1, 1};
  addition.dependent_launch = true;
  WriteAdditionOfGroups(*module, skinny, addition);
  return absl::OkStatus();
}

}  // namespace tilewright
