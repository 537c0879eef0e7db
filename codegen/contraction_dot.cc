#include "codegen/contraction_dot.h"

#include <algorithm>
#include <vector>

#include "codegen/contraction_reads.h"
#include "codegen/kernel_module.h"
#include "schedule/contraction_dot.h"

namespace tilewright {
namespace {

using llvm::Value;

class DotWriter {
 public:
  DotWriter(const ContractionDotPlan& plan, KernelModule& module)
      : plan_(plan),
        c_(*plan.contraction),
        m_(module),
        b_(module.builder()),
        type_(plan.contraction->accumulator),
        is_float_(Info(plan.contraction->accumulator).is_float),
        entry_(module.BeginEntry(plan.threads)),
        reads_(module, c_, entry_) {}

  void Write() {
    rows_ = reads_.Extent(c_.m);
    columns_ = reads_.Extent(c_.n);
    for (int i = 0; i < plan_.rows * plan_.columns; ++i) {
      sums_.push_back(m_.Local(m_.Type(type_, plan_.lanes), "sum"));
      totals_.push_back(m_.Local(m_.Type(type_), "total", 1, 8));
    }
    tile_ = m_.Local(m_.Type(type_), "tile", plan_.rows * plan_.columns);
    Value* number_n = b_.CreateURem(entry_.thread, m_.Int(plan_.threads_n));
    Value* number_batch = b_.CreateUDiv(entry_.thread, m_.Int(plan_.threads_n));
    ForShare(reads_.BatchCount(), number_batch, plan_.threads_batch, "batch", [&](Value* batch) {
      indices_ = reads_.AtBatch(batch);
      a_base_ = reads_.Offset(c_.a.read->tensor, c_.a.read->subscripts, indices_);
      b_base_ = reads_.Offset(c_.b.read->tensor, c_.b.read->subscripts, indices_);
      output_base_ = reads_.Offset(c_.output, c_.output_subscripts, indices_);
      ForShare(m_.CeilDiv(columns_, plan_.columns), number_n, plan_.threads_n, "columns",
               [&](Value* group) {
                 Value* column = b_.CreateNSWMul(group, m_.Int(plan_.columns));
                 m_.For(m_.Int(0), rows_, plan_.rows, "rows",
                        [&](Value* row) { Tile(row, column); });
               });
    });
    m_.EndEntry();
  }

 private:
  // Part `number` of `parts` even parts of [0, count).
  void ForShare(Value* count, Value* number, int parts, const char* name,
                const std::function<void(Value*)>& body) {
    Value* begin = b_.CreateUDiv(b_.CreateNSWMul(count, number), m_.Int(parts));
    Value* end =
        b_.CreateUDiv(b_.CreateNSWMul(count, b_.CreateNSWAdd(number, m_.Int(1))), m_.Int(parts));
    m_.For(begin, end, 1, name, body);
  }

  // Offsets of the rows first .. first + count - 1 of an operand; rows past the last repeat it.
  std::vector<Value*> Rows(Value* base, Value* first, Value* extent, int count,
                           const Stride& stride) {
    std::vector<Value*> offsets;
    Value* last = b_.CreateNSWSub(extent, m_.Int(1));
    for (int i = 0; i < count; ++i) {
      Value* row = m_.Min(b_.CreateNSWAdd(first, m_.Int(i)), last);
      offsets.push_back(b_.CreateNSWAdd(base, b_.CreateNSWMul(row, reads_.Of(stride))));
    }
    return offsets;
  }

  void Tile(Value* row, Value* column) {
    a_rows_ = Rows(a_base_, row, rows_, plan_.rows, c_.a.row_stride);
    b_rows_ = Rows(b_base_, column, columns_, plan_.columns, c_.b.row_stride);
    const int step = plan_.lanes * plan_.unroll_k;
    const llvm::Align wide(64);
    for (llvm::AllocaInst* sum : sums_) {
      b_.CreateAlignedStore(llvm::Constant::getNullValue(sum->getAllocatedType()), sum, wide);
    }
    Value* whole = b_.CreateNSWMul(b_.CreateUDiv(reads_.K(), m_.Int(step)), m_.Int(step));
    m_.For(m_.Int(0), whole, step, "k", [&](Value* k) {
      for (int part = 0; part < step; part += plan_.lanes)
        Step(b_.CreateNSWAdd(k, m_.Int(part)), plan_.lanes, sums_, 64);
    });
    for (size_t i = 0; i < sums_.size(); ++i)
      b_.CreateAlignedStore(Total(sums_[i]), totals_[i], llvm::Align(8));
    m_.For(whole, reads_.K(), 1, "k.tail", [&](Value* k) { Step(k, 1, totals_, 8); });
    for (size_t i = 0; i < totals_.size(); ++i) {
      Value* total = b_.CreateAlignedLoad(m_.Type(type_), totals_[i], llvm::Align(8));
      m_.StoreElements(type_, total, tile_, m_.Int(static_cast<int64_t>(i)), 1);
    }
    Finish(row, column);
  }

