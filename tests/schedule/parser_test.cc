#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "schedule/expression.h"
#include "tests/schedule/rewriting.h"

namespace tilewright {
namespace {

std::string Printed(std::string_view text) {
  const auto program = ParseProgram(text);
  return program.ok() ? ToString(*program) : std::string(program.status().message());
}

std::string FirstLine(const absl::Status& status) {
  const std::string message(status.message());
  return message.substr(0, message.find('\n'));
}

TEST(Parse, ReadsAMatmul) {
  const auto program = ParseProgram("C[m,n] = sum(k: A[m,k] * B[k,n])");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(program->indices, testing::ElementsAre("m", "n", "k"));
  ASSERT_EQ(program->tensors.size(), 3);
  EXPECT_TRUE(program->tensors[0].is_output);
  EXPECT_TRUE(program->tensors[1].is_parameter);
  EXPECT_FALSE(program->tensors[1].is_output);
  const Expr& sum = *program->statements[0].value;
  ASSERT_EQ(sum.kind, Expr::Kind::kReduce);
  EXPECT_THAT(sum.reduce_indices, testing::ElementsAre(2));
  ASSERT_EQ(sum.operands[0]->function, Function::kMul);
  EXPECT_EQ(sum.operands[0]->operands[1]->subscripts[1].BareIndex(), 1);
}

TEST(Parse, PrintsEveryExampleBackToTheSameText) {
  for (const Example& example : Examples()) {
    const auto program = ParseProgram(example.expression);
    ASSERT_TRUE(program.ok()) << example.name << program.status();
    const std::string text = ToString(*program);
    EXPECT_EQ(Printed(text), text);
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const Example example = RandomExample(random);
    const std::string text = Printed(example.expression);
    ASSERT_EQ(Printed(text), text);
    // Whatever the order of the operands, too.
    const std::string reordered = ToString(Reorder(*ParseProgram(text), RandomPick(random)));
    ASSERT_EQ(Printed(reordered), reordered);
  }
}

struct PrintCase {
  const char* text;
  const char* printed;
};

TEST(Parse, KeepsTheTreesThatPrecedenceMakes) {
  const PrintCase kCases[] = {
      {"Y[i]=A[i]-B[i]*C[i]-(D[i]-E[i])", "Y[i] = A[i] - B[i] * C[i] - (D[i] - E[i])"},
      {"Y[i]=-A[i]*B[i]", "Y[i] = -A[i] * B[i]"},
      {"Y[i]=-(A[i]*B[i])", "Y[i] = -(A[i] * B[i])"},
      {"Y[i]=-(A[i]*B[i])+C[i]", "Y[i] = -(A[i] * B[i]) + C[i]"},
      {"Y[i]=A[i]/B[i]/C[i]", "Y[i] = A[i] / B[i] / C[i]"},
      {"Y[i]=A[i]/(B[i]/C[i])", "Y[i] = A[i] / (B[i] / C[i])"},
      {"Y[i]=A[i]/(B[i]*C[i])", "Y[i] = A[i] / (B[i] * C[i])"},
      {"Y[i]=A[i]*(B[i]/C[i])*D[i]", "Y[i] = A[i] * (B[i] / C[i]) * D[i]"},
      {"Y[i]=A[i]+(B[i]+C[i])", "Y[i] = A[i] + B[i] + C[i]"},
      {"Y[i]=A[i]- -2 - -B[i]", "Y[i] = A[i] + 2 - -B[i]"},
      {"Y[i]=A[i]*-2-1e-6", "Y[i] = A[i] * -2 - 1e-06"},
      {"Y[i]=where(A[i]>B[i],-inf,.5)", "Y[i] = where(B[i] < A[i], -inf, 0.5)"},
      {"Y[i]=where(!(A[i]<=1)&&(i<2||i!=3),1,0)",
       "Y[i] = where(!(A[i] <= 1) && (i < 2 || i != 3), 1, 0)"},
      {"Y[i]=cast(e4m3,min(A[i],B[i],1))", "Y[i] = cast(e4m3, min(A[i], B[i], 1))"},
      {"Y[i]=max(k:A[i,k])", "Y[i] = max(k: A[i,k])"},
      {"s[]=sum(i,j:X[i,j]);Y[]=s[]", "s[] = sum(i,j: X[i,j]); Y[] = s[]"},
      {"out a[i]=X[i];out b[i]=X[i];", "out a[i] = X[i]; out b[i] = X[i]"},
      {"out[i]=X[i]", "out[i] = X[i]"},
  };
  for (const PrintCase& c : kCases) {
    EXPECT_EQ(Printed(c.text), c.printed);
    EXPECT_EQ(Printed(c.printed), c.printed);
  }
}

TEST(Parse, ReadsIndexArithmetic) {
  const PrintCase kCases[] = {
      {"Y[i]=sum(k:X[2*i+k-1])", "Y[i] = sum(k: X[2*i+k-1])"},
      {"Y[i]=sum(k:X[(i+k)*2-(3-k)])", "Y[i] = sum(k: X[2*i+3*k-3])"},
      {"Y[i]=X[i/4,i%4]", "Y[i] = X[i/4,i%4]"},
      {"Y[i]=X[(2*i+1)/4*3]", "Y[i] = X[3*((2*i+1)/4)]"},
      {"Y[i]=X[-i/4+9-(i/2)]", "Y[i] = X[(-i)/4-(i/2)+9]"},
      {"Y[i]=X[i/4/2]", "Y[i] = X[i/4/2]"},
      {"Y[i]=X[0,i-i+i]", "Y[i] = X[0,i]"},
      {"Y[i]=i/2*X[i]", "Y[i] = (i/2) * X[i]"},
      {"Y[i]=X[i]*i/2", "Y[i] = X[i] * i / 2"},
      {"Y[i]=i/2.0", "Y[i] = i / 2.0"},
      {"Y[i]=2*i/4.0", "Y[i] = 2 * i / 4.0"},
      {"Y[i]=where(i+1<=2*i-i%3,1,0)", "Y[i] = where(i+1 <= 2*i-(i%3), 1, 0)"},
      {"Y[i]=where(i/2.0<X[i],1,0)", "Y[i] = where(i / 2.0 < X[i], 1, 0)"},
  };
  for (const PrintCase& c : kCases) {
    EXPECT_EQ(Printed(c.text), c.printed);
    EXPECT_EQ(Printed(c.printed), c.printed);
  }
}

TEST(Affine, RoundsTowardsMinusInfinity) {
  const auto program = ParseProgram("Y[i] = sum(k: X[(i-k)/3, (i-k)%3])");
  ASSERT_TRUE(program.ok());
  const Expr& read = *program->statements[0].value->operands[0];
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t k = 0; k < 9; ++k) {
      const std::vector<int64_t> at = {i, k};
      EXPECT_EQ(read.subscripts[0].Evaluate(at), std::floor((i - k) / 3.0));
      EXPECT_EQ(read.subscripts[1].Evaluate(at), (i - k) - 3 * std::floor((i - k) / 3.0));
    }
  }
}

