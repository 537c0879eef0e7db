// In which type the parts of a program are computed and intermediates kept. Matching, plans,
// writers and the reference kernel agree through this.
#ifndef TILEWRIGHT_SCHEDULE_COMPUTE_TYPE_H_
#define TILEWRIGHT_SCHEDULE_COMPUTE_TYPE_H_

#include "schedule/workload.h"

namespace tilewright {

// The type `expr` is computed in: f64 if it reads f64; i32 if it reads integers only and has only
// operations that keep them integers; f64 if other operations meet i32 alone; else f32. The type of
// a reduction is that of its operand, which is also what it accumulates in.
ElementType ComputeType(const Workload& workload, const Expr& expr);

// The type in which readers of `tensor` see its elements: a parameter's own type; for a tensor that
// a statement writes, f64 if its layout says so, else what the statement is computed in. Storing an
// intermediate does not round (only `cast` does), nor does storing an output that is read again.
ElementType ValueType(const Workload& workload, int tensor);

// The statement that writes `tensor`; null for a parameter.
const Statement* FindWriterOf(const Program& program, int tensor);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_COMPUTE_TYPE_H_
