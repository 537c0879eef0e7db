#include "schedule/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tilewright {
namespace {

using testing::ElementsAre;

constexpr char kMatmul[] = "C[m,n] = sum(k: A[m,k] * B[k,n])";
constexpr char kConv[] = "Y[n,p,q,o] = sum(r,s,c: X[n,2*p+r-1,2*q+s-1,c] * W[o,r,s,c])";

Workload Make(std::string_view expression, const std::string& sizes,
              const std::string& types = "f32", Names* names = nullptr) {
  auto workload = Workload::Make(expression, {sizes, types}, names);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

std::string Error(std::string_view expression, const std::string& sizes,
                  const std::string& types = "f32") {
  const auto workload = Workload::Make(expression, {sizes, types});
  if (workload.ok()) return "no error";
  EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(workload.status().message());
  return message.substr(0, message.find('\n'));
}

TEST(Workload, NumbersParametersThenOutputsThenIntermediates) {
  Names names;
  const Workload softmax = Make(
      "hi[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - hi[r])); "
      "Y[r,c] = exp(X[r,c] - hi[r]) / z[r]",
      "r=4 c=8", "bf16", &names);
  EXPECT_THAT(names.tensors, ElementsAre("X", "Y", "hi", "z"));
  EXPECT_THAT(names.indices, ElementsAre("r", "c"));
  EXPECT_THAT(softmax.parameters(), ElementsAre(0));
  EXPECT_THAT(softmax.outputs(), ElementsAre(1));
  EXPECT_EQ(softmax.layout(1).type, ElementType::kBF16);
  EXPECT_EQ(softmax.layout(2).type, ElementType::kF32);  // the accumulator of bf16
  EXPECT_EQ(softmax.program().tensors[3].name, "t3");
}

TEST(Workload, KnowsShapesAndStrides) {
  Names names;
  const Workload w = Make(kMatmul, "m=6,n=5 k=7 A.0.stride=16 B.0.stride=1,B.1.stride=7",
                          "f16,B:e4m3,C:f32", &names);
  // Byte order puts e4m3 before f16.
  ASSERT_THAT(names.tensors, ElementsAre("B", "A", "C"));
  const Sizes sizes = w.HighestSizes();
  EXPECT_THAT(sizes, ElementsAre(6, 5, 7));
  EXPECT_THAT(w.Shape(1, sizes), ElementsAre(6, 7));
  EXPECT_THAT(w.Strides(1, sizes), ElementsAre(16, 1));
  EXPECT_THAT(w.Strides(0, sizes), ElementsAre(1, 7));
  EXPECT_THAT(w.Strides(2, sizes), ElementsAre(5, 1));
  EXPECT_EQ(w.BufferElements(1, sizes), 5 * 16 + 7);
  EXPECT_EQ(w.BufferBytes(1, sizes), 2 * (5 * 16 + 7));
  EXPECT_EQ(w.BufferElements(0, sizes), 35);
  EXPECT_EQ(w.BufferBytes(2, sizes), 4 * 30);
}

TEST(Workload, ForgetsStridesThatAreDense) {
  EXPECT_EQ(Make(kMatmul, "m=6 n=5 k=7 A.0.stride=7 A.1.stride=1"), Make(kMatmul, "m=6 n=5 k=7"));
  EXPECT_EQ(Make(kMatmul, "m=1..6 n=5 k=7 A.0.stride=7"), Make(kMatmul, "m=1..6 n=5 k=7"));
  EXPECT_FALSE(Make(kMatmul, "m=6 n=5 k=1..7 A.0.stride=7") == Make(kMatmul, "m=6 n=5 k=1..7"));
}

TEST(Workload, KnowsItsRanges) {
  Names names;
  const Workload w = Make(kMatmul, "m=2..64 n=5 k=7..7", "f32", &names);
  EXPECT_TRUE(w.has_range());
  EXPECT_THAT(w.LowestSizes(), ElementsAre(2, 5, 7));
  EXPECT_THAT(w.HighestSizes(), ElementsAre(64, 5, 7));
  EXPECT_TRUE(w.CheckSizes({3, 5, 7}).ok());
  const absl::Status outside = w.CheckSizes({65, 5, 7});
  EXPECT_EQ(outside.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(outside.message(), "size 65 of index 'i0' is outside 2..64");
  EXPECT_FALSE(w.CheckSizes({3, 5}).ok());
  EXPECT_THAT(*ParseSizesAt(w, names, "m=8"), ElementsAre(8, 5, 7));
  EXPECT_THAT(*ParseSizesAt(w, names, ""), ElementsAre(64, 5, 7));
  for (const char* text : {"m=65", "m=1", "q=3", "m", "m=2..3", "m=3 m=3", "n=6"}) {
    EXPECT_FALSE(ParseSizesAt(w, names, text).ok()) << text;
  }
}

TEST(Workload, TakesOneSizeForIndicesThatNameOneDimension) {
  Names names;
  const Workload gram = Make("G[i,j] = sum(k: X[i,k] * X[j,k])", "i=4 k=3", "f32", &names);
  EXPECT_THAT(gram.HighestSizes(), ElementsAre(4, 4, 3));
  EXPECT_EQ(Error("G[i,j] = sum(k: X[i,k] * X[j,k])", "i=4 j=5 k=3"),
            "1:5: indices 'i' and 'j' name one dimension but have different sizes");
  EXPECT_EQ(Error("G[i,j] = sum(k: X[i,k] * X[j,k])", "i=1..4 k=3"),
            "1:5: indices 'i' and 'j' name one dimension whose size is a range; give them one name "
            "or a fixed size");
}

struct ErrorCase {
  const char* expression;
  const char* sizes;
  const char* types;
  const char* message;
};

TEST(Workload, RejectsSizesAndTypesThatDoNotFit) {
  const ErrorCase kCases[] = {
      {kMatmul, "m=6 n=5", "f32", "1:14: no size for index 'k'; add k=… to the sizes"},
      {kMatmul, "m=6 n=5 k=7 q=3", "f32", "sizes:1:13: unknown index 'q'; indices are m, n, k"},
      {kMatmul, "m=6 n=5 k=7 m=6", "f32", "sizes:1:13: the size of 'm' is given twice"},
      {kMatmul, "m=0 n=5 k=7", "f32",
       "sizes:1:3: '0' is no size; sizes are numbers from 1 to 2^48 or ranges such as 1..8192"},
      {kMatmul, "m=9..3 n=5 k=7", "f32",
       "sizes:1:3: '9..3' is no size; sizes are numbers from 1 to 2^48 or ranges such as 1..8192"},
      {"Y[] = X[]", "m=6", "f32", "sizes:1:1: unknown index 'm'; the program has no indices"},
      {"Y[a,b,c,d,e,f,g,h,i,j,k,l,m] = X[a,b,c,d,e,f,g,h,i,j,k,l,m]",
       "a=1..2 b=1..2 c=1..2 d=1..2 e=1..2 f=1..2 g=1..2 h=1..2 i=1..2 j=1..2 k=1..2 l=1..2 "
       "m=1..2",
       "f32", "sizes:1:1: 13 sizes are ranges; at most 12 may be"},
      {kMatmul, "m = 6", "f32",
       "sizes:1:1: expected `index=size`, `index=low..high`, `tensor.dimension=size` or "
       "`tensor.dimension.stride=elements`"},
      {kMatmul, "m=6 n=5 k=7 A.1=7", "f32", "sizes:1:13: index 'k' names this dimension; give k=7"},
      {kMatmul, "m=6 n=5 k=7 A.2=7", "f32", "sizes:1:13: 'A' has 2 dimensions, counted from 0"},
      {kMatmul, "m=6 n=5 k=7 Q.0=7", "f32", "sizes:1:13: unknown tensor 'Q'; tensors are C, A, B"},
      {kMatmul, "m=6 n=5 k=7 A.0.stride=6", "f32",
       "1:17: the strides of 'A' (6, 1) make elements share an address"},
      {kMatmul, "m=6 n=5 k=7 A.0.stride=0", "f32",
       "sizes:1:24: A.0.stride takes one number from 1 to 2^48"},
      {kMatmul, "m=1000000000 n=1000000000 k=7", "f32",
       "1:1: tensor 'C' has more than 2^48 elements"},
      {"Y[i] = sum(j: X[i,j]) ; Z[i] = Y[i]", "i=2 j=1..3 X.1.stride=2", "f32",
       "1:15: give X.0.stride too: dimensions inside it have a range of sizes"},
      {"a[i] = X[i]; Y[i] = a[i]", "i=2 a.0.stride=2", "f32",
       "sizes:1:5: 'a' is an intermediate; only parameters and outputs have strides"},
      {kConv, "n=1 p=3 q=3 o=1 r=3 s=3 c=1 X.1=6", "f32",
       "1:25: no size for dimension X.2, which no index alone names; add X.2=… to the sizes"},
      {kConv, "n=1 p=3 q=3 o=1 r=3 s=3 c=1 X.1=1..6 X.2=6", "f32",
       "sizes:1:33: X.1 takes one number from 1 to 2^48"},
      {kMatmul, "m=6 n=5 k=7", "",
       "1:1: no type for tensor 'C'; give a default such as `f32`, or `C:f32`"},
      {kMatmul, "m=6 n=5 k=7", "f32 f16",
       "types:1:5: a second default type; write exceptions as `tensor:type`"},
      {kMatmul, "m=6 n=5 k=7", "f32 Q:f16", "types:1:5: unknown tensor 'Q'; tensors are C, A, B"},
      {kMatmul, "m=6 n=5 k=7", "f32,A:f16,A:f16", "types:1:11: the type of 'A' is given twice"},
      {kMatmul, "m=6 n=5 k=7", "f33",
       "types:1:1: unknown element type 'f33'; types are f64, f32, f16, bf16, e4m3, e5m2, i8, i32"},
      {"Y[i] = X[i+1]", "i=4 X.0=4", "f32",
       "1:8: subscript 0 of 'X' reaches 1..4 but the dimension has 0..3; a read may leave its "
       "tensor only inside sum, where it is 0"},
      {"Y[i] = max(k: X[i+k])", "i=4 k=2 X.0=4", "f32",
       "1:15: subscript 0 of 'X' reaches 0..4 but the dimension has 0..3; a read may leave its "
       "tensor only inside sum, where it is 0"},
      {"Y[i] = X[0]", "i=4", "f32",
       "1:8: no size for dimension X.0, which no index alone names; add X.0=… to the sizes"},
      {"Y[i] = X[1099511627776*i]", "i=100000000 X.0=4", "f32",
       "1:8: an index expression here may exceed 2^60"},
      {"Y[i] = X[i] + (inf - inf)", "i=4", "f32", "1:8: these constants fold to NaN"},
  };
  for (const ErrorCase& c : kCases) {
    EXPECT_EQ(Error(c.expression, c.sizes, c.types), c.message) << c.sizes << " | " << c.types;
  }
}

TEST(Workload, PointsIntoTheSizes) {
  const auto workload = Workload::Make(kMatmul, {"m=6 q=5", "f32"});
  EXPECT_EQ(workload.status().message(),
            "sizes:1:5: unknown index 'q'; indices are m, n, k\n  m=6 q=5\n      ^");
}

TEST(Workload, AcceptsCompoundSubscriptsThatStayInside) {
  EXPECT_EQ(Error("Y[i] = X[3-i]", "i=4 X.0=4"), "no error");
  EXPECT_EQ(Error("Y[h,d] = K[h/4,d]", "h=32 d=8 K.0=8"), "no error");
  // An index in two terms: 4*(i/4) + 3 - i%4 permutes 0..7.
  EXPECT_EQ(Error("Y[i] = X[4*(i/4)+3-i%4]", "i=8 X.0=8"), "no error");
  EXPECT_EQ(Error("Y[i] = sum(k: X[i+k-1])", "i=4 k=3 X.0=4"), "no error");
}

TEST(Operations, CountsTwoPerMultiplyAndAdd) {
  const Workload w = Make(kMatmul, "m=6 n=5 k=7");
  EXPECT_EQ(w.Operations(w.HighestSizes()), 2 * 6 * 5 * 7);
}

TEST(Operations, CountsEachFunctionOncePerPoint) {
  // Per row: c comparisons of max; per element: minus, exp, plus; minus, exp, divide.
  const Workload w = Make(
      "hi[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - hi[r])); "
      "Y[r,c] = exp(X[r,c] - hi[r]) / z[r]",
      "r=4 c=8");
  EXPECT_EQ(w.Operations(w.HighestSizes()), 4 * (8 + 8 * 3 + 8 * 3));
}

TEST(CompulsoryBytes, CountsEachBufferOnce) {
  const Workload w = Make(kMatmul, "m=6 n=5 k=7", "bf16,C:f32");
  EXPECT_EQ(w.CompulsoryBytes(w.HighestSizes()), 2 * (6 * 7 + 7 * 5) + 4 * 6 * 5);
}

double BytesRead(std::string_view expression, const std::string& sizes) {
  const Workload w = Make(expression, sizes, "i8");
  double outputs = 0;
  for (int output : w.outputs()) outputs += w.BufferBytes(output, w.HighestSizes());
  return w.CompulsoryBytes(w.HighestSizes()) - outputs;
}

TEST(CompulsoryBytes, CountsOnlyElementsThatAreRead) {
  EXPECT_EQ(BytesRead("Y[i] = X[2*i]", "i=4 X.0=100"), 4);
  EXPECT_EQ(BytesRead("Y[i] = X[i,i]", "i=4"), 4);
  EXPECT_EQ(BytesRead("Y[i] = X[i,0] * X[i,2]", "i=4 X.1=9"), 8);
  EXPECT_EQ(BytesRead("Y[i] = X[i,0] * X[i,0]", "i=4 X.1=9"), 4);
  EXPECT_EQ(BytesRead("Y[h] = K[h/4]", "h=8 K.0=9"), 2);
  EXPECT_EQ(BytesRead("Y[p] = sum(r: X[2*p+r-1])", "p=4 r=3 X.0=8"), 8);
  EXPECT_EQ(BytesRead("Y[p] = sum(r: X[3*p+r])", "p=4 r=2 X.0=12"), 1);  // a lower bound of 8
  EXPECT_EQ(BytesRead("Y[i] = sum(k: X[i+k])", "i=4 k=3 X.0=3"), 3);
}

TEST(CompulsoryBytes, FollowsConditionsOnIndices) {
  EXPECT_EQ(BytesRead("Y[i,j] = where(j <= i, X[j], 0)", "i=8 j=8"), 8);
  EXPECT_EQ(BytesRead("Y[j] = where(j < 3, X[j], 0)", "j=8"), 3);
  EXPECT_EQ(BytesRead("Y[j] = where(j < 3, 0, X[j])", "j=8"), 5);
  EXPECT_EQ(BytesRead("Y[j] = where(2*j > 5 && j < 6, X[j], 0)", "j=8"), 3);
  EXPECT_EQ(BytesRead("Y[i,j] = where(j <= i, X[i,j], 0)", "i=8 j=8"), 8);  // a lower bound of 36
  EXPECT_EQ(BytesRead("Y[j] = where(X[j] > 0, Z[j], 0)", "j=8"), 8);        // Z may never be read
}

}  // namespace
}  // namespace tilewright
