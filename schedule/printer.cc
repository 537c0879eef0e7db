#include <string>

#include "absl/strings/str_cat.h"
#include "schedule/expression.h"
#include "schedule/writing.h"

namespace tilewright {
namespace {

void AppendText(const Program& program, const Pieces& pieces, std::string* out) {
  for (const Piece& piece : pieces) {
    switch (piece.kind) {
      case Piece::Kind::kText:
        out->append(piece.text);
        break;
      case Piece::Kind::kIndex:
        out->append(program.indices[piece.number]);
        break;
      case Piece::Kind::kTensor:
        out->append(program.tensors[piece.number].name);
        break;
      case Piece::Kind::kGroup:
        __builtin_unreachable();  // Order::kAsWritten makes no groups.
    }
  }
}

}  // namespace

std::string ToString(const Program& program) {
  int outputs = 0;
  for (const Tensor& tensor : program.tensors) outputs += tensor.is_output ? 1 : 0;
  // The last statement's tensor is the output where none is marked.
  const bool is_default = outputs == 1 && !program.statements.empty() &&
                          program.tensors[program.statements.back().tensor].is_output;
  std::string text;
  for (const Statement& statement : program.statements) {
    if (!text.empty()) text += "; ";
    if (!is_default && program.tensors[statement.tensor].is_output) text += "out ";
    AppendText(program, WriteStatement(statement, Order::kAsWritten), &text);
  }
  return text;
}

std::string ToString(const Program& program, const Expr& expr) {
  std::string text;
  AppendText(program, WriteExpr(expr, Order::kAsWritten), &text);
  return text;
}

}  // namespace tilewright
