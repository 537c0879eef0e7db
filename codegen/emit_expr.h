// Writes the arithmetic of a tensor expression as LLVM IR, at one point or at `lanes` adjacent points of one index at once.
// Writers decide the loops; this decides the arithmetic, the same in every variant, so that variants agree.
#ifndef TILEWRIGHT_CODEGEN_EMIT_EXPR_H_
#define TILEWRIGHT_CODEGEN_EMIT_EXPR_H_

#include <functional>
#include <vector>

#include "codegen/kernel_module.h"
#include "schedule/expression.h"

namespace tilewright {

struct EmitContext {
  int lanes = 1;
  // The index whose value in lane l is index_values[lane_index] + l; -1: all lanes have the same point.
  int lane_index = -1;
  std::vector<llvm::Value*> index_values;  // i64 by index number, of lane 0; null where not in scope
  std::vector<llvm::Value*> sizes;         // i64 by index number (Entry::sizes)
  ElementType compute = ElementType::kF32; // f32, f64 or i32: the type of every value below
  // The value of a kRead, or of a kReduce, in type `compute` and `lanes` lanes.
  std::function<llvm::Value*(const Expr&)> read;
  std::function<llvm::Value*(const Expr&)> reduce;
};

llvm::Value* EmitExpr(KernelModule& module, const Expr& expr, const EmitContext& context);

// i64 value of a subscript in lane 0, and (for lanes > 1) whether adjacent lanes differ by 1, by 0, or otherwise.
llvm::Value* EmitIndex(KernelModule& module, const AffineIndex& index, const EmitContext& context);
// <lanes x i64> (or i64 for one lane).
llvm::Value* EmitIndexLanes(KernelModule& module, const AffineIndex& index, const EmitContext& context);

// f(x) without calls: polynomials and bit tricks on scalars or vectors of f32 (within FunctionInfo::error_ulps of f) or f64
// (LLVM intrinsics that lower to instructions; else a C library call, allowed in reference kernels only).
llvm::Value* EmitFunction(KernelModule& module, Function function, llvm::Value* x);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_EMIT_EXPR_H_
