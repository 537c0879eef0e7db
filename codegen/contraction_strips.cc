#include "codegen/contraction_strips.h"

#include <algorithm>

#include "llvm/IR/Intrinsics.h"

namespace tilewright {
namespace {

using llvm::Value;

class StripPacker {
 public:
  StripPacker(KernelModule& module, const ContractionReads& reads, const StripSource& source,
              Value* destination)
      : m_(module), b_(module.builder()), reads_(reads), source_(source), rows_(source.strip_rows) {
    accumulator_ = module.Type(Accumulator());
    destination_ = destination;
    if (source_.operand->linear) {
      base_ = reads_.Offset(source_.operand->read->tensor, source_.operand->read->subscripts,
                            source_.indices);
      row_stride_ = reads_.Of(source_.operand->row_stride);
      depth_stride_ = reads_.Of(source_.operand->depth_stride);
      base_ = b_.CreateNSWAdd(base_, b_.CreateNSWMul(source_.first_step, depth_stride_));
    }
  }

  void Pack(Value* strip) {
    Value* first_row = b_.CreateNSWMul(strip, m_.Int(rows_));
    Value* valid = m_.Min(m_.Int(rows_), b_.CreateNSWSub(source_.extent, first_row));
    const ContractionOperand& operand = *source_.operand;
    if (!operand.linear) return PackElements(first_row, valid);
    Value* start = b_.CreateNSWAdd(base_, b_.CreateNSWMul(first_row, row_stride_));
    if (rows_ == 1 && operand.depth_stride.Is(1)) return CopyRow(start);
    if (operand.depth_stride.Is(1) && source_.lanes >= GroupRows()) return Transpose(start, valid);
    if (operand.row_stride.Is(1)) {
      return m_.If(
          b_.CreateICmpEQ(valid, m_.Int(rows_)), [&] { CopyColumns(start); },
          [&] { PackElements(first_row, valid); });
    }
    PackElements(first_row, valid);
  }

 private:
  ElementType Accumulator() const { return source_.accumulator; }
  // Rows that fit in 128 bits: shuffles within these are the cheap ones.
  int GroupRows() const { return std::max(1, 16 / Info(Accumulator()).bytes); }

  void Store(Value* value, Value* offset) {
    const llvm::Align align(Info(Accumulator()).bytes);
    b_.CreateAlignedStore(value, b_.CreateGEP(accumulator_, destination_, offset), align);
  }

  // One row, k contiguous: a straight copy.
  void CopyRow(Value* start) {
    const int lanes = source_.lanes;
    Value* whole = b_.CreateAnd(source_.steps, m_.Int(-lanes));
    m_.For(m_.Int(0), whole, lanes, "copy", [&](Value* k) {
      Store(reads_.Adjacent(*source_.operand, b_.CreateNSWAdd(start, k), lanes), k);
    });
    m_.For(whole, source_.steps, 1, "copy.tail", [&](Value* k) {
      Store(reads_.Adjacent(*source_.operand, b_.CreateNSWAdd(start, k), 1), k);
    });
  }

  int SourceBytes() const {
    return Info(m_.workload().layout(source_.operand->read->tensor).type).bytes;
  }

  // The elements of the next strip that lie as those at `offset` do in this one. Reads of short
  // pieces, a row apart, are too irregular for the hardware to foresee; addresses past the end do
  // no harm.
  void PrefetchNextStrip(Value* offset) {
    Value* next = b_.CreateAdd(offset, b_.CreateMul(m_.Int(rows_), row_stride_));
    Value* address = b_.CreateGEP(b_.getInt8Ty(), reads_.Buffer(source_.operand->read->tensor),
                                  b_.CreateMul(next, m_.Int(SourceBytes())));
    // For reading, into the second-level cache, data.
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {address, b_.getInt32(0), b_.getInt32(2), b_.getInt32(1)});
  }

  // Rows contiguous: each step is a short copy.
  void CopyColumns(Value* start) {
    m_.For(
        m_.Int(0), source_.steps, 1, "copy",
        [&](Value* k) {
          Value* from = b_.CreateNSWAdd(start, b_.CreateNSWMul(k, depth_stride_));
          PrefetchNextStrip(from);
          Value* to = b_.CreateNSWMul(k, m_.Int(rows_));
          int lanes = source_.lanes;
          for (int row = 0; row < rows_;) {
            while (lanes > rows_ - row) lanes /= 2;
            Store(reads_.Adjacent(*source_.operand, b_.CreateNSWAdd(from, m_.Int(row)), lanes),
                  b_.CreateNSWAdd(to, m_.Int(row)));
            row += lanes;
          }
        },
        2);
  }

  // k contiguous: `lanes` steps of every row at once, transposed in registers. A missing row
  // repeats the last one.
  void Transpose(Value* start, Value* valid) {
    const int lanes = source_.lanes;
    const int group = GroupRows();
    std::vector<Value*> row_offsets;
    for (int row = 0; row < rows_; ++row) {
      Value* there = m_.Min(m_.Int(row), b_.CreateNSWSub(valid, m_.Int(1)));
      row_offsets.push_back(b_.CreateNSWAdd(start, b_.CreateNSWMul(there, row_stride_)));
    }
    // A line that has come in is used whole: with many rows, often as many steps apart as the
    // first-level cache has sets, it would be gone the next time.
    const int step = std::max(lanes, m_.target().cache_line_bytes / SourceBytes());
    Value* whole = b_.CreateAnd(source_.steps, m_.Int(-step));
    m_.For(m_.Int(0), whole, step, "transpose", [&](Value* k) {
      for (int row = 0; row < rows_; row += group) {
        for (int i = row; i < std::min(row + group, rows_); ++i) {
          PrefetchNextStrip(b_.CreateNSWAdd(row_offsets[i], k));
        }
        for (int part = 0; part < step; part += lanes) {
          TransposeGroup(row_offsets, row, b_.CreateNSWAdd(k, m_.Int(part)));
        }
      }
    });
    m_.For(whole, source_.steps, 1, "transpose.tail", [&](Value* k) {
      Value* to = b_.CreateNSWMul(k, m_.Int(rows_));
      for (int row = 0; row < rows_; ++row) {
        Store(reads_.Adjacent(*source_.operand, b_.CreateNSWAdd(row_offsets[row], k), 1),
              b_.CreateNSWAdd(to, m_.Int(row)));
      }
    });
  }

