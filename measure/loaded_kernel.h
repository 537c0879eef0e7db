// A LoadedKernel is a kernel's code in this process, ready to be called. Only runners load code:
// what it does, it does to them.
#ifndef TILEWRIGHT_MEASURE_LOADED_KERNEL_H_
#define TILEWRIGHT_MEASURE_LOADED_KERNEL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel.h"

namespace tilewright {

class LoadedKernel {
 public:
  // Links the kernel's objects into one mapping (code read-execute, constants read-only). Names it
  // may use from outside: memory functions, the C math library and the compiler's conversion
  // functions. Unimplemented: another object format. InvalidArgument: the object or a launch's
  // entry cannot be resolved; the text names the symbol. ResourceExhausted: no memory.
  static absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(const Kernel& kernel);
  virtual ~LoadedKernel() = default;
  // One per launch, in order.
  virtual const std::vector<HostEntry>& entries() const = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_LOADED_KERNEL_H_
