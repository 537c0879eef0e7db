// A thread makes 16 aligned bytes of a line at a time: from the one or two aligned pieces of 16
// bytes that hold them, shifted by the bytes that the line's start is off. What stands behind a
// line's end is never read by the contraction, and is left as the shift brings it. Where an aligned
// piece reaches beyond the tensor's last byte, its elements are copied one by one.
#include "codegen/wgmma_padding.h"

#include <algorithm>
#include <vector>

#include "codegen/contraction_reads.h"
#include "codegen/wgmma_kernel.h"
#include "llvm/IR/Intrinsics.h"

namespace tilewright {
namespace {

using llvm::Value;

constexpr int kCopyThreads = 256;
constexpr int kCopyBlocksPerCore = 8;
constexpr int kPieceBytes = 16;
constexpr int kPiecesAtOnce = 4;

// Four words from eight, `bytes` (0 … 15) further on.
Value* ShiftedPiece(WgmmaKernel& k, Value* low, Value* high, Value* bytes) {
  llvm::IRBuilder<>& b = k.b;
  std::vector<Value*> words;
  for (Value* piece : {low, high}) {
    for (uint64_t i = 0; i < 4; ++i) words.push_back(b.CreateExtractElement(piece, i));
  }
  for (int step : {2, 1}) {
    Value* moves = b.CreateICmpNE(b.CreateAnd(bytes, k.I32(4 * step)), k.I32(0));
    for (size_t i = 0; i + step < words.size(); ++i)
      words[i] = b.CreateSelect(moves, words[i + step], words[i]);
    words.resize(words.size() - step);
  }
  Value* bits = b.CreateShl(b.CreateAnd(bytes, k.I32(3)), 3);
  Value* result = llvm::PoisonValue::get(low->getType());
  for (uint64_t i = 0; i < 4; ++i) {
    Value* word =
        b.CreateIntrinsic(llvm::Intrinsic::fshr, {b.getInt32Ty()}, {words[i + 1], words[i], bits});
    result = b.CreateInsertElement(result, word, i);
  }
  return result;
}

class OperandCopy {
 public:
  OperandCopy(WgmmaKernel& k, const ContractionReads& reads, const WgmmaOperandPlan& operand)
      : k_(k),
        reads_(reads),
        operand_(operand),
        source_(operand.is_a ? k.plan.contraction->a : k.plan.contraction->b),
        row_axis_(operand.is_a ? k.plan.contraction->m : k.plan.contraction->n),
        bytes_(Info(k.plan.type).bytes) {}

  void Emit(int blocks) {
    llvm::IRBuilder<>& b = k_.b;
    Value* rows = k_.Extent(row_axis_);
    length_ = operand_.transposed ? rows : k_.depth;
    end_ = EndOfTensor();
    Value* lines = operand_.transposed ? k_.depth : rows;
    Value* pieces = k_.CeilDiv(length_, kPieceBytes / bytes_);
    Value* per_batch = b.CreateNUWMul(lines, pieces);
    Value* batches = b.CreateTrunc(reads_.BatchCount(source_), b.getInt32Ty());
    Value* count = b.CreateNUWMul(per_batch, batches);
    DeviceVariable number(k_.m, "piece");
    number.Set(b.CreateAdd(b.CreateMul(k_.ptx.BlockIndex(), k_.I32(kCopyThreads)), k_.thread));
    // Several pieces at once, loads first, so that more bytes are on their way. Past the end the
    // last piece is read again, and not written.
    const int64_t stride = int64_t{blocks} * kCopyThreads;
    While(
        k_.m, "piece", [&] { return b.CreateICmpULT(number.Get(), count); },
        [&] {
          Value* now = number.Get();
          std::vector<Piece> copies;
          for (int i = 0; i < kPiecesAtOnce; ++i) {
            Value* own = b.CreateAdd(now, k_.I32(i * stride));
            Value* exists = b.CreateICmpULT(own, count);
            own = b.CreateSelect(exists, own, b.CreateSub(count, k_.I32(1)));
            Value* batch = b.CreateUDiv(own, per_batch);
            Value* in_batch = b.CreateSub(own, b.CreateMul(batch, per_batch));
            Value* line = b.CreateUDiv(in_batch, pieces);
            Value* piece = b.CreateSub(in_batch, b.CreateMul(line, pieces));
            copies.push_back(LoadPiece(Wide(batch), Wide(line), piece, exists));
          }
          for (const Piece& copy : copies) {
            Value* words = ShiftedPiece(k_, copy.low, copy.high, copy.off);
            k_.m.If(copy.whole, [&] {
              b.CreateAlignedStore(words, b.CreateGEP(b.getInt8Ty(), k_.entry.workspace, copy.to),
                                   llvm::Align(kPieceBytes));
            });
          }
          number.Set(b.CreateAdd(now, k_.I32(kPiecesAtOnce * stride)));
        });
  }