TEST(Parse, LocatesErrors) {
  const auto program = ParseProgram("a[i] = X[i];\n  Y[i] = exp(exq(a[i]))");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().message(),
            "2:14: unknown function 'exq'; functions are abs, cast, erf, exp, gelu, log, max, min, "
            "relu, rsqrt, sigmoid, silu, size, sqrt, sum, tanh, tf32, where\n"
            "    Y[i] = exp(exq(a[i]))\n"
            "               ^");
}

struct ErrorCase {
  const char* text;
  const char* message;
};

TEST(Parse, RejectsWhatIsNoProgram) {
  const ErrorCase kCases[] = {
      {"", "1:1: expected a statement, such as `C[m,n] = sum(k: A[m,k] * B[k,n])`, found the end"},
      {"Y[i]", "1:5: expected '=', found the end"},
      {"Y[i] = X[i] Z", "1:13: expected an operator, ';' or the end, found 'Z'"},
      {"Y[i] = X[i", "1:11: expected ',', found the end"},
      {"Y[2*i] = X[i]", "1:3: expected an index, found '2'"},
      {"Y[i+1] = X[i]", "1:4: the left side takes indices alone, such as `Y[i,j]`"},
      {"Y[i,i] = X[i]", "1:5: index 'i' is already bound here; use another name"},
      {"Y[i] = sum(i: X[i])", "1:12: index 'i' is already bound here; use another name"},
      {"Y[i] = sum(k: X[i])", "1:12: index 'k' is reduced over but not used in the reduction"},
      {"Y[i] = sum(k: X[i,k-k])", "1:12: index 'k' is reduced over but not used in the reduction"},
      {"Y[i] = X[j]", "1:10: index 'j' is bound neither by the left side nor by a reduction"},
      {"Y[i] = sum(k: X[k]) + X[k]",
       "1:25: index 'k' is bound neither by the left side nor by a reduction"},
      {"Y[i] = X[i] + X[i,i]", "1:15: tensor 'X' has 2 subscripts here and 1 before"},
      {"Y[i] = X[i]; Y[i] = X[i]", "1:14: tensor 'Y' is written twice"},
      {"Y[i] = z[i]; z[i] = X[i]", "1:14: tensor 'z' is read before it is written"},
      {"Y[i] = Y[i]", "1:1: tensor 'Y' is read by its own statement"},
      {"a[i] = X[i]; Y[i] = X[i]",
       "1:1: tensor 'a' is written but never read; mark an output with `out`"},
      {"Y[i] = exp(X[i], X[i])", "1:8: exp takes 1 operand, not 2"},
      {"Y[i] = where(i < 1, X[i])", "1:8: where takes 3 operands, not 2"},
      {"Y[i] = max(X[i])", "1:8: max takes 2 or more operands, not 1"},
      {"Y[i] = sum(X[i])", "1:8: sum names its indices: `sum(k: A[m,k] * B[k,n])`"},
      {"Y[i] = i < 2", "1:8: a condition stands only in where(…), under &&, || and !"},
      {"Y[i] = where(X[i], 1, 2)", "1:14: expected a condition, such as `j <= i`"},
      {"Y[i] = where(i < 2 < 3, 1, 2)", "1:20: comparisons don't chain; join them with &&"},
      {"Y[i] = where(i < 2 && X[i], 1, 2)", "1:23: expected a condition, such as `j <= i`"},
      {"Y[i,j] = X[i*j]",
       "1:12: a subscript is a sum of indices times integers, such as `2*p+r-1`, `h/4` or `j%8`, "
       "with numbers up to 2^40"},
      {"Y[i] = X[0.5*i]",
       "1:10: a subscript is a sum of indices times integers, such as `2*p+r-1`, `h/4` or `j%8`, "
       "with numbers up to 2^40"},
      {"Y[i] = X[i/0]", "1:12: indices are divided by positive integers only"},
      {"Y[i] = X[i/i]", "1:12: indices are divided by positive integers only"},
      {"Y[i] = X[i]%4",
       "1:12: '%' takes an index expression and a positive integer, such as `j%8`"},
      {"Y[i] = cast(fp8, X[i])",
       "1:13: cast takes a type first, as in `cast(bf16, x)`: unknown element type 'fp8'; types "
       "are "
       "f64, f32, f16, bf16, e4m3, e5m2, i8, i32"},
      {"Y[i] = X[i]/size(k)", "1:18: size() of 'k', which is no index of this program"},
      {"i[i] = X[i]", "1:3: 'i' names a tensor and an index"},
      {"Y[i] = X", "1:8: index 'X' is bound neither by the left side nor by a reduction"},
      {"Y[i] = X[i] + X", "1:15: tensor 'X' needs subscripts: 'X[…]', or '[]' for a scalar"},
      {"Y[inf] = X[inf]", "1:3: 'inf' is the infinite constant and can't name an index"},
      {"Y[i] = 2i", "1:9: a letter directly after a number; write `2*i`, not `2i`"},
      {"Y[i] = X[i] $", "1:13: unexpected character '$'"},
      {"Y[i] = X[i] \x80", "1:13: unexpected character 0x80"},
      {"Y[i] = 1e999", "1:8: the number is outside the range of a double"},
      {"Y[i,] = X[i]", "1:5: expected an index, found ']'"},
      {"Y[i] = X[i,]", "1:12: expected a subscript, found ']'"},
  };
  for (const ErrorCase& c : kCases) {
    const auto program = ParseProgram(c.text);
    ASSERT_FALSE(program.ok()) << c.text;
    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FirstLine(program.status()), c.message) << c.text;
  }
}

