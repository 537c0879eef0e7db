#include "codegen/tensor_access.h"

#include <utility>

#include "codegen/convert.h"
#include "llvm/IR/Constants.h"
#include "schedule/affine.h"

namespace tilewright {
namespace {

using llvm::Value;

bool IsConstant(Value* value, int64_t number) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant != nullptr && constant->getSExtValue() == number;
}

// True if a subscript is known to stay in [0, size) whatever the sizes within their ranges.
bool StaysInside(const Workload& workload, int tensor, int dimension,
                 const AffineIndex& subscript) {
  if (subscript.BareIndex() >= 0) return true;
  std::vector<IndexInterval> indices;
  for (const SizeRange& size : workload.sizes()) indices.push_back({0, size.high - 1});
  const std::optional<IndexInterval> bounds = Bounds(subscript, indices);
  const Dimension& of = workload.layout(tensor).dimensions[dimension];
  const int64_t least = of.index >= 0 ? workload.sizes()[of.index].low : of.size;
  return bounds.has_value() && bounds->low >= 0 && bounds->high < least;
}

}  // namespace

TensorAccess::TensorAccess(KernelModule& module, const KernelModule::EntryValues& entry)
    : module_(module), sizes_(entry.sizes) {
  const Workload& workload = module.workload();
  size_t i = 0;
  for (int tensor : workload.parameters()) buffers_[tensor] = entry.buffers[i++];
  for (int tensor : workload.outputs()) buffers_[tensor] = entry.buffers[i++];
}

void TensorAccess::Place(int tensor, Value* base, ElementType type) {
  placed_[tensor] = {base, type};
}

TensorAccess::Placed TensorAccess::PlaceOf(int tensor, bool* dense) const {
  auto found = placed_.find(tensor);
  *dense = found != placed_.end();
  if (*dense) return found->second;
  return {buffers_.at(tensor), module_.workload().layout(tensor).type};
}

Value* TensorAccess::Size(int tensor, int dimension) {
  const Dimension& of = module_.workload().layout(tensor).dimensions[dimension];
  return of.index >= 0 ? sizes_[of.index] : module_.Int(of.size);
}

Value* TensorAccess::Stride(int tensor, int dimension) {
  return StrideOf(tensor, dimension, /*dense=*/false);
}

Value* TensorAccess::StrideOf(int tensor, int dimension, bool dense) {
  const TensorLayout& layout = module_.workload().layout(tensor);
  if (!dense && !layout.strides.empty()) return module_.Int(layout.strides[dimension]);
  Value* stride = module_.Int(1);
  for (int d = static_cast<int>(layout.dimensions.size()) - 1; d > dimension; --d) {
    stride = module_.builder().CreateNSWMul(stride, Size(tensor, d));
  }
  return stride;
}

Value* TensorAccess::OffsetOf(int tensor, absl::Span<const AffineIndex> subscripts, bool dense,
                              const EmitContext& context, bool lanes) {
  auto& b = module_.builder();
  const int count = lanes ? context.lanes : 1;
  Value* offset = Splat(module_, module_.Int(0), count);
  for (size_t d = 0; d < subscripts.size(); ++d) {
    Value* position = lanes ? EmitIndexLanes(module_, subscripts[d], context)
                            : EmitIndex(module_, subscripts[d], context);
    Value* stride = Splat(module_, StrideOf(tensor, static_cast<int>(d), dense), count);
    offset = b.CreateNSWAdd(offset, b.CreateNSWMul(position, stride));
  }
  return offset;
}

Value* TensorAccess::Offset(int tensor, absl::Span<const AffineIndex> subscripts,
                            const EmitContext& context) {
  return OffsetOf(tensor, subscripts, /*dense=*/false, context, /*lanes=*/false);
}

std::optional<Value*> TensorAccess::LaneStrideOf(int tensor,
                                                 absl::Span<const AffineIndex> subscripts,
                                                 bool dense, const EmitContext& context) {
  auto& b = module_.builder();
  Value* total = module_.Int(0);
  for (size_t d = 0; d < subscripts.size(); ++d) {
    const std::optional<int64_t> step = LaneStep(subscripts[d], context.lane_index);
    if (!step.has_value()) return std::nullopt;
    if (*step == 0) continue;
    Value* stride = StrideOf(tensor, static_cast<int>(d), dense);
    total = b.CreateNSWAdd(total, b.CreateNSWMul(module_.Int(*step), stride));
  }
  return total;
}

std::optional<Value*> TensorAccess::LaneStride(int tensor, absl::Span<const AffineIndex> subscripts,
                                               const EmitContext& context) {
  return LaneStrideOf(tensor, subscripts, /*dense=*/false, context);
}

Value* TensorAccess::Inside(int tensor, absl::Span<const AffineIndex> subscripts,
                            const EmitContext& context) {
  auto& b = module_.builder();
  std::vector<int> risky;
  bool uniform = true;
  for (size_t d = 0; d < subscripts.size(); ++d) {
    if (StaysInside(module_.workload(), tensor, static_cast<int>(d), subscripts[d])) continue;
    risky.push_back(static_cast<int>(d));
    const std::optional<int64_t> step = LaneStep(subscripts[d], context.lane_index);
    uniform &= step.has_value() && *step == 0;
  }
  const int lanes = uniform ? 1 : context.lanes;
  Value* all = nullptr;
  for (int d : risky) {
    Value* position = lanes == 1 ? EmitIndex(module_, subscripts[d], context)
                                 : EmitIndexLanes(module_, subscripts[d], context);
    // A negative position is a large unsigned number.
    Value* inside = b.CreateICmpULT(position, Splat(module_, Size(tensor, d), lanes));
    all = all == nullptr ? inside : b.CreateAnd(all, inside);
  }
  return all;
}

