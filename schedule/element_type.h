// The element types a tensor may have, and the facts of each that parsing, checking and codegen
// need.
//
// One table (element_type.cc) holds a row per type; everything else is derived from it.
#ifndef TILEWRIGHT_SCHEDULE_ELEMENT_TYPE_H_
#define TILEWRIGHT_SCHEDULE_ELEMENT_TYPE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tilewright {

enum class ElementType { kF64, kF32, kF16, kBF16, kE4M3, kE5M2, kI8, kI32 };

struct ElementTypeInfo {
  ElementType type;
  std::string_view name;      // "f32": as written in types, canonical text and schedules
  int bytes;                  // storage size of one element
  bool is_float;              // false: two's complement integer
  double unit_roundoff;       // u: half the distance from 1 to the next value; 0 for integers
  double max_finite;          // largest finite value
  double smallest_subnormal;  // 0 for integers
  bool has_infinity;          // e4m3 (the OCP "fn" form) has NaN but no infinity
  ElementType
      accumulator;  // what sums of this type accumulate in: f32; i32 for i8, i32; f64 for f64
};

const ElementTypeInfo& Info(ElementType type);
absl::Span<const ElementTypeInfo> AllElementTypes();
// InvalidArgument names the types that exist.
absl::StatusOr<ElementType> ParseElementType(std::string_view name);

// The value of `x` after storing it in `type` and loading it again: round to nearest even, overflow
// to infinity (to NaN in e4m3, to the nearest end of the range in integers, where NaN becomes 0).
double RoundTo(ElementType type, double x);

// Load and store one element at `address` (no alignment needed). Store rounds as RoundTo does.
double LoadElement(ElementType type, const void* address);
void StoreElement(ElementType type, double value, void* address);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_ELEMENT_TYPE_H_