std::string Repeat(std::string_view text, int n) {
  std::string result;
  for (int i = 0; i < n; ++i) result += text;
  return result;
}

TEST(Parse, RejectsWhatIsNestedTooDeeplyOrTooLong) {
  for (const std::string& text :
       {"Y[i] = " + Repeat("(", 5000) + "X[i]" + Repeat(")", 5000),
        "Y[i] = " + Repeat("-", 20000) + "X[i]", "Y[i] = " + Repeat("exp(", 5000) + "X[i]",
        "Y[i] = X[i]" + Repeat("/X[i]", 5000), "Y[i] = X[i" + Repeat("/2", 5000) + "]",
        "Y[i] = where(" + Repeat("!", 5000) + "(i<1),1,2)",
        "Y[i] = where(i<1" + Repeat("&&i<1", 5000) + ",1,2)"}) {
    const auto program = ParseProgram(text);
    ASSERT_FALSE(program.ok());
    EXPECT_THAT(FirstLine(program.status()), testing::HasSubstr("nested deeper than 200 levels"));
  }
  EXPECT_TRUE(ParseProgram("Y[i] = X[i]" + Repeat("+X[i]", 2000)).ok());
  const auto statements = ParseProgram("a0[i]=X[i];" + Repeat("a[i]=X[i];", 2));
  EXPECT_FALSE(statements.ok());
  EXPECT_EQ(FirstLine(ParseProgram(std::string(40000, ' ')).status()),
            "the expression has 40000 bytes; at most 32768 are accepted");
}

