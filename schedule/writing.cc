#include "schedule/writing.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/affine.h"

namespace tilewright {
namespace {

// Parentheses go around whatever binds looser than its place asks for.
enum class Precedence { kOr, kAnd, kComparison, kSum, kProduct, kUnary };

class Writer {
 public:
  Writer(Order order, Pieces* out) : order_(order), out_(out) {}

  void Text(std::string_view text) {
    if (!out_->empty() && out_->back().kind == Piece::Kind::kText) {
      out_->back().text.append(text);
      return;
    }
    Piece piece;
    piece.text = std::string(text);
    out_->push_back(std::move(piece));
  }
  // `text` with a space on each side where spaces are wanted.
  void Spaced(std::string_view text) {
    Text(order_ == Order::kAsWritten ? absl::StrCat(" ", std::string(text), " ")
                                     : std::string(text));
  }
  void Comma() { Text(order_ == Order::kAsWritten ? ", " : ","); }
  void Name(Piece::Kind kind, int number) {
    Piece piece;
    piece.kind = kind;
    piece.number = number;
    out_->push_back(std::move(piece));
  }
  // Writes n members with `write(i, writer)`: in a group where the order is free, else in order.
  template <typename Write>
  void Members(int n, std::string_view separator, Write&& write) {
    if (order_ == Order::kAsWritten || n == 1) {
      for (int i = 0; i < n; ++i) {
        if (i > 0) Text(separator);
        write(i, *this);
      }
      return;
    }
    Piece group;
    group.kind = Piece::Kind::kGroup;
    group.text = std::string(separator);
    group.members.resize(n);
    for (int i = 0; i < n; ++i) {
      Writer inner(order_, &group.members[i]);
      write(i, inner);
    }
    out_->push_back(std::move(group));
  }

  void Indices(const std::vector<int>& indices, bool free) {
    auto write = [&](int i, Writer& w) { w.Name(Piece::Kind::kIndex, indices[i]); };
    if (free) return Members(static_cast<int>(indices.size()), ",", write);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (i > 0) Text(",");
      write(static_cast<int>(i), *this);
    }
  }

  void Affine(const AffineIndex& affine);
  void WriteTree(const Expr& expr, Precedence least);

 private:
  void Term(const AffineTerm& term, bool is_first);
  void Sum(const Expr& expr);
  void Call(const Expr& expr);

