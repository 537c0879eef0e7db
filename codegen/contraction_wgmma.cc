// One entry, after a copy of operands that TMA cannot read as they lie (wgmma_padding): a
// persistent CTA whose last warpgroup copies and whose others multiply.
//
//   producer (one thread)                      consumers
//     for each tile                              for each of their tiles
//       for each k block                           (ping-pong: wait for the turn)
//         wait until the stage is empty            for each k block        wgmma_mainloop
//         start its copies     wgmma_copies          wait until the stage is full
//                                                    multiply, give the stage back
//                                                  (ping-pong: pass the turn on)
//                                                  finish, store           wgmma_epilogue
//
// With stream-K a tile may be a part of one, in k: consumers leave its sums to the CTA that has the
// tile's last k block, or add to theirs what others have left (wgmma_exchange).
//
// The ring of stages (wgmma_pipeline) runs through all tiles (wgmma_tiles).
#include "codegen/contraction_wgmma.h"

#include "codegen/wgmma_ahead.h"
#include "codegen/wgmma_copies.h"
#include "codegen/wgmma_epilogue.h"
#include "codegen/wgmma_exchange.h"
#include "codegen/wgmma_kernel.h"
#include "codegen/wgmma_mainloop.h"
#include "codegen/wgmma_padding.h"
#include "codegen/wgmma_pipeline.h"
#include "codegen/wgmma_tiles.h"

namespace tilewright {
namespace {

using llvm::Value;

// The named barrier at which the first consumer waits for its turn; the second's follows.
constexpr int kFirstTurnBarrier = 4;

class WgmmaWriter {
 public:
  WgmmaWriter(KernelModule& module, const ContractionWgmmaPlan& plan, const DeviceLaunch& launch,
              const std::vector<TensorMap>& maps)
      : k_(module, plan, launch, maps) {}

  void Write() {
    StageRing::Initialise(k_);
    if (k_.plan.cluster_size() > 1) {
      k_.ptx.ClusterBarrier();
    } else {
      k_.ptx.Barrier(k_.I32(0), k_.plan.threads);
    }
    k_.ptx.LetLaterGridsStart();
    if (k_.plan.ahead_bytes > 0) AskAhead();
    k_.ptx.WaitForEarlierGrids();
    k_.m.If(
        k_.IsProducer(), [&] { Produce(); }, [&] { Consume(); });
    // Nobody may leave while its peer may still arrive at its barriers.
    if (k_.plan.cluster_size() > 1) k_.ptx.ClusterBarrier();
    k_.m.EndEntry();
  }

 private:
  void AskAhead() {
    k_.m.If(k_.b.CreateICmpEQ(k_.warpgroup, k_.I32(0)), [&] {
      TileWalk walk(k_);
      k_.m.If(walk.HasFirst(), [&] {
        const WgmmaTile tile = walk.First();
        AheadLines ahead;
        ahead.rows_operand = k_.plan.ahead_rows;
        ahead.first_row = k_.plan.ahead_rows ? tile.row : tile.column;
        ahead.batch_positions = tile.batch_positions;
        ahead.first_depth = k_.I32(0);
        ahead.bytes_of_row = k_.plan.ahead_bytes;
        EmitAskAhead(k_, ahead);
      });
    });
  }

  void Produce() {
    if (k_.plan.producer_registers > 0) k_.ptx.SetMaxRegisters(k_.plan.producer_registers, false);
    k_.m.If(k_.b.CreateICmpEQ(k_.in_group, k_.I32(0)), [&] {
      TileWalk walk(k_);
      StageRing ring(k_, 1);
      DeviceVariable k_block(k_.m, "k_block");
      walk.ForEach(k_.I32(0), 1, [&](const WgmmaTile& tile) {
        k_block.Set(tile.first_block);
        Value* end = k_.b.CreateAdd(tile.first_block, tile.blocks);
        While(
            k_.m, "copy", [&] { return k_.b.CreateICmpULT(k_block.Get(), end); },
            [&] {
              const RingPosition at = ring.Get();
              EmitStageCopies(k_, ring, at, tile, k_block.Get());
              ring.Set(ring.Next(at));
              k_block.Set(k_.b.CreateAdd(k_block.Get(), k_.I32(1)));
            });
      });
    });
  }

