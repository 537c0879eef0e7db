#include "codegen/wgmma_mainloop.h"

#include "llvm/IR/Constants.h"

namespace tilewright {

using llvm::Value;

namespace {

// Shared-memory matrix descriptors (PTX ISA 9.7.15.5.1.2.2), all for the 128-byte swizzle. Bits
// 0-13 address / 16, 16-29 leading and 32-45 stride byte offset / 16, 62-63 layout (1: 128 bytes).
//   K-major: 8 rows of 128 bytes repeat every 1024 bytes (stride); leading is not used.
//   MN-major: an atom has 64 rows side by side and as many lines of 128 bytes as the piece has
//   steps of k; 8 of them make 1024 bytes (stride), the next 64 rows come a whole atom later
//   (leading).
constexpr uint32_t kDescriptorHigh = (1u << 30) | (1024 >> 4);
constexpr uint32_t kAddressMask = (1u << 18) - 1;
constexpr int kAtomLines = 64;  // of an MN-major piece: 128 bytes of k in 16-bit elements

uint32_t LowConstant(const WgmmaOperandPlan& operand) {
  const uint32_t leading = operand.transposed ? kAtomLines * kSwizzleBytes >> 4 : 1;
  return leading << 16;
}

// From the descriptor of a stage to that of each step of k, in 16 bytes.
std::vector<int> StepOffsets(const ContractionWgmmaPlan& plan, const WgmmaOperandPlan& operand) {
  const int steps_per_atom = kSwizzleBytes / kWgmmaDepthBytes;
  const int step =
      operand.transposed ? kAtomLines / steps_per_atom * kSwizzleBytes : kWgmmaDepthBytes;
  std::vector<int> offsets;
  for (int64_t atom = 0; atom < operand.stage_bytes / operand.atom_bytes; ++atom) {
    for (int i = 0; i < steps_per_atom; ++i)
      offsets.push_back(static_cast<int>(atom * operand.atom_bytes + i * step) >> 4);
  }
  return offsets;
}

WgmmaGroup GroupOf(const ContractionWgmmaPlan& plan) {
  WgmmaGroup group;
  group.type = plan.type;
  group.columns = plan.tile_n;
  for (int block = 0; block < plan.consumer_rows / kWgmmaRows; ++block)
    group.block_offsets.push_back(block * kWgmmaRows * kSwizzleBytes >> 4);
  group.a_step_offsets = StepOffsets(plan, plan.rows_operand);
  group.b_step_offsets = StepOffsets(plan, plan.columns_operand);
  group.a_high = group.b_high = kDescriptorHigh;
  group.a_transposed = plan.rows_operand.transposed;
  group.b_transposed = plan.columns_operand.transposed;
  return group;
}

// Gives stages back to the producers that fill them: one thread of the warpgroup for each CTA of
// the cluster.
class StageReturn {
 public:
  StageReturn(WgmmaKernel& k, const StageRing& ring) : k_(k), ring_(ring) {
    const int ctas = k.plan.pair_size();
    chosen_ = k.b.CreateICmpULT(k.in_group, k.I32(ctas));
    if (ctas > 1)
      distance_ = k.b.CreateSub(
          k.ptx.AddressInCluster(ring.Empty(k.I32(0)), k.b.CreateAnd(k.in_group, k.I32(1))),
          ring.Empty(k.I32(0)));
  }

  void Emit(Value* stage, Value* condition) {
    Value* address = ring_.Empty(stage);
    Value* arrives = condition == nullptr ? chosen_ : k_.b.CreateAnd(chosen_, condition);
    if (distance_ == nullptr) return k_.ptx.MbarrierArriveIf(arrives, address);
    k_.ptx.MbarrierArriveInClusterIf(arrives, k_.b.CreateAdd(address, distance_));
  }

