#include "codegen/wgmma_pipeline.h"

namespace tilewright {

using llvm::Value;

void StageRing::Initialise(WgmmaKernel& k) {
  const ContractionWgmmaPlan& plan = k.plan;
  const int readers = (plan.pingpong ? 1 : plan.consumers) * plan.pair_size();
  k.m.If(k.b.CreateICmpEQ(k.thread, k.I32(0)), [&] {
    for (int stage = 0; stage < plan.stages; ++stage) {
      k.ptx.MbarrierInit(k.b.CreateAdd(k.shared, k.I32(plan.full_offset + 8 * stage)), 1);
      k.ptx.MbarrierInit(k.b.CreateAdd(k.shared, k.I32(plan.empty_offset + 8 * stage)), readers);
    }
    k.ptx.FenceMbarrierInit();
    for (Value* map : k.entry.tensor_maps) k.ptx.PrefetchTensorMap(map);
  });
}

StageRing::StageRing(WgmmaKernel& kernel, int first_parity)
    : k_(kernel), stage_(kernel.m, "stage"), parity_(kernel.m, "parity") {
  stage_.Set(k_.I32(0));
  parity_.Set(k_.I32(first_parity));
}

void StageRing::Set(const RingPosition& position) const {
  stage_.Set(position.stage);
  parity_.Set(position.parity);
}

RingPosition StageRing::Next(const RingPosition& position) const {
  Value* next = k_.b.CreateAdd(position.stage, k_.I32(1));
  Value* wraps = k_.b.CreateICmpEQ(next, k_.I32(k_.plan.stages));
  return {k_.b.CreateSelect(wraps, k_.I32(0), next),
          k_.b.CreateXor(position.parity, k_.b.CreateZExt(wraps, k_.b.getInt32Ty()))};
}

RingPosition StageRing::Skip(const RingPosition& position, Value* stages) const {
  Value* total = k_.b.CreateAdd(position.stage, stages);
  Value* rounds = k_.b.CreateUDiv(total, k_.I32(k_.plan.stages));
  Value* stage = k_.b.CreateSub(total, k_.b.CreateMul(rounds, k_.I32(k_.plan.stages)));
  return {stage, k_.b.CreateXor(position.parity, k_.b.CreateAnd(rounds, k_.I32(1)))};
}

Value* StageRing::Full(Value* stage) const {
  return k_.b.CreateAdd(k_.b.CreateAdd(k_.shared, k_.I32(k_.plan.full_offset)),
                        k_.b.CreateShl(stage, 3));
}
Value* StageRing::Empty(Value* stage) const {
  return k_.b.CreateAdd(k_.b.CreateAdd(k_.shared, k_.I32(k_.plan.empty_offset)),
                        k_.b.CreateShl(stage, 3));
}
Value* StageRing::Data(Value* stage) const {
  return k_.b.CreateAdd(k_.shared, k_.b.CreateMul(stage, k_.I32(k_.plan.stage_bytes)));
}

}  // namespace tilewright
