#include "schedule/lexer.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schedule/source_text.h"

namespace tilewright {
namespace {

// Longer ones first: the first that matches is taken.
constexpr std::string_view kSymbols[] = {"<=", ">=", "==", "!=", "&&", "||", "[", "]",
                                         "(",  ")",  ",",  ";",  ":",  "=",  "<", ">",
                                         "+",  "-",  "*",  "/",  "%",  "!"};

bool IsIdentifierStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsIdentifierPart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// The length of the number at the start of `text`, which begins with a digit or with `.` and a
// digit.
size_t NumberLength(std::string_view text, bool* is_integer) {
  size_t end = 0;
  auto digits = [&] {
    while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  };
  digits();
  *is_integer = true;
  if (end < text.size() && text[end] == '.') {
    *is_integer = false;
    ++end;
    digits();
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    if (exponent < text.size() && absl::ascii_isdigit(text[exponent])) {
      *is_integer = false;
      end = exponent;
      digits();
    }
  }
  return end;
}

}  // namespace

absl::StatusOr<std::vector<Token>> Lex(std::string_view text) {
  std::vector<Token> tokens;
  size_t at = 0;
  while (true) {
    while (at < text.size() && absl::ascii_isspace(text[at])) ++at;
    Token token;
    token.span.begin = static_cast<int>(at);
    const std::string_view rest = text.substr(at);
    size_t length = 0;
    if (rest.empty()) {
      token.kind = Token::Kind::kEnd;
    } else if (IsIdentifierStart(rest[0])) {
      token.kind = Token::Kind::kIdentifier;
      while (length < rest.size() && IsIdentifierPart(rest[length])) ++length;
    } else if (absl::ascii_isdigit(rest[0]) ||
               (rest[0] == '.' && rest.size() > 1 && absl::ascii_isdigit(rest[1]))) {
      token.kind = Token::Kind::kNumber;
      length = NumberLength(rest, &token.is_integer);
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + length, token.number);
      if (error != std::errc() || end != rest.data() + length) {
        return ErrorAt(text, token.span.begin, "the number is outside the range of a double");
      }
      if (length < rest.size() && IsIdentifierPart(rest[length])) {
        return ErrorAt(text, token.span.begin + static_cast<int>(length),
                       "a letter directly after a number; write `2*i`, not `2i`");
      }
    } else {
      token.kind = Token::Kind::kSymbol;
      for (std::string_view symbol : kSymbols) {
        if (length == 0 && rest.substr(0, symbol.size()) == symbol) length = symbol.size();
      }
      if (length == 0) {
        const unsigned char c = rest[0];
        return ErrorAt(text, token.span.begin,
                       absl::StrCat("unexpected character ", c >= ' ' && c <= '~'
                                                                 ? absl::StrFormat("'%c'", c)
                                                                 : absl::StrFormat("0x%02x", c)));
      }
    }
    token.text = rest.substr(0, length);
    at += length;
    token.span.end = static_cast<int>(at);
    tokens.push_back(token);
    if (token.kind == Token::Kind::kEnd) return tokens;
  }
}

}  // namespace tilewright
