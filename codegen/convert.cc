#include "codegen/convert.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "codegen/host_backend.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Intrinsics.h"

namespace tilewright {
namespace {

using llvm::Value;

// The layout of a float narrower than f32 that has its own exponent range.
struct Narrow {
  int mantissa_bits;
  int bias;
  int lowest_exponent;  // of normal numbers
  uint32_t largest;     // bits of the largest finite value, without sign
  uint32_t overflow;    // bits of what a larger value becomes
  uint32_t nan;
  int bits;
};

Narrow LayoutOf(ElementType type) {
  switch (type) {
    case ElementType::kE4M3:
      return {3, 7, -6, 0x7e, 0x7f, 0x7f, 8};
    case ElementType::kE5M2:
      return {2, 15, -14, 0x7b, 0x7c, 0x7e, 8};
    default:
      return {10, 15, -14, 0x7bff, 0x7c00, 0x7e00, 16};  // f16
  }
}

// Whether the target's processor rounds to integers, and has instructions between f16 and f32.
bool RoundsToIntegers(const Target& target) {
  return target.is_gpu() || TargetHasFeature(target, "sse4.1");
}
bool ConvertsHalf(const Target& target) {
  return target.is_gpu() || TargetHasFeature(target, "f16c");
}

llvm::Type* Shaped(llvm::Type* scalar, int lanes) {
  return lanes > 1 ? llvm::FixedVectorType::get(scalar, lanes) : scalar;
}

llvm::Type* IntType(KernelModule& m, int bits, int lanes) {
  return Shaped(llvm::IntegerType::get(m.context(), bits), lanes);
}

llvm::Type* FloatType(KernelModule& m, int lanes) {
  return Shaped(m.builder().getFloatTy(), lanes);
}

Value* IntLike(Value* like, uint64_t value) {
  return llvm::ConstantInt::get(like->getType(), value);
}
Value* FloatLike(Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}

// Small float bits (in i32 lanes) to f32: the exponent field is moved as it is and corrected by an
// exact multiplication, which makes subnormals right too.
Value* SmallFloatToFloat(KernelModule& m, ElementType type, Value* bits32) {
  auto& b = m.builder();
  const Narrow n = LayoutOf(type);
  const int lanes = LanesOf(bits32);
  Value* magnitude = b.CreateAnd(bits32, IntLike(bits32, (1u << (n.bits - 1)) - 1));
  Value* sign = b.CreateShl(b.CreateAnd(bits32, IntLike(bits32, 1u << (n.bits - 1))), 32 - n.bits);
  Value* moved = b.CreateBitCast(b.CreateShl(magnitude, 23 - n.mantissa_bits), FloatType(m, lanes));
  llvm::FastMathFlags none;
  llvm::IRBuilder<>::FastMathFlagGuard guard(b);
  b.setFastMathFlags(none);
  Value* scaled = b.CreateFMul(moved, FloatLike(moved, std::ldexp(1.0, 127 - n.bias)));
  Value* result = b.CreateBitCast(scaled, bits32->getType());
  Value* special = b.CreateICmpUGT(magnitude, IntLike(magnitude, n.largest));
  if (type == ElementType::kE4M3) {
    result = b.CreateSelect(special, IntLike(result, 0x7fc00000), result);
  } else {
    // Infinity and NaN keep their mantissa under the full exponent.
    result = b.CreateSelect(special, b.CreateOr(result, IntLike(result, 0x7f800000)), result);
  }
  return b.CreateBitCast(b.CreateOr(result, sign), FloatType(m, lanes));
}

// f32 to small float bits (in i32 lanes), to nearest even.
Value* FloatToSmallFloat(KernelModule& m, ElementType type, Value* x) {
  auto& b = m.builder();
  const Narrow n = LayoutOf(type);
  const int lanes = LanesOf(x);
  const int drop = 23 - n.mantissa_bits;
  llvm::FastMathFlags none;
  llvm::IRBuilder<>::FastMathFlagGuard guard(b);
  b.setFastMathFlags(none);
  Value* bits = b.CreateBitCast(x, IntType(m, 32, lanes));
  Value* magnitude = b.CreateAnd(bits, IntLike(bits, 0x7fffffff));
  Value* sign = b.CreateLShr(b.CreateAnd(bits, IntLike(bits, 0x80000000u)), 32 - n.bits);
  // Normal: round the dropped bits, then move the exponent's zero.
  Value* odd = b.CreateAnd(b.CreateLShr(magnitude, drop), IntLike(bits, 1));
  Value* rounded = b.CreateAdd(b.CreateAdd(magnitude, IntLike(bits, (1u << (drop - 1)) - 1)), odd);
  Value* normal =
      b.CreateSub(b.CreateLShr(rounded, drop), IntLike(bits, (127u - n.bias) << n.mantissa_bits));
  // Subnormal: adding a power of two whose spacing is that of the subnormals rounds, and leaves
  // their count in the low bits.
  Value* absolute = b.CreateBitCast(magnitude, FloatType(m, lanes));
  const int spacing = n.lowest_exponent - n.mantissa_bits;
  Value* magic = FloatLike(absolute, std::ldexp(1.0, 23 + spacing));
  Value* sum = b.CreateBitCast(b.CreateFAdd(absolute, magic), bits->getType());
  Value* subnormal = b.CreateSub(sum, b.CreateBitCast(magic, bits->getType()));
  Value* is_small = b.CreateICmpULT(
      magnitude, IntLike(bits, static_cast<uint32_t>(127 + n.lowest_exponent) << 23));
  Value* result = b.CreateSelect(is_small, subnormal, normal);
  Value* too_large = b.CreateICmpSGT(result, IntLike(bits, n.largest));
  result = b.CreateSelect(too_large, IntLike(bits, n.overflow), result);
  Value* is_nan = b.CreateICmpUGT(magnitude, IntLike(bits, 0x7f800000));
  result = b.CreateSelect(is_nan, IntLike(bits, n.nan), result);
  return b.CreateOr(result, sign);
}

Value* FloatToBFloatBits(KernelModule& m, Value* x) {
  auto& b = m.builder();
  Value* bits = b.CreateBitCast(x, IntType(m, 32, LanesOf(x)));
  Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), IntLike(bits, 1));
  Value* rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, IntLike(bits, 0x7fff)), odd), 16);
  Value* is_nan = b.CreateFCmpUNO(x, x);
  Value* nan = b.CreateOr(b.CreateLShr(bits, 16), IntLike(bits, 0x40));
  return b.CreateSelect(is_nan, nan, rounded);
}

