#include "codegen/contraction_reads.h"

#include <numeric>

#include "codegen/convert.h"

namespace tilewright {

using llvm::Value;
using Values = std::vector<Value*>;

ContractionReads::ContractionReads(KernelModule& module, const Contraction& contraction,
                                   const KernelModule::EntryValues& entry)
    : module_(module), contraction_(contraction), entry_(entry) {
  batches_ = module_.Int(1);
  for (const Axis& axis : contraction_.batch)
    batches_ = module_.builder().CreateNSWMul(batches_, Extent(axis));
  k_ = module_.Int(1);
  for (const Axis& axis : contraction_.k) k_ = module_.builder().CreateNSWMul(k_, Extent(axis));
}

Value* ContractionReads::Extent(const Axis& axis) const {
  Value* extent = module_.Int(1);
  for (int index : axis.indices)
    extent = module_.builder().CreateNSWMul(extent, entry_.sizes[index]);
  return extent;
}

Value* ContractionReads::BatchCount(const ContractionOperand& operand) const {
  Value* count = module_.Int(1);
  for (int axis : operand.batch)
    count = module_.builder().CreateNSWMul(count, Extent(contraction_.batch[axis]));
  return count;
}

Value* ContractionReads::Of(const Stride& stride) const {
  Value* sum = module_.Int(0);
  for (const Stride::Term& term : stride.terms) {
    Value* product = module_.Int(term.coefficient);
    for (int index : term.sizes)
      product = module_.builder().CreateNSWMul(product, entry_.sizes[index]);
    sum = module_.builder().CreateNSWAdd(sum, product);
  }
  return sum;
}

Value* ContractionReads::Buffer(int tensor) const {
  const Workload& workload = module_.workload();
  size_t position = 0;
  for (int parameter : workload.parameters()) {
    if (parameter == tensor) return entry_.buffers[position];
    ++position;
  }
  for (int output : workload.outputs()) {
    if (output == tensor) return entry_.buffers[position];
    ++position;
  }
  return nullptr;  // a matched contraction reads buffers only
}

void ContractionReads::SetBatch(absl::Span<const int> axes, Value* position,
                                Values* indices) const {
  for (size_t i = axes.size(); i-- > 0;) {
    const Axis& axis = contraction_.batch[axes[i]];
    if (i == 0) {
      (*indices)[axis.lead()] = position;
      break;
    }
    Value* extent = Extent(axis);
    (*indices)[axis.lead()] = module_.builder().CreateURem(position, extent);
    position = module_.builder().CreateUDiv(position, extent);
  }
}

Values ContractionReads::AtBatch(Value* position) const {
  Values indices(module_.workload().sizes().size(), module_.Int(0));
  std::vector<int> axes(contraction_.batch.size());
  std::iota(axes.begin(), axes.end(), 0);
  SetBatch(axes, position, &indices);
  return indices;
}

Values ContractionReads::AtBatch(const ContractionOperand& operand, Value* position) const {
  Values indices(module_.workload().sizes().size(), module_.Int(0));
  SetBatch(operand.batch, position, &indices);
  return indices;
}

Value* ContractionReads::OwnBatch(const ContractionOperand& operand, const Values& indices) const {
  Value* position = module_.Int(0);
  for (int number : operand.batch) {
    const Axis& axis = contraction_.batch[number];
    position = module_.builder().CreateNSWMul(position, Extent(axis));
    position = module_.builder().CreateNSWAdd(position, indices[axis.lead()]);
  }
  return position;
}

void ContractionReads::SetK(Value* position, Values* indices) const {
  for (size_t i = contraction_.k.size(); i-- > 0;) {
    const Axis& axis = contraction_.k[i];
    if (i == 0) {
      (*indices)[axis.lead()] = position;
      break;
    }
    Value* extent = Extent(axis);
    (*indices)[axis.lead()] = module_.builder().CreateURem(position, extent);
    position = module_.builder().CreateUDiv(position, extent);
  }
}

Value* ContractionReads::Offset(int tensor, absl::Span<const AffineIndex> subscripts,
                                const Values& indices) const {
  EmitContext context;
  context.index_values = indices;
  context.sizes = entry_.sizes;
  Value* offset = module_.Int(0);
  for (size_t d = 0; d < subscripts.size(); ++d) {
    Value* stride = Of(DimensionStride(module_.workload(), tensor, static_cast<int>(d)));
    Value* part =
        module_.builder().CreateNSWMul(EmitIndex(module_, subscripts[d], context), stride);
    offset = module_.builder().CreateNSWAdd(offset, part);
  }
  return offset;
}

Value* ContractionReads::ReadOne(const Expr& read, const Values& indices,
                                 ElementType compute) const {
  llvm::IRBuilder<>& b = module_.builder();
  const Workload& workload = module_.workload();
  const ElementType type = workload.layout(read.tensor).type;
  Value* offset = Offset(read.tensor, read.subscripts, indices);
  if (StaysInside(workload, read.tensor, read.subscripts)) {
    return module_.LoadElements(type, Buffer(read.tensor), offset, 1, compute);
  }
  EmitContext context;
  context.index_values = indices;
  context.sizes = entry_.sizes;
  Value* inside = b.getTrue();
  for (size_t d = 0; d < read.subscripts.size(); ++d) {
    if (read.subscripts[d].BareIndex() >= 0) continue;
    const Dimension& dimension = workload.layout(read.tensor).dimensions[d];
    Value* size = dimension.index < 0 ? module_.Int(dimension.size) : entry_.sizes[dimension.index];
    // Unsigned, so that negative numbers are outside as well.
    inside =
        b.CreateAnd(inside, b.CreateICmpULT(EmitIndex(module_, read.subscripts[d], context), size));
  }
  Value* value = module_.LoadElements(type, Buffer(read.tensor),
                                      b.CreateSelect(inside, offset, module_.Int(0)), 1, compute);
  return b.CreateSelect(inside, value, llvm::Constant::getNullValue(value->getType()));
}

Value* ContractionReads::Read(const Expr& read, const Values& indices, int lane_index, int lanes,
                              ElementType compute) const {
  if (lanes == 1) return ReadOne(read, indices, compute);
  const Workload& workload = module_.workload();
  std::optional<Stride> stride = StrideAlong(workload, read.tensor, read.subscripts, lane_index);
  if (stride.has_value() && stride->Is(0))
    return Splat(module_, ReadOne(read, indices, compute), lanes);
  if (stride.has_value() && stride->Is(1) && StaysInside(workload, read.tensor, read.subscripts)) {
    return module_.LoadElements(workload.layout(read.tensor).type, Buffer(read.tensor),
                                Offset(read.tensor, read.subscripts, indices), lanes, compute);
  }
  Value* vector = nullptr;
  for (int lane = 0; lane < lanes; ++lane) {
    Values shifted = indices;
    shifted[lane_index] = module_.builder().CreateNSWAdd(indices[lane_index], module_.Int(lane));
    Value* element = ReadOne(read, shifted, compute);
    if (vector == nullptr)
      vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(element->getType(), lanes));
    vector = module_.builder().CreateInsertElement(vector, element, lane);
  }
  return vector;
}

