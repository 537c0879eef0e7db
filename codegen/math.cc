// f(x) without calls, on scalars or vectors of f32 and f64.
//
// Every function reduces its argument to a short interval, evaluates one polynomial there
// (interpolated at Chebyshev nodes in 60 digits, coefficients rounded to the type; the relative
// error of each is in its comment, in units of the roundoff u) and undoes the reduction.
// tests/codegen/math_test.cc measures the error of every function over its range, which
// FunctionInfo::error_ulps bounds. The one idea that is not textbook: gelu needs the normal
// distribution's tail with a small *relative* error, so the tail is exp(-a^2/2) * Q(a) with Q(a) =
// t * S(t), t = 1 / (1 + c a), and a^2 is formed in two parts.
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/convert.h"
#include "codegen/emit_expr.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tilewright {
namespace {

using llvm::Value;

// What differs between f32 and f64.
struct MathConstants {
  int mantissa_bits;
  int bias;
  double round_magic;        // 1.5 * 2^mantissa_bits: adding it rounds to an integer
  double exp_low, exp_high;  // beyond them exp is 0 and infinity
  double ln2_high, ln2_low;  // ln2_high times an exponent is exact
  uint64_t split_mask;       // keeps half of the mantissa
  int scale_bits;            // a power of two that lifts small results out of the subnormals
  double smallest_normal;
  double tail_limit;              // beyond it the tail is 0
  double tail_slope;              // c in t = 1 / (1 + c a)
  std::vector<double> exp_poly;   // (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2
  std::vector<double> tanh_poly;  // (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.625
  std::vector<double> log_poly;   // (log((1+s)/(1-s)) - 2s) / s^3 in s^2, |s| <= 0.172
  std::vector<double> erf_poly;   // erf(x) / x in x^2, |x| <= 1
  std::vector<double> tail_poly;  // S(t)
};

const MathConstants& Constants(bool wide) {
  static const auto* const kFloat = new MathConstants{
      23,
      127,
      0x1.8p23,
      -104,
      89,
      0.693359375,
      -2.12194440054690583e-4,
      0xfffff000u,
      24,
      0x1p-126,
      15,
      0.3,
      // exp: 2.4 u
      {0x1p-1, 0x1.5554d8p-3, 0x1.555516p-5, 0x1.12106cp-7, 0x1.6d1606p-10},
      // tanh: 0.7 u
      {-0x1.555556p-2, 0x1.1110eap-3, -0x1.ba08c4p-5, 0x1.64a976p-6, -0x1.116a16p-7, 0x1.2c83cp-9},
      // log: 0.6 u
      {0x1.555556p-1, 0x1.9999eep-2, 0x1.245b28p-2, 0x1.de0b02p-3},
      // erf: 1.4 u
      {0x1.20dd76p+0, -0x1.812746p-2, 0x1.ce2f2p-4, -0x1.b82cbap-6, 0x1.56588cp-8, -0x1.bfe158p-11,
       0x1.f57e9cp-14, -0x1.d2b852p-17, 0x1.1c41acp-20},
      // S: 0.2 u
      {0x1.ea3db4p-4, 0x1.e9ad62p-4, 0x1.c44b1ep-4, 0x1.3d61b8p-4, 0x1.94cfa6p-4, -0x1.5a090cp-4,
       0x1.9557f2p-3, -0x1.dcd8dap-3, 0x1.d4975p-4, -0x1.57d016p-6}};
  static const auto* const kDouble = new MathConstants{
      52,
      1023,
      0x1.8p52,
      -746,
      710,
      6.93147180369123816490e-01,
      1.90821492927058770002e-10,
      0xfffffffff8000000u,
      53,
      0x1p-1022,
      40,
      0.25,
      // exp: 0.04 u
      {0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555552p-5, 0x1.111111110ff87p-7,
       0x1.6c16c16c17878p-10, 0x1.a01a01aca0134p-13, 0x1.a01a01a0ba5a3p-16, 0x1.71ddffef9e7b1p-19,
       0x1.27e4e76c62c1dp-22, 0x1.af52906239de4p-26, 0x1.1f61e750bd13ep-29},
      // tanh: 0.7 u
      {-0x1.5555555555555p-2, 0x1.1111111111111p-3, -0x1.ba1ba1ba1b99bp-5, 0x1.664f4882bcedap-6,
       -0x1.226e355d4fe31p-7, 0x1.d6d3d085a77dap-9, -0x1.7da35ab78fb03p-10, 0x1.355774fd6397bp-11,
       -0x1.f56beacd843e6p-13, 0x1.95dea8c30df35p-14, -0x1.45784f033d4b9p-15, 0x1.f1b59ea7fc191p-17,
       -0x1.402a50ae5478dp-18, 0x1.ec64d0ae70e69p-21},
      // log: 0.6 u
      {0x1.5555555555555p-1, 0x1.9999999999a43p-2, 0x1.249249247513dp-2, 0x1.c71c7204621fep-3,
       0x1.745cf7c1d5dafp-3, 0x1.3b1c79943fca2p-3, 0x1.0fb77bcdefa76p-3, 0x1.0c4d8297b1431p-3},
      // erf: 0.3 u
      {0x1.20dd750429b6dp+0, -0x1.812746b0379e7p-2, 0x1.ce2f21a042be2p-4, -0x1.b82ce31288b51p-6,
       0x1.565bcd0e6a53fp-8, -0x1.c02db40040b85p-11, 0x1.f9a326f9b8981p-14, -0x1.f4d25c3e0b813p-17,
       0x1.b9e6c9dc4c2bbp-20, -0x1.5f742ec195eb5p-23, 0x1.fcc57198ce8dbp-27, -0x1.51d711710d451p-30,
       0x1.9e6a37972ce51p-34, -0x1.d83a266621962p-38, 0x1.f5efc86d42e8dp-42, -0x1.efdb169dc2294p-46,
       0x1.b1e319cdb00aap-50, -0x1.0554d9ba6c1b6p-54},
      // S: 0.9 u
      {0x1.9884533d78e17p-4,  0x1.9884532d99a5ep-4,  0x1.7efc10247172ap-4,  0x1.4beb5766e1126p-4,
       0x1.041ebd4d003p-4,    0x1.620eabf8306abp-5,  0x1.829af26aa999fp-6,  0x1.87c47428b2bf2p-8,
       0x1.6871d89bdd83ap-9,  -0x1.d7cf0cd8bf50bp-6, 0x1.fdadadf94cb25p-5,  -0x1.4b2865ea4ed0bp-3,
       0x1.367051e6c212bp-2,  -0x1.adfac6578dd2ep-2, 0x1.a87b6c3144937p-2,  -0x1.a6b558ca202dep-3,
       -0x1.c170e9e11948bp-4, 0x1.3c56eaaa17aa9p-2,  -0x1.2b55e29c6d24cp-2, 0x1.4e8e226cb0879p-3,
       -0x1.d20c10157b08dp-5, 0x1.79c6f565dc4f7p-7,  -0x1.129ec47f6a0a6p-10}};
  return wide ? *kDouble : *kFloat;
}

// Emits the functions for one shape (f32 or f64, lanes).
class MathEmitter {
 public:
  MathEmitter(KernelModule& module, Value* like)
      : b_(module.builder()),
        gpu_(module.target().is_gpu()),
        type_(like->getType()),
        k_(Constants(ComputeTypeOf(like) == ElementType::kF64)),
        int_type_(type_->getWithNewType(b_.getIntNTy(k_.mantissa_bits == 52 ? 64 : 32))) {}