// f64 to f32 rounded to odd: a later rounding to a narrower type then gives what one rounding
// would.
Value* DoubleToFloatOdd(KernelModule& m, Value* x) {
  auto& b = m.builder();
  const int lanes = LanesOf(x);
  Value* nearest = b.CreateFPTrunc(x, FloatType(m, lanes));
  Value* back = b.CreateFPExt(nearest, x->getType());
  Value* inexact = b.CreateFCmpONE(back, x);
  Value* away = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  Value* bits = b.CreateBitCast(nearest, IntType(m, 32, lanes));
  Value* truncated = b.CreateSelect(away, b.CreateSub(bits, IntLike(bits, 1)), bits);
  Value* odd = b.CreateOr(truncated, IntLike(bits, 1));
  return b.CreateBitCast(b.CreateSelect(inexact, odd, bits), FloatType(m, lanes));
}

// To nearest even integer value, in floating point, without an instruction beyond SSE2: adding and
// taking away 2^23 (2^52).
Value* RoundToInteger(KernelModule& m, Value* x) {
  auto& b = m.builder();
  if (RoundsToIntegers(m.target())) return b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
  llvm::FastMathFlags none;
  llvm::IRBuilder<>::FastMathFlagGuard guard(b);
  b.setFastMathFlags(none);
  const double limit = ComputeTypeOf(x) == ElementType::kF64 ? 0x1p52 : 0x1p23;
  Value* magic = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, FloatLike(x, limit), x);
  Value* rounded = b.CreateFSub(b.CreateFAdd(x, magic), magic);
  Value* small =
      b.CreateFCmpOLT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x), FloatLike(x, limit));
  return b.CreateSelect(small, rounded, x);
}

