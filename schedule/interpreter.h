// The interpreter evaluates any program in double precision at any output points. It is the only
// reference; the tests hold every backend against it, and workers hold their device's reference
// kernel against it.
//
// Intermediate tensors are evaluated on demand and kept, so one point of softmax costs a row, not a
// square. `cast` and `tf32` round where the program says so; storing to an output does not round
// (the caller does). Sums add in double.
//
// Not thread-safe. Borrows the workload and the inputs, which must outlive it.
#ifndef TILEWRIGHT_SCHEDULE_INTERPRETER_H_
#define TILEWRIGHT_SCHEDULE_INTERPRETER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/workload.h"

namespace tilewright {

class Interpreter {
 public:
  // `inputs[i]` is the buffer of workload.parameters()[i], laid out as the workload says.
  // InvalidArgument if sizes are outside their ranges or the number of inputs is wrong.
  static absl::StatusOr<std::unique_ptr<Interpreter>> Make(const Workload& workload, Sizes sizes,
                                                           std::vector<const void*> inputs);
  virtual ~Interpreter() = default;
  // The value of `tensor` (an output or an intermediate) at `point`. OutOfRange: the point is
  // outside the tensor, or a compound subscript leaves a tensor outside a sum.
  virtual absl::StatusOr<double> Evaluate(int tensor, absl::Span<const int64_t> point) = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_INTERPRETER_H_