  Order order_;
  Pieces* out_;
};

void Writer::Term(const AffineTerm& term, bool is_first) {
  const bool is_atom_division = term.kind != AffineTerm::Kind::kIndex;
  const int64_t magnitude = std::abs(term.coefficient);
  if (term.coefficient < 0) {
    Text("-");
  } else if (!is_first) {
    Text("+");
  }
  if (magnitude != 1) Text(absl::StrCat(magnitude, "*"));
  if (!is_atom_division) return Name(Piece::Kind::kIndex, term.index);
  const bool parenthesised = magnitude != 1 || term.coefficient < 0;
  if (parenthesised) Text("(");
  const AffineIndex& operand = *term.operand;
  const bool is_simple =
      operand.constant == 0 && operand.terms.size() == 1 && operand.terms[0].coefficient > 0;
  if (!is_simple) Text("(");
  Affine(operand);
  if (!is_simple) Text(")");
  Text(term.kind == AffineTerm::Kind::kFloorDiv ? "/" : "%");
  Text(absl::StrCat(term.divisor));
  if (parenthesised) Text(")");
}

void Writer::Affine(const AffineIndex& affine) {
  if (order_ == Order::kAsWritten) {
    for (size_t i = 0; i < affine.terms.size(); ++i) Term(affine.terms[i], i == 0);
  } else {
    std::vector<const AffineTerm*> added, subtracted;
    for (const AffineTerm& term : affine.terms) {
      (term.coefficient > 0 ? added : subtracted).push_back(&term);
    }
    // A term's own sign serves as separator for the subtracted ones.
    Members(static_cast<int>(added.size()), "+",
            [&](int i, Writer& w) { w.Term(*added[i], true); });
    Members(static_cast<int>(subtracted.size()), "",
            [&](int i, Writer& w) { w.Term(*subtracted[i], true); });
  }
  if (affine.terms.empty()) {
    Text(absl::StrCat(affine.constant));
  } else if (affine.constant != 0) {
    Text(absl::StrCat(affine.constant > 0 ? "+" : "", affine.constant));
  }
}

bool IsAtom(const AffineIndex& affine) {
  return affine.constant == 0 && affine.terms.size() == 1 && affine.terms[0].coefficient == 1;
}

Precedence PrecedenceOf(const Expr& expr) {
  if (expr.kind == Expr::Kind::kIndexValue) {
    if (!IsAtom(expr.index_value)) return Precedence::kSum;
    // `j/4` is parenthesised as a factor: `x*j/4` would divide x*j.
    return expr.index_value.BareIndex() >= 0 ? Precedence::kUnary : Precedence::kProduct;
  }
  if (expr.kind != Expr::Kind::kCall) return Precedence::kUnary;
  switch (expr.function) {
    case Function::kOr:
      return Precedence::kOr;
    case Function::kAnd:
      return Precedence::kAnd;
    case Function::kLess:
    case Function::kLessEqual:
    case Function::kEqual:
    case Function::kNotEqual:
      return Precedence::kComparison;
    case Function::kAdd:
      return Precedence::kSum;
    case Function::kMul:
    case Function::kDiv:
      return Precedence::kProduct;
    default:
      return Precedence::kUnary;
  }
}

bool IsNegated(const Expr& expr) {
  return (expr.kind == Expr::Kind::kCall && expr.function == Function::kNeg) ||
         (expr.kind == Expr::Kind::kConstant && std::signbit(expr.constant));
}

void Writer::Sum(const Expr& expr) {
  // `at_front`: a minus sign there binds to the first factor alone, so a negated product is
  // parenthesised.
  auto negated = [](const Expr& operand, bool at_front, Writer& w) {
    if (operand.kind == Expr::Kind::kConstant) return w.Text(FormatNumber(-operand.constant));
    w.WriteTree(*operand.operands[0], at_front ? Precedence::kUnary : Precedence::kProduct);
  };
  if (order_ == Order::kAsWritten) {
    for (size_t i = 0; i < expr.operands.size(); ++i) {
      const Expr& operand = *expr.operands[i];
      if (IsNegated(operand)) {
        i == 0 ? Text("-") : Spaced("-");
        negated(operand, i == 0, *this);
      } else {
        if (i > 0) Spaced("+");
        WriteTree(operand, Precedence::kProduct);
      }
    }
    return;
  }
  std::vector<const Expr*> added, subtracted;
  for (const ExprPtr& operand : expr.operands) {
    (IsNegated(*operand) ? subtracted : added).push_back(operand.get());
  }
  Members(static_cast<int>(added.size()), "+",
          [&](int i, Writer& w) { w.WriteTree(*added[i], Precedence::kProduct); });
  if (subtracted.empty()) return;
  Text("-");
  Members(static_cast<int>(subtracted.size()), "-",
          [&](int i, Writer& w) { negated(*subtracted[i], added.empty(), w); });
}

// Whether a printed integer divisor of `numerator` would read as index division.
bool ReadsAsIndex(const Expr& numerator) {
  const std::optional<AffineIndex> affine = ToAffine(numerator);
  return affine.has_value() && !affine->terms.empty();
}

void Writer::Call(const Expr& expr) {
  const int n = static_cast<int>(expr.operands.size());
  const std::string name(Info(expr.function).name);
  switch (expr.function) {
    case Function::kAdd:
      return Sum(expr);
    case Function::kMul:
      return Members(n, order_ == Order::kAsWritten ? " * " : "*",
                     [&](int i, Writer& w) { w.WriteTree(*expr.operands[i], Precedence::kUnary); });
    case Function::kDiv: {
      WriteTree(*expr.operands[0], Precedence::kProduct);
      Spaced("/");
      const Expr& divisor = *expr.operands[1];
      WriteTree(divisor, Precedence::kUnary);
      if (divisor.kind == Expr::Kind::kConstant && ReadsAsIndex(*expr.operands[0]) &&
          FormatNumber(divisor.constant).find_first_of(".ein") == std::string::npos) {
        Text(".0");
      }
      return;
    }
    case Function::kNeg:
    case Function::kNot:
      Text(name);
      return WriteTree(*expr.operands[0], Precedence::kUnary);
    case Function::kLess:
    case Function::kLessEqual:
    case Function::kEqual:
    case Function::kNotEqual:
    case Function::kAnd:
    case Function::kOr: {
      const Precedence own = PrecedenceOf(expr);
      const bool is_comparison = own == Precedence::kComparison;
      WriteTree(*expr.operands[0], is_comparison ? Precedence::kSum : own);
      Spaced(name);
      return WriteTree(*expr.operands[1], is_comparison
                                              ? Precedence::kSum
                                              : static_cast<Precedence>(static_cast<int>(own) + 1));
    }
    default:
      break;
  }
  Text(absl::StrCat(name, "("));
  if (expr.function == Function::kCast) {
    Text(Info(expr.cast_type).name);
    Comma();
  }
  const bool is_free = expr.function == Function::kMin || expr.function == Function::kMax;
  auto write = [&](int i, Writer& w) { w.WriteTree(*expr.operands[i], Precedence::kOr); };
  if (is_free) {
    Members(n, order_ == Order::kAsWritten ? ", " : ",", write);
  } else {
    for (int i = 0; i < n; ++i) {
      if (i > 0) Comma();
      write(i, *this);
    }
  }
  Text(")");
}

void Writer::WriteTree(const Expr& expr, Precedence least) {
  const bool parenthesised = PrecedenceOf(expr) < least;
  if (parenthesised) Text("(");
  switch (expr.kind) {
    case Expr::Kind::kConstant:
      Text(FormatNumber(expr.constant));
      break;
    case Expr::Kind::kRead:
      Name(Piece::Kind::kTensor, expr.tensor);
      Text("[");
      for (size_t i = 0; i < expr.subscripts.size(); ++i) {
        if (i > 0) Text(",");
        Affine(expr.subscripts[i]);
      }
      Text("]");
      break;
    case Expr::Kind::kIndexValue:
      Affine(expr.index_value);
      break;
    case Expr::Kind::kSize:
      Text("size(");
      Name(Piece::Kind::kIndex, expr.index);
      Text(")");
      break;
    case Expr::Kind::kCall:
      Call(expr);
      break;
    case Expr::Kind::kReduce:
      Text(expr.reduce == ReduceOp::kSum   ? "sum("
           : expr.reduce == ReduceOp::kMax ? "max("
                                           : "min(");
      Indices(expr.reduce_indices, true);
      Text(order_ == Order::kAsWritten ? ": " : ":");
      WriteTree(*expr.operands[0], Precedence::kOr);
      Text(")");
      break;
  }
  if (parenthesised) Text(")");
}

}  // namespace

std::string FormatNumber(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

Pieces WriteExpr(const Expr& expr, Order order) {
  Pieces pieces;
  Writer(order, &pieces).WriteTree(expr, Precedence::kOr);
  return pieces;
}

Pieces WriteStatement(const Statement& statement, Order order) {
  Pieces pieces;
  Writer writer(order, &pieces);
  writer.Name(Piece::Kind::kTensor, statement.tensor);
  writer.Text("[");
  writer.Indices(statement.indices, false);
  writer.Text("]");
  writer.Spaced("=");
  writer.WriteTree(*statement.value, Precedence::kOr);
  return pieces;
}

}  // namespace tilewright
