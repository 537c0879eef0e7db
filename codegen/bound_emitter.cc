#include "codegen/bound_emitter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "codegen/convert.h"
#include "llvm/IR/Intrinsics.h"

namespace tilewright {
namespace {

using llvm::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTf32Roundoff = 0x1p-11;

}  // namespace

BoundEmitter::BoundEmitter(KernelModule& module, const EmitContext& context, ElementType compute,
                           Callbacks callbacks)
    : m_(module),
      context_(context),
      u_(Info(compute).unit_roundoff),
      callbacks_(std::move(callbacks)) {}

Value* BoundEmitter::Constant(double value) {
  return ComputeConstant(m_, ElementType::kF64, context_.lanes, value);
}

Value* BoundEmitter::Abs(Value* value) {
  return m_.builder().CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
}

Value* BoundEmitter::Sum(Value* a, Value* b) {
  if (a == nullptr) return b;
  return b == nullptr ? a : m_.builder().CreateFAdd(a, b);
}

Value* BoundEmitter::Largest(Value* a, Value* b) {
  if (a == nullptr) return b;
  return b == nullptr ? a : m_.builder().CreateSelect(m_.builder().CreateFCmpOGT(a, b), a, b);
}

Value* BoundEmitter::Scaled(Value* a, double factor) {
  return a == nullptr ? nullptr : m_.builder().CreateFMul(a, Constant(factor));
}

Value* BoundEmitter::Error(const Bounded& x) {
  if (x.exact()) return nullptr;
  auto& b = m_.builder();
  Value* magnitude = Abs(x.value);
  Value* error =
      x.relative == 0 ? x.error : Sum(x.error, b.CreateFMul(magnitude, Constant(x.relative)));
  return b.CreateSelect(b.CreateFCmpOLT(magnitude, Constant(kInfinity)), error, Constant(0));
}

Bounded BoundEmitter::Emit(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::kRead:
      return callbacks_.read(expr);
    case Expr::Kind::kReduce:
      return callbacks_.reduce(expr);
    case Expr::Kind::kCall:
      return Call(expr);
    default:
      return {EmitExpr(m_, expr, context_), nullptr, 0};
  }
}

Bounded BoundEmitter::Call(const Expr& expr) {
  auto& b = m_.builder();
  switch (expr.function) {
    case Function::kLess:
    case Function::kLessEqual:
    case Function::kEqual:
    case Function::kNotEqual:
    case Function::kAnd:
    case Function::kOr:
    case Function::kNot: {
      const Condition condition = EmitUncertain(expr);
      Bounded result{b.CreateSelect(condition.holds, Constant(1), Constant(0)), nullptr, 0};
      if (condition.uncertain != nullptr) {
        result.error = b.CreateSelect(condition.uncertain, Constant(1), Constant(0));
      }
      return result;
    }
    case Function::kWhere:
      return Where(expr);
    default:
      break;
  }
  Bounded result = Emit(*expr.operands[0]);
  switch (expr.function) {
    case Function::kAdd:
      for (size_t i = 1; i < expr.operands.size(); ++i)
        result = Add(result, Emit(*expr.operands[i]));
      return result;
    case Function::kMul:
      for (size_t i = 1; i < expr.operands.size(); ++i)
        result = Multiply(result, Emit(*expr.operands[i]));
      return result;
    case Function::kMin:
    case Function::kMax:
      for (size_t i = 1; i < expr.operands.size(); ++i) {
        result = MinMax(expr.function, result, Emit(*expr.operands[i]));
      }
      return result;
    case Function::kNeg:
      return {b.CreateFNeg(result.value), result.error, result.relative};
    case Function::kDiv:
      return Divide(result, Emit(*expr.operands[1]));
    case Function::kCast:
    case Function::kTf32:
      return Cast(expr, result);
    default:
      return Unary(expr.function, result);
  }
}

// E(a + b) = E(a) + E(b), and the operation's own rounding.
Bounded BoundEmitter::Add(const Bounded& a, const Bounded& b) {
  return {m_.builder().CreateFAdd(a.value, b.value), Sum(Error(a), Error(b)), u_};
}