 private:
  struct Piece {
    Value* low;  // the aligned piece that it begins in, and the next
    Value* high;
    Value* off;    // bytes from the first one's start
    Value* to;     // bytes from the workspace's start
    Value* whole;  // i1: it is there, and was read
  };

  Value* Wide(Value* value) { return k_.b.CreateZExt(value, k_.b.getInt64Ty()); }

  // The address behind the tensor's last element.
  Value* EndOfTensor() {
    llvm::IRBuilder<>& b = k_.b;
    const int tensor = source_.read->tensor;
    const TensorLayout& layout = k_.m.workload().layout(tensor);
    Value* elements = k_.m.Int(1);
    for (size_t d = 0; d < layout.dimensions.size(); ++d) {
      const Dimension& dimension = layout.dimensions[d];
      Value* size =
          dimension.index < 0 ? k_.m.Int(dimension.size) : k_.entry.sizes[dimension.index];
      Value* stride = reads_.Of(DimensionStride(k_.m.workload(), tensor, static_cast<int>(d)));
      elements =
          b.CreateNSWAdd(elements, b.CreateNSWMul(b.CreateNSWSub(size, k_.m.Int(1)), stride));
    }
    return b.CreateAdd(b.CreatePtrToInt(reads_.Buffer(tensor), b.getInt64Ty()),
                       b.CreateNSWMul(elements, k_.m.Int(bytes_)));
  }

  // Copies the elements of the piece at `address` that the line has: `left` bytes, or 16.
  void CopyElements(Value* address, Value* left, Value* to_bytes) {
    llvm::IRBuilder<>& b = k_.b;
    llvm::Type* element = b.getIntNTy(8 * bytes_);
    DeviceVariable at(k_.m, "element");
    at.Set(k_.I32(0));
    While(
        k_.m, "element",
        [&] {
          return b.CreateAnd(b.CreateICmpULT(at.Get(), k_.I32(kPieceBytes)),
                             b.CreateICmpULT(at.Get(), left));
        },
        [&] {
          Value* now = Wide(at.Get());
          Value* from = b.CreateIntToPtr(b.CreateAdd(address, now), b.getPtrTy(1));
          Value* to = b.CreateGEP(b.getInt8Ty(), k_.entry.workspace, b.CreateAdd(to_bytes, now));
          b.CreateAlignedStore(b.CreateAlignedLoad(element, from, llvm::Align(bytes_)), to,
                               llvm::Align(bytes_));
          at.Set(b.CreateAdd(at.Get(), k_.I32(bytes_)));
        });
  }

