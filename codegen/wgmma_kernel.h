// What the parts of a contraction.wgmma kernel share while it is being written: the plan, the
// entry, who a thread is, and small 32-bit arithmetic.
#ifndef TILEWRIGHT_CODEGEN_WGMMA_KERNEL_H_
#define TILEWRIGHT_CODEGEN_WGMMA_KERNEL_H_

#include <functional>
#include <string>

#include "codegen/kernel_module.h"
#include "codegen/ptx.h"
#include "schedule/contraction_wgmma.h"

namespace tilewright {

// A 32-bit number that changes: a stack slot, which LLVM's passes turn into registers.
class DeviceVariable {
 public:
  DeviceVariable(KernelModule& module, const std::string& name);
  llvm::Value* Get() const;
  void Set(llvm::Value* value) const;

 private:
  KernelModule* m_;
  llvm::AllocaInst* slot_;
};

// while (condition()) body(); never unrolled.
void While(KernelModule& module, const std::string& name,
           const std::function<llvm::Value*()>& condition, const std::function<void()>& body);

// Not thread-safe; one per entry. Borrows module and plan.
class WgmmaKernel {
 public:
  // Stands in the entry that it begins.
  WgmmaKernel(KernelModule& module, const ContractionWgmmaPlan& plan, const DeviceLaunch& launch,
              const std::vector<TensorMap>& maps);

  KernelModule& m;
  const ContractionWgmmaPlan& plan;
  KernelModule::DeviceEntry entry;
  llvm::IRBuilder<>& b;
  PtxBuilder ptx;
  // i32, all of them
  llvm::Value* shared;     // address of dynamic shared memory
  llvm::Value* thread;     // in the block
  llvm::Value* warpgroup;  // in the block: consumers, then the producer
  llvm::Value* in_group;   // thread in its warpgroup
  llvm::Value* rank;       // CTA in its cluster
  llvm::Value* rows;       // extents on the instruction's sides
  llvm::Value* columns;
  llvm::Value* depth;  // K
  llvm::Value* batches;
  llvm::Value* k_blocks;

  llvm::Value* IsProducer() const;  // i1

  llvm::Value* I32(int64_t value) const;
  llvm::Value* CeilDiv(llvm::Value* a, int64_t b_) const;
  // An axis' extent at the call's sizes, i32.
  llvm::Value* Extent(const Axis& axis) const;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_KERNEL_H_