TEST(Parse, DividesLargeNumbersAsValuesAndRefusesThemBesideIndices) {
  for (const char* text :
       {"Y[] = 9405555555555555328 / 5", "Y[] = (9405555555555555328 + 1) / 5"}) {
    const auto program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(ToString(*program), text);
  }
  const auto beside = ParseProgram("Y[i] = X[i] * ((i + 9405555555555555328) / 5)");
  EXPECT_THAT(FirstLine(beside.status()),
              testing::HasSubstr("the numbers of an index expression stay within 2^40"));
}

// Damaged texts give errors, never crashes.
TEST(Parse, SurvivesDamagedTexts) {
  std::mt19937_64 random(3);
  for (const Example& example : Examples()) {
    for (int i = 0; i < 200; ++i) {
      std::string text = example.expression;
      for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
        const size_t at = random() % text.size();
        if (random() % 2) {
          text.erase(at, 1);
        } else {
          text[at] = "()[],:;=+-*/%<>!&|.0i"[random() % 21];
        }
      }
      const auto program = ParseProgram(text);
      if (program.ok()) {
        EXPECT_TRUE(ParseProgram(ToString(*program)).ok()) << text;
      }
    }
  }
}

TEST(Functions, TableIsInTheOrderOfTheEnumeration) {
  for (const FunctionInfo& info : AllFunctions()) EXPECT_EQ(&Info(info.function), &info);
}

TEST(Functions, EvaluateAsDefined) {
  EXPECT_DOUBLE_EQ(EvaluateUnary(Function::kGelu, 1), 0.8413447460685429);
  EXPECT_DOUBLE_EQ(EvaluateUnary(Function::kSilu, 1), 0.7310585786300049);
  EXPECT_EQ(EvaluateUnary(Function::kGelu, -INFINITY), 0);
  EXPECT_EQ(EvaluateUnary(Function::kSilu, -INFINITY), 0);
  EXPECT_EQ(EvaluateUnary(Function::kRelu, -3), 0);
  EXPECT_TRUE(std::isnan(EvaluateUnary(Function::kRelu, NAN)));
  EXPECT_EQ(EvaluateUnary(Function::kRsqrt, 4), 0.5);
  EXPECT_EQ(RoundToTf32(1 + 0x1p-11), 1);
  EXPECT_EQ(RoundToTf32(1 + 3 * 0x1p-11), 1 + 0x1p-9);
  EXPECT_EQ(RoundToTf32(INFINITY), INFINITY);
}

}  // namespace
}  // namespace tilewright