Value* ContractionReads::Element(const ContractionOperand& operand, const Values& indices) const {
  EmitContext context;
  context.index_values = indices;
  context.sizes = entry_.sizes;
  context.compute = contraction_.accumulator;
  context.read = [&](const Expr& read) { return ReadOne(read, indices, contraction_.accumulator); };
  return EmitExpr(module_, *operand.value, context);
}

Value* ContractionReads::Adjacent(const ContractionOperand& operand, Value* offset,
                                  int lanes) const {
  const Expr& read = *operand.read;
  Value* loaded =
      module_.LoadElements(module_.workload().layout(read.tensor).type, Buffer(read.tensor), offset,
                           lanes, contraction_.accumulator);
  if (operand.value.get() == &read) return loaded;
  EmitContext context;
  context.lanes = lanes;
  context.sizes = entry_.sizes;
  context.index_values.resize(entry_.sizes.size());
  context.compute = contraction_.accumulator;
  context.read = [loaded](const Expr&) { return loaded; };
  return EmitExpr(module_, *operand.value, context);
}

Value* ContractionReads::Epilogue(Value* sum, const Values& indices, int lanes) const {
  Value* finished = ConvertCompute(module_, sum, contraction_.compute);
  if (contraction_.plain_epilogue) return finished;
  EmitContext context;
  context.lanes = lanes;
  context.lane_index = lanes > 1 ? contraction_.n.lead() : -1;
  context.index_values = indices;
  context.sizes = entry_.sizes;
  context.compute = contraction_.compute;
  context.read = [&, lanes](const Expr& read) {
    return Read(read, indices, contraction_.n.lead(), lanes, contraction_.compute);
  };
  context.reduce = [finished](const Expr&) { return finished; };
  return EmitExpr(module_, *contraction_.epilogue, context);
}

}  // namespace tilewright
