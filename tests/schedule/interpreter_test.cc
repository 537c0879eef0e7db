#include "schedule/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tilewright {
namespace {

using testing::HasSubstr;

// A workload with inputs, addressed by the caller's names.
class Evaluation {
 public:
  Evaluation(std::string_view expression, const std::string& sizes,
             const std::string& types = "f64")
      : workload_(*Workload::Make(expression, {sizes, types}, &names_)),
        at_(workload_.HighestSizes()) {
    for (int parameter : workload_.parameters()) {
      buffers_[parameter].resize(workload_.BufferBytes(parameter, at_));
    }
  }

  int Number(const std::string& name) const {
    const auto found = std::find(names_.tensors.begin(), names_.tensors.end(), name);
    EXPECT_NE(found, names_.tensors.end()) << name;
    return static_cast<int>(found - names_.tensors.begin());
  }
  void Set(const std::string& name, const std::vector<double>& values) {
    const int number = Number(name);
    const ElementTypeInfo& type = Info(workload_.layout(number).type);
    ASSERT_EQ(buffers_[number].size(), values.size() * type.bytes);
    for (size_t i = 0; i < values.size(); ++i) {
      StoreElement(type.type, values[i], buffers_[number].data() + i * type.bytes);
    }
  }
  std::vector<double> SetRandom(const std::string& name, std::mt19937_64& random) {
    const int number = Number(name);
    std::normal_distribution<double> normal;
    std::vector<double> values(buffers_[number].size() / Info(workload_.layout(number).type).bytes);
    for (double& value : values) value = normal(random);
    Set(name, values);
    return values;
  }
  absl::StatusOr<double> At(const std::string& name, std::vector<int64_t> point) {
    if (interpreter_ == nullptr) {
      std::vector<const void*> inputs;
      for (int parameter : workload_.parameters()) inputs.push_back(buffers_[parameter].data());
      interpreter_ = *Interpreter::Make(workload_, at_, inputs);
    }
    return interpreter_->Evaluate(Number(name), point);
  }
  double Value(const std::string& name, std::vector<int64_t> point) {
    const auto value = At(name, std::move(point));
    EXPECT_TRUE(value.ok()) << value.status();
    return value.value_or(NAN);
  }
  const Workload& workload() const { return workload_; }

 private:
  Names names_;
  Workload workload_;
  Sizes at_;
  std::map<int, std::vector<char>> buffers_;
  std::unique_ptr<Interpreter> interpreter_;
};

TEST(Interpreter, MultipliesMatrices) {
  Evaluation e("C[m,n] = sum(k: A[m,k] * B[k,n])", "m=2 n=2 k=3");
  e.Set("A", {1, 2, 3, 4, 5, 6});
  e.Set("B", {7, 8, 9, 10, 11, 12});
  EXPECT_EQ(e.Value("C", {0, 0}), 58);
  EXPECT_EQ(e.Value("C", {0, 1}), 64);
  EXPECT_EQ(e.Value("C", {1, 0}), 139);
  EXPECT_EQ(e.Value("C", {1, 1}), 154);
}

TEST(Interpreter, FollowsStridesAndTypes) {
  Evaluation e("Y[i,j] = X[i,j]", "i=2 j=3 X.0.stride=1 X.1.stride=4", "f32,X:i8");
  e.Set("X", {1, 2, -99, -99, 3, 4, -99, -99, 5, 6});
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(e.Value("Y", {i, j}), 1 + i + 2 * j);
  }
}

TEST(Interpreter, EvaluatesSoftmaxRowsThatSumToOne) {
  Evaluation e(
      "hi[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] - hi[r])); "
      "Y[r,c] = exp(X[r,c] - hi[r]) / z[r]",
      "r=2 c=3");
  e.Set("X", {1, 2, 3, 1000, 1000, -std::numeric_limits<double>::infinity()});
  double sum = 0;
  for (int64_t c = 0; c < 3; ++c) sum += e.Value("Y", {0, c});
  EXPECT_NEAR(sum, 1, 1e-15);
  EXPECT_NEAR(e.Value("Y", {0, 2}) / e.Value("Y", {0, 1}), std::exp(1), 1e-14);
  EXPECT_EQ(e.Value("Y", {1, 0}), 0.5);
  EXPECT_EQ(e.Value("Y", {1, 2}), 0);
  EXPECT_EQ(e.Value("hi", {0}), 3);
}

