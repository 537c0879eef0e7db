// Where the elements of a program's tensors lie, as IR values: bases, strides, offsets and whole
// reads. Writers ask for tensor[subscripts] and get a value in the compute type; how many loads
// that takes is decided here.
#ifndef TILEWRIGHT_CODEGEN_TENSOR_ACCESS_H_
#define TILEWRIGHT_CODEGEN_TENSOR_ACCESS_H_

#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "codegen/emit_expr.h"
#include "codegen/kernel_module.h"
#include "schedule/expression.h"

namespace tilewright {

// One per entry. Not thread-safe; borrows the module.
class TensorAccess {
 public:
  TensorAccess(KernelModule& module, const KernelModule::EntryValues& entry);

  // Where readers find a tensor that is not a parameter: dense row-major, at `base`, elements of
  // `type`.
  void Place(int tensor, llvm::Value* base, ElementType type);
  // The buffer of a parameter or an output.
  llvm::Value* Buffer(int tensor) const { return buffers_.at(tensor); }

  llvm::Value* Size(int tensor, int dimension);  // i64
  // Elements from one position of a dimension of the tensor's buffer to the next, i64.
  llvm::Value* Stride(int tensor, int dimension);
  // Elements from the buffer's start to tensor[subscripts], in lane 0.
  llvm::Value* Offset(int tensor, absl::Span<const AffineIndex> subscripts,
                      const EmitContext& context);
  // Whether no compound subscript leaves the tensor: an i1 per lane, or one i1 where all lanes
  // agree; null if none can leave.
  llvm::Value* Inside(int tensor, absl::Span<const AffineIndex> subscripts,
                      const EmitContext& context);
  // From the element of one lane to that of the next, i64 (often a constant); nothing if that
  // differs from lane to lane.
  std::optional<llvm::Value*> LaneStride(int tensor, absl::Span<const AffineIndex> subscripts,
                                         const EmitContext& context);

  // The value of a kRead in `context.compute` and `context.lanes` lanes, 0 in lanes outside the
  // tensor. Adjacent elements are one load, equal ones a scalar load and a broadcast, others a
  // scalar load each. With `mask` (lanes x i1) other lanes are 0 and not touched.
  llvm::Value* Read(const Expr& read, const EmitContext& context, llvm::Value* mask = nullptr);
  // Stores a value of the compute type, rounded to the buffer's type.
  void Write(int tensor, absl::Span<const AffineIndex> subscripts, llvm::Value* value,
             const EmitContext& context, llvm::Value* mask = nullptr);

 private:
  struct Placed {
    llvm::Value* base;
    ElementType type;
  };
  llvm::Value* ReadLanes(const Expr& read, const Placed& placed, bool dense,
                         const EmitContext& context, llvm::Value* mask);
  Placed PlaceOf(int tensor, bool* dense) const;
  llvm::Value* StrideOf(int tensor, int dimension, bool dense);
  llvm::Value* OffsetOf(int tensor, absl::Span<const AffineIndex> subscripts, bool dense,
                        const EmitContext& context, bool lanes);
  std::optional<llvm::Value*> LaneStrideOf(int tensor, absl::Span<const AffineIndex> subscripts,
                                           bool dense, const EmitContext& context);

  KernelModule& module_;
  std::vector<llvm::Value*> sizes_;
  std::map<int, llvm::Value*> buffers_;
  std::map<int, Placed> placed_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_TENSOR_ACCESS_H_
