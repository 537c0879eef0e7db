// The pointwise and row reduction families: what belongs to them, why not, and the roles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

#include "schedule/compute_type.h"
#include "schedule/match.h"
#include "schedule/match_pointwise.h"
#include "schedule/match_row_reduction.h"
#include "schedule/operators.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

constexpr char kSoftmax[] =
    "h[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - h[r])); Y[r,c] = exp(X[r,c] - h[r]) / z[r]";

Workload Make(const std::string& expression, const std::string& sizes,
              const std::string& types = "f32") {
  auto workload = Workload::Make(expression, {sizes, types});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

TEST(Families, AreDisjointOnEveryOperator) {
  for (const Operator& op : AllOperators()) {
    auto expanded = ExpandOperator(op.name, op.example_sizes);
    ASSERT_TRUE(expanded.ok()) << op.name << ": " << expanded.status();
    const Workload workload = Make(expanded->expression, expanded->sizes);
    const int families = MatchContraction(workload).ok() + MatchPointwise(workload).ok() +
                         MatchRowReduction(workload).ok();
    EXPECT_LE(families, 1) << op.name;
  }
}

// Each statement reads the one before twice: a pass would compute the first 2^59 times.
TEST(MatchRowReduction, DoesNotFuseIntermediatesThatDoubleWithEveryStatement) {
  std::string program = "T0[r,c] = exp(X[r,c])";
  for (int i = 1; i < 60; ++i) {
    absl::StrAppend(&program, "; T", i, "[r,c] = exp(T", i - 1, "[r,c]) + T", i - 1, "[r,c]");
  }
  const auto match = MatchRowReduction(
      Make(program + "; h[r] = max(c: T59[r,c]); Y[r,c] = T59[r,c] - h[r]", "r=4 c=5"));
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_THAT(match->not_fusable, HasSubstr("has more than 20000 parts"));
}

TEST(ComputeType, FindsTypesThroughIntermediatesThatDoubleWithEveryStatement) {
  std::string program = "T0[i] = X[i] * 0.5";
  for (int i = 1; i < 60; ++i) {
    absl::StrAppend(&program, "; T", i, "[i] = T", i - 1, "[i] * T", i - 1, "[i]");
  }
  const Workload workload = Make(program, "i=4", "f64");
  EXPECT_EQ(ValueType(workload, workload.outputs()[0]), ElementType::kF64);
  const Workload single = Make(program, "i=4", "f32");
  EXPECT_EQ(ValueType(single, single.outputs()[0]), ElementType::kF32);
}

TEST(MatchPointwise, NamesTheStatementThatReduces) {
  const auto match = MatchPointwise(Make("Y[i] = sum(k: X[i,k])", "i=4 k=5"));
  EXPECT_EQ(match.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(match.status().message()), HasSubstr("has a reduction"));
}

TEST(MatchPointwise, FusesAllIndicesOfAnElementwiseProgram) {
  const auto match = MatchPointwise(Make("Y[i,j,k] = X[i,j,k] * 2", "i=3 j=4 k=5"));
  ASSERT_TRUE(match.ok()) << match.status();
  ASSERT_EQ(match->axes.size(), 1u);
  EXPECT_EQ(match->axes[0].Extent({3, 4, 5}), 60);
  EXPECT_EQ(match->row_axis, -1);
}

TEST(MatchPointwise, KeepsABroadcastAxisApart) {
  const auto match = MatchPointwise(Make("Y[i,j] = X[i,j] * b[j]", "i=3 j=4"));
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_EQ(match->axes.size(), 2u);
  EXPECT_EQ(match->lane_axis, 1);
  EXPECT_EQ(match->row_axis, -1);
}

TEST(MatchPointwise, FindsTheAxisOfATransposedRead) {
  const auto match = MatchPointwise(Make("Y[j,i] = X[i,j]", "i=30 j=40"));
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_EQ(match->lane_axis, 1);
  EXPECT_EQ(match->row_axis, 0);
}

TEST(MatchRowReduction, DescribesSoftmaxAsThreePassesThatShareTheExponential) {
  const Workload workload = Make(kSoftmax, "r=8 c=9");
  const auto match = MatchRowReduction(workload);
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_EQ(match->not_fusable, "");
  EXPECT_EQ(match->passes, 3);
  EXPECT_EQ(match->rows.size(), 1u);
  EXPECT_EQ(match->columns.size(), 1u);
  EXPECT_TRUE(match->lanes_along_columns);
  EXPECT_THAT(match->kept_text, HasSubstr("exp("));
}

TEST(MatchRowReduction, RunsLanesAcrossRowsForAColumnSum) {
  const auto match = MatchRowReduction(Make("Y[c] = sum(r: X[r,c])", "r=8 c=9"));
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_FALSE(match->lanes_along_columns);
}

TEST(MatchRowReduction, RefusesAMatrixProductWithTheReason) {
  const auto match = MatchRowReduction(Make("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=2 n=3 k=4"));
  EXPECT_THAT(std::string(match.status().message()), HasSubstr("a contraction"));
}

TEST(MatchRowReduction, SaysWhyOnePassCannotWriteAProgramOfTheFamily) {
  const auto match =
      MatchRowReduction(Make("a[r] = sum(c: X[r,c]); Y[r] = sum(d: Z[r,d]) + a[r]", "r=4 c=5 d=6"));
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_THAT(match->not_fusable, HasSubstr("reduces over other indices"));
}

TEST(ComputeType, FollowsWhatAnExpressionReads) {
  const auto type = [](const std::string& expression, const std::string& types) {
    const Workload workload = Make(expression, "i=4 k=3", types);
    return ComputeType(workload, *workload.program().statements[0].value);
  };
  EXPECT_EQ(type("Y[i] = X[i] + sum(k: Z[i,k])", "bf16"), ElementType::kF32);
  EXPECT_EQ(type("Y[i] = X[i] + sum(k: Z[i,k])", "bf16,X:f64"), ElementType::kF64);
  EXPECT_EQ(type("Y[i] = X[i] + sum(k: Z[i,k])", "i8,Y:i32"), ElementType::kI32);
  EXPECT_EQ(type("Y[i] = X[i] * 0.5 + sum(k: Z[i,k])", "i8,Y:f32"), ElementType::kF64);
  EXPECT_EQ(type("Y[i] = exp(X[i]) + max(k: Z[i,k])", "i8,Y:f32,Z:f16"), ElementType::kF32);
}

}  // namespace
}  // namespace tilewright
