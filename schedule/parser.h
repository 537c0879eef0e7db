// The recursive-descent parser behind ParseProgram, one function per level of precedence. parser.cc
// has the grammar and the statements, parse_value.cc the expressions.
#ifndef TILEWRIGHT_SCHEDULE_PARSER_H_
#define TILEWRIGHT_SCHEDULE_PARSER_H_

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/expression.h"
#include "schedule/lexer.h"

namespace tilewright {

// What a hostile text may cost: recursion and tree depth, statements, bytes.
inline constexpr int kMaxDepth = 200;
inline constexpr int kMaxStatements = 256;
inline constexpr int kMaxBytes = 32768;

// A subtree and what its context needs to know of it.
struct Parsed {
  ExprPtr expr;
  bool is_integral = false;  // index arithmetic so far
  bool is_condition = false;
  int depth = 1;  // of the tree
};

// Used once. Keeps the first error; every function returns at once where there is one.
class ProgramParser {
 public:
  ProgramParser(std::string_view text, std::vector<Token> tokens)
      : text_(text), tokens_(std::move(tokens)) {}

  absl::StatusOr<Program> Parse();

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
  std::string Found() const;
  bool Expect(std::string_view symbol);
  // Keeps the first error.
  void Fail(SourceSpan span, std::string_view message);
  std::optional<Token> ExpectIdentifier(std::string_view what);

  // ---- Names ----
  int IndexNumber(const Token& name);
  int TensorNumber(const Token& name);
  void SetRank(const Token& name, int number, int rank);
  // Binds an index for the left side or a reduction; false (and an error) if it is bound already.
  bool Bind(const Token& name, std::vector<int>* numbers);

  // ---- Trees ----
  Parsed Make(Expr expr, int depth, bool is_integral = false, bool is_condition = false);
  Parsed Call(Function function, std::vector<Parsed> operands, bool is_integral = false,
              bool is_condition = false);
  Parsed Constant(double value, SourceSpan span, bool is_integral);
  Parsed IndexValue(AffineIndex affine, SourceSpan span, int depth = 1);
  // A value, not a condition; else an error.
  bool IsValue(const Parsed& operand);
  bool IsCondition(const Parsed& operand);

  void ParseStatement();
  Parsed ParseOr();
  Parsed ParseAnd();
  Parsed ParseComparison();
  Parsed ParseSum();
  Parsed ParseProduct();
  Parsed ParseDivision(Parsed left, const Token& symbol, Parsed right);
  Parsed ParseUnary();
  Parsed ParsePrimary();
  Parsed ParseRead(const Token& name);
  Parsed ParseReduction(const Token& name, ReduceOp op);
  Parsed ParseCall(const Token& name);
  Parsed ParseSize(const Token& name);
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
  std::vector<bool> is_written_;
  std::vector<bool> is_read_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_PARSER_H_