  void Consume() {
    if (k_.plan.consumer_registers > 0) k_.ptx.SetMaxRegisters(k_.plan.consumer_registers, true);
    TileWalk walk(k_);
    StageRing ring(k_, 0);
    WgmmaEpilogue epilogue(k_);
    if (k_.plan.pingpong) {
      ConsumeInTurn(walk, ring, epilogue);
    } else {
      walk.ForEach(k_.I32(0), 1, [&](const WgmmaTile& tile) {
        const std::vector<Value*> sums = EmitMainloop(k_, ring, tile.blocks);
        if (k_.plan.stream_k == WgmmaStreamK::kOff) return epilogue.Emit(tile, sums);
        PartialSums partial_sums(k_, walk);
        k_.m.If(
            tile.ends, [&] { epilogue.Emit(tile, partial_sums.AddOthers(tile, sums)); },
            [&] { partial_sums.Leave(sums); });
      });
    }
    epilogue.Finish();
  }

  // The consumers' multiplications follow one another as the ring's stages do; each one's epilogue
  // runs beside the other's multiplications.
  void ConsumeInTurn(TileWalk& walk, StageRing& ring, WgmmaEpilogue& epilogue) {
    const int threads = 2 * kWarpgroup;
    Value* own = k_.b.CreateAdd(k_.warpgroup, k_.I32(kFirstTurnBarrier));
    Value* other = k_.b.CreateSub(k_.I32(2 * kFirstTurnBarrier + 1), own);
    // The first tile is the first consumer's: the second gives it the turn, and begins a tile
    // later.
    k_.m.If(k_.b.CreateICmpEQ(k_.warpgroup, k_.I32(1)), [&] {
      k_.ptx.BarrierArrive(other, threads);
      ring.Set(ring.Skip(ring.Get(), k_.k_blocks));
    });
    walk.ForEach(k_.warpgroup, 2, [&](const WgmmaTile& tile) {
      k_.ptx.Barrier(own, threads);
      const std::vector<Value*> sums = EmitMainloop(k_, ring, tile.blocks);
      // No turn is passed on to nobody.
      k_.m.If(tile.another, [&] { k_.ptx.BarrierArrive(other, threads); });
      ring.Set(ring.Skip(ring.Get(), k_.k_blocks));
      epilogue.Emit(tile, sums);
    });
  }

  WgmmaKernel k_;
};

}  // namespace

absl::Status WriteContractionWgmma(const Candidate& candidate, const Plan& plan,
                                   KernelModule* module) {
  const auto& wgmma = static_cast<const ContractionWgmmaPlan&>(plan);
  DeviceLaunch launch;
  launch.grid = {wgmma.grid, 1, 1};
  launch.block = wgmma.threads;
  launch.cluster = wgmma.cluster_size();
  launch.shared_memory_bytes = wgmma.shared_memory_bytes;
  launch.dependent_launch = true;
  launch.minimum_blocks = 1;
  const std::vector<TensorMap> maps = MakeWgmmaMaps(candidate.workload, wgmma);
  DemandMapAlignment(maps, module);
  DemandPairAlignment(wgmma, module);
  module->workspace().bytes = wgmma.workspace_bytes;
  module->workspace().flag_bytes = wgmma.flag_bytes;
  if (wgmma.flag_bytes > 0) module->workspace().alignment = 256;
  WriteOperandCopies(module, wgmma);
  WgmmaWriter(*module, wgmma, launch, maps).Write();
  return absl::OkStatus();
}

}  // namespace tilewright
