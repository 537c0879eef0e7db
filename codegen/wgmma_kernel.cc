#include "codegen/wgmma_kernel.h"

#include "llvm/IR/Constants.h"

namespace tilewright {

using llvm::Value;

DeviceVariable::DeviceVariable(KernelModule& module, const std::string& name)
    : m_(&module), slot_(module.Local(module.builder().getInt32Ty(), name, 1, 4)) {}

Value* DeviceVariable::Get() const {
  return m_->builder().CreateAlignedLoad(m_->builder().getInt32Ty(), slot_, llvm::Align(4));
}

void DeviceVariable::Set(Value* value) const {
  m_->builder().CreateAlignedStore(value, slot_, llvm::Align(4));
}

void While(KernelModule& m, const std::string& name, const std::function<Value*()>& condition,
           const std::function<void()>& body) {
  llvm::IRBuilder<>& b = m.builder();
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto* test = llvm::BasicBlock::Create(m.context(), name + ".test", function);
  auto* loop = llvm::BasicBlock::Create(m.context(), name, function);
  auto* after = llvm::BasicBlock::Create(m.context(), name + ".after", function);
  b.CreateBr(test);
  b.SetInsertPoint(test);
  b.CreateCondBr(condition(), loop, after);
  b.SetInsertPoint(loop);
  body();
  auto* branch = b.CreateBr(test);
  llvm::Metadata* never =
      llvm::MDNode::get(m.context(), llvm::MDString::get(m.context(), "llvm.loop.unroll.disable"));
  llvm::MDNode* id = llvm::MDNode::getDistinct(m.context(), {nullptr, never});
  id->replaceOperandWith(0, id);
  branch->setMetadata(llvm::LLVMContext::MD_loop, id);
  b.SetInsertPoint(after);
}

WgmmaKernel::WgmmaKernel(KernelModule& module, const ContractionWgmmaPlan& p,
                         const DeviceLaunch& launch, const std::vector<TensorMap>& maps)
    : m(module),
      plan(p),
      entry(module.BeginDeviceEntry(launch, maps)),
      b(module.builder()),
      ptx(module) {
  shared = ptx.SharedAddress(entry.shared);
  thread = ptx.ThreadIndex();
  warpgroup = ptx.FirstLane(b.CreateLShr(thread, 7));
  in_group = b.CreateAnd(thread, I32(kWarpgroup - 1));
  rank = plan.cluster_size() == 1 ? I32(0) : ptx.ClusterRank();
  const Contraction& c = *plan.contraction;
  rows = Extent(plan.swap ? c.n : c.m);
  columns = Extent(plan.swap ? c.m : c.n);
  depth = I32(1);
  for (const Axis& axis : c.k) depth = b.CreateNUWMul(depth, Extent(axis));
  batches = I32(1);
  for (const Axis& axis : c.batch) batches = b.CreateNUWMul(batches, Extent(axis));
  k_blocks = CeilDiv(depth, plan.tile_k);
}

Value* WgmmaKernel::IsProducer() const { return b.CreateICmpEQ(warpgroup, I32(plan.consumers)); }

Value* WgmmaKernel::I32(int64_t value) const { return b.getInt32(static_cast<uint32_t>(value)); }

Value* WgmmaKernel::CeilDiv(Value* a, int64_t divisor) const {
  if (divisor == 1) return a;
  return b.CreateUDiv(b.CreateAdd(a, I32(divisor - 1)), I32(divisor));
}

Value* WgmmaKernel::Extent(const Axis& axis) const {
  Value* extent = I32(1);
  for (int index : axis.indices)
    extent = b.CreateNUWMul(extent, b.CreateTrunc(entry.sizes[index], b.getInt32Ty()));
  return extent;
}

}  // namespace tilewright
