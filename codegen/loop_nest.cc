#include "codegen/loop_nest.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/convert.h"

namespace tilewright {

using llvm::Value;

Share ShareOf(KernelModule& m, const KernelModule::Entry& entry, Value* count, int64_t granule) {
  auto& b = m.builder();
  Value* granules = m.CeilDiv(count, granule);
  Value* base = b.CreateUDiv(granules, entry.threads);
  Value* extra = b.CreateURem(granules, entry.threads);
  Value* begin = b.CreateNSWAdd(b.CreateNSWMul(entry.thread, base), m.Min(entry.thread, extra));
  Value* longer = b.CreateZExt(b.CreateICmpSLT(entry.thread, extra), b.getInt64Ty());
  Value* end = b.CreateNSWAdd(b.CreateNSWAdd(begin, base), longer);
  if (granule == 1) return {begin, end};
  return {m.Min(b.CreateNSWMul(begin, m.Int(granule)), count),
          m.Min(b.CreateNSWMul(end, m.Int(granule)), count)};
}

void ForGridStride(KernelModule& m, const DeviceLaunch& launch, Value* count,
                   const std::function<void(Value*)>& body) {
  auto& b = m.builder();
  Value* block = b.CreateZExt(m.BlockInGrid(), b.getInt64Ty());
  Value* thread = b.CreateZExt(m.ThreadInBlock(), b.getInt64Ty());
  Value* first = b.CreateNSWAdd(b.CreateNSWMul(block, m.Int(launch.block)), thread);
  m.For(first, count, int64_t{launch.grid[0]} * launch.block, "mine", body);
}

Value* PointCount(KernelModule& m, const KernelModule::EntryValues& entry,
                  absl::Span<const int> indices) {
  Value* count = m.Int(1);
  for (int index : indices) count = m.builder().CreateNSWMul(count, entry.sizes[index]);
  return count;
}

void SetIndicesFromPosition(KernelModule& m, const KernelModule::EntryValues& entry,
                            absl::Span<const int> indices, Value* position, EmitContext* context) {
  auto& b = m.builder();
  for (size_t i = indices.size(); i-- > 0;) {
    if (i == 0) {
      context->index_values[indices[0]] = position;
      return;
    }
    Value* size = entry.sizes[indices[i]];
    Value* quotient = b.CreateUDiv(position, size);
    context->index_values[indices[i]] = b.CreateNSWSub(position, b.CreateNSWMul(quotient, size));
    position = quotient;
  }
}

void ForEach(KernelModule& m, const KernelModule::EntryValues& entry, absl::Span<const int> indices,
             EmitContext* context, const std::function<void()>& body) {
  if (indices.empty()) return body();
  const int index = indices[0];
  m.For(m.Int(0), entry.sizes[index], 1, absl::StrCat("i", index), [&](Value* value) {
    Value* outer = context->index_values[index];
    context->index_values[index] = value;
    ForEach(m, entry, indices.subspan(1), context, body);
    context->index_values[index] = outer;
  });
}

Value* CombineLanes(KernelModule& m, ReduceOp op, Value* value) {
  auto& b = m.builder();
  for (int lanes = LanesOf(value); lanes > 1; lanes /= 2) {
    std::vector<int> low(lanes / 2);
    std::vector<int> high(lanes / 2);
    for (int i = 0; i < lanes / 2; ++i) {
      low[i] = i;
      high[i] = lanes / 2 + i;
    }
    value = EmitReduceStep(m, op, b.CreateShuffleVector(value, low),
                           b.CreateShuffleVector(value, high));
  }
  return value->getType()->isVectorTy() ? b.CreateExtractElement(value, uint64_t{0}) : value;
}

}  // namespace tilewright
