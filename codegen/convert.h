// Conversions between the element types' stored bits and the types kernels compute in (f32, f64,
// i32), without library calls.
//
// Rounding is to nearest even and overflow is what RoundTo (schedule/element_type.h) says. All
// functions take scalars or vectors and return the same number of lanes.
#ifndef TILEWRIGHT_CODEGEN_CONVERT_H_
#define TILEWRIGHT_CODEGEN_CONVERT_H_

#include "codegen/kernel_module.h"
#include "schedule/element_type.h"

namespace tilewright {

// The type elements are loaded and stored as: integers of the element's width for the types that
// kernels do not compute in.
llvm::Type* StorageBits(KernelModule& module, ElementType type, int lanes);
// Stored bits to `as` (f32, f64 or i32).
llvm::Value* WidenElements(KernelModule& module, ElementType type, llvm::Value* stored,
                           ElementType as);
// A value of type float, double or i32 to stored bits.
llvm::Value* NarrowElements(KernelModule& module, ElementType type, llvm::Value* value);
// The value after storing it as `type` and loading it again, in its own type.
llvm::Value* RoundToElement(KernelModule& module, ElementType type, llvm::Value* value);
// float or double to 10 explicit mantissa bits, to nearest even.
llvm::Value* RoundToTf32Bits(KernelModule& module, llvm::Value* value);
// f32, f64 or i32 to another of them; floats to i32 round to nearest even and saturate, NaN gives
// 0.
llvm::Value* ConvertCompute(KernelModule& module, llvm::Value* value, ElementType to);

// The compute type of an LLVM value: float, double or i32, scalar or vector.
ElementType ComputeTypeOf(llvm::Value* value);
int LanesOf(llvm::Value* value);
// `value` in every lane of something shaped as `like`'s type with `lanes` lanes.
llvm::Value* Splat(KernelModule& module, llvm::Value* value, int lanes);
// A constant of the compute type (f32, f64, i32).
llvm::Value* ComputeConstant(KernelModule& module, ElementType compute, int lanes, double value);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONVERT_H_