TEST(Interpreter, EvaluatesRmsNormAndLayerNorm) {
  std::mt19937_64 random(7);
  Evaluation rms(
      "q[r] = sum(c: X[r,c] * X[r,c]); "
      "Y[r,c] = X[r,c] * rsqrt(q[r] / size(c) + 1e-6) * gain[c]",
      "r=1..3 c=4");
  rms.Set("X", {1, 2, 3, 4, 0, 0, 0, 0, -1, 1, -1, 1});
  rms.Set("gain", {1, 1, 1, 2});
  EXPECT_NEAR(rms.Value("Y", {0, 3}), 2 * 4 / std::sqrt(7.5 + 1e-6), 1e-14);
  EXPECT_EQ(rms.Value("Y", {1, 0}), 0);
  Evaluation layer(
      "mean[r] = sum(c: X[r,c]) / size(c); "
      "var[r] = sum(c: (X[r,c] - mean[r]) * (X[r,c] - mean[r])) / size(c); "
      "Y[r,c] = (X[r,c] - mean[r]) * rsqrt(var[r] + 1e-5)",
      "r=3 c=50");
  layer.SetRandom("X", random);
  double sum = 0, squares = 0;
  for (int64_t c = 0; c < 50; ++c) {
    const double y = layer.Value("Y", {1, c});
    sum += y;
    squares += y * y;
  }
  EXPECT_NEAR(sum, 0, 1e-12);
  EXPECT_NEAR(squares / 50, 1, 1e-4);
}

// Against loops written out, zero outside the image.
TEST(Interpreter, ConvolvesAsAnUnrolledSum) {
  std::mt19937_64 random(8);
  Evaluation e("Y[n,p,q,o] = sum(r,s,c: X[n, 2*p+r-1, 2*q+s-1, c] * W[o,r,s,c])",
               "n=2 p=3 q=4 o=2 r=3 s=3 c=2 X.1=6 X.2=7");
  const std::vector<double> x = e.SetRandom("X", random);
  const std::vector<double> w = e.SetRandom("W", random);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t p = 0; p < 3; ++p) {
      for (int64_t q = 0; q < 4; ++q) {
        for (int64_t o = 0; o < 2; ++o) {
          double sum = 0;
          for (int64_t r = 0; r < 3; ++r) {
            for (int64_t s = 0; s < 3; ++s) {
              for (int64_t c = 0; c < 2; ++c) {
                const int64_t h = 2 * p + r - 1, v = 2 * q + s - 1;
                if (h < 0 || h >= 6 || v < 0 || v >= 7) continue;
                sum += x[((n * 6 + h) * 7 + v) * 2 + c] * w[((o * 3 + r) * 3 + s) * 2 + c];
              }
            }
          }
          ASSERT_NEAR(e.Value("Y", {n, p, q, o}), sum, 1e-12);
        }
      }
    }
  }
}

constexpr char kAttention[] =
    "S[b,h,i,j] = where(j <= i, sum(d: Q[b,h,i,d] * K[b,h/4,j,d]) * 0.5, -inf); "
    "hi[b,h,i] = max(j: S[b,h,i,j]); "
    "z[b,h,i] = sum(j: exp(S[b,h,i,j] - hi[b,h,i])); "
    "P[b,h,i,j] = exp(S[b,h,i,j] - hi[b,h,i]) / z[b,h,i]; "
    "O[b,h,i,d] = sum(j: P[b,h,i,j] * V[b,h/4,j,d])";

