#include "schedule/compute_type.h"

#include <cmath>
#include <map>

namespace tilewright {
namespace {

bool IsCondition(Function function) {
  return function == Function::kLess || function == Function::kLessEqual ||
         function == Function::kEqual || function == Function::kNotEqual ||
         function == Function::kAnd || function == Function::kOr || function == Function::kNot;
}

bool IsInteger(ElementType type) { return type == ElementType::kI8 || type == ElementType::kI32; }

// What the leaves and operations of an expression ask of its compute type.
struct Demands {
  bool f64 = false;
  bool float_read = false;  // a tensor of floats
  bool i32 = false;
  bool integer = false;  // a tensor of integers
  bool float_operation = false;
};

// Finds types for one question. Each intermediate is typed once: a chain of statements that read
// the one before twice would else take twice the time with every statement.
class TypeFinder {
 public:
  explicit TypeFinder(const Workload& workload) : workload_(workload) {}

  ElementType OfTensor(int tensor) {
    const ElementType declared = workload_.layout(tensor).type;
    const Statement* statement = FindWriterOf(workload_.program(), tensor);
    if (statement == nullptr || declared == ElementType::kF64) return declared;
    const auto known = known_.find(tensor);
    if (known != known_.end()) return known->second;
    const ElementType type = OfExpr(*statement->value);
    known_.emplace(tensor, type);
    return type;
  }

  ElementType OfExpr(const Expr& expr) {
    Demands demands;
    Collect(expr, &demands);
    if (demands.f64) return ElementType::kF64;
    if (demands.float_read) return ElementType::kF32;
    if (demands.integer && !demands.float_operation) return ElementType::kI32;
    return demands.i32 ? ElementType::kF64 : ElementType::kF32;
  }

 private:
  // An expression that reads values of this type.
  static void Add(ElementType type, Demands* demands) {
    demands->f64 |= type == ElementType::kF64;
    demands->i32 |= type == ElementType::kI32;
    (IsInteger(type) ? demands->integer : demands->float_read) = true;
  }

  void Collect(const Expr& expr, Demands* demands) {
    switch (expr.kind) {
      case Expr::Kind::kConstant:
        if (expr.constant != std::floor(expr.constant) || std::abs(expr.constant) > 0x1p30)
          demands->float_operation = true;
        return;
      case Expr::Kind::kRead:
        Add(OfTensor(expr.tensor), demands);
        return;
      case Expr::Kind::kReduce:
        // The surrounding expression gets the accumulator.
        Add(OfExpr(*expr.operands[0]), demands);
        return;
      case Expr::Kind::kIndexValue:
      case Expr::Kind::kSize:
        return;
      case Expr::Kind::kCall:
        break;
    }
    switch (expr.function) {
      case Function::kAdd:
      case Function::kMul:
      case Function::kNeg:
      case Function::kMin:
      case Function::kMax:
      case Function::kRelu:
      case Function::kAbs:
      case Function::kWhere:
        break;
      case Function::kCast:
        if (!IsInteger(expr.cast_type)) demands->float_operation = true;
        break;
      default:
        if (!IsCondition(expr.function)) demands->float_operation = true;
    }
    for (const ExprPtr& operand : expr.operands) Collect(*operand, demands);
  }

  const Workload& workload_;
  std::map<int, ElementType> known_;
};

}  // namespace

const Statement* FindWriterOf(const Program& program, int tensor) {
  for (const Statement& statement : program.statements) {
    if (statement.tensor == tensor) return &statement;
  }
  return nullptr;
}

ElementType ValueType(const Workload& workload, int tensor) {
  return TypeFinder(workload).OfTensor(tensor);
}

ElementType ComputeType(const Workload& workload, const Expr& expr) {
  return TypeFinder(workload).OfExpr(expr);
}

}  // namespace tilewright