// Floats to i32, to nearest even, to the nearest end of [low, high] beyond it, NaN to 0.
Value* FloatToInt(KernelModule& m, Value* x, double low, double high) {
  auto& b = m.builder();
  Value* rounded = RoundToInteger(m, x);
  Value* above = b.CreateFCmpOGE(rounded, FloatLike(x, high + 1));
  Value* below = b.CreateFCmpOLT(rounded, FloatLike(x, low));
  Value* outside = b.CreateOr(b.CreateOr(above, below), b.CreateFCmpUNO(x, x));
  Value* safe = b.CreateSelect(outside, FloatLike(x, 0), rounded);
  Value* result = b.CreateFPToSI(safe, IntType(m, 32, LanesOf(x)));
  result = b.CreateSelect(above, IntLike(result, static_cast<uint32_t>(static_cast<int32_t>(high))),
                          result);
  return b.CreateSelect(below, IntLike(result, static_cast<uint32_t>(static_cast<int32_t>(low))),
                        result);
}

}  // namespace

ElementType ComputeTypeOf(Value* value) {
  llvm::Type* scalar = value->getType()->getScalarType();
  if (scalar->isDoubleTy()) return ElementType::kF64;
  return scalar->isFloatTy() ? ElementType::kF32 : ElementType::kI32;
}

int LanesOf(Value* value) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
}

Value* Splat(KernelModule& m, Value* value, int lanes) {
  return lanes == 1 ? value : m.builder().CreateVectorSplat(lanes, value);
}

Value* ComputeConstant(KernelModule& m, ElementType compute, int lanes, double value) {
  llvm::Type* type = m.Type(compute, lanes);
  if (compute == ElementType::kI32) {
    return llvm::ConstantInt::get(type, static_cast<uint64_t>(static_cast<int64_t>(value)), true);
  }
  return llvm::ConstantFP::get(type, value);
}

llvm::Type* StorageBits(KernelModule& m, ElementType type, int lanes) {
  switch (type) {
    case ElementType::kF64:
    case ElementType::kF32:
    case ElementType::kI32:
      return m.Type(type, lanes);
    case ElementType::kF16:
    case ElementType::kBF16:
      return IntType(m, 16, lanes);
    default:
      return IntType(m, 8, lanes);
  }
}

Value* ConvertCompute(KernelModule& m, Value* value, ElementType to) {
  auto& b = m.builder();
  const ElementType from = ComputeTypeOf(value);
  if (from == to) return value;
  llvm::Type* type = m.Type(to, LanesOf(value));
  if (from == ElementType::kI32) return b.CreateSIToFP(value, type);
  if (to == ElementType::kI32) return FloatToInt(m, value, INT32_MIN, INT32_MAX);
  return to == ElementType::kF64 ? b.CreateFPExt(value, type) : b.CreateFPTrunc(value, type);
}

