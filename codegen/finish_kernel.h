// The last steps that all kernels share: names for the entries, the digests, the backend's object,
// and dumps of each stage.
#ifndef TILEWRIGHT_CODEGEN_FINISH_KERNEL_H_
#define TILEWRIGHT_CODEGEN_FINISH_KERNEL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/backends.h"
#include "codegen/kernel.h"
#include "codegen/kernel_module.h"

namespace tilewright {

// Files of one dump, numbered in the order they are added: 01-schedule.txt, 02-plan.txt, …
class DumpFiles {
 public:
  // Empty: nothing is written. The directory is made.
  explicit DumpFiles(std::string directory);
  bool wanted() const { return !directory_.empty(); }
  void Add(std::string_view name, std::string_view text);
  // Internal: the first file that could not be written.
  const absl::Status& status() const { return status_; }

 private:
  std::string directory_;
  int count_ = 0;
  absl::Status status_;
};

// Turns a filled module into a kernel: the entries' symbols become `tw_` + 16 hex digits of the
// SHA-256 of the IR text with those symbols blanked (a second and later entry also hashes its
// number), the backend builds the object.
absl::StatusOr<Kernel> FinishKernel(KernelModule* module, const BuildOptions& options,
                                    DumpFiles* dump);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_FINISH_KERNEL_H_
