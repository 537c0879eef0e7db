// The tensor expression language's program tree (docs/FORMATS.md, "Workload text", has the
// grammar).
//
//   softmax    hi[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - hi[r])); Y[r,c] = exp(X[r,c] -
//   hi[r]) / z[r]
//
// A Program is plain data: indices, tensors, statements in order. Indices and tensors are referred
// to by number. Expressions are immutable and shared. `a - b` is Add(a, Neg(b)); a chain of + or *
// is one n-ary call.
#ifndef TILEWRIGHT_SCHEDULE_EXPRESSION_H_
#define TILEWRIGHT_SCHEDULE_EXPRESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/element_type.h"

namespace tilewright {

// Where in the source text something stands: byte offsets, end exclusive.
struct SourceSpan {
  int begin = 0;
  int end = 0;
};

struct AffineIndex;

// coefficient * atom, where the atom is an index, or floor(operand / divisor), or operand mod
// divisor (both towards minus infinity, divisor > 0).
struct AffineTerm {
  enum class Kind { kIndex, kFloorDiv, kFloorMod };
  int64_t coefficient = 1;
  Kind kind = Kind::kIndex;
  int index = -1;                              // kIndex: number in Program::indices
  std::shared_ptr<const AffineIndex> operand;  // kFloorDiv, kFloorMod
  int64_t divisor = 1;                         // kFloorDiv, kFloorMod
};

// constant + sum of terms: `2*p+r-1`, `h/4`, `j%8`.
struct AffineIndex {
  int64_t constant = 0;
  std::vector<AffineTerm> terms;

  // The index's number if this is that index alone, else -1. Only a non-bare ("compound") subscript
  // may leave its tensor.
  int BareIndex() const;
  // `indices[i]` is the value of index i.
  int64_t Evaluate(absl::Span<const int64_t> indices) const;
  // Appends the numbers of the indices read, each once, in order of first appearance.
  void CollectIndices(std::vector<int>* out) const;
};

enum class Function {
  kAdd,
  kMul,  // n-ary chains
  kNeg,
  kDiv,  // 1, 2 operands
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kTanh,
  kErf,
  kSigmoid,
  kRelu,
  kGelu,
  kSilu,
  kAbs,  // 1 operand
  kMin,
  kMax,    // n-ary
  kWhere,  // condition, then, else
  kCast,   // 1 operand, `cast_type`: rounds to that type
  kTf32,   // 1 operand: rounds to 10 mantissa bits
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,  // conditions, 2 operands: 1 or 0. `a > b` is Less(b, a)
  kAnd,
  kOr,
  kNot,  // conditions of conditions (`&&`, `||`, `!`)
};

// One row per function: its name in text, operand counts, and what the error bound needs (DESIGN.md
// 6).
struct FunctionInfo {
  Function function;
  std::string_view name;  // "gelu"; operators have their symbol
  int min_operands;
  int max_operands;  // -1: any number
  // c_f: an implementation of ours is within c_f * u * |f(x)| of f at the rounded argument.
  double error_ulps;
  // The largest |f'| where f is not monotone on the interval; 0 where f is monotone everywhere.
  double lipschitz;
};
const FunctionInfo& Info(Function function);
absl::Span<const FunctionInfo> AllFunctions();
// f of one number in double precision. Precondition: a one-operand function but cast and tf32.
// gelu is the erf form 0.5 x (1 + erf(x / sqrt 2)); silu is x * sigmoid(x).
double EvaluateUnary(Function function, double x);
// Rounds to tf32: 10 explicit mantissa bits, to nearest even.
double RoundToTf32(double x);

enum class ReduceOp { kSum, kMax, kMin };

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Expr {
  enum class Kind {
    kConstant,    // `constant` (may be infinite)
    kRead,        // `tensor`[`subscripts`]
    kIndexValue,  // the value of `index_value`, as in where(j <= i, …)
    kSize,        // size(index): the number of values of index `index`
    kCall,        // `function`(`operands`)
    kReduce,      // `reduce`(`reduce_indices`: operands[0])
  };
  Kind kind = Kind::kConstant;
  SourceSpan span;
  double constant = 0;
  int tensor = -1;
  std::vector<AffineIndex> subscripts;
  AffineIndex index_value;
  int index = -1;
  Function function = Function::kAdd;
  ElementType cast_type = ElementType::kF32;
  ReduceOp reduce = ReduceOp::kSum;
  std::vector<int> reduce_indices;
  std::vector<ExprPtr> operands;
};

struct Tensor {
  std::string name;
  int rank = 0;
  bool is_parameter = false;  // read and never written: an input buffer of the kernel
  bool is_output = false;     // an output buffer of the kernel. Neither: an intermediate
};

// tensor[indices] = value, for every value of `indices`, which are distinct.
struct Statement {
  int tensor = -1;
  std::vector<int> indices;
  ExprPtr value;
  SourceSpan span;
};

struct Program {
  std::vector<std::string> indices;  // names; an index has one size in the whole program
  std::vector<Tensor> tensors;
  std::vector<Statement>
      statements;  // each tensor is written by at most one; read only after it is written
};

// Parses a program. InvalidArgument carries the message, line, column and the offending line with a
// caret.
absl::StatusOr<Program> ParseProgram(std::string_view text);
// Prints with the program's own names, fully deterministic; ParseProgram reads it back to the same
// tree.
std::string ToString(const Program& program);
std::string ToString(const Program& program, const Expr& expr);

// Calls `visit` for `expr` and everything below it, parents first.
template <typename Visit>
void Walk(const Expr& expr, Visit&& visit) {
  visit(expr);
  for (const ExprPtr& operand : expr.operands) Walk(*operand, visit);
}

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_EXPRESSION_H_
