// The tokens of the expression language.
#ifndef TILEWRIGHT_SCHEDULE_LEXER_H_
#define TILEWRIGHT_SCHEDULE_LEXER_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/expression.h"

namespace tilewright {

struct Token {
  enum class Kind { kIdentifier, kNumber, kSymbol, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;  // into the lexed text
  SourceSpan span;
  double number = 0;        // kNumber
  bool is_integer = false;  // kNumber written with digits alone
};

// Splits `text`, which must outlive the tokens; the last token is kEnd. InvalidArgument is located.
absl::StatusOr<std::vector<Token>> Lex(std::string_view text);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_LEXER_H_
