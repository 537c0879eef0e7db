// A KernelCaller calls one loaded kernel on sets of buffers, as its recipe says: launches in order,
// each on its threads, a barrier only between launches. Argument tables are made beforehand, so
// that a call costs nothing beside the launches.
#ifndef TILEWRIGHT_MEASURE_KERNEL_CALLER_H_
#define TILEWRIGHT_MEASURE_KERNEL_CALLER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel.h"
#include "measure/guarded_memory.h"
#include "measure/host_library.h"
#include "measure/launch_pool.h"
#include "measure/loaded_kernel.h"
#include "schedule/workload.h"

namespace tilewright {

// The buffers of one set: pointers in the order of the kernel's buffer numbers.
using BufferTable = std::vector<void*>;

class KernelCaller {
 public:
  // Loads the kernel and maps its workspace. FailedPrecondition: the domain does not hold the sizes
  // or the buffers' alignment. InvalidArgument: the recipe names a buffer or size that does not
  // exist, or LoadedKernel's reasons. ResourceExhausted: no memory for code or workspace.
  static absl::StatusOr<std::unique_ptr<KernelCaller>> Make(const Kernel& kernel, LaunchPool& pool);
  ~KernelCaller();

  // Makes the tables for calls on `sets` at `sizes`, replacing the earlier ones.
  absl::Status Bind(absl::Span<const int64_t> sizes, const std::vector<BufferTable>& sets);
  // Precondition: bound. Returns when the kernel is done.
  void Call(int set);

  // Fills the workspace with a byte: whoever reads it before writing it shows.
  void FillWorkspace(unsigned char value);
  // The offset of a changed guard band byte of the workspace, or 0.
  int64_t FindWorkspaceBandDamage() const;
  const Kernel& kernel() const { return kernel_; }

 private:
  KernelCaller(Kernel kernel, LaunchPool& pool) : kernel_(std::move(kernel)), pool_(pool) {}
  void ZeroWorkspace();
  absl::Status BindLibrary(const std::vector<BufferTable>& sets);

  // What the pool's threads call for one launch.
  struct Step {
    HostEntry entry;
    int32_t threads;
    const uint64_t* arguments;
    void* workspace;
  };

  Kernel kernel_;
  LaunchPool& pool_;
  std::unique_ptr<LoadedKernel> code_;
  std::unique_ptr<GuardedMemory> workspace_;
  void* workspace_data_ = nullptr;
  std::vector<uint64_t> arguments_;
  std::vector<Step> steps_;  // set by set, launch by launch

  // Of a library, instead of code and steps.
  struct Matrices {
    const float* a;
    const float* b;
    float* c;
  };
  LibraryProduct product_;
  std::unique_ptr<HostProduct> library_;
  std::vector<Matrices> matrices_;  // by set
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_KERNEL_CALLER_H_
