#include "schedule/element_type.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

// Formats: IEEE 754-2019 for f64, f32, f16; bfloat16 is f32 with 7 mantissa bits; e4m3 and e5m2 are
// those of the OCP 8-bit Floating Point Specification 1.0 (e4m3 has no infinity, and its all-ones
// codes are NaN).
constexpr ElementTypeInfo kTypes[] = {
    // type, name, bytes, float, unit roundoff, max finite, smallest subnormal, infinity,
    // accumulator
    {ElementType::kF64, "f64", 8, true, 0x1p-53, std::numeric_limits<double>::max(),
     std::numeric_limits<double>::denorm_min(), true, ElementType::kF64},
    {ElementType::kF32, "f32", 4, true, 0x1p-24, std::numeric_limits<float>::max(), 0x1p-149, true,
     ElementType::kF32},
    {ElementType::kF16, "f16", 2, true, 0x1p-11, 65504.0, 0x1p-24, true, ElementType::kF32},
    {ElementType::kBF16, "bf16", 2, true, 0x1p-8, 0x1.fep127, 0x1p-133, true, ElementType::kF32},
    {ElementType::kE4M3, "e4m3", 1, true, 0x1p-4, 448.0, 0x1p-9, false, ElementType::kF32},
    {ElementType::kE5M2, "e5m2", 1, true, 0x1p-3, 57344.0, 0x1p-16, true, ElementType::kF32},
    {ElementType::kI8, "i8", 1, false, 0, 127, 0, false, ElementType::kI32},
    {ElementType::kI32, "i32", 4, false, 0, 2147483647, 0, false, ElementType::kI32},
};

// Explicit mantissa bits follow from u = 2^-(mantissa + 1).
int MantissaBits(const ElementTypeInfo& info) { return -std::ilogb(info.unit_roundoff) - 1; }
// The exponent of the smallest normal number, 1 - bias.
int LowestExponent(const ElementTypeInfo& info) {
  return std::ilogb(info.smallest_subnormal) + MantissaBits(info);
}

double RoundFloat(const ElementTypeInfo& info, double x) {
  if (std::isnan(x) || x == 0) return x;
  const double overflow = info.has_infinity
                              ? std::copysign(std::numeric_limits<double>::infinity(), x)
                              : std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(x)) return overflow;
  // The spacing of the type's values around x is 2^quantum; nearbyint rounds to nearest even.
  const int quantum = std::max(std::ilogb(x), LowestExponent(info)) - MantissaBits(info);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -quantum)), quantum);
  return std::abs(rounded) > info.max_finite ? overflow : rounded;
}

double RoundInteger(const ElementTypeInfo& info, double x) {
  if (std::isnan(x)) return 0;
  return std::clamp(std::nearbyint(x), -info.max_finite - 1, info.max_finite);
}

// The code of a value that the type holds exactly (1 or 2 byte floats).
uint32_t Encode(const ElementTypeInfo& info, double value) {
  const int mantissa_bits = MantissaBits(info);
  const int sign_shift = 8 * info.bytes - 1;
  const uint32_t sign = uint32_t{std::signbit(value)} << sign_shift;
  const uint32_t exponent_ones = ((1u << (sign_shift - mantissa_bits)) - 1) << mantissa_bits;
  if (std::isnan(value)) {
    const uint32_t payload =
        info.has_infinity ? 1u << (mantissa_bits - 1) : (1u << mantissa_bits) - 1;
    return sign | exponent_ones | payload;
  }
  if (std::isinf(value)) return sign | exponent_ones;
  const double magnitude = std::abs(value);
  if (magnitude == 0) return sign;
  const int lowest = LowestExponent(info);
  const int exponent = std::ilogb(magnitude);
  if (exponent < lowest) return sign | static_cast<uint32_t>(magnitude / info.smallest_subnormal);
  // The implicit leading one adds 1 to the exponent field.
  const auto mantissa = static_cast<uint32_t>(std::ldexp(magnitude, mantissa_bits - exponent));
  return sign | ((static_cast<uint32_t>(exponent - lowest) << mantissa_bits) + mantissa);
}

double Decode(const ElementTypeInfo& info, uint32_t code) {
  const int mantissa_bits = MantissaBits(info);
  const int sign_shift = 8 * info.bytes - 1;
  const uint32_t field = (code & ((1u << sign_shift) - 1)) >> mantissa_bits;
  const uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
  const uint32_t ones = (1u << (sign_shift - mantissa_bits)) - 1;
  const double sign = (code >> sign_shift) & 1 ? -1.0 : 1.0;
  if (field == ones) {
    if (info.has_infinity) {
      return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::quiet_NaN();
    }
    if (mantissa == (1u << mantissa_bits) - 1) return std::numeric_limits<double>::quiet_NaN();
  }
  if (field == 0) return sign * mantissa * info.smallest_subnormal;
  return sign * std::ldexp(static_cast<double>((1u << mantissa_bits) + mantissa),
                           LowestExponent(info) + static_cast<int>(field) - 1 - mantissa_bits);
}

template <typename T>
T LoadAs(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <typename T>
void StoreAs(T value, void* address) {
  std::memcpy(address, &value, sizeof(T));
}

}  // namespace

const ElementTypeInfo& Info(ElementType type) { return kTypes[static_cast<int>(type)]; }

absl::Span<const ElementTypeInfo> AllElementTypes() { return kTypes; }

absl::StatusOr<ElementType> ParseElementType(std::string_view name) {
  for (const ElementTypeInfo& info : kTypes) {
    if (info.name == name) return info.type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown element type '", std::string(name), "'; types are ",
                   absl::StrJoin(kTypes, ", ", [](std::string* out, const ElementTypeInfo& info) {
                     absl::StrAppend(out, std::string(info.name));
                   })));
}

double RoundTo(ElementType type, double x) {
  if (type == ElementType::kF64) return x;
  const ElementTypeInfo& info = Info(type);
  return info.is_float ? RoundFloat(info, x) : RoundInteger(info, x);
}

double LoadElement(ElementType type, const void* address) {
  switch (type) {
    case ElementType::kF64:
      return LoadAs<double>(address);
    case ElementType::kF32:
      return LoadAs<float>(address);
    case ElementType::kBF16: {
      const uint32_t bits = uint32_t{LoadAs<uint16_t>(address)} << 16;
      return LoadAs<float>(&bits);
    }
    case ElementType::kF16:
      return Decode(Info(type), LoadAs<uint16_t>(address));
    case ElementType::kE4M3:
    case ElementType::kE5M2:
      return Decode(Info(type), LoadAs<uint8_t>(address));
    case ElementType::kI8:
      return LoadAs<int8_t>(address);
    case ElementType::kI32:
      return LoadAs<int32_t>(address);
  }
  __builtin_unreachable();  // The cases above are all enumerators.
}

void StoreElement(ElementType type, double value, void* address) {
  const double rounded = RoundTo(type, value);
  switch (type) {
    case ElementType::kF64:
      return StoreAs(rounded, address);
    case ElementType::kF32:
      return StoreAs(static_cast<float>(rounded), address);
    case ElementType::kF16:
    case ElementType::kBF16:
      return StoreAs(static_cast<uint16_t>(Encode(Info(type), rounded)), address);
    case ElementType::kE4M3:
    case ElementType::kE5M2:
      return StoreAs(static_cast<uint8_t>(Encode(Info(type), rounded)), address);
    case ElementType::kI8:
      return StoreAs(static_cast<int8_t>(rounded), address);
    case ElementType::kI32:
      return StoreAs(static_cast<int32_t>(rounded), address);
  }
}

}  // namespace tilewright