  // exp(x + x_low) * 2^offset; x_low (may be null) is small. No result is subnormal before the last
  // multiplication.
  Value* Exp(Value* x, Value* x_low = nullptr, int offset = 0) {
    const double low = k_.exp_low - std::ceil(offset * 0.6932);
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, F(low)), F(low), x);
    x = b_.CreateSelect(b_.CreateFCmpOGT(x, F(k_.exp_high)), F(k_.exp_high), x);
    // n = round(x / ln 2), as a float and (in the low bits of the sum) as an integer.
    Value* sum = MulAdd(x, F(1.4426950408889634074), F(k_.round_magic));
    Value* n = b_.CreateFSub(sum, F(k_.round_magic));
    Value* r = MulAdd(n, F(-k_.ln2_high), x);
    r = MulAdd(n, F(-k_.ln2_low), r);
    if (x_low != nullptr) r = b_.CreateFAdd(r, x_low);
    Value* p = MulAdd(b_.CreateFMul(r, r), Polynomial(k_.exp_poly, r), r);
    p = b_.CreateFAdd(p, F(1));
    // 2^n in two factors, so that neither leaves the range of normal numbers.
    Value* biased =
        b_.CreateSub(Bits(sum), b_.CreateSub(Bits(F(k_.round_magic)), I(2 * k_.bias + offset)));
    Value* half = b_.CreateLShr(biased, 1);
    Value* rest = b_.CreateSub(biased, half);
    p = b_.CreateFMul(p, Float(b_.CreateShl(half, k_.mantissa_bits)));
    return b_.CreateFMul(p, Float(b_.CreateShl(rest, k_.mantissa_bits)));
  }

  Value* Log(Value* x) {
    Value* tiny = b_.CreateFCmpOLT(x, F(k_.smallest_normal));
    Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, F(std::ldexp(1.0, k_.scale_bits))), x);
    // m in [sqrt(1/2), sqrt 2) and its exponent, which is kept positive so that a logical shift
    // divides.
    const uint64_t root_half = k_.mantissa_bits == 52 ? 0x3fe6a09e667f3bcdu : 0x3f3504f3u;
    const int lift = 2 * k_.bias;
    Value* moved = b_.CreateAdd(b_.CreateSub(Bits(scaled), I(root_half)),
                                I(static_cast<uint64_t>(k_.bias) << k_.mantissa_bits));
    Value* e = b_.CreateSub(b_.CreateLShr(moved, k_.mantissa_bits), I(k_.bias));
    e = b_.CreateSub(e, b_.CreateSelect(tiny, I(k_.scale_bits), I(0)));
    Value* m = Float(
        b_.CreateAdd(b_.CreateAnd(moved, I((uint64_t{1} << k_.mantissa_bits) - 1)), I(root_half)));
    // The exponent as a float, by the bits of a large power of two: 64-bit lanes have no conversion
    // before AVX-512.
    Value* magic = F(std::ldexp(1.0, k_.mantissa_bits) + lift);
    Value* e_float = b_.CreateFSub(Float(b_.CreateAdd(Bits(magic), e)), magic);
    Value* f = b_.CreateFSub(m, F(1));
    Value* s = Quotient(f, b_.CreateFAdd(F(2), f));
    Value* z = b_.CreateFMul(s, s);
    Value* half_square = b_.CreateFMul(F(0.5), b_.CreateFMul(f, f));
    Value* tail = b_.CreateFMul(s, MulAdd(z, Polynomial(k_.log_poly, z), half_square));
    tail = MulAdd(e_float, F(k_.ln2_low), tail);
    Value* result =
        MulAdd(e_float, F(k_.ln2_high), b_.CreateFSub(f, b_.CreateFSub(half_square, tail)));
    result = b_.CreateSelect(b_.CreateFCmpOEQ(x, F(INFINITY)), x, result);
    result = b_.CreateSelect(b_.CreateFCmpOEQ(x, F(0)), F(-INFINITY), result);
    return b_.CreateSelect(b_.CreateFCmpULT(x, F(0)), F(NAN), result);  // negative, or NaN
  }

  Value* Tanh(Value* x) {
    Value* a = Abs(x);
    Value* z = b_.CreateFMul(x, x);
    Value* small = MulAdd(b_.CreateFMul(x, z), Polynomial(k_.tanh_poly, z), x);
    // From 20 on the quotient no longer counts, and must stay finite.
    Value* few = Approximates() ? b_.CreateSelect(b_.CreateFCmpOGT(a, F(20)), F(20), a) : a;
    Value* e = b_.CreateFAdd(Exp(b_.CreateFMul(few, F(2))), F(1));
    Value* large = b_.CreateFSub(F(1), Quotient(F(2), e));
    large = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, large, x);
    return b_.CreateSelect(b_.CreateFCmpOLT(a, F(0.625)), small, large);
  }

  Value* Erf(Value* x) {
    Value* a = Abs(x);
    Value* z = b_.CreateFMul(x, x);
    Value* small = b_.CreateFMul(x, Polynomial(k_.erf_poly, z));
    Value* tail = Tail(b_.CreateFMul(a, F(1.4142135623730950488)), 0);
    Value* large = MulAdd(F(-2), tail, F(1));
    large = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, large, x);
    return b_.CreateSelect(b_.CreateFCmpOLT(a, F(1)), small, large);
  }

  Value* Sigmoid(Value* x) {
    Value* e = Exp(b_.CreateFNeg(Abs(x)));
    Value* numerator = b_.CreateSelect(b_.CreateFCmpOLT(x, F(0)), e, F(1));
    return Quotient(numerator, b_.CreateFAdd(F(1), e));
  }

  // x * sigmoid(x). Below zero exp is kept 2^scale_bits too large until the end, for results near
  // the smallest numbers.
  Value* Silu(Value* x) {
    if (Approximates()) return SiluOfApproximations(x);
    Value* negative = b_.CreateFCmpOLT(x, F(0));
    Value* e = Exp(b_.CreateFNeg(Abs(x)), nullptr, k_.scale_bits);
    Value* down = F(std::ldexp(1.0, -k_.scale_bits));
    Value* numerator = b_.CreateSelect(negative, b_.CreateFMul(x, e), x);
    Value* quotient = Quotient(numerator, MulAdd(e, down, F(1)));
    Value* result = b_.CreateSelect(negative, b_.CreateFMul(quotient, down), quotient);
    return b_.CreateSelect(b_.CreateFCmpOEQ(x, F(-INFINITY)), F(-0.0), result);  // the limit
  }

  // x * (1 - tail(x)), or below zero x * tail(-x).
  Value* Gelu(Value* x) {
    if (Approximates()) return GeluOfApproximations(x);
    Value* negative = b_.CreateFCmpOLT(x, F(0));
    Value* down = F(std::ldexp(1.0, -k_.scale_bits));
    Value* product = b_.CreateFMul(b_.CreateFMul(x, Tail(Abs(x), k_.scale_bits)), down);
    // Beyond the limit the tail is 0, however large x is.
    Value* beyond = b_.CreateFCmpOGT(Abs(x), F(k_.tail_limit));
    product = b_.CreateSelect(beyond, F(-0.0), product);
    return b_.CreateSelect(negative, product, b_.CreateFSub(x, product));
  }

  Value* Abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* Sqrt(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
  Value* F(double value) { return llvm::ConstantFP::get(type_, value); }
  llvm::IRBuilder<>& builder() { return b_; }

 private:
  // gelu and silu for the epilogues of GPU kernels, where they take turns with the tensor cores for
  // issue slots: half the instructions of the general forms. Powers of two are kept 2^kLift too
  // large, since those of the instruction have no subnormals, and clamps take the place of
  // selections (NaN goes through them).
  static constexpr int kLift = 64;

  // max(x, 0) - a * tail(a), a = |x| up to where the tail is 0.
  Value* GeluOfApproximations(Value* x) {
    Value* a = b_.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, Abs(x), F(k_.tail_limit));
    Value* t = Reciprocal(MulAdd(a, F(k_.tail_slope), F(1)));
    Value* square = b_.CreateFMul(a, a);
    Value* square_low = MulAdd(a, a, b_.CreateFNeg(square));
    Value* tail = LiftedPower(square, square_low, -0.72134752044448170368);  // -log2(e) / 2
    tail = b_.CreateFMul(b_.CreateFMul(b_.CreateFMul(a, t), Polynomial(k_.tail_poly, t)), tail);
    Value* above = b_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, F(0));
    return MulAdd(tail, F(-std::ldexp(1.0, -kLift)), above);
  }

  // x / (1 + exp(-|x|)), below zero times exp(-|x|); where x is clamped the result rounds to 0.
  Value* SiluOfApproximations(Value* x) {
    x = b_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, F(-111));
    Value* a = b_.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, Abs(x), F(111));
    Value* e = LiftedPower(a, nullptr, -1.4426950408889634074);
    Value* down = F(std::ldexp(1.0, -kLift));
    Value* negative = b_.CreateFCmpOLT(x, F(0));
    Value* product = b_.CreateSelect(negative, b_.CreateFMul(x, e), x);
    product = b_.CreateFMul(product, Reciprocal(MulAdd(e, down, F(1))));
    return b_.CreateSelect(negative, b_.CreateFMul(product, down), product);
  }

  // 2^((x + x_low) * factor + kLift) for exponents of -190 … 0; x_low (may be null) is less than a
  // unit of x. The exponent is rounded once; what it lost multiplies the power (2^d ~ 1 + d ln 2).
  // ex2.approx.ftz is two units off at most (PTX ISA 9.7.3.22).
  Value* LiftedPower(Value* x, Value* x_low, double factor) {
    const auto high = static_cast<float>(factor);
    Value* y = b_.CreateFMul(x, F(high));
    Value* lost = MulAdd(x, F(high), b_.CreateFNeg(y));
    lost = MulAdd(x, F(factor - high), lost);
    if (x_low != nullptr) lost = MulAdd(x_low, F(high), lost);
    Value* lifted = b_.CreateFAdd(y, F(kLift));
    lost = b_.CreateFAdd(lost, b_.CreateFSub(y, b_.CreateFSub(lifted, F(kLift))));
    Value* power = EachLane(lifted, [&](Value* lane) {
      return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {lane});
    });
    return MulAdd(power, b_.CreateFMul(lost, F(0.69314718055994530942)), power);
  }

  // 1 / d for d of 1/2 … 2^100, or NaN; its approximation is one unit off at most (PTX ISA
  // 9.7.3.13, rcp.approx.ftz).
  Value* ApproximateReciprocal(Value* d) {
    return EachLane(d, [&](Value* lane) {
      return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {lane});
    });
  }
  Value* Reciprocal(Value* d) {
    Value* r = ApproximateReciprocal(d);
    return MulAdd(MulAdd(b_.CreateFNeg(d), r, F(1)), r, r);
  }

  // The standard normal distribution above a >= 0, times 2^offset.
  Value* Tail(Value* a, int offset) {
    a = b_.CreateSelect(b_.CreateFCmpOGT(a, F(k_.tail_limit)), F(k_.tail_limit), a);
    Value* t = Quotient(F(1), MulAdd(a, F(k_.tail_slope), F(1)));
    Value* high = Float(b_.CreateAnd(Bits(a), I(k_.split_mask)));
    Value* low = b_.CreateFSub(a, high);
    // -a^2/2 = -high^2/2 (exact) - low * (a + high) / 2
    Value* first = b_.CreateFMul(b_.CreateFMul(high, high), F(-0.5));
    Value* second = b_.CreateFMul(b_.CreateFMul(low, b_.CreateFAdd(a, high)), F(-0.5));
    return b_.CreateFMul(b_.CreateFMul(Exp(first, second, offset), t), Polynomial(k_.tail_poly, t));
  }

  Value* Polynomial(const std::vector<double>& coefficients, Value* x) {
    Value* sum = F(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;) sum = MulAdd(sum, x, F(coefficients[i]));
    return sum;
  }
  // Quotients are made from approximate reciprocals.
  bool Approximates() const { return gpu_ && k_.mantissa_bits == 23; }
  // n / d for finite n and d of 1/2 … 2^100, or NaN. A GPU divides in f32 by a subroutine that
  // looks after all other numbers; here its approximate reciprocal is corrected once, which leaves
  // little more than the rounding.
  Value* Quotient(Value* n, Value* d) {
    if (!Approximates()) return b_.CreateFDiv(n, d);
    Value* r = ApproximateReciprocal(d);
    Value* q = b_.CreateFMul(n, r);
    Value* left = b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {b_.CreateFNeg(d), q, n});
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {left, r, q});
  }
  Value* EachLane(Value* x, const std::function<Value*(Value*)>& function) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
    if (vector == nullptr) return function(x);
    Value* result = llvm::PoisonValue::get(type_);
    for (uint64_t i = 0; i < vector->getNumElements(); ++i)
      result = b_.CreateInsertElement(result, function(b_.CreateExtractElement(x, i)), i);
    return result;
  }
  // x * y + z, fused where the target can.
  Value* MulAdd(Value* x, Value* y, Value* z) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {type_}, {x, y, z});
  }
  Value* I(uint64_t value) { return llvm::ConstantInt::get(int_type_, value); }
  Value* Bits(Value* x) { return b_.CreateBitCast(x, int_type_); }
  Value* Float(Value* x) { return b_.CreateBitCast(x, type_); }

  llvm::IRBuilder<>& b_;
  const bool gpu_;
  llvm::Type* type_;
  const MathConstants& k_;
  llvm::Type* int_type_;
};

}  // namespace

