#include "codegen/wgmma_exchange.h"

#include <algorithm>

#include "codegen/wgmma_epilogue.h"

namespace tilewright {

using llvm::Value;

namespace {

// Four sums of each thread of a warpgroup lie side by side.
constexpr int64_t kQuadsBytes = int64_t{kWarpgroup} * 16;

}  // namespace

Value* PartialSums::Cta(Value* walker) const {
  return k_.plan.pair_size() == 1 ? walker : k_.b.CreateAdd(k_.b.CreateShl(walker, 1), k_.rank);
}

Value* PartialSums::Flag(Value* cta) const {
  llvm::IRBuilder<>& b = k_.b;
  Value* number = b.CreateAdd(b.CreateMul(cta, k_.I32(k_.plan.consumers)), k_.warpgroup);
  Value* base = b.CreatePtrToInt(k_.entry.workspace, b.getInt64Ty());
  return b.CreateAdd(base, b.CreateZExt(b.CreateShl(number, 2), b.getInt64Ty()));
}

Value* PartialSums::Place(Value* cta) const {
  llvm::IRBuilder<>& b = k_.b;
  const int64_t bytes = int64_t{k_.plan.consumer_rows} * k_.plan.tile_n * 4;  // of a consumer
  Value* number = b.CreateAdd(b.CreateMul(cta, k_.I32(k_.plan.consumers)), k_.warpgroup);
  Value* offset = b.CreateMul(b.CreateZExt(number, b.getInt64Ty()), k_.m.Int(bytes));
  Value* own = b.CreateZExt(b.CreateShl(k_.in_group, 4), b.getInt64Ty());
  Value* base = b.CreatePtrToInt(k_.entry.workspace, b.getInt64Ty());
  return b.CreateAdd(b.CreateAdd(base, k_.m.Int(k_.plan.partials_offset)),
                     b.CreateAdd(offset, own));
}

Value* PartialSums::OwnBarrier() const {
  return k_.b.CreateAdd(k_.warpgroup, k_.I32(kFirstConsumerBarrier));
}

// 40 registers are for the rest.
size_t PartialSums::QuadsAtOnce() const {
  const int64_t all = k_.plan.consumer_registers > 0 ? k_.plan.consumer_registers : 255;
  const int64_t sums = Accumulators(k_.plan.consumer_rows, k_.plan.tile_n);
  return static_cast<size_t>(std::clamp<int64_t>((all - 40 - sums) / 4, 1, 16));
}

void PartialSums::Leave(const std::vector<Value*>& sums) {
  llvm::IRBuilder<>& b = k_.b;
  Value* cta = k_.ptx.BlockIndex();
  Value* place = Place(cta);
  for (size_t i = 0; i < sums.size(); i += 4) {
    Value* at = b.CreateAdd(place, k_.m.Int(static_cast<int64_t>(i / 4) * kQuadsBytes));
    k_.ptx.StoreQuad(at, {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]});
  }
  k_.ptx.Barrier(OwnBarrier(), kWarpgroup);
  k_.m.If(b.CreateICmpEQ(k_.in_group, k_.I32(0)), [&] { k_.ptx.RaiseFlag(Flag(cta)); });
}

std::vector<Value*> PartialSums::AddOthers(const WgmmaTile& tile, const std::vector<Value*>& sums) {
  llvm::IRBuilder<>& b = k_.b;
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* test = llvm::BasicBlock::Create(k_.m.context(), "others.test", function);
  auto* add = llvm::BasicBlock::Create(k_.m.context(), "others", function);
  auto* after = llvm::BasicBlock::Create(k_.m.context(), "others.after", function);
  b.CreateBr(test);
  b.SetInsertPoint(test);
  llvm::PHINode* walker = b.CreatePHI(b.getInt32Ty(), 2, "others.walker");
  walker->addIncoming(walk_.walker(), before);
  std::vector<llvm::PHINode*> carried;
  for (Value* sum : sums) {
    carried.push_back(b.CreatePHI(b.getFloatTy(), 2, "others.sum"));
    carried.back()->addIncoming(sum, before);
  }
  // A share that begins after the tile does leaves some of it to the one before.
  b.CreateCondBr(b.CreateICmpUGT(walk_.ShareBegin(walker), tile.first_unit), add, after);

  b.SetInsertPoint(add);
  Value* other = b.CreateSub(walker, k_.I32(1));
  Value* cta = Cta(other);
  k_.m.If(b.CreateICmpEQ(k_.in_group, k_.I32(0)), [&] { k_.ptx.AwaitAndLowerFlag(Flag(cta)); });
  k_.ptx.Barrier(OwnBarrier(), kWarpgroup);
  Value* place = Place(cta);
  std::vector<Value*> added;
  for (size_t first = 0; first < sums.size(); first += 4 * QuadsAtOnce()) {
    // As many loads are under way at a time as there are registers for.
    const size_t end = std::min(sums.size(), first + 4 * QuadsAtOnce());
    std::vector<Value*> loaded;
    for (size_t i = first; i < end; i += 4) {
      Value* at = b.CreateAdd(place, k_.m.Int(static_cast<int64_t>(i / 4) * kQuadsBytes));
      const std::vector<Value*> quad = k_.ptx.LoadQuad(at);
      loaded.insert(loaded.end(), quad.begin(), quad.end());
    }
    for (size_t i = first; i < end; ++i)
      added.push_back(b.CreateFAdd(carried[i], loaded[i - first]));
  }
  walker->addIncoming(other, b.GetInsertBlock());
  for (size_t i = 0; i < sums.size(); ++i) carried[i]->addIncoming(added[i], b.GetInsertBlock());
  b.CreateBr(test);
  b.SetInsertPoint(after);
  return {carried.begin(), carried.end()};
}

}  // namespace tilewright