Value* TensorAccess::Read(const Expr& read, const EmitContext& context, Value* mask) {
  bool dense = false;
  const Placed placed = PlaceOf(read.tensor, &dense);
  Value* inside = Inside(read.tensor, read.subscripts, context);
  if (inside == nullptr) return ReadLanes(read, placed, dense, context, mask);
  if (context.lanes > 1 && LanesOf(inside) > 1) {
    return ReadLanes(read, placed, dense, context,
                     mask == nullptr ? inside : module_.builder().CreateAnd(mask, inside));
  }
  // All lanes are inside or none is: a branch.
  llvm::Type* type = module_.Type(context.compute, context.lanes);
  Value* slot = module_.Local(type, "inside");
  module_.builder().CreateStore(llvm::Constant::getNullValue(type), slot);
  module_.If(inside, [&] {
    module_.builder().CreateStore(ReadLanes(read, placed, dense, context, mask), slot);
  });
  return module_.builder().CreateLoad(type, slot);
}

Value* TensorAccess::ReadLanes(const Expr& read, const Placed& placed, bool dense,
                               const EmitContext& context, Value* mask) {
  auto& b = module_.builder();
  if (context.lanes == 1) {
    Value* offset = OffsetOf(read.tensor, read.subscripts, dense, context, /*lanes=*/false);
    return module_.LoadElements(placed.type, placed.base, offset, 1, context.compute, mask);
  }
  const std::optional<Value*> stride = LaneStrideOf(read.tensor, read.subscripts, dense, context);
  if (stride.has_value() && IsConstant(*stride, 1)) {
    Value* offset = OffsetOf(read.tensor, read.subscripts, dense, context, /*lanes=*/false);
    return module_.LoadElements(placed.type, placed.base, offset, context.lanes, context.compute,
                                mask);
  }
  if (stride.has_value() && IsConstant(*stride, 0) && mask == nullptr) {
    Value* offset = OffsetOf(read.tensor, read.subscripts, dense, context, /*lanes=*/false);
    return Splat(module_,
                 module_.LoadElements(placed.type, placed.base, offset, 1, context.compute),
                 context.lanes);
  }
  // One scalar load per lane; widened together.
  llvm::Type* bits = StorageBits(module_, placed.type, 1);
  Value* offsets = nullptr;
  Value* first = nullptr;
  if (stride.has_value()) {
    first = OffsetOf(read.tensor, read.subscripts, dense, context, /*lanes=*/false);
  } else {
    offsets = OffsetOf(read.tensor, read.subscripts, dense, context, /*lanes=*/true);
  }
  const llvm::Align alignment(Info(placed.type).bytes);
  Value* gathered = llvm::Constant::getNullValue(StorageBits(module_, placed.type, context.lanes));
  for (int lane = 0; lane < context.lanes; ++lane) {
    Value* offset = offsets != nullptr
                        ? b.CreateExtractElement(offsets, lane)
                        : b.CreateNSWAdd(first, b.CreateNSWMul(*stride, module_.Int(lane)));
    Value* element = nullptr;
    if (mask == nullptr) {
      element = b.CreateAlignedLoad(bits, b.CreateGEP(bits, placed.base, offset), alignment);
    } else {
      // A lane outside reads the tensor's first element, which exists, and drops it.
      Value* wanted = b.CreateExtractElement(mask, lane);
      Value* safe = b.CreateSelect(wanted, offset, module_.Int(0));
      element = b.CreateAlignedLoad(bits, b.CreateGEP(bits, placed.base, safe), alignment);
      element = b.CreateSelect(wanted, element, llvm::Constant::getNullValue(bits));
    }
    gathered = b.CreateInsertElement(gathered, element, lane);
  }
  return WidenElements(module_, placed.type, gathered, context.compute);
}

void TensorAccess::Write(int tensor, absl::Span<const AffineIndex> subscripts, Value* value,
                         const EmitContext& context, Value* mask) {
  auto& b = module_.builder();
  bool dense = false;
  const Placed placed = PlaceOf(tensor, &dense);
  Value* offset = OffsetOf(tensor, subscripts, dense, context, /*lanes=*/false);
  if (context.lanes == 1) {
    return module_.StoreElements(placed.type, value, placed.base, offset, 1, mask);
  }
  const std::optional<Value*> stride = LaneStrideOf(tensor, subscripts, dense, context);
  if (stride.has_value() && IsConstant(*stride, 1)) {
    return module_.StoreElements(placed.type, value, placed.base, offset, context.lanes, mask);
  }
  // An output's subscripts are bare, so the stride is known.
  Value* bits = NarrowElements(module_, placed.type, value);
  llvm::Type* element = StorageBits(module_, placed.type, 1);
  for (int lane = 0; lane < context.lanes; ++lane) {
    Value* at = b.CreateNSWAdd(offset, b.CreateNSWMul(*stride, module_.Int(lane)));
    auto store = [&] {
      b.CreateAlignedStore(b.CreateExtractElement(bits, lane),
                           b.CreateGEP(element, placed.base, at),
                           llvm::Align(Info(placed.type).bytes));
    };
    if (mask == nullptr) {
      store();
    } else {
      module_.If(b.CreateExtractElement(mask, lane), store);
    }
  }
}

}  // namespace tilewright
