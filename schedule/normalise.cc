#include "schedule/normalise.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "schedule/affine.h"
#include "schedule/source_text.h"

namespace tilewright {
namespace {

bool IsConstant(const ExprPtr& expr) { return expr->kind == Expr::Kind::kConstant; }

bool IsComparison(Function function) {
  return function == Function::kLess || function == Function::kLessEqual ||
         function == Function::kEqual || function == Function::kNotEqual;
}

double Combine(Function function, double a, double b) {
  switch (function) {
    case Function::kAdd:
      return a + b;
    case Function::kMul:
      return a * b;
    case Function::kMin:
      return std::min(a, b);
    case Function::kMax:
      return std::max(a, b);
    default:
      __builtin_unreachable();  // FoldChain calls it for these only.
  }
}

class Normaliser {
 public:
  Normaliser(absl::Span<const SizeRange> sizes, std::string_view source)
      : sizes_(sizes), source_(source) {}

  ExprPtr Tree(const ExprPtr& expr) {
    switch (expr->kind) {
      case Expr::Kind::kConstant:
      case Expr::Kind::kRead:
      case Expr::Kind::kIndexValue:
        return expr;
      case Expr::Kind::kSize: {
        const SizeRange& size = sizes_[expr->index];
        return size.fixed() ? Constant(static_cast<double>(size.low), *expr) : expr;
      }
      case Expr::Kind::kReduce:
      case Expr::Kind::kCall: {
        Expr copy = *expr;
        for (ExprPtr& operand : copy.operands) operand = Tree(operand);
        if (copy.kind == Expr::Kind::kReduce) return std::make_shared<const Expr>(std::move(copy));
        return Call(std::move(copy));
      }
    }
    __builtin_unreachable();  // The cases above are all enumerators.
  }

  const absl::Status& status() const { return status_; }

 private:
  ExprPtr Constant(double value, const Expr& place) {
    if (std::isnan(value) && status_.ok()) {
      status_ = ErrorAt(source_, place.span.begin, "these constants fold to NaN");
    }
    Expr expr;
    expr.constant = value;
    expr.span = place.span;
    return std::make_shared<const Expr>(std::move(expr));
  }

  ExprPtr Call(Expr call) {
    std::vector<ExprPtr>& operands = call.operands;
    switch (call.function) {
      case Function::kAdd:
      case Function::kMul:
        Flatten(&call);
        return FoldChain(std::move(call));
      case Function::kMin:
      case Function::kMax:
        return FoldChain(std::move(call));
      case Function::kWhere:
      case Function::kAnd:
      case Function::kOr:
      case Function::kNot:
        break;
      default:
        if (IsComparison(call.function)) {
          CompareIndices(&call);
        } else if (std::all_of(operands.begin(), operands.end(), IsConstant)) {
          return Constant(Fold(call), call);
        }
    }
    return std::make_shared<const Expr>(std::move(call));
  }

  static void Flatten(Expr* call) {
    std::vector<ExprPtr> flat;
    for (const ExprPtr& operand : call->operands) {
      if (operand->kind == Expr::Kind::kCall && operand->function == call->function) {
        flat.insert(flat.end(), operand->operands.begin(), operand->operands.end());
      } else {
        flat.push_back(operand);
      }
    }
    call->operands = std::move(flat);
  }

  // Constants are combined in ascending order, so that the result does not depend on the order they
  // were written in.
  ExprPtr FoldChain(Expr call) {
    std::vector<double> constants;
    std::vector<ExprPtr> rest;
    for (ExprPtr& operand : call.operands) {
      if (IsConstant(operand)) {
        constants.push_back(operand->constant);
      } else {
        rest.push_back(std::move(operand));
      }
    }
    if (!constants.empty()) {
      std::sort(constants.begin(), constants.end(), [](double a, double b) {
        return a != b ? a < b : std::signbit(a) && !std::signbit(b);
      });
      double folded = constants[0];
      for (size_t i = 1; i < constants.size(); ++i) {
        folded = Combine(call.function, folded, constants[i]);
      }
      rest.push_back(Constant(folded, call));
    }
    if (rest.size() == 1) return rest[0];
    call.operands = std::move(rest);
    return std::make_shared<const Expr>(std::move(call));
  }

  static double Fold(const Expr& call) {
    const double x = call.operands[0]->constant;
    switch (call.function) {
      case Function::kDiv:
        return x / call.operands[1]->constant;
      case Function::kCast:
        return RoundTo(call.cast_type, x);
      case Function::kTf32:
        return RoundToTf32(x);
      default:
        return EvaluateUnary(call.function, x);
    }
  }

  static void CompareIndices(Expr* call) {
    std::optional<AffineIndex> sides[2];
    for (int i = 0; i < 2; ++i) {
      sides[i] = ToAffine(*call->operands[i]);
      if (!sides[i].has_value()) return;
    }
    for (int i = 0; i < 2; ++i) {
      if (sides[i]->terms.empty()) continue;
      Expr value;
      value.kind = Expr::Kind::kIndexValue;
      value.span = call->operands[i]->span;
      value.index_value = *std::move(sides[i]);
      call->operands[i] = std::make_shared<const Expr>(std::move(value));
    }
  }

  absl::Span<const SizeRange> sizes_;
  std::string_view source_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Program> Normalise(Program program, absl::Span<const SizeRange> sizes,
                                  std::string_view source) {
  Normaliser normaliser(sizes, source);
  for (Statement& statement : program.statements)
    statement.value = normaliser.Tree(statement.value);
  if (!normaliser.status().ok()) return normaliser.status();
  return program;
}

}  // namespace tilewright