Value* EmitFunction(KernelModule& module, Function function, Value* x) {
  auto& b = module.builder();
  if (ComputeTypeOf(x) == ElementType::kI32) {
    Value* zero = llvm::Constant::getNullValue(x->getType());
    if (function == Function::kRelu) return b.CreateSelect(b.CreateICmpSGT(x, zero), x, zero);
    if (function == Function::kAbs)
      return b.CreateSelect(b.CreateICmpSLT(x, zero), b.CreateNeg(x), x);
    // ComputeType() gives integers only to expressions without other functions.
    Value* wide = ConvertCompute(module, x, ElementType::kF64);
    return ConvertCompute(module, EmitFunction(module, function, wide), ElementType::kI32);
  }
  MathEmitter math(module, x);
  switch (function) {
    case Function::kExp:
      return math.Exp(x);
    case Function::kLog:
      return math.Log(x);
    case Function::kSqrt:
      return math.Sqrt(x);
    case Function::kRsqrt:
      return b.CreateFDiv(math.F(1), math.Sqrt(x));
    case Function::kTanh:
      return math.Tanh(x);
    case Function::kErf:
      return math.Erf(x);
    case Function::kSigmoid:
      return math.Sigmoid(x);
    case Function::kRelu:
      return b.CreateSelect(b.CreateFCmpOLT(x, math.F(0)), math.F(0), x);
    case Function::kGelu:
      return math.Gelu(x);
    case Function::kSilu:
      return math.Silu(x);
    case Function::kAbs:
      return math.Abs(x);
    default:
      return x;  // not a function of one number: EmitExpr never asks
  }
}

}  // namespace tilewright
