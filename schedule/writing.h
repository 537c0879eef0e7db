// How a program is written: the grammar of parser.cc read backwards, as pieces that keep names and
// free orders open.
//
// ToString fills the pieces in as they stand. The canonical form (canonical.h) chooses names and
// orders.
#ifndef TILEWRIGHT_SCHEDULE_WRITING_H_
#define TILEWRIGHT_SCHEDULE_WRITING_H_

#include <string>
#include <vector>

#include "schedule/expression.h"

namespace tilewright {

struct Piece;
using Pieces = std::vector<Piece>;

struct Piece {
  enum class Kind {
    kText,    // `text`
    kIndex,   // the name of index `number`
    kTensor,  // the name of tensor `number`
    kGroup,   // `members` in any order, `text` between them
  };
  Kind kind = Kind::kText;
  std::string text;
  int number = -1;
  std::vector<Pieces> members;
};

enum class Order {
  kAsWritten,  // the program's own order, with spaces: no groups
  kFree,  // operands whose order is free form groups; a chain's negated operands stand last; no
          // spaces
};

// Shortest decimal text that reads back to the same double; "inf" for infinity. `value` is not NaN.
std::string FormatNumber(double value);

Pieces WriteExpr(const Expr& expr, Order order);
// `Y[i,j] = …`, without `out`.
Pieces WriteStatement(const Statement& statement, Order order);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_WRITING_H_