Value* WidenElements(KernelModule& m, ElementType type, Value* stored, ElementType as) {
  auto& b = m.builder();
  const int lanes = LanesOf(stored);
  llvm::Type* i32 = IntType(m, 32, lanes);
  switch (type) {
    case ElementType::kF64:
    case ElementType::kF32:
    case ElementType::kI32:
      return ConvertCompute(m, stored, as);
    case ElementType::kI8:
      return ConvertCompute(m, b.CreateSExt(stored, i32), as);
    case ElementType::kBF16: {
      Value* bits = b.CreateShl(b.CreateZExt(stored, i32), 16);
      return ConvertCompute(m, b.CreateBitCast(bits, FloatType(m, lanes)), as);
    }
    case ElementType::kF16:
      if (ConvertsHalf(m.target())) {
        Value* half = b.CreateBitCast(stored, m.Type(ElementType::kF16, lanes));
        return ConvertCompute(m, b.CreateFPExt(half, FloatType(m, lanes)), as);
      }
      [[fallthrough]];
    default:
      return ConvertCompute(m, SmallFloatToFloat(m, type, b.CreateZExt(stored, i32)), as);
  }
}

Value* NarrowElements(KernelModule& m, ElementType type, Value* value) {
  auto& b = m.builder();
  const int lanes = LanesOf(value);
  const ElementType from = ComputeTypeOf(value);
  switch (type) {
    case ElementType::kF64:
    case ElementType::kF32:
    case ElementType::kI32:
      return ConvertCompute(m, value, type);
    case ElementType::kI8: {
      Value* integer = value;
      if (from == ElementType::kI32) {
        Value* high = IntLike(value, 127);
        Value* low = IntLike(value, static_cast<uint32_t>(-128));
        integer = b.CreateSelect(b.CreateICmpSGT(value, high), high, value);
        integer = b.CreateSelect(b.CreateICmpSLT(integer, low), low, integer);
      } else {
        integer = FloatToInt(m, value, -128, 127);
      }
      return b.CreateTrunc(integer, IntType(m, 8, lanes));
    }
    default:
      break;
  }
  Value* narrow = value;
  if (from == ElementType::kF64) narrow = DoubleToFloatOdd(m, value);
  if (from == ElementType::kI32)
    narrow = DoubleToFloatOdd(m, ConvertCompute(m, value, ElementType::kF64));
  if (type == ElementType::kBF16 && m.target().is_gpu()) {
    return b.CreateBitCast(b.CreateFPTrunc(narrow, m.Type(ElementType::kBF16, lanes)),
                           IntType(m, 16, lanes));
  }
  if (type == ElementType::kBF16)
    return b.CreateTrunc(FloatToBFloatBits(m, narrow), IntType(m, 16, lanes));
  if (type == ElementType::kF16 && ConvertsHalf(m.target())) {
    return b.CreateBitCast(b.CreateFPTrunc(narrow, m.Type(ElementType::kF16, lanes)),
                           IntType(m, 16, lanes));
  }
  return b.CreateTrunc(FloatToSmallFloat(m, type, narrow), IntType(m, LayoutOf(type).bits, lanes));
}

Value* RoundToElement(KernelModule& m, ElementType type, Value* value) {
  return WidenElements(m, type, NarrowElements(m, type, value), ComputeTypeOf(value));
}

Value* RoundToTf32Bits(KernelModule& m, Value* value) {
  auto& b = m.builder();
  if (ComputeTypeOf(value) == ElementType::kI32) {
    return ConvertCompute(m, RoundToTf32Bits(m, ConvertCompute(m, value, ElementType::kF64)),
                          ElementType::kI32);
  }
  const bool wide = ComputeTypeOf(value) == ElementType::kF64;
  const int drop = wide ? 42 : 13;
  Value* bits = b.CreateBitCast(value, IntType(m, wide ? 64 : 32, LanesOf(value)));
  Value* odd = b.CreateAnd(b.CreateLShr(bits, drop), IntLike(bits, 1));
  Value* rounded =
      b.CreateAdd(b.CreateAdd(bits, IntLike(bits, (uint64_t{1} << (drop - 1)) - 1)), odd);
  rounded = b.CreateAnd(rounded, IntLike(bits, ~((uint64_t{1} << drop) - 1)));
  Value* result = b.CreateBitCast(rounded, value->getType());
  return b.CreateSelect(b.CreateFCmpUNO(value, value), value, result);
}

}  // namespace tilewright
