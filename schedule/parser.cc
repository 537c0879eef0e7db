// A recursive-descent parser over the tokens of lexer.h, one function per level of precedence:
//
//   program    = statement { ";" statement } [ ";" ]
//   statement  = [ "out" ] tensor "[" [ index { "," index } ] "]" "=" or
//   or         = and { "||" and }
//   and        = comparison { "&&" comparison }
//   comparison = sum [ ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum ]
//   sum        = product { ( "+" | "-" ) product }
//   product    = unary { ( "*" | "/" | "%" ) unary }
//   unary      = ( "-" | "!" ) unary | primary
//   primary    = number | "inf" | index | tensor "[" [ sum { "," sum } ] "]" | "(" or ")" |
//   reduction | call reduction  = ( "sum" | "max" | "min" ) "(" index { "," index } ":" or ")" call
//   = function "(" or { "," or } ")" | "cast" "(" type "," or ")" | "size" "(" index ")"
//
// Arithmetic of indices and integer literals alone is index arithmetic: `/` and `%` by a positive
// integer literal then round towards minus infinity, and a comparison of two such sides compares
// integers. Everything else is arithmetic of values.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/affine.h"
#include "schedule/expression.h"
#include "schedule/lexer.h"
#include "schedule/source_text.h"

namespace tilewright {
namespace {

// What a hostile text may cost: recursion and tree depth, statements, bytes.
constexpr int kMaxDepth = 200;
constexpr int kMaxStatements = 256;
constexpr int kMaxBytes = 32768;

struct Operand {
  ExprPtr expr;
  bool is_integral = false;  // index arithmetic so far
  bool is_condition = false;
  int depth = 1;  // of the tree
};

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

class Parser {
 public:
  Parser(std::string_view text, std::vector<Token> tokens)
      : text_(text), tokens_(std::move(tokens)) {}

  absl::StatusOr<Program> Parse() {
    do {
      if (Peek().kind == Token::Kind::kEnd && !program_.statements.empty()) break;
      ParseStatement();
    } while (ok() && Accept(";"));
    if (ok() && Peek().kind != Token::Kind::kEnd) {
      Fail(Peek().span, absl::StrCat("expected an operator, ';' or the end, found ", Found()));
    }
    if (ok()) Finish();
    if (!ok()) return status_;
    return std::move(program_);
  }

