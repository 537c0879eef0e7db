// The loops of row_reduction.fused. With lanes along the columns:
//
//   for each row of this thread
//     for each statement, in order
//       per row:     a pass over the columns for each reduction in it, then its value, kept in a
//       register per element: a pass over the columns that stores it; an intermediate is computed
//       where it is read
//
// With lanes along the last row index ("across": a reduction over a strided index) a thread takes
// `lanes * unroll` rows at once and the same passes run with one row per lane.
#include "codegen/row_reduction_fused.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/convert.h"
#include "codegen/emit_expr.h"
#include "codegen/kernel_module.h"
#include "codegen/loop_nest.h"
#include "codegen/tensor_access.h"
#include "schedule/match_pointwise.h"
#include "schedule/row_reduction_fused.h"

namespace tilewright {
namespace {

using llvm::Value;

class RowWriter {
 public:
  RowWriter(KernelModule& module, const RowReductionFusedPlan& plan)
      : m_(module),
        plan_(plan),
        program_(module.workload().program()),
        entry_(module.BeginEntry(plan.threads)),
        access_(module, entry_) {
    if (plan.keep) FindKept();
  }

  void Write() {
    EmitContext context;
    context.index_values.resize(entry_.sizes.size(), nullptr);
    context.sizes = entry_.sizes;
    if (plan_.match.lanes_along_columns) {
      const Share share = ShareOf(m_, entry_, PointCount(m_, entry_, plan_.match.rows));
      m_.For(share.begin, share.end, 1, "row", [&](Value* row) {
        SetIndicesFromPosition(m_, entry_, plan_.match.rows, row, &context);
        Rows(context);
      });
    } else {
      Across(context);
    }
    m_.EndEntry();
  }

 private:
  void FindKept() {
    for (const Statement& statement : program_.statements) {
      Walk(*statement.value, [&](const Expr& e) {
        if (e.kind == Expr::Kind::kCall && ToString(program_, e) == plan_.match.kept_text)
          kept_.insert(&e);
      });
    }
    kept_type_ = ComputeType(m_.workload(), *plan_.match.kept);
    Value* offset = m_.builder().CreateNSWMul(entry_.thread, m_.Int(plan_.kept_row_bytes));
    kept_row_ = m_.builder().CreateGEP(m_.builder().getInt8Ty(), entry_.workspace, offset);
  }

  // Blocks of the last row index, one row per lane; rows that do not fill a block go one by one.
  void Across(EmitContext context) {
    auto& b = m_.builder();
    const std::vector<int>& rows = plan_.match.rows;
    const int width = Width();
    const absl::Span<const int> outer(rows.data(), rows.size() - 1);
    Value* last = entry_.sizes[rows.back()];
    Value* blocks = m_.CeilDiv(last, width);
    const Share share = ShareOf(m_, entry_, b.CreateNSWMul(PointCount(m_, entry_, outer), blocks));
    m_.For(share.begin, share.end, 1, "block", [&](Value* item) {
      Value* position = b.CreateUDiv(item, blocks);
      Value* first =
          b.CreateNSWMul(b.CreateNSWSub(item, b.CreateNSWMul(position, blocks)), m_.Int(width));
      SetIndicesFromPosition(m_, entry_, outer, position, &context);
      Value* end = b.CreateNSWAdd(first, m_.Int(width));
      context.lane_index = rows.back();
      m_.If(
          b.CreateICmpSLE(end, last),
          [&] {
            context.index_values[rows.back()] = first;
            context.lanes = width;
            Rows(context);
          },
          [&] {
            m_.For(first, last, 1, "row", [&](Value* row) {
              context.index_values[rows.back()] = row;
              context.lanes = 1;
              Rows(context);
            });
          });
    });
  }

  // Rows at once when lanes run across them: by the widest compute type of the program.
  int Width() const {
    int lanes = plan_.Lanes(ElementType::kF32);
    for (const Statement& statement : program_.statements) {
      lanes = std::min(lanes, plan_.Lanes(ComputeType(m_.workload(), *statement.value)));
    }
    return lanes * plan_.unroll;
  }

  // All statements for the row (or the rows) at `context`.
  void Rows(const EmitContext& context) {
    row_values_.clear();
    kept_ready_ = false;
    for (const Statement& statement : program_.statements) {
      const bool per_element = statement.indices.size() > plan_.match.rows.size();
      const bool is_output = program_.tensors[statement.tensor].is_output;
      if (!per_element) {
        Value* value = Evaluate(*statement.value, context);
        row_values_[statement.tensor] = value;
        if (is_output) access_.Write(statement.tensor, SubscriptsOf(statement), value, context);
      } else if (is_output) {
        Columns(context, ComputeType(m_.workload(), *statement.value), [&](const EmitContext& at) {
          access_.Write(statement.tensor, SubscriptsOf(statement), Evaluate(*statement.value, at),
                        at);
        });
      }
    }
  }

  // Calls `body` for all columns of the row, in vectors where lanes run along them.
  void Columns(const EmitContext& row, ElementType compute,
               const std::function<void(const EmitContext&)>& body) {
    EmitContext context = row;
    const std::vector<int>& columns = plan_.match.columns;
    if (!plan_.match.lanes_along_columns) {
      ForEach(m_, entry_, columns, &context, [&] { body(context); });
      pass_kept_ = false;
      return;
    }
    const int index = columns.back();
    const absl::Span<const int> outer(columns.data(), columns.size() - 1);
    const int lanes = plan_.Lanes(compute);
    ForEach(m_, entry_, outer, &context, [&] {
      Value* done = m_.Int(0);
      for (int step : std::set<int, std::greater<int>>{lanes * plan_.unroll, lanes, 1}) {
        if (IsShort(index, step)) continue;
        Value* end = Multiple(entry_.sizes[index], step);
        m_.For(done, end, step, step == 1 ? "element" : "vector", [&](Value* column) {
          context.lanes = step;
          context.lane_index = index;
          context.index_values[index] = column;
          body(context);
        });
        done = end;
      }
    });
    kept_ready_ |= pass_kept_;
    pass_kept_ = false;
  }