 private:
  WgmmaKernel& k_;
  const StageRing& ring_;
  Value* chosen_;
  Value* distance_ = nullptr;  // from an address here to the same one in the chosen CTA
};

}  // namespace

std::vector<Value*> EmitMainloop(WgmmaKernel& k, StageRing& ring, Value* blocks) {
  const ContractionWgmmaPlan& plan = k.plan;
  llvm::IRBuilder<>& b = k.b;
  const WgmmaGroup group = GroupOf(plan);
  StageReturn give_back(k, ring);
  const RingPosition start = ring.Get();
  // Cooperative consumers share the rows.
  const int64_t own_bytes = plan.pingpong ? 0 : int64_t{plan.consumer_rows} * kSwizzleBytes;
  Value* own = b.CreateAdd(k.I32(plan.rows_operand.stage_offset),
                           b.CreateMul(k.warpgroup, k.I32(own_bytes)));

  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(k.m.context(), "k", function);
  auto* after = llvm::BasicBlock::Create(k.m.context(), "k.after", function);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::Type* i32 = b.getInt32Ty();
  auto phi = [&](llvm::Type* type, Value* first, const char* name) {
    llvm::PHINode* node = b.CreatePHI(type, 2, name);
    node->addIncoming(first, before);
    return node;
  };
  llvm::PHINode* k_block = phi(i32, k.I32(0), "k.block");
  llvm::PHINode* stage = phi(i32, start.stage, "k.stage");
  llvm::PHINode* parity = phi(i32, start.parity, "k.parity");
  std::vector<Value*> sums;
  // With promotion the carried sums begin at zero, and each stage's own are added to them.
  Value* first_sum = plan.promote ? static_cast<Value*>(llvm::ConstantFP::get(b.getFloatTy(), 0))
                                  : llvm::PoisonValue::get(b.getFloatTy());
  for (int i = 0; i < group.accumulators(); ++i)
    sums.push_back(phi(b.getFloatTy(), first_sum, "sum"));
  const std::vector<Value*> carried = sums;

  const RingPosition at = {stage, parity};
  k.ptx.MbarrierWait(ring.Full(stage), parity);
  auto low = [&](const WgmmaOperandPlan& operand, Value* offset) {
    // In a cluster shared addresses have the CTA's number above these bits.
    Value* address = b.CreateAnd(b.CreateAdd(ring.Data(stage), offset), k.I32(kAddressMask));
    return b.CreateOr(b.CreateLShr(address, 4), k.I32(LowConstant(operand)));
  };
  Value* a_low = low(plan.rows_operand, own);
  Value* b_low = low(plan.columns_operand, k.I32(plan.columns_operand.stage_offset));
  if (plan.promote) {
    const std::vector<Value*> none(sums.size(), llvm::PoisonValue::get(b.getFloatTy()));
    const std::vector<Value*> own_sums =
        k.ptx.WgmmaWaitAll(k.ptx.Wgmma(group, none, a_low, b_low, k.I32(0)));
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = b.CreateFAdd(sums[i], own_sums[i]);
  } else {
    // The first block starts the sums from zero.
    sums = k.ptx.Wgmma(group, sums, a_low, b_low, k_block);
    k.ptx.WgmmaWait(plan.in_flight);
  }
  if (plan.in_flight == 0) {
    give_back.Emit(stage, nullptr);
  } else {
    // The group before this one has been waited for.
    Value* wraps = b.CreateICmpEQ(stage, k.I32(0));
    Value* previous = b.CreateSelect(wraps, k.I32(plan.stages - 1), b.CreateSub(stage, k.I32(1)));
    give_back.Emit(previous, b.CreateICmpNE(k_block, k.I32(0)));
  }
  const RingPosition next = ring.Next(at);
  Value* next_block = b.CreateAdd(k_block, k.I32(1));
  llvm::BasicBlock* latch = b.GetInsertBlock();
  k_block->addIncoming(next_block, latch);
  stage->addIncoming(next.stage, latch);
  parity->addIncoming(next.parity, latch);
  for (size_t i = 0; i < sums.size(); ++i)
    llvm::cast<llvm::PHINode>(carried[i])->addIncoming(sums[i], latch);
  auto* branch = b.CreateCondBr(b.CreateICmpULT(next_block, blocks), loop, after);
  llvm::Metadata* never = llvm::MDNode::get(
      k.m.context(), llvm::MDString::get(k.m.context(), "llvm.loop.unroll.disable"));
  llvm::MDNode* id = llvm::MDNode::getDistinct(k.m.context(), {nullptr, never});
  id->replaceOperandWith(0, id);
  branch->setMetadata(llvm::LLVMContext::MD_loop, id);
  b.SetInsertPoint(after);

  if (!plan.promote) sums = k.ptx.WgmmaWaitAll(sums);
  if (plan.in_flight != 0) give_back.Emit(stage, nullptr);
  ring.Set(next);
  return sums;
}

}  // namespace tilewright
