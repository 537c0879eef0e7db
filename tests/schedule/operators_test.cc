#include "schedule/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/workload.h"

namespace tilewright {
namespace {

// Every combination of every operator's parameters is a workload at the example sizes, and no two
// are the same.
TEST(Operators, AreWorkloadsWithAnyParameters) {
  for (const Operator& op : AllOperators()) {
    std::map<std::string, std::string> seen;
    EXPECT_EQ(*FindOperator(op.name), &op);
    EXPECT_FALSE(op.help.empty());
    std::vector<std::string> calls = {""};
    for (const OperatorParameter& parameter : op.parameters) {
      EXPECT_FALSE(parameter.help.empty());
      std::vector<std::string> longer;
      for (const std::string& call : calls) {
        for (const std::string& value : parameter.values) {
          longer.push_back(absl::StrCat(call, parameter.name, "=", value, " "));
        }
      }
      calls = std::move(longer);
    }
    for (const std::string& call : calls) {
      const auto expanded =
          ExpandOperator(absl::StrCat(op.name, "(", call, op.example_sizes, ")"), "");
      ASSERT_TRUE(expanded.ok()) << expanded.status();
      EXPECT_EQ(expanded->sizes, op.example_sizes);
      Names names;
      const auto workload = Workload::Make(expanded->expression, {expanded->sizes, "f32"}, &names);
      ASSERT_TRUE(workload.ok()) << op.name << "(" << call << ") " << workload.status();
      // A parameter that names an index could not be told from a size.
      for (const OperatorParameter& parameter : op.parameters) {
        EXPECT_THAT(names.indices, testing::Not(testing::Contains(parameter.name)));
      }
      const auto [entry, is_new] =
          seen.emplace(workload->canonical_text(), absl::StrCat(op.name, "(", call, ")"));
      EXPECT_TRUE(is_new) << op.name << "(" << call << ") is " << entry->second;
    }
  }
}

TEST(ExpandOperator, TakesParametersFromBothPlaces) {
  const auto linear = ExpandOperator("linear(activation=gelu, t=8)", "residual=1 i=64,o=32");
  ASSERT_TRUE(linear.ok()) << linear.status();
  EXPECT_EQ(linear->expression, "Y[t,o] = gelu(sum(i: X[t,i] * W[o,i]) + bias[o]) + residual[t,o]");
  EXPECT_EQ(linear->sizes, "t=8 i=64 o=32");
  EXPECT_EQ(ExpandOperator(" linear ", "bias=0 t=1..8")->expression,
            "Y[t,o] = sum(i: X[t,i] * W[o,i])");
  EXPECT_EQ(ExpandOperator("matmul(transpose_a=1 transpose_b=1)", "")->expression,
            "C[m,n] = sum(k: A[k,m] * B[n,k])");
}

TEST(ExpandOperator, LeavesExpressionsAlone) {
  const auto expression = ExpandOperator("Y[i] = exp(X[i])", "i=4, bias=3");
  ASSERT_TRUE(expression.ok());
  EXPECT_EQ(expression->expression, "Y[i] = exp(X[i])");
  EXPECT_EQ(expression->sizes, "i=4, bias=3");
}

TEST(ExpandOperator, RejectsUnknownNamesAndValues) {
  std::vector<std::string> names;
  for (const Operator& op : AllOperators()) names.push_back(op.name);
  EXPECT_EQ(ExpandOperator("liner", "").status().message(),
            absl::StrCat("unknown operator 'liner'; operators are ", absl::StrJoin(names, ", "),
                         "; or give an expression such as 'C[m,n] = sum(k: A[m,k] * B[k,n])'"));
  EXPECT_EQ(ExpandOperator("linear(activation=tanh)", "").status().message(),
            "1:8: 'activation' of linear is one of none, relu, gelu, silu\n"
            "  linear(activation=tanh)\n"
            "         ^");
  EXPECT_EQ(ExpandOperator("linear(activation=gelu", "").status().message(),
            "1:23: expected ')' at the end of the arguments of linear\n"
            "  linear(activation=gelu\n"
            "                        ^");
  EXPECT_THAT(std::string(ExpandOperator("linear(bias=1) t=4", "").status().message()),
              testing::HasSubstr("expected ')' at the end"));
  EXPECT_THAT(std::string(ExpandOperator("linear(bias=1)", "bias=1").status().message()),
              testing::HasSubstr("'bias' of linear is given twice"));
}

}  // namespace
}  // namespace tilewright
