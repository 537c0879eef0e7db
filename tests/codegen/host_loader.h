// Loads a kernel's objects into this process and runs its launches, for tests. Real devices are
// measure/'s business.
#ifndef TILEWRIGHT_TESTS_CODEGEN_HOST_LOADER_H_
#define TILEWRIGHT_TESTS_CODEGEN_HOST_LOADER_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel.h"

namespace tilewright {

// Thread-safe after Load except Run, which uses one workspace.
class LoadedKernel {
 public:
  // Internal: LLVM's linker refused the objects.
  static absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(const Kernel& kernel);
  virtual ~LoadedKernel() = default;

  // Runs all launches in order. `buffers` in the order of the recipe's numbers; `sizes` by
  // canonical index.
  enum class Order { kAtOnce, kForwards, kBackwards };  // of a launch's threads
  virtual void Run(const std::vector<void*>& buffers, const std::vector<int64_t>& sizes,
                   Order order = Order::kAtOnce) = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_CODEGEN_HOST_LOADER_H_
