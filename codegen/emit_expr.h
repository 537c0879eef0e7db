// Writes the arithmetic of a tensor expression as LLVM IR, at one point or at `lanes` adjacent
// points of one index at once. Writers decide the loops; this decides the arithmetic, the same in
// every variant, so that variants agree.
#ifndef TILEWRIGHT_CODEGEN_EMIT_EXPR_H_
#define TILEWRIGHT_CODEGEN_EMIT_EXPR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "codegen/kernel_module.h"
#include "schedule/compute_type.h"
#include "schedule/expression.h"

namespace tilewright {

struct EmitContext {
  int lanes = 1;
  // The index whose value in lane l is index_values[lane_index] + l; -1: all lanes have the same
  // point.
  int lane_index = -1;
  std::vector<llvm::Value*>
      index_values;                 // i64 by index number, of lane 0; null where not in scope
  std::vector<llvm::Value*> sizes;  // i64 by index number (Entry::sizes)
  ElementType compute = ElementType::kF32;  // f32, f64 or i32: the type of every value below
  // The value of a kRead, or of a kReduce, in type `compute` and `lanes` lanes.
  std::function<llvm::Value*(const Expr&)> read;
  std::function<llvm::Value*(const Expr&)> reduce;
  // May be null, and may return null: else the value of an expression that need not be computed
  // again.
  std::function<llvm::Value*(const Expr&)> known;
};

llvm::Value* EmitExpr(KernelModule& module, const Expr& expr, const EmitContext& context);

// An i1 (per lane): whether a condition holds; an expression of another kind holds where it is not
// 0.
llvm::Value* EmitCondition(KernelModule& module, const Expr& expr, const EmitContext& context);

// How far a subscript moves from one lane to the next; nothing if that differs from lane to lane
// (the lane index stands under
// `/` or `%`).
std::optional<int64_t> LaneStep(const AffineIndex& index, int lane_index);

// i64 value of a subscript in lane 0.
llvm::Value* EmitIndex(KernelModule& module, const AffineIndex& index, const EmitContext& context);
// <lanes x i64> (or i64 for one lane).
llvm::Value* EmitIndexLanes(KernelModule& module, const AffineIndex& index,
                            const EmitContext& context);

// a op b. min and max are NaN if either is.
llvm::Value* EmitReduceStep(KernelModule& module, ReduceOp op, llvm::Value* a, llvm::Value* b);
// What a reduction begins with: 0, -infinity, infinity (the ends of i32).
llvm::Value* ReduceIdentity(KernelModule& module, ReduceOp op, ElementType compute, int lanes);

// f(x) without calls: polynomials and bit tricks on scalars or vectors of f32 or f64, within
// FunctionInfo::error_ulps of f.
llvm::Value* EmitFunction(KernelModule& module, Function function, llvm::Value* x);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_EMIT_EXPR_H_
