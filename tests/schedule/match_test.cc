#include "schedule/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A matched program, with the caller's names for its numbers.
struct Matched {
  std::shared_ptr<const Workload> workload;
  Names names;
  absl::StatusOr<Contraction> contraction = absl::UnknownError("not matched");

  std::vector<std::string> NamesOf(const Axis& axis) const {
    std::vector<std::string> result;
    for (int index : axis.indices) result.push_back(names.indices[index]);
    return result;
  }
  std::string NameOf(const ContractionOperand& operand) const {
    return operand.read == nullptr ? "" : names.tensors[operand.read->tensor];
  }
};

Matched Match(const std::string& expression, const std::string& sizes,
              const std::string& types = "f32") {
  Matched matched;
  absl::StatusOr<Workload> workload =
      Workload::Make(expression, WorkloadOptions{sizes, types}, &matched.names);
  if (!workload.ok()) {
    matched.contraction = workload.status();
    return matched;
  }
  matched.workload = std::make_shared<const Workload>(*std::move(workload));
  matched.contraction = MatchContraction(*matched.workload);
  return matched;
}

TEST(MatchContraction, NamesTheRolesOfAMatrixProduct) {
  const Matched x = Match("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=5,n=6,k=7");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  const Contraction& c = *x.contraction;
  EXPECT_THAT(x.NamesOf(c.m), ElementsAre("m"));
  EXPECT_THAT(x.NamesOf(c.n), ElementsAre("n"));
  ASSERT_EQ(c.k.size(), 1u);
  EXPECT_THAT(x.NamesOf(c.k[0]), ElementsAre("k"));
  EXPECT_THAT(c.batch, IsEmpty());
  EXPECT_EQ(x.NameOf(c.a), "A");
  EXPECT_EQ(x.NameOf(c.b), "B");
  EXPECT_TRUE(c.a.plain && c.b.plain && c.plain_epilogue);
  // A is [5, 7] and B is [7, 6], row-major.
  EXPECT_TRUE(c.a.row_stride.Is(7));
  EXPECT_TRUE(c.a.depth_stride.Is(1));
  EXPECT_TRUE(c.b.row_stride.Is(1));
  EXPECT_TRUE(c.b.depth_stride.Is(6));
  EXPECT_TRUE(c.output_row_stride.Is(6));
  EXPECT_TRUE(c.output_column_stride.Is(1));
  EXPECT_EQ(c.accumulator, ElementType::kF32);
}

TEST(MatchContraction, ReadsTransposedOperandsByTheirStrides) {
  const Matched x = Match("C[m,n] = sum(k: A[k,m] * B[n,k])", "m=5,n=6,k=7");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  EXPECT_TRUE(x.contraction->a.row_stride.Is(1));
  EXPECT_TRUE(x.contraction->a.depth_stride.Is(5));
  EXPECT_TRUE(x.contraction->b.row_stride.Is(7));
  EXPECT_TRUE(x.contraction->b.depth_stride.Is(1));
}

TEST(MatchContraction, PutsLanesWhereTheOutputIsContiguous) {
  const Matched x = Match("C[n,m] = sum(k: A[m,k] * B[k,n])", "m=5,n=6,k=7");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  EXPECT_THAT(x.NamesOf(x.contraction->n), ElementsAre("m"));
  EXPECT_EQ(x.NameOf(x.contraction->b), "A");
  EXPECT_TRUE(x.contraction->output_column_stride.Is(1));
}

TEST(MatchContraction, KeepsStridesOfRangedSizesSymbolic) {
  const Matched x = Match("C[m,n] = sum(k: A[k,m] * B[k,n])", "m=1..64,n=6,k=7");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  const Stride& depth = x.contraction->a.depth_stride;  // the size of m
  EXPECT_FALSE(depth.Is(64));
  Sizes sizes = x.workload->LowestSizes();
  EXPECT_EQ(depth.Evaluate(sizes), 1);
  EXPECT_EQ(depth.Evaluate(x.workload->HighestSizes()), 64);
}

TEST(MatchContraction, FindsBatchesAndOperandsThatDoNotDependOnThem) {
  const Matched x = Match("C[b,m,n] = sum(k: A[b,m,k] * B[k,n])", "b=3,m=5,n=6,k=7");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  // b and m are both rows of A: 3 * 5 rows of one matrix.
  EXPECT_THAT(x.contraction->batch, IsEmpty());
  EXPECT_THAT(x.NamesOf(x.contraction->m), ElementsAre("b", "m"));
  EXPECT_EQ(x.contraction->m.Extent(x.workload->HighestSizes()), 15);

  const Matched y = Match("C[b,m,n] = sum(k: A[b,m,k] * B[b/2,k,n])", "b=4,m=5,n=6,k=7,B.0=2");
  ASSERT_TRUE(y.contraction.ok()) << y.contraction.status();
  ASSERT_EQ(y.contraction->batch.size(), 1u);
  EXPECT_THAT(y.contraction->b.batch, ElementsAre(0));
  EXPECT_TRUE(y.contraction->b.linear);
}