// E(ab) = |a| E(b) + |b| E(a) + E(a) E(b), and the operation's own rounding.
Bounded BoundEmitter::Multiply(const Bounded& x, const Bounded& y) {
  auto& b = m_.builder();
  Bounded result{b.CreateFMul(x.value, y.value), nullptr, 0};
  result.relative = RelativeOfProduct(x.relative, y.relative, u_);
  if (x.error == nullptr && y.error == nullptr) return result;
  Value* error_x = Error(x);
  Value* error_y = Error(y);
  result.relative = u_;
  if (error_y != nullptr) result.error = b.CreateFMul(Abs(x.value), error_y);
  if (error_x != nullptr) result.error = Sum(result.error, b.CreateFMul(Abs(y.value), error_x));
  if (error_x != nullptr && error_y != nullptr)
    result.error = Sum(result.error, b.CreateFMul(error_x, error_y));
  return result;
}

// a / b is a * (1/b), and |1/(b -+ E) - 1/b| is at most E / (|b| (|b| - E)): infinite where b may
// be 0.
Bounded BoundEmitter::Divide(const Bounded& x, const Bounded& y) {
  auto& b = m_.builder();
  Bounded inverse{b.CreateFDiv(Constant(1), y.value), nullptr, u_};
  if (y.error == nullptr) {
    inverse.relative += y.relative / (1 - y.relative);
  } else {
    Value* error = Error(y);
    Value* magnitude = Abs(y.value);
    Value* margin = b.CreateFSub(magnitude, error);
    Value* distance = b.CreateFDiv(error, b.CreateFMul(magnitude, margin));
    inverse.error =
        b.CreateSelect(b.CreateFCmpOGT(margin, Constant(0)), distance, Constant(kInfinity));
  }
  Bounded result = Multiply(x, inverse);
  result.value = b.CreateFDiv(x.value, y.value);
  return result;
}

Bounded BoundEmitter::MinMax(Function function, const Bounded& x, const Bounded& y) {
  const ReduceOp op = function == Function::kMax ? ReduceOp::kMax : ReduceOp::kMin;
  return {EmitReduceStep(m_, op, x.value, y.value), Largest(Error(x), Error(y)), 0};
}

Bounded BoundEmitter::Where(const Expr& expr) {
  auto& b = m_.builder();
  const Condition condition = EmitUncertain(*expr.operands[0]);
  const Bounded then = Emit(*expr.operands[1]);
  const Bounded otherwise = Emit(*expr.operands[2]);
  Bounded result{b.CreateSelect(condition.holds, then.value, otherwise.value), nullptr, 0};
  Value* then_error = Error(then);
  Value* else_error = Error(otherwise);
  if (then_error != nullptr || else_error != nullptr) {
    result.error = b.CreateSelect(condition.holds, then_error != nullptr ? then_error : Constant(0),
                                  else_error != nullptr ? else_error : Constant(0));
  }
  if (condition.uncertain != nullptr) {
    Value* difference = Abs(b.CreateFSub(then.value, otherwise.value));
    result.error = Sum(result.error, b.CreateSelect(condition.uncertain, difference, Constant(0)));
  }
  return result;
}

BoundEmitter::Condition BoundEmitter::EmitUncertain(const Expr& expr) {
  auto& b = m_.builder();
  auto either = [&](Value* x, Value* y) {
    return x == nullptr ? y : y == nullptr ? x : b.CreateOr(x, y);
  };
  if (expr.kind == Expr::Kind::kCall) {
    switch (expr.function) {
      case Function::kAnd:
      case Function::kOr: {
        const Condition x = EmitUncertain(*expr.operands[0]);
        const Condition y = EmitUncertain(*expr.operands[1]);
        const bool both = expr.function == Function::kAnd;
        return {both ? b.CreateAnd(x.holds, y.holds) : b.CreateOr(x.holds, y.holds),
                either(x.uncertain, y.uncertain)};
      }
      case Function::kNot: {
        const Condition x = EmitUncertain(*expr.operands[0]);
        return {b.CreateNot(x.holds), x.uncertain};
      }
      case Function::kLess:
      case Function::kLessEqual:
      case Function::kEqual:
      case Function::kNotEqual:
        return Compare(expr);
      default:
        break;
    }
  }
  const Bounded x = Emit(expr);
  Condition condition{b.CreateFCmpUNE(x.value, Constant(0)), nullptr};
  if (Value* error = Error(x)) condition.uncertain = b.CreateFCmpOLT(Abs(x.value), error);
  return condition;
}