TEST(Interpreter, EvaluatesCausalGroupedAttention) {
  std::mt19937_64 random(9);
  Evaluation e(kAttention, "b=2 h=8 i=5 j=5 d=4 K.1=2 V.1=2");
  const std::vector<double> q = e.SetRandom("Q", random);
  const std::vector<double> k = e.SetRandom("K", random);
  const std::vector<double> v = e.SetRandom("V", random);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 8; ++h) {
      for (int64_t i = 0; i < 5; ++i) {
        double weights = 0;
        std::vector<double> o(4, 0);
        for (int64_t j = 0; j <= i; ++j) {
          double s = 0;
          const int64_t row = (b * 2 + h / 4) * 5 + j;
          for (int64_t d = 0; d < 4; ++d) s += q[((b * 8 + h) * 5 + i) * 4 + d] * k[row * 4 + d];
          const double weight = std::exp(0.5 * s);
          weights += weight;
          for (int64_t d = 0; d < 4; ++d) o[d] += weight * v[row * 4 + d];
        }
        for (int64_t d = 0; d < 4; ++d) {
          ASSERT_NEAR(e.Value("O", {b, h, i, d}), o[d] / weights, 1e-12);
        }
      }
    }
  }
  EXPECT_EQ(e.Value("P", {0, 0, 2, 3}), 0);
}

// One point of a long attention touches one row: it must not take the square (2^26 scores of 64
// terms).
TEST(Interpreter, PaysForARowNotForASquare) {
  std::mt19937_64 random(10);
  Evaluation e(kAttention, "b=1 h=4 i=8192 j=8192 d=4 K.1=1 V.1=1", "f32,S:f32");
  e.SetRandom("Q", random);
  e.SetRandom("K", random);
  e.SetRandom("V", random);
  EXPECT_TRUE(std::isfinite(e.Value("O", {0, 3, 8191, 2})));
  EXPECT_TRUE(std::isfinite(e.Value("O", {0, 0, 0, 0})));
}

TEST(Interpreter, RoundsWhereTheProgramSaysSo) {
  Evaluation e("a[i] = cast(bf16, X[i]); Y[i] = a[i] + tf32(X[i]) + X[i]", "i=1", "f64");
  e.Set("X", {1 + 0x1p-12});
  EXPECT_EQ(e.Value("Y", {0}), 3 + 0x1p-12);
}

TEST(Interpreter, ReadsZeroOutsideOnlyInsideSum) {
  Evaluation sum("Y[i] = sum(k: X[i+k-1])", "i=3 k=3 X.0=3");
  sum.Set("X", {1, 2, 4});
  EXPECT_EQ(sum.Value("Y", {0}), 3);
  EXPECT_EQ(sum.Value("Y", {1}), 7);
  EXPECT_EQ(sum.Value("Y", {2}), 6);
  // A maximum inside a sum still reads zeros.
  Evaluation nested("Y[i] = sum(k: max(l: X[i+k+l]))", "i=2 k=2 l=2 X.0=2");
  nested.Set("X", {-1, -2});
  EXPECT_EQ(nested.Value("Y", {0}), -1 + 0);
}

TEST(Interpreter, EvaluatesConditions) {
  Evaluation e("Y[i,j] = where(i%2 == 0 && !(j > i || X[i,j] < 3), j/2 * X[i,j], -1)", "i=4 j=4");
  std::vector<double> x(16);
  for (int i = 0; i < 16; ++i) x[i] = i;
  e.Set("X", x);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      const double value = x[i * 4 + j];
      const bool taken = i % 2 == 0 && !(j > i || value < 3);
      EXPECT_EQ(e.Value("Y", {i, j}), taken ? static_cast<double>(j / 2) * value : -1);
    }
  }
}

TEST(Interpreter, PropagatesNaNThroughMaxAndMin) {
  Evaluation e("out hi[] = max(i: X[i]); out lo[] = min(i: X[i]); out Y[i] = max(X[i], 0)", "i=3");
  e.Set("X", {1, NAN, 2});
  EXPECT_TRUE(std::isnan(e.Value("hi", {})));
  EXPECT_TRUE(std::isnan(e.Value("lo", {})));
  EXPECT_TRUE(std::isnan(e.Value("Y", {1})));
  EXPECT_EQ(e.Value("Y", {2}), 2);
}

