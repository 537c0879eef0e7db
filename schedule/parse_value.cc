// The expressions of the language, loosest binding first.
#include "schedule/parser.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/affine.h"

namespace tilewright {
namespace {

struct ReductionName {
  std::string_view name;
  ReduceOp op;
};
constexpr ReductionName kReductions[] = {
    {"sum", ReduceOp::kSum}, {"max", ReduceOp::kMax}, {"min", ReduceOp::kMin}};

struct ComparisonName {
  std::string_view symbol;
  Function function;
  bool swapped;  // `a > b` is Less(b, a)
};
constexpr ComparisonName kComparisons[] = {
    {"<", Function::kLess, false},   {"<=", Function::kLessEqual, false},
    {">", Function::kLess, true},    {">=", Function::kLessEqual, true},
    {"==", Function::kEqual, false}, {"!=", Function::kNotEqual, false}};

bool HasName(const FunctionInfo& info) { return info.name[0] >= 'a' && info.name[0] <= 'z'; }

std::string FunctionNames() {
  std::vector<std::string> names = {"size", "sum"};
  for (const FunctionInfo& info : AllFunctions()) {
    if (HasName(info)) names.emplace_back(info.name);
  }
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, ", ");
}

}  // namespace

Parsed ProgramParser::Make(Expr expr, int depth, bool is_integral, bool is_condition) {
  if (depth > kMaxDepth) {
    Fail(expr.span, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    return {};
  }
  return {std::make_shared<const Expr>(std::move(expr)), is_integral, is_condition, depth};
}

Parsed ProgramParser::Call(Function function, std::vector<Parsed> operands, bool is_integral,
                           bool is_condition) {
  Expr expr;
  expr.kind = Expr::Kind::kCall;
  expr.function = function;
  expr.span = {operands.front().expr->span.begin, operands.back().expr->span.end};
  int depth = 0;
  const bool is_chain = function == Function::kAdd || function == Function::kMul;
  for (Parsed& operand : operands) {
    depth = std::max(depth, operand.depth);
    const Expr& below = *operand.expr;
    if (is_chain && below.kind == Expr::Kind::kCall && below.function == function) {
      expr.operands.insert(expr.operands.end(), below.operands.begin(), below.operands.end());
    } else {
      expr.operands.push_back(std::move(operand.expr));
    }
  }
  return Make(std::move(expr), depth + 1, is_integral, is_condition);
}

Parsed ProgramParser::Constant(double value, SourceSpan span, bool is_integral) {
  Expr expr;
  expr.constant = value;
  expr.span = span;
  return Make(std::move(expr), 1, is_integral);
}

Parsed ProgramParser::IndexValue(AffineIndex affine, SourceSpan span, int depth) {
  Expr expr;
  expr.kind = Expr::Kind::kIndexValue;
  expr.index_value = std::move(affine);
  expr.span = span;
  return Make(std::move(expr), depth, true);
}

bool ProgramParser::IsValue(const Parsed& operand) {
  if (ok() && operand.is_condition) {
    Fail(operand.expr->span, "a condition stands only in where(…), under &&, || and !");
  }
  return ok();
}

bool ProgramParser::IsCondition(const Parsed& operand) {
  if (ok() && !operand.is_condition) {
    Fail(operand.expr->span, "expected a condition, such as `j <= i`");
  }
  return ok();
}
Parsed ProgramParser::ParseOr() {
  if (!ok()) return {};
  if (++depth_ > kMaxDepth) {
    Fail(Peek().span, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    return {};
  }
  Parsed left = ParseAnd();
  while (ok() && Accept("||")) {
    Parsed right = ParseAnd();
    if (!ok() || !IsCondition(left) || !IsCondition(right)) return {};
    left = Call(Function::kOr, {std::move(left), std::move(right)}, false, true);
  }
  --depth_;
  return left;
}

Parsed ProgramParser::ParseAnd() {
  Parsed left = ParseComparison();
  while (ok() && Accept("&&")) {
    Parsed right = ParseComparison();
    if (!ok() || !IsCondition(left) || !IsCondition(right)) return {};
    left = Call(Function::kAnd, {std::move(left), std::move(right)}, false, true);
  }
  return left;
}

Parsed ProgramParser::ParseComparison() {
  Parsed left = ParseSum();
  for (const ComparisonName& comparison : kComparisons) {
    if (!ok() || !Is(comparison.symbol)) continue;
    Next();
    Parsed right = ParseSum();
    if (!ok() || !IsValue(left) || !IsValue(right)) return {};
    std::array<Parsed*, 2> sides = {&left, &right};
    if (comparison.swapped) std::swap(sides[0], sides[1]);
    // Two sides of index arithmetic compare as integers.
    const std::optional<AffineIndex> a = ToAffine(*left.expr);
    const std::optional<AffineIndex> b = ToAffine(*right.expr);
    if (a.has_value() && b.has_value()) {
      if (!a->terms.empty()) left = IndexValue(*a, left.expr->span, left.depth);
      if (!b->terms.empty()) right = IndexValue(*b, right.expr->span, right.depth);
    }
    Parsed result = Call(comparison.function, {*sides[0], *sides[1]}, false, true);
    if (ok() && (Is("<") || Is("<=") || Is(">") || Is(">=") || Is("==") || Is("!="))) {
      Fail(Peek().span, "comparisons don't chain; join them with &&");
    }
    return result;
  }
  return left;
}

Parsed ProgramParser::ParseSum() {
  Parsed first = ParseProduct();
  if (!ok() || (!Is("+") && !Is("-"))) return first;
  std::vector<Parsed> operands;
  bool is_integral = first.is_integral;
  if (!IsValue(first)) return {};
  operands.push_back(std::move(first));
  while (ok() && (Is("+") || Is("-"))) {
    const Token symbol = Next();
    Parsed next = ParseProduct();
    if (!ok() || !IsValue(next)) return {};
    is_integral = is_integral && next.is_integral;
    if (symbol.text == "-") {
      const SourceSpan span = {symbol.span.begin, next.expr->span.end};
      next = next.expr->kind == Expr::Kind::kConstant
                 ? Constant(-next.expr->constant, span, next.is_integral)
                 : Call(Function::kNeg, {std::move(next)}, is_integral);
      if (!ok()) return {};
    }
    operands.push_back(std::move(next));
  }
  if (!ok()) return {};
  return Call(Function::kAdd, std::move(operands), is_integral);
}

Parsed ProgramParser::ParseProduct() {
  Parsed left = ParseUnary();
  // Consecutive factors are gathered, so that a long chain is one call.
  std::vector<Parsed> factors;
  bool is_integral = false;
  auto gather = [&]() -> Parsed {
    if (factors.empty()) return std::move(left);
    factors.push_back(std::move(left));
    int with_index = 0;
    for (const Parsed& factor : factors) {
      const std::optional<AffineIndex> affine = ToAffine(*factor.expr);
      if (!affine.has_value() || !affine->terms.empty()) ++with_index;
    }
    Parsed product = Call(Function::kMul, std::move(factors), is_integral && with_index <= 1);
    factors.clear();
    return product;
  };
  while (ok() && (Is("*") || Is("/") || Is("%"))) {
    const Token symbol = Next();
    Parsed right = ParseUnary();
    if (!ok() || !IsValue(left) || !IsValue(right)) return {};
    if (symbol.text == "*") {
      is_integral = (factors.empty() || is_integral) && left.is_integral && right.is_integral;
      factors.push_back(std::move(left));
      left = std::move(right);
    } else {
      left = ParseDivision(gather(), symbol, std::move(right));
    }
  }
  if (!ok()) return {};
  return gather();
}

namespace {

bool HasIndex(const Expr& expr) {
  bool found = false;
  Walk(expr, [&](const Expr& e) { found = found || e.kind == Expr::Kind::kIndexValue; });
  return found;
}

}  // namespace

Parsed ProgramParser::ParseDivision(Parsed left, const Token& symbol, Parsed right) {
  if (!ok()) return {};
  const std::optional<AffineIndex> numerator =
      left.is_integral ? ToAffine(*left.expr) : std::nullopt;
  // Large numbers without an index are values.
  if (left.is_integral && !numerator.has_value() && HasIndex(*left.expr)) {
    Fail(left.expr->span, "the numbers of an index expression stay within 2^40");
    return {};
  }
  const bool is_index = numerator.has_value() && !numerator->terms.empty();
  if (is_index && right.is_integral) {
    if (right.expr->kind != Expr::Kind::kConstant || right.expr->constant < 1 ||
        right.expr->constant > static_cast<double>(kMaxAffineNumber)) {
      Fail(right.expr->span, "indices are divided by positive integers only");
      return {};
    }
    const SourceSpan span = {left.expr->span.begin, right.expr->span.end};
    return IndexValue(AffineOfDivision(symbol.text == "/" ? AffineTerm::Kind::kFloorDiv
                                                          : AffineTerm::Kind::kFloorMod,
                                       *numerator, static_cast<int64_t>(right.expr->constant)),
                      span, left.depth + 1);
  }
  if (symbol.text == "%") {
    Fail(symbol.span, "'%' takes an index expression and a positive integer, such as `j%8`");
    return {};
  }
  return Call(Function::kDiv, {std::move(left), std::move(right)});
}

Parsed ProgramParser::ParseUnary() {
  if (!ok()) return {};
  if (!Is("-") && !Is("!")) return ParsePrimary();
  if (++depth_ > kMaxDepth) {
    Fail(Peek().span, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    return {};
  }
  const Token symbol = Next();
  Parsed operand = ParseUnary();
  --depth_;
  if (!ok()) return {};
  if (symbol.text == "!") {
    if (!IsCondition(operand)) return {};
    return Call(Function::kNot, {std::move(operand)}, false, true);
  }
  if (!IsValue(operand)) return {};
  if (operand.expr->kind == Expr::Kind::kConstant) {
    return Constant(-operand.expr->constant, {symbol.span.begin, operand.expr->span.end},
                    operand.is_integral);
  }
  const bool is_integral = operand.is_integral;
  return Call(Function::kNeg, {std::move(operand)}, is_integral);
}

Parsed ProgramParser::ParsePrimary() {
  if (Accept("(")) {
    Parsed inner = ParseOr();
    Expect(")");
    return inner;
  }
  if (Peek().kind == Token::Kind::kNumber) {
    const Token number = Next();
    return Constant(number.number, number.span, number.is_integer);
  }
  if (Peek().kind != Token::Kind::kIdentifier) {
    Fail(Peek().span, absl::StrCat("expected an expression, found ", Found()));
    return {};
  }
  const Token name = Next();
  if (Accept("[")) return ParseRead(name);
  if (Is("(")) {
    for (const ReductionName& reduction : kReductions) {
      if (reduction.name == name.text && IsReductionAhead()) {
        return ParseReduction(name, reduction.op);
      }
    }
    return name.text == "size" ? ParseSize(name) : ParseCall(name);
  }
  if (name.text == "inf") {
    return Constant(std::numeric_limits<double>::infinity(), name.span, false);
  }
  const auto entry = index_numbers_.find(std::string(name.text));
  if (entry == index_numbers_.end() || !is_bound_[entry->second]) {
    const bool is_tensor = tensor_numbers_.count(std::string(name.text)) != 0;
    Fail(name.span, is_tensor
                        ? absl::StrCat("tensor '", std::string(name.text), "' needs subscripts: '",
                                       std::string(name.text), "[…]', or '[]' for a scalar")
                        : absl::StrCat("index '", std::string(name.text),
                                       "' is bound neither by the left side nor by a reduction"));
    return {};
  }
  return IndexValue(AffineOfIndex(entry->second), name.span);
}

Parsed ProgramParser::ParseRead(const Token& name) {
  Expr expr;
  expr.kind = Expr::Kind::kRead;
  expr.tensor = TensorNumber(name);
  is_read_[expr.tensor] = true;
  int depth = 0;
  while (ok() && !Is("]")) {
    Parsed subscript = ParseSum();
    if (!ok()) return {};
    std::optional<AffineIndex> affine =
        subscript.is_integral ? ToAffine(*subscript.expr) : std::nullopt;
    if (!affine.has_value()) {
      Fail(subscript.expr->span,
           "a subscript is a sum of indices times integers, such as `2*p+r-1`, `h/4` or `j%8`, "
           "with numbers up to 2^40");
      return {};
    }
    depth = std::max(depth, subscript.depth);
    expr.subscripts.push_back(*std::move(affine));
    if (!Is("]") && !Expect(",")) return {};
    if (Is("]") && tokens_[at_ - 1].text == ",") {
      Fail(Peek().span, "expected a subscript, found ']'");
    }
  }
  if (!Expect("]")) return {};
  expr.span = {name.span.begin, tokens_[at_ - 1].span.end};
  SetRank(name, expr.tensor, static_cast<int>(expr.subscripts.size()));
  return Make(std::move(expr), depth + 1);
}

// At "(": index { "," index } ":" follows.
bool ProgramParser::IsReductionAhead() const {
  int ahead = 1;
  while (Peek(ahead).kind == Token::Kind::kIdentifier) {
    if (Is(":", ahead + 1)) return true;
    if (!Is(",", ahead + 1)) return false;
    ahead += 2;
  }
  return false;
}

namespace {

// True if a subscript or a value holds the index. `k - k` does not: it is the constant 0.
bool DependsOn(const Expr& value, int index) {
  std::vector<int> indices;
  Walk(value, [&](const Expr& e) {
    for (const AffineIndex& subscript : e.subscripts) subscript.CollectIndices(&indices);
    e.index_value.CollectIndices(&indices);
  });
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

}  // namespace

Parsed ProgramParser::ParseReduction(const Token& name, ReduceOp op) {
  Expr expr;
  expr.kind = Expr::Kind::kReduce;
  expr.reduce = op;
  Expect("(");
  std::vector<Token> names;
  do {
    const std::optional<Token> index = ExpectIdentifier("an index");
    if (!index.has_value() || !Bind(*index, &expr.reduce_indices)) return {};
    names.push_back(*index);
  } while (Accept(","));
  Expect(":");
  Parsed body = ParseOr();
  if (!Expect(")") || !IsValue(body)) return {};
  for (size_t i = 0; i < names.size(); ++i) {
    const int index = expr.reduce_indices[i];
    is_bound_[index] = false;
    if (!DependsOn(*body.expr, index)) {
      Fail(names[i].span, absl::StrCat("index '", program_.indices[index],
                                       "' is reduced over but not used in the reduction"));
      return {};
    }
  }
  expr.operands.push_back(std::move(body.expr));
  expr.span = {name.span.begin, tokens_[at_ - 1].span.end};
  return Make(std::move(expr), body.depth + 1);
}

Parsed ProgramParser::ParseSize(const Token& name) {
  Expect("(");
  const std::optional<Token> index = ExpectIdentifier("an index");
  if (!index.has_value() || !Expect(")")) return {};
  Expr expr;
  expr.kind = Expr::Kind::kSize;
  expr.index = IndexNumber(*index);
  expr.span = {name.span.begin, tokens_[at_ - 1].span.end};
  return Make(std::move(expr), 1);
}

Parsed ProgramParser::ParseCall(const Token& name) {
  const std::string function_name(name.text);
  if (name.text == "sum") {
    Fail(name.span, "sum names its indices: `sum(k: A[m,k] * B[k,n])`");
    return {};
  }
  const FunctionInfo* info = nullptr;
  for (const FunctionInfo& row : AllFunctions()) {
    if (HasName(row) && row.name == name.text) info = &row;
  }
  if (info == nullptr) {
    Fail(name.span,
         absl::StrCat("unknown function '", function_name, "'; functions are ", FunctionNames()));
    return {};
  }
  Expect("(");
  Expr expr;
  if (info->function == Function::kCast) {
    const Token type_name = Peek();
    const absl::StatusOr<ElementType> type = ParseElementType(type_name.text);
    if (!type.ok()) {
      Fail(type_name.span, absl::StrCat("cast takes a type first, as in `cast(bf16, x)`: ",
                                        std::string(type.status().message())));
      return {};
    }
    Next();
    expr.cast_type = *type;
    if (!Expect(",")) return {};
  }
  int depth = 0;
  do {
    Parsed operand = ParseOr();
    if (!ok()) return {};
    const bool takes_condition = info->function == Function::kWhere && expr.operands.empty();
    if (takes_condition ? !IsCondition(operand) : !IsValue(operand)) return {};
    depth = std::max(depth, operand.depth);
    expr.operands.push_back(std::move(operand.expr));
  } while (Accept(","));
  if (!Expect(")")) return {};
  const int count = static_cast<int>(expr.operands.size());
  if (count < info->min_operands || (info->max_operands >= 0 && count > info->max_operands)) {
    Fail(name.span, absl::StrCat(function_name, " takes ", info->min_operands,
                                 info->max_operands < 0 ? " or more" : "", " operand",
                                 info->max_operands == 1 ? "" : "s", ", not ", count));
    return {};
  }
  expr.kind = Expr::Kind::kCall;
  expr.function = info->function;
  expr.span = {name.span.begin, tokens_[at_ - 1].span.end};
  return Make(std::move(expr), depth + 1);
}

}  // namespace tilewright