  // The rows row .. row + group - 1 (fewer at the end) of `lanes` steps.
  void TransposeGroup(const std::vector<Value*>& row_offsets, int row, Value* k) {
    const int lanes = source_.lanes;
    const int group = GroupRows();
    const int count = std::min(group, rows_ - row);
    std::vector<Value*> x(group, nullptr);
    for (int i = 0; i < count; ++i) {
      x[i] = reads_.Adjacent(*source_.operand, b_.CreateNSWAdd(row_offsets[row + i], k), lanes);
    }
    for (int i = count; i < group; ++i) x[i] = llvm::PoisonValue::get(x[0]->getType());
    // After the round with distance d, the group's rows interleave in units of d elements within
    // each 128 bits.
    for (int distance = 1; distance < group; distance *= 2) {
      std::vector<Value*> y(group);
      for (int i = 0; i < group / 2; ++i) {
        // Round 1 pairs rows (0,1) (2,3); round 2 pairs their results (0,2) (1,3).
        const int first = distance == 1 ? 2 * i : i;
        const int second = distance == 1 ? 2 * i + 1 : i + group / 2;
        y[2 * i] = Unpack(x[first], x[second], distance, false);
        y[2 * i + 1] = Unpack(x[first], x[second], distance, true);
      }
      x = std::move(y);
    }
    // Now x[c] holds, in 128-bit lane l, step l * group + c of the group's rows.
    for (int lane = 0; lane < lanes / group; ++lane) {
      for (int c = 0; c < group; ++c) {
        std::vector<int> pick(count);
        for (int i = 0; i < count; ++i) pick[i] = lane * group + i;
        Value* column = count == 1 ? b_.CreateExtractElement(x[c], uint64_t(pick[0]))
                                   : b_.CreateShuffleVector(x[c], pick);
        Value* step = b_.CreateNSWAdd(k, m_.Int(lane * group + c));
        Store(column, b_.CreateNSWAdd(b_.CreateNSWMul(step, m_.Int(rows_)), m_.Int(row)));
      }
    }
  }

  // Takes the low or high halves of each 128 bits of both in turn, `unit` elements at a time
  // (unpcklps, unpckhpd, ...).
  Value* Unpack(Value* first, Value* second, int unit, bool high) {
    const int group = GroupRows();
    std::vector<int> mask;
    for (int lane = 0; lane < source_.lanes; lane += group) {
      for (int i = 0; i < group / 2; i += unit) {
        for (int from : {0, source_.lanes}) {
          for (int u = 0; u < unit; ++u)
            mask.push_back(from + lane + (high ? group / 2 : 0) + i + u);
        }
      }
    }
    return b_.CreateShuffleVector(first, second, mask);
  }

  // Anything else, and partial strips: one by one.
  void PackElements(Value* first_row, Value* valid) {
    m_.For(m_.Int(0), source_.steps, 1, "element.k", [&](Value* k) {
      std::vector<Value*> indices = source_.indices;
      Value* to = b_.CreateNSWMul(k, m_.Int(rows_));
      reads_.SetK(b_.CreateNSWAdd(source_.first_step, k), &indices);
      m_.For(m_.Int(0), valid, 1, "element.row", [&](Value* row) {
        if (!source_.axis->indices.empty())
          indices[source_.axis->lead()] = b_.CreateNSWAdd(first_row, row);
        Store(reads_.Element(*source_.operand, indices), b_.CreateNSWAdd(to, row));
      });
      m_.For(valid, m_.Int(rows_), 1, "element.pad", [&](Value* row) {
        Store(llvm::Constant::getNullValue(accumulator_), b_.CreateNSWAdd(to, row));
      });
    });
  }

  KernelModule& m_;
  llvm::IRBuilder<>& b_;
  const ContractionReads& reads_;
  const StripSource& source_;
  const int rows_;
  llvm::Type* accumulator_;
  Value* destination_;
  Value* base_ = nullptr;  // linear: element offset of row 0 at first_step
  Value* row_stride_ = nullptr;
  Value* depth_stride_ = nullptr;
};

}  // namespace

void EmitPackStrips(KernelModule& module, const ContractionReads& reads, const StripSource& source,
                    Value* first, Value* last, Value* destination) {
  Value* strip_elements =
      module.builder().CreateNSWMul(source.steps, module.Int(source.strip_rows));
  module.For(first, last, 1, "strip", [&](Value* strip) {
    Value* offset =
        module.builder().CreateNSWMul(module.builder().CreateNSWSub(strip, first), strip_elements);
    Value* to = module.builder().CreateGEP(module.Type(source.accumulator), destination, offset);
    StripPacker(module, reads, source, to).Pack(strip);
  });
}

}  // namespace tilewright