TEST(MatchContraction, FusesIndicesThatEveryTensorStridesAlike) {
  const Matched x =
      Match("C[t,h,d] = sum(i,j: X[t,i,j] * W[h,d,i,j]) + bias[h,d]", "t=5,h=2,d=3,i=4,j=6");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  EXPECT_THAT(x.NamesOf(x.contraction->n), ElementsAre("h", "d"));
  ASSERT_EQ(x.contraction->k.size(), 1u);
  EXPECT_THAT(x.NamesOf(x.contraction->k[0]), ElementsAre("i", "j"));
  EXPECT_TRUE(x.contraction->b.row_stride.Is(24));
  // bias[d,h] would need another position than h * 3 + d: h is run over as a batch.
  const Matched y = Match("C[t,h,d] = sum(i: X[t,i] * W[h,d,i]) + bias[d,h]", "t=5,h=2,d=3,i=4");
  ASSERT_TRUE(y.contraction.ok()) << y.contraction.status();
  EXPECT_THAT(y.NamesOf(y.contraction->n), ElementsAre("d"));
  ASSERT_EQ(y.contraction->batch.size(), 1u);
  EXPECT_THAT(y.contraction->a.batch, IsEmpty());
}

TEST(MatchContraction, FoldsStatementsBeforeAndAfterTheSum) {
  const Matched x =
      Match("H[t,i] = relu(X[t,i]); S[t,o] = sum(i: H[t,i] * W[o,i]); Y[t,o] = gelu(S[t,o] + b[o])",
            "t=5,i=7,o=6");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  EXPECT_TRUE(x.contraction->a.linear);
  EXPECT_FALSE(x.contraction->a.plain);
  EXPECT_TRUE(x.contraction->b.plain);
  EXPECT_FALSE(x.contraction->plain_epilogue);
}

TEST(MatchContraction, TakesAConvolutionWithTheImageElementByElement) {
  const Matched x = Match("Y[n,p,q,o] = sum(r,s,c: X[n, p+r-1, q+s-1, c] * W[o,r,s,c])",
                          "n=2,p=8,q=8,o=16,r=3,s=3,c=4,X.1=8,X.2=8");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  EXPECT_THAT(x.NamesOf(x.contraction->n), ElementsAre("o"));
  EXPECT_FALSE(x.contraction->a.linear);  // reads around the border are 0
  EXPECT_TRUE(x.contraction->b.linear);   // r, s, c are 36 adjacent elements of W
  EXPECT_TRUE(x.contraction->b.depth_stride.Is(1));
}

TEST(MatchContraction, TakesAMatrixTimesAVector) {
  const Matched x = Match("y[m] = sum(k: A[m,k] * x[k])", "m=5,k=7");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  // The matrix's rows are the output's contiguous index, so they are n; there is no m.
  EXPECT_THAT(x.NamesOf(x.contraction->n), ElementsAre("m"));
  EXPECT_THAT(x.NamesOf(x.contraction->m), IsEmpty());
  EXPECT_EQ(x.NameOf(x.contraction->b), "A");
}

TEST(MatchContraction, AccumulatesIntegersAsIntegers) {
  const Matched x = Match("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=5,n=6,k=7", "i8,C:i32");
  ASSERT_TRUE(x.contraction.ok()) << x.contraction.status();
  EXPECT_EQ(x.contraction->accumulator, ElementType::kI32);
  EXPECT_FALSE(x.contraction->a.plain);  // widened while it is packed
}

TEST(MatchContraction, RefusesOthersWithStatementAndReason) {
  EXPECT_THAT(Match("q[r] = sum(c: X[r,c] * X[r,c])", "r=5,c=6").contraction.status().message(),
              HasSubstr("a sum along rows"));
  EXPECT_THAT(Match("q[r] = sum(c: X[r,c])", "r=5,c=6").contraction.status().message(),
              HasSubstr("not a product"));
  EXPECT_THAT(
      Match("q[m,n] = max(k: X[m,k] * Z[k,n])", "m=5,n=6,k=2").contraction.status().message(),
      HasSubstr("max or min"));
  EXPECT_THAT(Match("q[m,n] = X[m,n] + Z[n,m]", "m=5,n=5").contraction.status().message(),
              HasSubstr("has no sum"));
  EXPECT_THAT(Match("q[m,n] = sum(k: A[m,k] * B[k,n]) + sum(j: D[m,j] * F[j,n])", "m=5,n=6,k=2,j=3")
                  .contraction.status()
                  .message(),
              HasSubstr("more than one reduction"));
  EXPECT_EQ(Match("q[m,n] = X[m,n] + Z[n,m]", "m=5,n=5").contraction.status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Each statement reads the one before twice: written out, the last would have 2^60 parts.
TEST(MatchContraction, RefusesIntermediatesThatDoubleWithEveryStatement) {
  std::string program = "T0[m,n] = X[m,n] * X[m,n]";
  for (int i = 1; i < 60; ++i) {
    absl::StrAppend(&program, "; T", i, "[m,n] = T", i - 1, "[m,n] * T", i - 1, "[m,n]");
  }
  EXPECT_THAT(Match(program, "m=5,n=6").contraction.status().message(),
              HasSubstr("has more than 20000 parts"));
}

}  // namespace
}  // namespace tilewright