  Piece LoadPiece(Value* batch, Value* line, Value* piece, Value* exists) {
    llvm::IRBuilder<>& b = k_.b;
    std::vector<Value*> indices = reads_.AtBatch(source_, batch);
    if (operand_.transposed) {
      reads_.SetK(line, &indices);
    } else if (!row_axis_.indices.empty()) {
      indices[row_axis_.lead()] = line;
    }
    const Expr& read = *source_.read;
    Value* start =
        b.CreateNSWMul(reads_.Offset(read.tensor, read.subscripts, indices), k_.m.Int(bytes_));
    Value* address = b.CreateAdd(b.CreatePtrToInt(reads_.Buffer(read.tensor), b.getInt64Ty()),
                                 b.CreateAdd(start, b.CreateMul(Wide(piece), k_.m.Int(16))));
    Value* off = b.CreateTrunc(b.CreateAnd(address, k_.m.Int(kPieceBytes - 1)), b.getInt32Ty());
    Value* aligned = b.CreateAnd(address, k_.m.Int(-kPieceBytes));
    // The next piece only if the line still has bytes there.
    Value* left = b.CreateSub(b.CreateMul(length_, k_.I32(bytes_)), b.CreateMul(piece, k_.I32(16)));
    Value* reaches = b.CreateICmpUGT(b.CreateAdd(left, off), k_.I32(kPieceBytes));
    Value* next = b.CreateSelect(reaches, b.CreateAdd(aligned, k_.m.Int(kPieceBytes)), aligned);
    Value* beyond = b.CreateICmpUGT(b.CreateAdd(next, k_.m.Int(kPieceBytes)), end_);
    Value* at = b.CreateAdd(b.CreateNSWMul(batch, k_.m.Int(operand_.lines)), line);
    at = b.CreateNSWMul(at, k_.m.Int(operand_.pitch * bytes_));
    at = b.CreateAdd(at, b.CreateMul(Wide(piece), k_.m.Int(kPieceBytes)));
    at = b.CreateAdd(at, k_.m.Int(operand_.workspace_offset));
    // At once, so that its address need not be kept. In its stead something is read that may be.
    k_.m.If(b.CreateAnd(exists, beyond), [&] { CopyElements(address, left, at); });
    Value* workspace = b.CreatePtrToInt(k_.entry.workspace, b.getInt64Ty());
    Value* low = Load(b.CreateSelect(beyond, workspace, aligned));
    Value* high = Load(b.CreateSelect(beyond, workspace, next));
    return {low, high, off, at, b.CreateAnd(exists, b.CreateNot(beyond))};
  }

  Value* Load(Value* address) {
    llvm::IRBuilder<>& b = k_.b;
    return b.CreateAlignedLoad(llvm::FixedVectorType::get(b.getInt32Ty(), 4),
                               b.CreateIntToPtr(address, b.getPtrTy(1)), llvm::Align(kPieceBytes));
  }

  WgmmaKernel& k_;
  const ContractionReads& reads_;
  const WgmmaOperandPlan& operand_;
  const ContractionOperand& source_;
  const Axis& row_axis_;
  const int bytes_;
  Value* length_ = nullptr;  // of a line, elements
  Value* end_ = nullptr;     // address behind the tensor
};

}  // namespace

void WriteOperandCopies(KernelModule* module, const ContractionWgmmaPlan& plan) {
  if (!plan.rows_operand.padded && !plan.columns_operand.padded) return;
  module->workspace().alignment = 256;
  DeviceLaunch launch;
  launch.grid = {kCopyBlocksPerCore * module->target().cores, 1, 1};
  launch.block = kCopyThreads;
  launch.dependent_launch = true;
  WgmmaKernel k(*module, plan, launch, {});
  ContractionReads reads(*module, *plan.contraction, k.entry);
  k.ptx.LetLaterGridsStart();
  k.ptx.WaitForEarlierGrids();
  for (const WgmmaOperandPlan* operand : {&plan.rows_operand, &plan.columns_operand}) {
    if (!operand->padded) continue;
    OperandCopy(k, reads, *operand).Emit(launch.grid[0]);
    // Pieces are read aligned.
    const ContractionOperand& source = operand->is_a ? plan.contraction->a : plan.contraction->b;
    const Workload& workload = module->workload();
    for (size_t i = 0; i < workload.parameters().size(); ++i) {
      if (workload.parameters()[i] != source.read->tensor) continue;
      module->alignments()[i] = std::max<int64_t>(module->alignments()[i], kPieceBytes);
    }
  }
  module->EndEntry();
}

}  // namespace tilewright