  void Step(Value* k, int lanes, const std::vector<llvm::AllocaInst*>& sums, uint64_t alignment) {
    const llvm::Align align(alignment);
    std::vector<Value*> a;
    for (Value* row : a_rows_) a.push_back(reads_.Adjacent(c_.a, b_.CreateNSWAdd(row, k), lanes));
    for (int column = 0; column < plan_.columns; ++column) {
      Value* b = reads_.Adjacent(c_.b, b_.CreateNSWAdd(b_rows_[column], k), lanes);
      for (int row = 0; row < plan_.rows; ++row) {
        llvm::AllocaInst* slot = sums[row * plan_.columns + column];
        Value* sum = b_.CreateAlignedLoad(slot->getAllocatedType(), slot, align);
        sum = is_float_ ? b_.CreateFAdd(b_.CreateFMul(a[row], b), sum)
                        : b_.CreateAdd(b_.CreateMul(a[row], b), sum);
        b_.CreateAlignedStore(sum, slot, align);
      }
    }
  }

  // Lanes added in pairs, halves of the vector at a time.
  Value* Total(llvm::AllocaInst* slot) {
    Value* sum = b_.CreateAlignedLoad(slot->getAllocatedType(), slot, llvm::Align(64));
    for (int half = plan_.lanes / 2; half >= 1; half /= 2) {
      std::vector<int> low(half), high(half);
      for (int i = 0; i < half; ++i) low[i] = i, high[i] = half + i;
      Value* x = b_.CreateShuffleVector(sum, low);
      Value* y = b_.CreateShuffleVector(sum, high);
      sum = is_float_ ? b_.CreateFAdd(x, y) : b_.CreateAdd(x, y);
    }
    return plan_.lanes > 1 ? b_.CreateExtractElement(sum, uint64_t{0}) : sum;
  }

  void Finish(Value* row, Value* column) {
    const ElementType output_type = m_.workload().layout(c_.output).type;
    Value* rows = m_.Min(b_.CreateNSWSub(rows_, row), m_.Int(plan_.rows));
    Value* columns = m_.Min(b_.CreateNSWSub(columns_, column), m_.Int(plan_.columns));
    m_.For(m_.Int(0), rows, 1, "finish.row", [&](Value* i) {
      m_.For(m_.Int(0), columns, 1, "finish.column", [&](Value* j) {
        Value* at = b_.CreateNSWAdd(b_.CreateNSWMul(i, m_.Int(plan_.columns)), j);
        Value* total = m_.LoadElements(type_, tile_, at, 1, type_);
        std::vector<Value*> indices = indices_;
        Value* y = b_.CreateNSWAdd(row, i);
        Value* x = b_.CreateNSWAdd(column, j);
        if (!c_.m.indices.empty()) indices[c_.m.lead()] = y;
        if (!c_.n.indices.empty()) indices[c_.n.lead()] = x;
        Value* offset =
            b_.CreateNSWAdd(output_base_, b_.CreateNSWMul(y, reads_.Of(c_.output_row_stride)));
        offset = b_.CreateNSWAdd(offset, b_.CreateNSWMul(x, reads_.Of(c_.output_column_stride)));
        m_.StoreElements(output_type, reads_.Epilogue(total, indices, 1), reads_.Buffer(c_.output),
                         offset, 1);
      });
    });
  }

  const ContractionDotPlan& plan_;
  const Contraction& c_;
  KernelModule& m_;
  llvm::IRBuilder<>& b_;
  const ElementType type_;
  const bool is_float_;
  const KernelModule::Entry entry_;
  const ContractionReads reads_;
  Value* rows_ = nullptr;
  Value* columns_ = nullptr;
  std::vector<llvm::AllocaInst*> sums_;    // [row][column], vectors
  std::vector<llvm::AllocaInst*> totals_;  // [row][column]
  llvm::AllocaInst* tile_ = nullptr;       // the same, addressable

  // Of the loop body being written.
  std::vector<Value*> indices_;
  Value *a_base_ = nullptr, *b_base_ = nullptr, *output_base_ = nullptr;
  std::vector<Value*> a_rows_, b_rows_;
};

}  // namespace

absl::Status WriteContractionDot(const Candidate& candidate, const Plan& plan,
                                 KernelModule* module) {
  DotWriter(static_cast<const ContractionDotPlan&>(plan), *module).Write();
  return absl::OkStatus();
}

}  // namespace tilewright
