// Loop nests over the points of a statement, shared by the writers that go point by point.
#ifndef TILEWRIGHT_CODEGEN_LOOP_NEST_H_
#define TILEWRIGHT_CODEGEN_LOOP_NEST_H_

#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "codegen/emit_expr.h"
#include "codegen/kernel_module.h"

namespace tilewright {

// The half-open range of [0, count) that belongs to `entry.thread`: equal shares, the first ones
// longer by one where they do not divide; every share but the last is a multiple of `granule`.
struct Share {
  llvm::Value* begin;
  llvm::Value* end;
};
Share ShareOf(KernelModule& module, const KernelModule::Entry& entry, llvm::Value* count,
              int64_t granule = 1);

// GPU: every thread of the grid takes each so-manieth position of [0, count), so that neighbouring
// threads have neighbouring positions: thread, thread + threads, … .
void ForGridStride(KernelModule& module, const DeviceLaunch& launch, llvm::Value* count,
                   const std::function<void(llvm::Value*)>& body);

// The product of the sizes of `indices`, i64.
llvm::Value* PointCount(KernelModule& module, const KernelModule::EntryValues& entry,
                        absl::Span<const int> indices);
// Sets context->index_values of `indices` from their row-major position, the last fastest.
void SetIndicesFromPosition(KernelModule& module, const KernelModule::EntryValues& entry,
                            absl::Span<const int> indices, llvm::Value* position,
                            EmitContext* context);
// Loops over all values of `indices` (0 … size-1 each), the last innermost; the body finds them in
// context->index_values.
void ForEach(KernelModule& module, const KernelModule::EntryValues& entry,
             absl::Span<const int> indices, EmitContext* context,
             const std::function<void()>& body);

// All lanes of a vector as one number: halves are combined until one lane is left.
llvm::Value* CombineLanes(KernelModule& module, ReduceOp op, llvm::Value* value);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_LOOP_NEST_H_
