// A BuilderPool keeps builder children at work: one per core, reused from task to task, each task
// under its own deadline. A builder that hangs or dies costs its task and is replaced.
//
// Not thread-safe; one thread owns it. Children start with the first task.
#ifndef TILEWRIGHT_MEASURE_BUILDER_POOL_H_
#define TILEWRIGHT_MEASURE_BUILDER_POOL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "measure/measure.pb.h"

namespace tilewright {

class BuilderPool {
 public:
  // `executable`: started with the command `builder`.
  static std::unique_ptr<BuilderPool> Make(std::string executable, int builders);
  virtual ~BuilderPool() = default;
  // Results in the order of the tasks; each holds a kernel or a failure (build failed, build
  // timeout, resource limit).
  virtual std::vector<v1::BuiltKernel> Build(absl::Span<const v1::BuildTask> tasks,
                                             absl::Duration timeout) = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_BUILDER_POOL_H_
