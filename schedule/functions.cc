// The list of functions: names, operand counts, and the facts that the error bound of the output
// check needs.
#include <cmath>
#include <limits>

#include "schedule/expression.h"

namespace tilewright {
namespace {

// Operators are exact but for one rounding, which the bound adds by itself: their error_ulps is 0.
constexpr FunctionInfo kFunctions[] = {
    // function, name, least operands, most operands, error_ulps, lipschitz
    {Function::kAdd, "+", 2, -1, 0, 0},          {Function::kMul, "*", 2, -1, 0, 0},
    {Function::kNeg, "-", 1, 1, 0, 0},           {Function::kDiv, "/", 2, 2, 0, 0},
    {Function::kExp, "exp", 1, 1, 2, 0},         {Function::kLog, "log", 1, 1, 2, 0},
    {Function::kSqrt, "sqrt", 1, 1, 1, 0},       {Function::kRsqrt, "rsqrt", 1, 1, 2, 0},
    {Function::kTanh, "tanh", 1, 1, 4, 0},       {Function::kErf, "erf", 1, 1, 4, 0},
    {Function::kSigmoid, "sigmoid", 1, 1, 4, 0}, {Function::kRelu, "relu", 1, 1, 0, 0},
    {Function::kGelu, "gelu", 1, 1, 12, 1.13},   {Function::kSilu, "silu", 1, 1, 8, 1.10},
    {Function::kAbs, "abs", 1, 1, 0, 1},         {Function::kMin, "min", 2, -1, 0, 0},
    {Function::kMax, "max", 2, -1, 0, 0},        {Function::kWhere, "where", 3, 3, 0, 0},
    {Function::kCast, "cast", 1, 1, 0, 0},       {Function::kTf32, "tf32", 1, 1, 0, 0},
    {Function::kLess, "<", 2, 2, 0, 0},          {Function::kLessEqual, "<=", 2, 2, 0, 0},
    {Function::kEqual, "==", 2, 2, 0, 0},        {Function::kNotEqual, "!=", 2, 2, 0, 0},
    {Function::kAnd, "&&", 2, 2, 0, 0},          {Function::kOr, "||", 2, 2, 0, 0},
    {Function::kNot, "!", 1, 1, 0, 0},
};

}  // namespace

const FunctionInfo& Info(Function function) { return kFunctions[static_cast<int>(function)]; }

absl::Span<const FunctionInfo> AllFunctions() { return kFunctions; }

double EvaluateUnary(Function function, double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (function) {
    case Function::kNeg:
      return -x;
    case Function::kExp:
      return std::exp(x);
    case Function::kLog:
      return std::log(x);
    case Function::kSqrt:
      return std::sqrt(x);
    case Function::kRsqrt:
      return 1 / std::sqrt(x);
    case Function::kTanh:
      return std::tanh(x);
    case Function::kErf:
      return std::erf(x);
    case Function::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Function::kRelu:
      return x < 0 ? 0 : x;
    case Function::kGelu:
      // erfc keeps the relative accuracy of the negative tail; at -infinity the limit is taken.
      return x == -kInfinity ? -0.0 : 0.5 * x * std::erfc(-x * M_SQRT1_2);
    case Function::kSilu:
      return x == -kInfinity ? -0.0 : x / (1 + std::exp(-x));
    case Function::kAbs:
      return std::abs(x);
    default:
      __builtin_unreachable();  // Precondition of this function.
  }
}

double RoundToTf32(double x) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  // The exponent range of f32: normal down to 2^-126, ten explicit mantissa bits.
  const int quantum = std::max(std::ilogb(x), -126) - 10;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -quantum)), quantum);
  return std::abs(rounded) > 0x1.ffcp127 ? std::copysign(std::numeric_limits<double>::infinity(), x)
                                         : rounded;
}

}  // namespace tilewright