 private:
  // ---- Tokens and errors ----
  bool ok() const { return status_.ok(); }
  const Token& Peek(int ahead = 0) const {
    return tokens_[std::min<size_t>(at_ + ahead, tokens_.size() - 1)];
  }
  bool Is(std::string_view symbol, int ahead = 0) const {
    return Peek(ahead).kind == Token::Kind::kSymbol && Peek(ahead).text == symbol;
  }
  Token Next() {
    const Token token = Peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool Accept(std::string_view symbol) {
    if (!Is(symbol)) return false;
    Next();
    return true;
  }
  std::string Found() const {
    return Peek().kind == Token::Kind::kEnd ? "the end"
                                            : absl::StrCat("'", std::string(Peek().text), "'");
  }
  bool Expect(std::string_view symbol) {
    if (!ok()) return false;
    if (Accept(symbol)) return true;
    Fail(Peek().span, absl::StrCat("expected '", std::string(symbol), "', found ", Found()));
    return false;
  }
  // Keeps the first error.
  void Fail(SourceSpan span, std::string_view message) {
    if (ok()) status_ = ErrorAt(text_, span.begin, message);
  }
  std::optional<Token> ExpectIdentifier(std::string_view what) {
    if (!ok()) return std::nullopt;
    if (Peek().kind == Token::Kind::kIdentifier) return Next();
    Fail(Peek().span, absl::StrCat("expected ", std::string(what), ", found ", Found()));
    return std::nullopt;
  }

  // ---- Names ----
  int IndexNumber(const Token& name) {
    const auto [entry, is_new] =
        index_numbers_.emplace(std::string(name.text), program_.indices.size());
    if (is_new) {
      program_.indices.push_back(entry->first);
      index_spans_.push_back(name.span);
      is_bound_.push_back(false);
      ever_bound_.push_back(false);
      uses_.push_back(0);
    }
    return entry->second;
  }
  int TensorNumber(const Token& name) {
    const auto [entry, is_new] =
        tensor_numbers_.emplace(std::string(name.text), program_.tensors.size());
    if (is_new) {
      Tensor tensor;
      tensor.name = entry->first;
      tensor.rank = -1;
      program_.tensors.push_back(std::move(tensor));
      tensor_spans_.push_back(name.span);
      is_written_.push_back(false);
      is_read_.push_back(false);
    }
    return entry->second;
  }
  void SetRank(const Token& name, int number, int rank) {
    Tensor& tensor = program_.tensors[number];
    if (tensor.rank < 0) tensor.rank = rank;
    if (tensor.rank != rank) {
      Fail(name.span, absl::StrCat("tensor '", tensor.name, "' has ", rank, " subscripts here and ",
                                   tensor.rank, " before"));
    }
  }
  // Binds an index for the left side or a reduction; false (and an error) if it is bound already.
  bool Bind(const Token& name, std::vector<int>* numbers) {
    if (name.text == "inf") {
      Fail(name.span, "'inf' is the infinite constant and can't name an index");
      return false;
    }
    const int number = IndexNumber(name);
    if (is_bound_[number]) {
      Fail(name.span, absl::StrCat("index '", std::string(name.text),
                                   "' is already bound here; use another name"));
      return false;
    }
    is_bound_[number] = ever_bound_[number] = true;
    numbers->push_back(number);
    return true;
  }

  // ---- Trees ----
  Operand Make(Expr expr, int depth, bool is_integral = false, bool is_condition = false) {
    if (depth > kMaxDepth) {
      Fail(expr.span, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
      return {};
    }
    return {std::make_shared<const Expr>(std::move(expr)), is_integral, is_condition, depth};
  }
  Operand Call(Function function, std::vector<Operand> operands, bool is_integral = false,
               bool is_condition = false) {
    Expr expr;
    expr.kind = Expr::Kind::kCall;
    expr.function = function;
    expr.span = {operands.front().expr->span.begin, operands.back().expr->span.end};
    int depth = 0;
    const bool is_chain = function == Function::kAdd || function == Function::kMul;
    for (Operand& operand : operands) {
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
  Operand Constant(double value, SourceSpan span, bool is_integral) {
    Expr expr;
    expr.constant = value;
    expr.span = span;
    return Make(std::move(expr), 1, is_integral);
  }
  Operand IndexValue(AffineIndex affine, SourceSpan span, int depth = 1) {
    Expr expr;
    expr.kind = Expr::Kind::kIndexValue;
    expr.index_value = std::move(affine);
    expr.span = span;
    return Make(std::move(expr), depth, true);
  }
  // A value, not a condition; else an error.
  bool IsValue(const Operand& operand) {
    if (ok() && operand.is_condition) {
      Fail(operand.expr->span, "a condition stands only in where(…), under &&, || and !");
    }
    return ok();
  }
  bool IsCondition(const Operand& operand) {
    if (ok() && !operand.is_condition) {
      Fail(operand.expr->span, "expected a condition, such as `j <= i`");
    }
    return ok();
  }

  void ParseStatement();
  Operand ParseOr();
  Operand ParseAnd();
  Operand ParseComparison();
  Operand ParseSum();
  Operand ParseProduct();
  Operand ParseDivision(Operand left, const Token& symbol, Operand right);
  Operand ParseUnary();
  Operand ParsePrimary();
  Operand ParseRead(const Token& name);
  Operand ParseReduction(const Token& name, ReduceOp op);
  Operand ParseCall(const Token& name);
  Operand ParseSize(const Token& name);
  bool IsReductionAhead() const;
  void Finish();

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;  // of the recursion
  absl::Status status_;
  Program program_;
  std::map<std::string, int> index_numbers_;
  std::map<std::string, int> tensor_numbers_;
  std::vector<SourceSpan> index_spans_;   // first appearance
  std::vector<SourceSpan> tensor_spans_;  // first appearance
  std::vector<bool> is_bound_;            // in scope now
  std::vector<bool> ever_bound_;
  std::vector<int> uses_;  // of an index in subscripts and values
  std::vector<bool> is_written_;
  std::vector<bool> is_read_;
};

void Parser::ParseStatement() {
  Statement statement;
  statement.span.begin = Peek().span.begin;
  const bool is_output = Peek().text == "out" && Peek(1).kind == Token::Kind::kIdentifier;
  if (is_output) Next();
  const std::optional<Token> name =
      ExpectIdentifier("a statement, such as `C[m,n] = sum(k: A[m,k] * B[k,n])`");
  if (!name.has_value()) return;
  statement.tensor = TensorNumber(*name);
  if (!Expect("[")) return;
  while (ok() && !Is("]")) {
    const std::optional<Token> index = ExpectIdentifier("an index");
    if (!index.has_value() || !Bind(*index, &statement.indices)) return;
    if (!Is("]") && !Is(",")) {
      return Fail(Peek().span, "the left side takes indices alone, such as `Y[i,j]`");
    }
    if (Accept(",") && Is("]")) return Fail(Peek().span, "expected an index, found ']'");
  }
  if (!Expect("]") || !Expect("=")) return;
  const std::string tensor_name(name->text);
  if (is_written_[statement.tensor]) {
    return Fail(name->span, absl::StrCat("tensor '", tensor_name, "' is written twice"));
  }
  if (is_read_[statement.tensor]) {
    return Fail(name->span,
                absl::StrCat("tensor '", tensor_name, "' is read before it is written"));
  }
  SetRank(*name, statement.tensor, static_cast<int>(statement.indices.size()));
  Operand value = ParseOr();
  if (!ok() || !IsValue(value)) return;
  if (is_read_[statement.tensor]) {
    return Fail(name->span,
                absl::StrCat("tensor '", tensor_name, "' is read by its own statement"));
  }
  for (int index : statement.indices) is_bound_[index] = false;
  statement.value = std::move(value.expr);
  statement.span.end = statement.value->span.end;
  is_written_[statement.tensor] = true;
  program_.tensors[statement.tensor].is_output = is_output;
  program_.statements.push_back(std::move(statement));
  if (program_.statements.size() > kMaxStatements) {
    Fail(name->span, absl::StrCat("more than ", kMaxStatements, " statements"));
  }
}

Operand Parser::ParseOr() {
  if (!ok()) return {};
  if (++depth_ > kMaxDepth) {
    Fail(Peek().span, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    return {};
  }
  Operand left = ParseAnd();
  while (ok() && Accept("||")) {
    Operand right = ParseAnd();
    if (!ok() || !IsCondition(left) || !IsCondition(right)) return {};
    left = Call(Function::kOr, {std::move(left), std::move(right)}, false, true);
  }
  --depth_;
  return left;
}

Operand Parser::ParseAnd() {
  Operand left = ParseComparison();
  while (ok() && Accept("&&")) {
    Operand right = ParseComparison();
    if (!ok() || !IsCondition(left) || !IsCondition(right)) return {};
    left = Call(Function::kAnd, {std::move(left), std::move(right)}, false, true);
  }
  return left;
}

Operand Parser::ParseComparison() {
  Operand left = ParseSum();
  for (const ComparisonName& comparison : kComparisons) {
    if (!ok() || !Is(comparison.symbol)) continue;
    Next();
    Operand right = ParseSum();
    if (!ok() || !IsValue(left) || !IsValue(right)) return {};
    std::array<Operand*, 2> sides = {&left, &right};
    if (comparison.swapped) std::swap(sides[0], sides[1]);
    // Two sides of index arithmetic compare as integers.
    const std::optional<AffineIndex> a = ToAffine(*left.expr);
    const std::optional<AffineIndex> b = ToAffine(*right.expr);
    if (a.has_value() && b.has_value()) {
      if (!a->terms.empty()) left = IndexValue(*a, left.expr->span, left.depth);
      if (!b->terms.empty()) right = IndexValue(*b, right.expr->span, right.depth);
    }
    Operand result = Call(comparison.function, {*sides[0], *sides[1]}, false, true);
    if (ok() && (Is("<") || Is("<=") || Is(">") || Is(">=") || Is("==") || Is("!="))) {
      Fail(Peek().span, "comparisons don't chain; join them with &&");
    }
    return result;
  }
  return left;
}

Operand Parser::ParseSum() {
  Operand first = ParseProduct();
  if (!ok() || (!Is("+") && !Is("-"))) return first;
  std::vector<Operand> operands;
  bool is_integral = first.is_integral;
  if (!IsValue(first)) return {};
  operands.push_back(std::move(first));
  while (ok() && (Is("+") || Is("-"))) {
    const Token symbol = Next();
    Operand next = ParseProduct();
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

Operand Parser::ParseProduct() {
  Operand left = ParseUnary();
  // Consecutive factors are gathered, so that a long chain is one call.
  std::vector<Operand> factors;
  bool is_integral = false;
  auto gather = [&]() -> Operand {
    if (factors.empty()) return std::move(left);
    factors.push_back(std::move(left));
    int with_index = 0;
    for (const Operand& factor : factors) {
      const std::optional<AffineIndex> affine = ToAffine(*factor.expr);
      if (!affine.has_value() || !affine->terms.empty()) ++with_index;
    }
    Operand product = Call(Function::kMul, std::move(factors), is_integral && with_index <= 1);
    factors.clear();
    return product;
  };
  while (ok() && (Is("*") || Is("/") || Is("%"))) {
    const Token symbol = Next();
    Operand right = ParseUnary();
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

Operand Parser::ParseDivision(Operand left, const Token& symbol, Operand right) {
  if (!ok()) return {};
  const std::optional<AffineIndex> numerator =
      left.is_integral ? ToAffine(*left.expr) : std::nullopt;
  if (left.is_integral && !numerator.has_value()) {
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

Operand Parser::ParseUnary() {
  if (!ok()) return {};
  if (!Is("-") && !Is("!")) return ParsePrimary();
  if (++depth_ > kMaxDepth) {
    Fail(Peek().span, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    return {};
  }
  const Token symbol = Next();
  Operand operand = ParseUnary();
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

Operand Parser::ParsePrimary() {
  if (Accept("(")) {
    Operand inner = ParseOr();
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
  ++uses_[entry->second];
  return IndexValue(AffineOfIndex(entry->second), name.span);
}

Operand Parser::ParseRead(const Token& name) {
  Expr expr;
  expr.kind = Expr::Kind::kRead;
  expr.tensor = TensorNumber(name);
  is_read_[expr.tensor] = true;
  int depth = 0;
  while (ok() && !Is("]")) {
    Operand subscript = ParseSum();
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
bool Parser::IsReductionAhead() const {
  int ahead = 1;
  while (Peek(ahead).kind == Token::Kind::kIdentifier) {
    if (Is(":", ahead + 1)) return true;
    if (!Is(",", ahead + 1)) return false;
    ahead += 2;
  }
  return false;
}

Operand Parser::ParseReduction(const Token& name, ReduceOp op) {
  Expr expr;
  expr.kind = Expr::Kind::kReduce;
  expr.reduce = op;
  Expect("(");
  std::vector<Token> names;
  std::vector<int> uses_before;
  do {
    const std::optional<Token> index = ExpectIdentifier("an index");
    if (!index.has_value() || !Bind(*index, &expr.reduce_indices)) return {};
    names.push_back(*index);
    uses_before.push_back(uses_[expr.reduce_indices.back()]);
  } while (Accept(","));
  Expect(":");
  Operand body = ParseOr();
  if (!Expect(")") || !IsValue(body)) return {};
  for (size_t i = 0; i < names.size(); ++i) {
    const int index = expr.reduce_indices[i];
    is_bound_[index] = false;
    if (uses_[index] == uses_before[i]) {
      Fail(names[i].span, absl::StrCat("index '", program_.indices[index],
                                       "' is reduced over but not used in the reduction"));
      return {};
    }
  }
  expr.operands.push_back(std::move(body.expr));
  expr.span = {name.span.begin, tokens_[at_ - 1].span.end};
  return Make(std::move(expr), body.depth + 1);
}

Operand Parser::ParseSize(const Token& name) {
  Expect("(");
  const std::optional<Token> index = ExpectIdentifier("an index");
  if (!index.has_value() || !Expect(")")) return {};
  Expr expr;
  expr.kind = Expr::Kind::kSize;
  expr.index = IndexNumber(*index);
  expr.span = {name.span.begin, tokens_[at_ - 1].span.end};
  return Make(std::move(expr), 1);
}

Operand Parser::ParseCall(const Token& name) {
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
    Operand operand = ParseOr();
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

// What can only be known at the end: roles, unused results, names that clash.
void Parser::Finish() {
  bool any_output = false;
  for (const Tensor& tensor : program_.tensors) any_output = any_output || tensor.is_output;
  if (!any_output) program_.tensors[program_.statements.back().tensor].is_output = true;
  for (size_t i = 0; i < program_.tensors.size(); ++i) {
    Tensor& tensor = program_.tensors[i];
    tensor.is_parameter = !is_written_[i];
    if (is_written_[i] && !is_read_[i] && !tensor.is_output) {
      return Fail(tensor_spans_[i],
                  absl::StrCat("tensor '", tensor.name,
                               "' is written but never read; mark an output with `out`"));
    }
    const auto index = index_numbers_.find(tensor.name);
    if (index != index_numbers_.end()) {
      return Fail(std::max(index_spans_[index->second].begin, tensor_spans_[i].begin) ==
                          tensor_spans_[i].begin
                      ? tensor_spans_[i]
                      : index_spans_[index->second],
                  absl::StrCat("'", tensor.name, "' names a tensor and an index"));
    }
  }
  for (size_t i = 0; i < program_.indices.size(); ++i) {
    if (!ever_bound_[i]) {
      return Fail(index_spans_[i], absl::StrCat("size() of '", program_.indices[i],
                                                "', which is no index of this program"));
    }
  }
}

}  // namespace

absl::StatusOr<Program> ParseProgram(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the expression has ", text.size(),
                                                   " bytes; at most ", kMaxBytes, " are accepted"));
  }
  absl::StatusOr<std::vector<Token>> tokens = Lex(text);
  if (!tokens.ok()) return tokens.status();
  return Parser(text, *std::move(tokens)).Parse();
}

}  // namespace tilewright
