// Evaluates an expression in f64 together with a bound E on how far a kernel's computed value may
// be from it (DESIGN.md 6).
#ifndef TILEWRIGHT_CODEGEN_BOUND_EMITTER_H_
#define TILEWRIGHT_CODEGEN_BOUND_EMITTER_H_

#include <functional>

#include "codegen/emit_expr.h"
#include "codegen/kernel_module.h"
#include "schedule/expression.h"

namespace tilewright {

// E = error + relative * |value|, and 0 where the value is infinite or NaN. Most errors are
// relative ones known while the kernel is written, so they cost no instructions until they are
// added to others.
struct Bounded {
  llvm::Value* value = nullptr;
  llvm::Value* error = nullptr;  // null: 0
  double relative = 0;

  bool exact() const { return error == nullptr && relative == 0; }
};

// One per expression and compute type. Not thread-safe; borrows the module and the context.
class BoundEmitter {
 public:
  struct Callbacks {
    std::function<Bounded(const Expr&)> read;
    std::function<Bounded(const Expr&)> reduce;
  };
  // `compute` is what kernels compute the expression in; its unit roundoff is that of every
  // operation. The context's own compute type is f64; it says lanes and index values.
  BoundEmitter(KernelModule& module, const EmitContext& context, ElementType compute,
               Callbacks callbacks);

  Bounded Emit(const Expr& expr);
  // The relative error of a product of two factors with relative errors only, rounded once more.
  static double RelativeOfProduct(double a, double b, double u) { return a + b + a * b + u; }
  // E as a value; null if it is 0 everywhere.
  llvm::Value* Error(const Bounded& x);

 private:
  // A condition; `uncertain` (null: never) where a computed comparison may come out otherwise.
  struct Condition {
    llvm::Value* holds;
    llvm::Value* uncertain;
  };
  Bounded Call(const Expr& expr);
  Condition EmitUncertain(const Expr& expr);
  Condition Compare(const Expr& expr);
  Bounded Add(const Bounded& a, const Bounded& b);
  Bounded Multiply(const Bounded& a, const Bounded& b);
  Bounded Divide(const Bounded& a, const Bounded& b);
  Bounded MinMax(Function function, const Bounded& a, const Bounded& b);
  Bounded Where(const Expr& expr);
  Bounded Cast(const Expr& expr, const Bounded& x);
  Bounded Unary(Function function, const Bounded& x);

  llvm::Value* Constant(double value);
  llvm::Value* Abs(llvm::Value* value);
  llvm::Value* Sum(llvm::Value* a, llvm::Value* b);      // either may be null: 0
  llvm::Value* Largest(llvm::Value* a, llvm::Value* b);  // either may be null: 0
  llvm::Value* Scaled(llvm::Value* a, double factor);    // null: 0

  KernelModule& m_;
  const EmitContext& context_;
  double u_;
  Callbacks callbacks_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_BOUND_EMITTER_H_
