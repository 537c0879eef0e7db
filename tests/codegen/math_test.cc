// How far the functions that kernels compute are from the true ones, in units of u * |f(x)|:
// FunctionInfo::error_ulps holds.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/writer.h"
#include "tests/codegen/device_emulator.h"
#include "tests/codegen/host_loader.h"

namespace tilewright {
namespace {

constexpr int64_t kPoints = 1 << 16;

Target AvxTarget() { return KnownTargets()[0]; }

// The IR before LLVM's passes in a kernel's dump.
std::string ReadIr(const std::filesystem::path& dump) {
  std::ifstream in(dump / "03-ir-before-passes.ll");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Runs Y[i] = f(X[i]) on `x`: on a CPU as pointwise.vectorised, on a GPU as the default.
template <typename T>
std::vector<T> Apply(const std::string& function, const std::string& type, const std::vector<T>& x,
                     const Target& target) {
  WorkloadOptions options{absl::StrCat("i=", x.size()), type};
  auto workload = Workload::Make(absl::StrCat("Y[i] = ", function, "(X[i])"), options);
  EXPECT_TRUE(workload.ok()) << workload.status();
  auto space = ScheduleSpace::Make(*workload, target, AllVariants());
  EXPECT_TRUE(space.ok()) << space.status();
  const std::filesystem::path dump =
      std::filesystem::path(::testing::TempDir()) / absl::StrCat("tilewright-math-", getpid());
  auto kernel = WriteKernel({*workload, target, (*space)->DefaultSchedule()}, DefaultCatalogue(),
                            {target.is_gpu() ? dump.string() : ""});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  auto loaded =
      target.is_gpu() ? EmulateDevice(*kernel, ReadIr(dump)) : LoadedKernel::Load(*kernel);
  std::filesystem::remove_all(dump);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  std::vector<T> y(x.size(), T{-12345});
  (*loaded)->Run({const_cast<T*>(x.data()), y.data()}, workload->HighestSizes());
  return y;
}

// Arguments that cover a function's range: uniform over it, and all binades.
template <typename T>
std::vector<T> Arguments(Function function) {
  std::mt19937_64 random(7);
  const bool positive =
      function == Function::kLog || function == Function::kSqrt || function == Function::kRsqrt;
  const double reach = std::is_same_v<T, float> ? 105 : 750;
  std::uniform_real_distribution<double> wide(positive ? 0 : -reach, reach);
  std::uniform_real_distribution<double> narrow(positive ? 0.5 : -6, positive ? 2 : 6);
  const int binades = std::numeric_limits<T>::max_exponent + std::numeric_limits<T>::digits;
  std::uniform_real_distribution<double> exponent(-binades + 1,
                                                  std::numeric_limits<T>::max_exponent - 1);
  std::vector<T> x;
  for (int64_t i = 0; i < kPoints; ++i) {
    double value = i % 3 == 0   ? wide(random)
                   : i % 3 == 1 ? narrow(random)
                                : std::exp2(exponent(random));
    if (!positive && i % 6 == 2) value = -value;
    x.push_back(static_cast<T>(value));
  }
  return x;
}

// f in long double, which has 11 bits more than f64.
long double Exact(Function function, long double x) {
  switch (function) {
    case Function::kExp:
      return std::exp(x);
    case Function::kLog:
      return std::log(x);
    case Function::kSqrt:
      return std::sqrt(x);
    case Function::kRsqrt:
      return 1 / std::sqrt(x);
    case Function::kTanh:
      return std::tanh(x);
    case Function::kErf:
      return std::erf(x);
    case Function::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Function::kGelu:
      return 0.5L * x * std::erfc(-x * 0.70710678118654752440084436210485L);
    case Function::kSilu:
      return x / (1 + std::exp(-x));
    default:
      return EvaluateUnary(function, static_cast<double>(x));
  }
}

template <typename T>
void ExpectWithinBound(const std::string& type, const Target& target) {
  const double u = std::numeric_limits<T>::epsilon() / 2;
  for (const FunctionInfo& info : AllFunctions()) {
    if (info.max_operands != 1 || info.function == Function::kNeg ||
        info.function == Function::kCast || info.function == Function::kTf32 ||
        info.function == Function::kNot) {
      continue;
    }
    const std::vector<T> x = Arguments<T>(info.function);
    const std::vector<T> y = Apply<T>(std::string(info.name), type, x, target);
    double worst = 0;
    T at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const long double exact = Exact(info.function, x[i]);
      if (std::isnan(exact) || std::abs(exact) > std::numeric_limits<T>::max()) {
        // Where the true value overflows, either the largest number or infinity is right.
        if (std::isnan(exact)) {
          EXPECT_TRUE(std::isnan(y[i])) << info.name << "(" << x[i] << ")";
        }
        continue;
      }
      const double error = static_cast<double>(std::abs(y[i] - exact));
      const double excess = error - std::numeric_limits<T>::denorm_min();
      if (excess <= 0) continue;
      const double ulps = excess / (u * std::abs(static_cast<double>(exact)));
      if (ulps > worst || std::isnan(ulps)) {
        worst = std::isnan(ulps) ? std::numeric_limits<double>::infinity() : ulps;
        at = x[i];
      }
    }
    ::testing::Test::RecordProperty(std::string(info.name), absl::StrCat(worst));
    EXPECT_LE(worst, std::max(info.error_ulps, 1.0)) << info.name << " at " << at;
  }
}

TEST(EmitFunction, IsWithinTheListedErrorInF32) { ExpectWithinBound<float>("f32", AvxTarget()); }
// By the device emulator, whose reciprocals are one unit off.
TEST(EmitFunction, IsWithinTheListedErrorInF32OnAGpu) {
  ExpectWithinBound<float>("f32", *FindTarget("cuda:h200"));
}
TEST(EmitFunction, IsWithinTheListedErrorInF64) { ExpectWithinBound<double>("f64", AvxTarget()); }

TEST(EmitFunction, IsWithinTheListedErrorWithoutFusedMultiplyAdd) {
  Target target = AvxTarget();
  target.llvm_cpu = "x86-64";
  target.llvm_features = "";
  target.vector_bits = 128;
  ExpectWithinBound<float>("f32", target);
}

class EmitFunctionOn : public ::testing::TestWithParam<const char*> {};

TEST_P(EmitFunctionOn, GivesTheLimitsAtInfinitiesAndNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {inf, -inf, std::nanf(""), 0.0f, -0.0f};
  for (const FunctionInfo& info : AllFunctions()) {
    if (info.max_operands != 1 || info.function == Function::kNeg ||
        info.function == Function::kCast || info.function == Function::kTf32 ||
        info.function == Function::kNot) {
      continue;
    }
    const std::vector<float> y =
        Apply<float>(std::string(info.name), "f32", x, *FindTarget(GetParam()));
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = EvaluateUnary(info.function, x[i]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y[i])) << info.name << "(" << x[i] << ") = " << y[i];
      } else {
        EXPECT_EQ(y[i], static_cast<float>(expected)) << info.name << "(" << x[i] << ")";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, EmitFunctionOn, ::testing::Values("cpu:x86-64-v3", "cuda:h200"),
                         [](const auto& info) { return info.index == 0 ? "Cpu" : "Gpu"; });

}  // namespace
}  // namespace tilewright
