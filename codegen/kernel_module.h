// KernelModule is the thin builder that writers write kernels with: an LLVM module under
// construction, its entries and the recipe that goes with them. Loops, conditions and vectors by
// name over IRBuilder. The target's backend decides the module's triple and which kind of entry it
// may have: BeginEntry for `host`, BeginDeviceEntry for `nvptx`.
//
// Not thread-safe; one per kernel.
#ifndef TILEWRIGHT_CODEGEN_KERNEL_MODULE_H_
#define TILEWRIGHT_CODEGEN_KERNEL_MODULE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "schedule/element_type.h"
#include "schedule/target.h"
#include "schedule/workload.h"

namespace tilewright {

// What a launch on a GPU is told beside its arguments (codegen/kernel.h, Launch).
struct DeviceLaunch {
  std::array<int, 3> grid = {1, 1, 1};  // blocks
  int block = 128;                      // threads, along x
  int cluster = 1;                      // blocks of a cluster, along x; 1: none
  int64_t shared_memory_bytes = 0;      // dynamic
  // The code waits for the launch before it by itself (griddepcontrol.wait). Then nothing may be
  // read earlier than it says, so buffers are not declared noalias.
  bool dependent_launch = false;
  // Blocks that an SM must hold at once: limits registers. 0: no demand.
  int minimum_blocks = 1;
};

class KernelModule {
 public:
  KernelModule(const Workload& workload, const Target& target);

  // What entries of all backends have while their body is being written; `builder()` stands in it.
  struct EntryValues {
    llvm::Function* function = nullptr;
    // ptr; on a GPU ptr addrspace(1). On a GPU null if the kernel has no workspace.
    llvm::Value* workspace = nullptr;
    // ptr (addrspace(1) on a GPU): parameters, then outputs.
    std::vector<llvm::Value*> buffers;
    // i64 by index number: a constant, or an argument where ranged.
    std::vector<llvm::Value*> sizes;
  };

  // An entry on a CPU.
  struct Entry : EntryValues {
    llvm::Value* args = nullptr;     // ptr
    llvm::Value* thread = nullptr;   // i64
    llvm::Value* threads = nullptr;  // i64
  };
  // Begins an entry and its launch; every buffer and every ranged size is an argument. Buffers are
  // noalias. `extra_buffers` more than the workload's follow them (reference kernels write two per
  // output).
  Entry BeginEntry(int threads, int extra_buffers = 0);

  // An entry on a GPU: every thread of every block runs it.
  struct DeviceEntry : EntryValues {
    std::vector<llvm::Value*> tensor_maps;  // i64, generic address of each map
    llvm::Value* shared = nullptr;          // ptr addrspace(3): dynamic, aligned to 1024
  };
  // Begins an entry and its launch. Its parameters: every buffer (noalias), every ranged size, the
  // maps, and the workspace if workspace().bytes has been set. `maps` join tensor_maps() of the
  // kernel. `extra_buffers` as above.
  DeviceEntry BeginDeviceEntry(const DeviceLaunch& launch, const std::vector<TensorMap>& maps = {},
                               int extra_buffers = 0);
  // Ends either with `ret void`.
  void EndEntry();

  // On a GPU, i32 in 0 … : the thread's number in its block, the block's in the grid along x.
  llvm::Value* ThreadInBlock();
  llvm::Value* BlockInGrid();
  // On a GPU: all threads of the block wait for one another; shared and global memory written
  // before is seen after.
  void Barrier();

  // A private function of the module (no launch), with the given parameter types, returning void;
  // saves the insertion point until EndFunction. `always_inline` or never inlined.
  llvm::Function* BeginFunction(const std::string& name, const std::vector<llvm::Type*>& parameters,
                                bool always_inline);
  void EndFunction();

  llvm::IRBuilder<>& builder() { return builder_; }
  llvm::LLVMContext& context() { return *context_; }
  llvm::Module& module() { return *module_; }
  const Workload& workload() const { return workload_; }
  const Target& target() const { return target_; }
  Workspace& workspace() { return workspace_; }
  std::vector<Launch>& launches() { return launches_; }
  std::vector<TensorMap>& tensor_maps() { return tensor_maps_; }
  // The alignment in bytes that the kernel's domain demands of buffer `number`; at first that of
  // its element.
  std::vector<int64_t>& alignments() { return alignments_; }
  // GPU: registers spilled to memory fail the build unless this is called: for kernels that must
  // exist, however slow (the reference, the naive variant).
  void AllowSpills() { spills_allowed_ = true; }
  bool spills_allowed() const { return spills_allowed_; }

  llvm::Value* Int(int64_t value);  // i64 constant
  llvm::Type* Type(
      ElementType type,
      int lanes = 1);  // storage type: half, bfloat, i8 for fp8 …; a vector if lanes > 1
  // for (i = begin; i < end; i += step) body(i), i64. `unroll`: 0 leaves LLVM its choice, 1 forbids
  // it, n asks for n.
  void For(llvm::Value* begin, llvm::Value* end, int64_t step, const std::string& name,
           const std::function<void(llvm::Value*)>& body, int unroll = 1);
  void If(llvm::Value* condition, const std::function<void()>& then,
          const std::function<void()>& otherwise = nullptr);
  llvm::Value* Min(llvm::Value* a, llvm::Value* b);  // signed i64
  llvm::Value* Max(llvm::Value* a, llvm::Value* b);
  llvm::Value* CeilDiv(llvm::Value* a, int64_t b);
  // A stack slot in the entry block of the current function.
  llvm::AllocaInst* Local(llvm::Type* type, const std::string& name, int64_t count = 1,
                          int alignment = 64);
  // Loads `lanes` adjacent elements of a buffer at an element offset, widened to `as` (f32, f64 or
  // i32 for computing). With `mask` (lanes x i1) only those lanes are touched, the others are 0.
  // Stores round to `type`.
  llvm::Value* LoadElements(ElementType type, llvm::Value* base, llvm::Value* offset, int lanes,
                            ElementType as, llvm::Value* mask = nullptr);
  void StoreElements(ElementType type, llvm::Value* value, llvm::Value* base, llvm::Value* offset,
                     int lanes, llvm::Value* mask = nullptr);
  // Lane i of the mask is (first + i < end), <lanes x i1>.
  llvm::Value* LaneMask(llvm::Value* first, llvm::Value* end, int lanes);
  // value + lane number in every lane, <lanes x i64>.
  llvm::Value* Iota(llvm::Value* first, int lanes);

 private:
  std::unique_ptr<llvm::LLVMContext> context_;
  std::unique_ptr<llvm::Module> module_;
  llvm::IRBuilder<> builder_;
  const Workload& workload_;
  const Target& target_;
  Workspace workspace_;
  std::vector<Launch> launches_;
  std::vector<TensorMap> tensor_maps_;
  std::vector<int64_t> alignments_;
  bool spills_allowed_ = false;
  std::vector<llvm::IRBuilderBase::InsertPoint> saved_;
  llvm::Function* entry_ = nullptr;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_KERNEL_MODULE_H_
