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
#include "schedule/parser.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/source_text.h"

namespace tilewright {

absl::StatusOr<Program> ProgramParser::Parse() {
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

std::string ProgramParser::Found() const {
  return Peek().kind == Token::Kind::kEnd ? "the end"
                                          : absl::StrCat("'", std::string(Peek().text), "'");
}

bool ProgramParser::Expect(std::string_view symbol) {
  if (!ok()) return false;
  if (Accept(symbol)) return true;
  Fail(Peek().span, absl::StrCat("expected '", std::string(symbol), "', found ", Found()));
  return false;
}

void ProgramParser::Fail(SourceSpan span, std::string_view message) {
  if (ok()) status_ = ErrorAt(text_, span.begin, message);
}

std::optional<Token> ProgramParser::ExpectIdentifier(std::string_view what) {
  if (!ok()) return std::nullopt;
  if (Peek().kind == Token::Kind::kIdentifier) return Next();
  Fail(Peek().span, absl::StrCat("expected ", std::string(what), ", found ", Found()));
  return std::nullopt;
}

int ProgramParser::IndexNumber(const Token& name) {
  const auto [entry, is_new] =
      index_numbers_.emplace(std::string(name.text), program_.indices.size());
  if (is_new) {
    program_.indices.push_back(entry->first);
    index_spans_.push_back(name.span);
    is_bound_.push_back(false);
    ever_bound_.push_back(false);
  }
  return entry->second;
}

int ProgramParser::TensorNumber(const Token& name) {
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

void ProgramParser::SetRank(const Token& name, int number, int rank) {
  Tensor& tensor = program_.tensors[number];
  if (tensor.rank < 0) tensor.rank = rank;
  if (tensor.rank != rank) {
    Fail(name.span, absl::StrCat("tensor '", tensor.name, "' has ", rank, " subscripts here and ",
                                 tensor.rank, " before"));
  }
}

bool ProgramParser::Bind(const Token& name, std::vector<int>* numbers) {
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
void ProgramParser::ParseStatement() {
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
  Parsed value = ParseOr();
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

// What can only be known at the end: roles, unused results, names that clash.
void ProgramParser::Finish() {
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

absl::StatusOr<Program> ParseProgram(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the expression has ", text.size(),
                                                   " bytes; at most ", kMaxBytes, " are accepted"));
  }
  absl::StatusOr<std::vector<Token>> tokens = Lex(text);
  if (!tokens.ok()) return tokens.status();
  return ProgramParser(text, *std::move(tokens)).Parse();
}

}  // namespace tilewright
