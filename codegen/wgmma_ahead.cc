#include "codegen/wgmma_ahead.h"

#include "codegen/contraction_reads.h"

namespace tilewright {

using llvm::Value;

namespace {

// Address of an operand's element (row 0, k 0) of a batch position, i64.
Value* MatrixAddress(WgmmaKernel& k, const ContractionReads& reads,
                     const ContractionOperand& source, const std::vector<Value*>& batch_positions,
                     int bytes) {
  llvm::IRBuilder<>& b = k.b;
  const Expr& read = *source.read;
  Value* address = b.CreatePtrToInt(reads.Buffer(read.tensor), b.getInt64Ty());
  for (int axis : source.batch) {
    const Stride stride = *StrideAlong(k.m.workload(), read.tensor, read.subscripts,
                                       k.plan.contraction->batch[axis].lead());
    Value* position = b.CreateZExt(batch_positions[axis], b.getInt64Ty());
    Value* offset = b.CreateMul(position, reads.Of(stride));
    address = b.CreateAdd(address, b.CreateMul(offset, k.m.Int(bytes)));
  }
  return address;
}

}  // namespace

void EmitAskAhead(WgmmaKernel& k, const AheadLines& ahead) {
  llvm::IRBuilder<>& b = k.b;
  const WgmmaOperandPlan& operand =
      ahead.rows_operand ? k.plan.rows_operand : k.plan.columns_operand;
  const ContractionOperand& source = operand.is_a ? k.plan.contraction->a : k.plan.contraction->b;
  Value* row_count = ahead.rows_operand ? k.rows : k.columns;
  const int bytes = Info(k.m.workload().layout(source.read->tensor).type).bytes;
  const int64_t lines = ahead.bytes_of_row / kLineBytes;
  const ContractionReads reads(k.m, *k.plan.contraction, k.entry);
  Value* matrix = MatrixAddress(k, reads, source, ahead.batch_positions, bytes);
  Value* pitch = b.CreateMul(reads.Of(source.row_stride), k.m.Int(bytes));
  DeviceVariable number(k.m, "line");
  number.Set(k.in_group);
  While(
      k.m, "ahead", [&] { return b.CreateICmpULT(number.Get(), k.I32(operand.rows * lines)); },
      [&] {
        Value* now = number.Get();
        Value* row = b.CreateAdd(b.CreateUDiv(now, k.I32(lines)), ahead.first_row);
        Value* line = b.CreateURem(now, k.I32(lines));
        Value* depth = b.CreateAdd(ahead.first_depth, b.CreateMul(line, k.I32(kLineBytes / bytes)));
        if (ahead.end_depth != nullptr) {
          Value* wrapped = b.CreateSub(depth, ahead.wrap_depth);
          depth = b.CreateSelect(b.CreateICmpUGE(depth, ahead.end_depth), wrapped, depth);
        }
        Value* exists =
            b.CreateAnd(b.CreateICmpULT(row, row_count), b.CreateICmpULT(depth, k.depth));
        k.m.If(exists, [&] {
          Value* start = b.CreateMul(b.CreateZExt(row, b.getInt64Ty()), pitch);
          Value* within = b.CreateMul(b.CreateZExt(depth, b.getInt64Ty()), k.m.Int(bytes));
          k.ptx.PrefetchLine(b.CreateAdd(matrix, b.CreateAdd(start, within)));
        });
        number.Set(b.CreateAdd(now, k.I32(kWarpgroup)));
      });
}

}  // namespace tilewright
