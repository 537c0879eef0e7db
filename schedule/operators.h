// Operators are named programs with parameters: `linear(activation=gelu bias=1)`. The only list is
// in operators.cc; CLI help, parsing and tests iterate over it. Adding an operator is adding a row.
#ifndef TILEWRIGHT_SCHEDULE_OPERATORS_H_
#define TILEWRIGHT_SCHEDULE_OPERATORS_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tilewright {

struct OperatorParameter {
  std::string name;
  std::vector<std::string> values;  // what is accepted; the first is the default
  std::string help;
};

struct Operator {
  std::string name;                           // "linear"
  std::string help;                           // one line
  std::vector<OperatorParameter> parameters;  // beside sizes
  // Writes the expression; every parameter is present in the map.
  std::function<std::string(const std::map<std::string, std::string>&)> expression;
  std::string example_sizes;  // small sizes that suit it, for tests and help
};

absl::Span<const Operator> AllOperators();
// InvalidArgument lists the operators that exist.
absl::StatusOr<const Operator*> FindOperator(std::string_view name);

// Expands `linear`, `linear(activation=gelu)` or a bare expression into an expression. `arguments`
// are name=value words given apart (CLI); words that are not the operator's parameters are returned
// in `sizes` untouched.
struct ExpandedOperator {
  std::string expression;
  std::string sizes;
};
absl::StatusOr<ExpandedOperator> ExpandOperator(std::string_view text, std::string_view arguments);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_OPERATORS_H_