BoundEmitter::Condition BoundEmitter::Compare(const Expr& expr) {
  auto& b = m_.builder();
  const Bounded x = Emit(*expr.operands[0]);
  const Bounded y = Emit(*expr.operands[1]);
  Condition condition{nullptr, nullptr};
  switch (expr.function) {
    case Function::kLess:
      condition.holds = b.CreateFCmpOLT(x.value, y.value);
      break;
    case Function::kLessEqual:
      condition.holds = b.CreateFCmpOLE(x.value, y.value);
      break;
    case Function::kEqual:
      condition.holds = b.CreateFCmpOEQ(x.value, y.value);
      break;
    default:
      condition.holds = b.CreateFCmpUNE(x.value, y.value);
  }
  if (Value* error = Sum(Error(x), Error(y))) {
    condition.uncertain = b.CreateFCmpOLT(Abs(b.CreateFSub(x.value, y.value)), error);
  }
  return condition;
}

// A rounding adds u|x|, and half a subnormal's spacing where the type has subnormals; one to an
// integer may come out one off if its operand is not exact.
Bounded BoundEmitter::Cast(const Expr& expr, const Bounded& x) {
  if (expr.function == Function::kTf32) {
    Bounded result{RoundToTf32Bits(m_, x.value), x.error,
                   x.relative + kTf32Roundoff * (1 + x.relative)};
    return result;
  }
  const ElementTypeInfo& type = Info(expr.cast_type);
  Bounded result{RoundToElement(m_, expr.cast_type, x.value), x.error, 0};
  if (!type.is_float) {
    if (Value* error = Error(x)) {
      auto& b = m_.builder();
      Value* one = b.CreateSelect(b.CreateFCmpOGT(error, Constant(0)), Constant(1), Constant(0));
      result.error = Sum(error, one);
    }
    return result;
  }
  if (type.unit_roundoff <= u_) {  // no rounding beyond that of the operations
    result.relative = x.relative;
    return result;
  }
  // |x| is at most (1 + u) times the rounded value while that is normal.
  result.relative = (x.relative + type.unit_roundoff) * (1 + 2 * type.unit_roundoff);
  if (!x.exact()) result.error = Sum(x.error, Constant(type.smallest_subnormal / 2));
  return result;
}

Bounded BoundEmitter::Unary(Function function, const Bounded& x) {
  auto& b = m_.builder();
  const FunctionInfo& info = Info(function);
  Bounded result{EmitFunction(m_, function, x.value), nullptr, info.error_ulps * u_};
  Value* error = Error(x);
  if (error == nullptr) return result;
  if (function == Function::kAbs) {
    result.error = error;
  } else if (info.lipschitz > 0) {
    result.error = Scaled(error, info.lipschitz);
  } else {
    Value* below = EmitFunction(m_, function, b.CreateFSub(x.value, error));
    Value* above = EmitFunction(m_, function, b.CreateFAdd(x.value, error));
    // A NaN (a square root of less than 0) stays NaN here and becomes infinite in the end.
    Value* down = Abs(b.CreateFSub(below, result.value));
    Value* up = Abs(b.CreateFSub(above, result.value));
    Value* largest = b.CreateSelect(b.CreateFCmpUGT(down, up), down, up);
    result.error = b.CreateSelect(b.CreateFCmpOEQ(error, Constant(0)), Constant(0), largest);
  }
  return result;
}

}  // namespace tilewright
