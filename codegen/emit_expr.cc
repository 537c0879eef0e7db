#include "codegen/emit_expr.h"

#include <cmath>
#include <limits>
#include <vector>

#include "codegen/convert.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Intrinsics.h"

namespace tilewright {
namespace {

using llvm::Value;

bool IsCondition(Function function) {
  return function == Function::kLess || function == Function::kLessEqual ||
         function == Function::kEqual || function == Function::kNotEqual ||
         function == Function::kAnd || function == Function::kOr || function == Function::kNot;
}

// True if the value is an integer known without reading tensors; then *affine gets it (kSize
// apart).
bool IsIntegerExpression(const Expr& expr) {
  return expr.kind == Expr::Kind::kIndexValue || expr.kind == Expr::Kind::kSize ||
         (expr.kind == Expr::Kind::kConstant && expr.constant == std::floor(expr.constant) &&
          std::abs(expr.constant) < 0x1p30);
}

// Such an expression as i64 (one lane) or i32 (several) lanes.
Value* EmitIntegerExpression(KernelModule& m, const Expr& expr, const EmitContext& context) {
  auto& b = m.builder();
  Value* value = nullptr;
  if (expr.kind == Expr::Kind::kConstant) {
    value = Splat(m, m.Int(static_cast<int64_t>(expr.constant)), context.lanes);
  } else if (expr.kind == Expr::Kind::kSize) {
    value = Splat(m, context.sizes[expr.index], context.lanes);
  } else {
    value = EmitIndexLanes(m, expr.index_value, context);
  }
  if (context.lanes == 1) return value;
  return b.CreateTrunc(value, llvm::FixedVectorType::get(b.getInt32Ty(), context.lanes));
}

Value* EmitComparison(KernelModule& m, const Expr& expr, const EmitContext& context) {
  auto& b = m.builder();
  const Expr& left = *expr.operands[0];
  const Expr& right = *expr.operands[1];
  const bool integers = IsIntegerExpression(left) && IsIntegerExpression(right);
  Value* x = integers ? EmitIntegerExpression(m, left, context) : EmitExpr(m, left, context);
  Value* y = integers ? EmitIntegerExpression(m, right, context) : EmitExpr(m, right, context);
  if (integers || context.compute == ElementType::kI32) {
    switch (expr.function) {
      case Function::kLess:
        return b.CreateICmpSLT(x, y);
      case Function::kLessEqual:
        return b.CreateICmpSLE(x, y);
      case Function::kEqual:
        return b.CreateICmpEQ(x, y);
      default:
        return b.CreateICmpNE(x, y);
    }
  }
  switch (expr.function) {
    case Function::kLess:
      return b.CreateFCmpOLT(x, y);
    case Function::kLessEqual:
      return b.CreateFCmpOLE(x, y);
    case Function::kEqual:
      return b.CreateFCmpOEQ(x, y);
    default:
      return b.CreateFCmpUNE(x, y);
  }
}

Value* EmitCall(KernelModule& m, const Expr& expr, const EmitContext& context) {
  auto& b = m.builder();
  const bool integer = context.compute == ElementType::kI32;
  if (IsCondition(expr.function)) {
    return b.CreateSelect(EmitCondition(m, expr, context),
                          ComputeConstant(m, context.compute, context.lanes, 1),
                          ComputeConstant(m, context.compute, context.lanes, 0));
  }
  if (expr.function == Function::kWhere) {
    Value* condition = EmitCondition(m, *expr.operands[0], context);
    Value* then = EmitExpr(m, *expr.operands[1], context);
    return b.CreateSelect(condition, then, EmitExpr(m, *expr.operands[2], context));
  }
  Value* value = EmitExpr(m, *expr.operands[0], context);
  switch (expr.function) {
    case Function::kAdd:
    case Function::kMul:
    case Function::kMin:
    case Function::kMax:
      for (size_t i = 1; i < expr.operands.size(); ++i) {
        const Expr& operand = *expr.operands[i];
        const bool subtract = expr.function == Function::kAdd &&
                              operand.kind == Expr::Kind::kCall &&
                              operand.function == Function::kNeg;
        Value* next = EmitExpr(m, subtract ? *operand.operands[0] : operand, context);
        if (expr.function == Function::kMul) {
          value = integer ? b.CreateMul(value, next) : b.CreateFMul(value, next);
        } else if (subtract) {
          value = integer ? b.CreateSub(value, next) : b.CreateFSub(value, next);
        } else {
          const ReduceOp op = expr.function == Function::kAdd   ? ReduceOp::kSum
                              : expr.function == Function::kMax ? ReduceOp::kMax
                                                                : ReduceOp::kMin;
          value = EmitReduceStep(m, op, value, next);
        }
      }
      return value;
    case Function::kNeg:
      return integer ? b.CreateNeg(value) : b.CreateFNeg(value);
    case Function::kDiv:
      // An expression with a division is never computed in i32.
      return b.CreateFDiv(value, EmitExpr(m, *expr.operands[1], context));
    case Function::kCast:
      return RoundToElement(m, expr.cast_type, value);
    case Function::kTf32:
      return RoundToTf32Bits(m, value);
    default:
      return EmitFunction(m, expr.function, value);
  }
}

// atom of a term in lane 0 (lanes == 1) or in all lanes.
Value* EmitAtom(KernelModule& m, const AffineTerm& term, const EmitContext& context, bool lanes);

Value* EmitAffine(KernelModule& m, const AffineIndex& index, const EmitContext& context,
                  bool lanes) {
  auto& b = m.builder();
  const int count = lanes ? context.lanes : 1;
  Value* sum = nullptr;
  for (const AffineTerm& term : index.terms) {
    Value* atom = EmitAtom(m, term, context, lanes);
    if (term.coefficient != 1)
      atom = b.CreateNSWMul(atom, Splat(m, m.Int(term.coefficient), count));
    sum = sum == nullptr ? atom : b.CreateNSWAdd(sum, atom);
  }
  if (sum == nullptr) return Splat(m, m.Int(index.constant), count);
  return index.constant == 0 ? sum : b.CreateNSWAdd(sum, Splat(m, m.Int(index.constant), count));
}

// Indices are never negative: true if the sum can't be either.
bool NeverNegative(const AffineIndex& index) {
  if (index.constant < 0) return false;
  for (const AffineTerm& term : index.terms) {
    if (term.coefficient < 0) return false;
    if (term.kind == AffineTerm::Kind::kFloorDiv && !NeverNegative(*term.operand)) return false;
  }
  return true;
}

Value* EmitAtom(KernelModule& m, const AffineTerm& term, const EmitContext& context, bool lanes) {
  auto& b = m.builder();
  const int count = lanes ? context.lanes : 1;
  if (term.kind == AffineTerm::Kind::kIndex) {
    Value* value = context.index_values[term.index];
    if (!lanes) return value;
    return term.index == context.lane_index ? m.Iota(value, count) : Splat(m, value, count);
  }
  Value* operand = EmitAffine(m, *term.operand, context, lanes);
  Value* divisor = Splat(m, m.Int(term.divisor), count);
  const bool quotient = term.kind == AffineTerm::Kind::kFloorDiv;
  if ((term.divisor & (term.divisor - 1)) == 0) {
    if (!quotient) return b.CreateAnd(operand, Splat(m, m.Int(term.divisor - 1), count));
    int shift = 0;
    while ((int64_t{1} << shift) < term.divisor) ++shift;
    return b.CreateAShr(operand, Splat(m, m.Int(shift), count));
  }
  if (NeverNegative(*term.operand))
    return quotient ? b.CreateUDiv(operand, divisor) : b.CreateURem(operand, divisor);
  Value* remainder = b.CreateSRem(operand, divisor);
  Value* negative = b.CreateICmpSLT(remainder, llvm::Constant::getNullValue(remainder->getType()));
  if (!quotient) return b.CreateSelect(negative, b.CreateNSWAdd(remainder, divisor), remainder);
  return b.CreateAdd(b.CreateSDiv(operand, divisor), b.CreateSExt(negative, operand->getType()));
}

}  // namespace

Value* EmitExpr(KernelModule& m, const Expr& expr, const EmitContext& context) {
  if (context.known != nullptr) {
    if (Value* value = context.known(expr)) return value;
  }
  switch (expr.kind) {
    case Expr::Kind::kConstant:
      return ComputeConstant(m, context.compute, context.lanes, expr.constant);
    case Expr::Kind::kRead:
      return context.read(expr);
    case Expr::Kind::kReduce:
      return context.reduce(expr);
    case Expr::Kind::kIndexValue:
    case Expr::Kind::kSize: {
      Value* integer = EmitIntegerExpression(m, expr, context);
      if (context.compute == ElementType::kI32) {
        return context.lanes == 1 ? m.builder().CreateTrunc(integer, m.builder().getInt32Ty())
                                  : integer;
      }
      return m.builder().CreateSIToFP(integer, m.Type(context.compute, context.lanes));
    }
    case Expr::Kind::kCall:
      return EmitCall(m, expr, context);
  }
  return nullptr;
}

Value* EmitCondition(KernelModule& m, const Expr& expr, const EmitContext& context) {
  auto& b = m.builder();
  if (expr.kind == Expr::Kind::kCall) {
    switch (expr.function) {
      case Function::kAnd:
        return b.CreateAnd(EmitCondition(m, *expr.operands[0], context),
                           EmitCondition(m, *expr.operands[1], context));
      case Function::kOr:
        return b.CreateOr(EmitCondition(m, *expr.operands[0], context),
                          EmitCondition(m, *expr.operands[1], context));
      case Function::kNot:
        return b.CreateNot(EmitCondition(m, *expr.operands[0], context));
      case Function::kLess:
      case Function::kLessEqual:
      case Function::kEqual:
      case Function::kNotEqual:
        return EmitComparison(m, expr, context);
      default:
        break;
    }
  }
  Value* value = EmitExpr(m, expr, context);
  Value* zero = llvm::Constant::getNullValue(value->getType());
  return context.compute == ElementType::kI32 ? b.CreateICmpNE(value, zero)
                                              : b.CreateFCmpUNE(value, zero);
}

std::optional<int64_t> LaneStep(const AffineIndex& index, int lane_index) {
  int64_t step = 0;
  for (const AffineTerm& term : index.terms) {
    if (term.kind == AffineTerm::Kind::kIndex) {
      if (term.index == lane_index) step += term.coefficient;
      continue;
    }
    std::vector<int> inside;
    term.operand->CollectIndices(&inside);
    for (int i : inside) {
      if (i == lane_index) return std::nullopt;
    }
  }
  return step;
}

Value* EmitIndex(KernelModule& m, const AffineIndex& index, const EmitContext& context) {
  return EmitAffine(m, index, context, /*lanes=*/false);
}

Value* EmitIndexLanes(KernelModule& m, const AffineIndex& index, const EmitContext& context) {
  return EmitAffine(m, index, context, /*lanes=*/true);
}

Value* EmitReduceStep(KernelModule& m, ReduceOp op, Value* a, Value* b) {
  auto& builder = m.builder();
  const bool integer = ComputeTypeOf(a) == ElementType::kI32;
  if (op == ReduceOp::kSum) return integer ? builder.CreateAdd(a, b) : builder.CreateFAdd(a, b);
  const bool max = op == ReduceOp::kMax;
  if (integer) {
    Value* keep = max ? builder.CreateICmpSGT(a, b) : builder.CreateICmpSLT(a, b);
    return builder.CreateSelect(keep, a, b);
  }
  // The comparison is false, and b taken, where b is NaN; a NaN in a is taken by the second.
  Value* keep = max ? builder.CreateFCmpOGT(a, b) : builder.CreateFCmpOLT(a, b);
  return builder.CreateSelect(builder.CreateFCmpUNO(a, a), a, builder.CreateSelect(keep, a, b));
}

Value* ReduceIdentity(KernelModule& m, ReduceOp op, ElementType compute, int lanes) {
  if (op == ReduceOp::kSum) return ComputeConstant(m, compute, lanes, 0);
  const bool max = op == ReduceOp::kMax;
  if (compute == ElementType::kI32)
    return ComputeConstant(m, compute, lanes, max ? INT32_MIN : INT32_MAX);
  const double infinity = std::numeric_limits<double>::infinity();
  return ComputeConstant(m, compute, lanes, max ? -infinity : infinity);
}

}  // namespace tilewright