  bool IsShort(int index, int64_t step) const { return m_.workload().sizes()[index].high < step; }

  Value* Multiple(Value* size, int64_t step) {
    if (step == 1) return size;
    return m_.builder().CreateNSWSub(size, m_.builder().CreateURem(size, m_.Int(step)));
  }

  // The value of `expr` in its own compute type, in the lanes of `context`.
  Value* Evaluate(const Expr& expr, const EmitContext& context) {
    EmitContext inner = context;
    inner.compute = ComputeType(m_.workload(), expr);
    inner.read = [&](const Expr& read) { return Read(read, inner); };
    inner.reduce = [&](const Expr& reduce) {
      return ConvertCompute(m_, Reduce(reduce, inner), inner.compute);
    };
    if (plan_.keep) inner.known = [&](const Expr& e) { return Kept(e, inner); };
    return EmitExpr(m_, expr, inner);
  }

  Value* Read(const Expr& read, const EmitContext& context) {
    auto found = row_values_.find(read.tensor);
    if (found != row_values_.end()) {
      Value* value = ConvertCompute(m_, found->second, context.compute);
      return LanesOf(value) == context.lanes ? value : Splat(m_, value, context.lanes);
    }
    const Statement* source = FindWriterOf(program_, read.tensor);
    if (source == nullptr) return access_.Read(read, context);
    return ConvertCompute(m_, Evaluate(*source->value, context), context.compute);
  }

  // The costly part that passes share: the first pass computes and stores it, later ones load it.
  Value* Kept(const Expr& expr, const EmitContext& context) {
    if (computing_kept_ || !kept_.contains(&expr)) return nullptr;
    Value* position = m_.Int(0);
    for (int index : plan_.match.columns) {
      position = m_.builder().CreateNSWAdd(m_.builder().CreateNSWMul(position, entry_.sizes[index]),
                                           context.index_values[index]);
    }
    if (kept_ready_)
      return m_.LoadElements(kept_type_, kept_row_, position, context.lanes, context.compute);
    computing_kept_ = true;
    Value* value = EmitExpr(m_, expr, context);
    computing_kept_ = false;
    m_.StoreElements(kept_type_, value, kept_row_, position, context.lanes);
    pass_kept_ = true;
    return value;
  }

  // One pass. Each vector width of the loop has its own accumulator; they are combined at the end.
  Value* Reduce(const Expr& reduce, const EmitContext& context) {
    auto& b = m_.builder();
    const ElementType type = ComputeType(m_.workload(), *reduce.operands[0]);
    std::map<int, llvm::AllocaInst*> accumulators;
    auto accumulator = [&](int lanes) {
      auto found = accumulators.find(lanes);
      if (found != accumulators.end()) return found->second;
      llvm::AllocaInst* slot = m_.Local(m_.Type(type, lanes), "accumulator");
      accumulators[lanes] = slot;
      return slot;
    };
    std::vector<int> widths = {context.lanes};
    if (plan_.match.lanes_along_columns)
      widths = {plan_.Lanes(type) * plan_.unroll, plan_.Lanes(type), 1};
    for (int lanes : widths)
      b.CreateStore(ReduceIdentity(m_, reduce.reduce, type, lanes), accumulator(lanes));
    Columns(context, type, [&](const EmitContext& at) {
      Value* term = Evaluate(*reduce.operands[0], at);
      llvm::AllocaInst* slot = accumulator(at.lanes);
      Value* before = b.CreateLoad(slot->getAllocatedType(), slot);
      b.CreateStore(EmitReduceStep(m_, reduce.reduce, before, term), slot);
    });
    if (!plan_.match.lanes_along_columns) {
      return b.CreateLoad(m_.Type(type, context.lanes), accumulator(context.lanes));
    }
    Value* total = nullptr;
    for (auto& [lanes, slot] : accumulators) {
      Value* part = CombineLanes(m_, reduce.reduce, b.CreateLoad(slot->getAllocatedType(), slot));
      total = total == nullptr ? part : EmitReduceStep(m_, reduce.reduce, total, part);
    }
    return total;
  }

  KernelModule& m_;
  const RowReductionFusedPlan& plan_;
  const Program& program_;
  KernelModule::Entry entry_;
  TensorAccess access_;
  std::map<int, Value*> row_values_;  // by tensor; one number, or one per lane
  std::set<const Expr*> kept_;        // occurrences of the kept subexpression
  ElementType kept_type_ = ElementType::kF32;
  Value* kept_row_ = nullptr;
  bool computing_kept_ = false;
  bool pass_kept_ = false;   // the pass being written stores it
  bool kept_ready_ = false;  // an earlier pass has stored it
};

}  // namespace

absl::Status WriteRowReductionFused(const Candidate&, const Plan& plan, KernelModule* module) {
  const auto& fused = static_cast<const RowReductionFusedPlan&>(plan);
  module->workspace().bytes = fused.workspace_bytes;
  RowWriter(*module, fused).Write();
  return absl::OkStatus();
}

}  // namespace tilewright
