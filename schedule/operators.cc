#include "schedule/operators.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/resolve.h"
#include "schedule/source_text.h"

namespace tilewright {
namespace {

using Arguments = std::map<std::string, std::string>;

bool IsOn(const Arguments& arguments, const std::string& name) { return arguments.at(name) == "1"; }

OperatorParameter Switch(std::string name, bool on, std::string help) {
  return {std::move(name),
          on ? std::vector<std::string>{"1", "0"} : std::vector<std::string>{"0", "1"},
          std::move(help)};
}

// `f(x)`, or x alone for "none".
std::string Activated(const std::string& activation, const std::string& x) {
  return activation == "none" ? x : absl::StrCat(activation, "(", x, ")");
}

std::string Matmul(const Arguments& arguments, const std::string& batch) {
  const std::string a = IsOn(arguments, "transpose_a") ? "k,m" : "m,k";
  const std::string b = IsOn(arguments, "transpose_b") ? "n,k" : "k,n";
  return absl::StrCat("C[", batch, "m,n] = sum(k: A[", batch, a, "] * B[", batch, b, "])");
}

std::string Linear(const Arguments& arguments) {
  std::string value = "sum(i: X[t,i] * W[o,i])";
  if (IsOn(arguments, "bias")) value += " + bias[o]";
  value = Activated(arguments.at("activation"), value);
  if (IsOn(arguments, "residual")) value += " + residual[t,o]";
  return "Y[t,o] = " + value;
}

std::string Softmax(const Arguments&) {
  return "hi[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - hi[r])); "
         "Y[r,c] = exp(X[r,c] - hi[r]) / z[r]";
}

std::string RmsNorm(const Arguments& arguments) {
  return absl::StrCat("q[r] = sum(c: X[r,c] * X[r,c]); Y[r,c] = X[r,c] * rsqrt(q[r] / size(c) + ",
                      arguments.at("eps"), ")", IsOn(arguments, "gain") ? " * gain[c]" : "");
}

std::string LayerNorm(const Arguments& arguments) {
  return absl::StrCat("mean[r] = sum(c: X[r,c]) / size(c); ",
                      "var[r] = sum(c: (X[r,c] - mean[r]) * (X[r,c] - mean[r])) / size(c); ",
                      "Y[r,c] = (X[r,c] - mean[r]) * rsqrt(var[r] + ", arguments.at("eps"), ")",
                      IsOn(arguments, "affine") ? " * gain[c] + bias[c]" : "");
}

std::string Reduce(const Arguments& arguments) {
  const std::string& axis = arguments.at("axis");
  const std::string& op = arguments.at("op");
  const std::string left = axis == "columns" ? "r" : axis == "rows" ? "c" : "";
  const std::string over = axis == "columns" ? "c" : axis == "rows" ? "r" : "r,c";
  std::string value = absl::StrCat(op == "mean" ? "sum" : op, "(", over, ": X[r,c])");
  if (op == "mean") {
    value += axis == "columns" ? " / size(c)"
             : axis == "rows"  ? " / size(r)"
                               : " / size(r) / size(c)";
  }
  return absl::StrCat("Y[", left, "] = ", value);
}

std::string Transpose(const Arguments&) { return "Y[b,a] = X[a,b]"; }

std::string Permute(const Arguments& arguments) {
  std::string left;
  for (char index : arguments.at("order")) {
    if (!left.empty()) left += ",";
    left += index;
  }
  return absl::StrCat("Y[", left, "] = X[a,b,c,d]");
}

struct ElementwiseForm {
  std::string_view op;
  std::string_view value;
};
constexpr ElementwiseForm kElementwise[] = {
    {"add", "A[i,j] + B[i,j]"},
    {"sub", "A[i,j] - B[i,j]"},
    {"mul", "A[i,j] * B[i,j]"},
    {"div", "A[i,j] / B[i,j]"},
    {"max", "max(A[i,j], B[i,j])"},
    {"min", "min(A[i,j], B[i,j])"},
    {"bias_add", "A[i,j] + B[j]"},
    {"swiglu", "silu(A[i,j]) * B[i,j]"},
    {"geglu", "gelu(A[i,j]) * B[i,j]"},
    {"relu", "relu(A[i,j])"},
    {"gelu", "gelu(A[i,j])"},
    {"silu", "silu(A[i,j])"},
    {"sigmoid", "sigmoid(A[i,j])"},
    {"tanh", "tanh(A[i,j])"},
    {"exp", "exp(A[i,j])"},
    {"copy", "A[i,j]"},
};

std::string Elementwise(const Arguments& arguments) {
  for (const ElementwiseForm& form : kElementwise) {
    if (form.op == arguments.at("op")) return absl::StrCat("Y[i,j] = ", std::string(form.value));
  }
  __builtin_unreachable();  // ExpandOperator lets only listed values through.
}

std::vector<std::string> ElementwiseNames() {
  std::vector<std::string> names;
  for (const ElementwiseForm& form : kElementwise) names.emplace_back(form.op);
  return names;
}

const std::vector<Operator>& Operators() {
  static const auto& operators = *new std::vector<Operator>{
      {"matmul",
       "C[m,n] = A[m,k] B[k,n]",
       {Switch("transpose_a", false, "A is stored as A[k,m]"),
        Switch("transpose_b", false, "B is stored as B[n,k]")},
       [](const Arguments& arguments) { return Matmul(arguments, ""); },
       "m=6 n=5 k=7"},
      {"batched_matmul",
       "C[b,m,n] = A[b,m,k] B[b,k,n] for every b",
       {Switch("transpose_a", false, "A is stored as A[b,k,m]"),
        Switch("transpose_b", false, "B is stored as B[b,n,k]")},
       [](const Arguments& arguments) { return Matmul(arguments, "b,"); },
       "b=3 m=6 n=5 k=7"},
      {"linear",
       "Y[t,o] = activation(X[t,i] W[o,i] + bias[o]) + residual[t,o]",
       {{"activation", {"none", "relu", "gelu", "silu"}, "function of the sum and the bias"},
        Switch("bias", true, "adds bias[o] before the activation"),
        Switch("residual", false, "adds residual[t,o] after the activation")},
       Linear,
       "t=6 i=7 o=5"},
      {"softmax", "softmax of each row of X[r,c]", {}, Softmax, "r=4 c=9"},
      {"rmsnorm",
       "rows of X[r,c] divided by their root mean square, times gain[c]",
       {Switch("gain", true, "multiplies by gain[c]"),
        {"eps", {"1e-6", "1e-5", "1e-8"}, "added to the mean square"}},
       RmsNorm,
       "r=4 c=9"},
      {"layernorm",
       "rows of X[r,c] less their mean, divided by their standard deviation, times gain[c] plus "
       "bias[c]",
       {Switch("affine", true, "multiplies by gain[c] and adds bias[c]"),
        {"eps", {"1e-5", "1e-6", "1e-12"}, "added to the variance"}},
       LayerNorm,
       "r=4 c=9"},
      {"reduce",
       "one number per row (axis=columns) or column (axis=rows) of X[r,c], or of all of it",
       {{"op", {"sum", "max", "min", "mean"}, "what is computed"},
        {"axis", {"columns", "rows", "all"}, "what is reduced over"}},
       Reduce,
       "r=4 c=9"},
      {"transpose", "Y[b,a] = X[a,b]", {}, Transpose, "a=6 b=5"},
      {"permute",
       "X[a,b,c,d] with its dimensions in another order; a dimension may have size 1",
       {{"order",
         {"acbd", "abdc", "adbc", "bacd", "cdab", "dcba"},
         "the dimensions of Y, outermost first"}},
       Permute,
       "a=3 b=5 c=4 d=2"},
      {"elementwise",
       "one function of A[i,j], or of A[i,j] and B",
       {{"op", ElementwiseNames(), "what is computed"}},
       Elementwise,
       "i=4 j=9"},
  };
  return operators;
}

// The operator's name and what stands in its parentheses; nullopt for a bare expression.
struct OperatorText {
  std::string_view name;
  std::string_view arguments;
  int arguments_at = 0;
  bool is_closed = true;  // the parenthesis, if there is one
};
std::optional<OperatorText> SplitOperator(std::string_view text) {
  size_t begin = 0;
  while (begin < text.size() && absl::ascii_isspace(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '_')) ++end;
  size_t last = text.size();
  while (last > end && absl::ascii_isspace(text[last - 1])) --last;
  OperatorText result;
  result.name = text.substr(begin, end - begin);
  if (result.name.empty()) return std::nullopt;
  if (end == last) return result;
  while (end < last && absl::ascii_isspace(text[end])) ++end;
  if (text[end] != '(') return std::nullopt;  // what follows a name in an expression is '['
  result.is_closed = text[last - 1] == ')';
  result.arguments = text.substr(end + 1, last - end - (result.is_closed ? 2 : 1));
  result.arguments_at = static_cast<int>(end) + 1;
  return result;
}

// Takes the operator's parameters out of `list`; the other words are appended to *sizes. `at`:
// where `list` stands in `text`.
absl::Status TakeArguments(const Operator& op, std::string_view text, std::string_view list, int at,
                           Arguments* arguments, std::string* sizes) {
  for (const ListWord& word : SplitList(list)) {
    const size_t equals = word.text.find('=');
    const std::string name(word.text.substr(0, equals));
    const auto parameter = std::find_if(op.parameters.begin(), op.parameters.end(),
                                        [&](const OperatorParameter& p) { return p.name == name; });
    if (parameter == op.parameters.end()) {
      absl::StrAppend(sizes, sizes->empty() ? "" : " ", std::string(word.text));
      continue;
    }
    const std::string value(equals == std::string_view::npos ? "" : word.text.substr(equals + 1));
    if (std::find(parameter->values.begin(), parameter->values.end(), value) ==
        parameter->values.end()) {
      return ErrorAt(text, at + word.offset,
                     absl::StrCat("'", name, "' of ", op.name, " is one of ",
                                  absl::StrJoin(parameter->values, ", ")));
    }
    if (!arguments->emplace(name, value).second) {
      return ErrorAt(text, at + word.offset,
                     absl::StrCat("'", name, "' of ", op.name, " is given twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Operator> AllOperators() { return Operators(); }

absl::StatusOr<const Operator*> FindOperator(std::string_view name) {
  for (const Operator& op : Operators()) {
    if (op.name == name) return &op;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown operator '", std::string(name), "'; operators are ",
      absl::StrJoin(Operators(), ", ",
                    [](std::string* out, const Operator& op) { out->append(op.name); }),
      "; or give an expression such as 'C[m,n] = sum(k: A[m,k] * B[k,n])'"));
}

absl::StatusOr<ExpandedOperator> ExpandOperator(std::string_view text, std::string_view arguments) {
  ExpandedOperator result;
  const std::optional<OperatorText> parts = SplitOperator(text);
  if (!parts.has_value()) {
    result.expression = std::string(text);
    result.sizes = std::string(arguments);
    return result;
  }
  const absl::StatusOr<const Operator*> op = FindOperator(parts->name);
  if (!op.ok()) return op.status();
  if (!parts->is_closed) {
    return ErrorAt(text, static_cast<int>(text.size()),
                   absl::StrCat("expected ')' at the end of the arguments of ", (*op)->name));
  }
  Arguments given;
  absl::Status status =
      TakeArguments(**op, text, parts->arguments, parts->arguments_at, &given, &result.sizes);
  if (!status.ok()) return status;
  status = TakeArguments(**op, arguments, arguments, 0, &given, &result.sizes);
  if (!status.ok()) return status;
  for (const OperatorParameter& parameter : (*op)->parameters) {
    given.emplace(parameter.name, parameter.values[0]);
  }
  result.expression = (*op)->expression(given);
  return result;
}

}  // namespace tilewright