TEST(Interpreter, SharesIndicesBetweenStatements) {
  // Reading b at [j,i] while i and j are in use evaluates b's statement in between.
  Evaluation e("b[i,j] = sum(k: X[i,k] * X[j,k]); Y[i,j] = b[j,i] * 10 + sum(k: b[i,k] * X[k,j])",
               "i=2 j=2 k=2");
  e.Set("X", {1, 2, 3, 4});
  // b = X X^T = [5 11; 11 25]; b X = [38 54; 86 122].
  EXPECT_EQ(e.Value("Y", {0, 0}), 50 + 38);
  EXPECT_EQ(e.Value("Y", {0, 1}), 110 + 54);
  EXPECT_EQ(e.Value("Y", {1, 0}), 110 + 86);
  EXPECT_EQ(e.Value("Y", {1, 1}), 250 + 122);
}

TEST(Interpreter, RefusesWhatIsOutside) {
  Evaluation e("Y[i] = X[i]", "i=2..4");
  e.Set("X", {1, 2, 3, 4});
  EXPECT_EQ(e.At("Y", {4}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(e.At("Y", {-1}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(e.At("Y", {0, 0}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(e.At("Y", {4}).status().message()), HasSubstr("[4] is outside tensor"));
  const double x[4] = {};
  EXPECT_FALSE(Interpreter::Make(e.workload(), {5}, {x}).ok());
  EXPECT_FALSE(Interpreter::Make(e.workload(), {4}, {}).ok());
  // Sizes between the ends of a range may leave a tensor where the ends do not.
  Evaluation between("Y[i] = X[7-7*(i%2)] + size(n) * sum(n: Z[n])", "i=2 n=1..8 X.0=8");
  between.Set("X", std::vector<double>(8, 1));
  between.Set("Z", std::vector<double>(8, 1));
  EXPECT_EQ(between.Value("Y", {1}), 65);
}

// Algebra that must hold for any inputs, evaluated by the same interpreter.
TEST(Interpreter, KeepsIdentities) {
  std::mt19937_64 random(11);
  const char* kPairs[][2] = {
      {"Y[i,j] = sum(k: A[i,k] * B[k,j])", "Y[i,j] = sum(k: B[k,j] * A[i,k])"},
      {"Y[i,j] = sum(k: A[i,k] * (B[k,j] + 1))",
       "Y[i,j] = sum(k: A[i,k] * B[k,j]) + sum(k: A[i,k] * (0 * B[k,j] + 1))"},
      {"Y[i,j] = silu(A[i,j]) - B[i,j] / B[i,j]",
       "Y[i,j] = A[i,j] * sigmoid(A[i,j]) - 1 + 0 * B[i,j]"},
      {"Y[i,j] = relu(A[i,j]) + B[j,i]", "Y[i,j] = max(A[i,j], 0) + B[j,i]"},
      {"Y[i,j] = gelu(A[i,j]) + B[i,j]",
       "Y[i,j] = B[i,j] - -0.5 * A[i,j] * (1 + erf(A[i,j] * sqrt(0.5)))"},
      {"Y[i,j] = min(A[i,j], B[i,j])", "Y[i,j] = -max(-A[i,j], -B[i,j])"},
      {"Y[i,j] = abs(A[i,j]) * B[i,j]", "Y[i,j] = where(A[i,j] < 0, -A[i,j], A[i,j]) * B[i,j]"},
      {"Y[i,j] = rsqrt(exp(A[i,j])) + B[i,j]", "Y[i,j] = exp(-A[i,j] / 2) + B[i,j]"},
      {"Y[i,j] = tanh(A[i,j]) + B[i,j]", "Y[i,j] = 2 * sigmoid(2 * A[i,j]) - 1 + B[i,j]"},
      {"Y[i,j] = log(exp(A[i,j])) + B[i,j]", "Y[i,j] = A[i,j] + B[i,j]"},
  };
  for (const auto& pair : kPairs) {
    const std::string sizes =
        std::string(pair[0]).find("k:") == std::string::npos ? "i=4 j=4" : "i=4 j=4 k=4";
    Evaluation first(pair[0], sizes), second(pair[1], sizes);
    for (const char* name : {"A", "B"}) second.Set(name, first.SetRandom(name, random));
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        EXPECT_NEAR(first.Value("Y", {i, j}), second.Value("Y", {i, j}), 1e-12) << pair[0];
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
