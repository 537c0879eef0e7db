// The reference kernel on a CPU: naive loops with f64 accumulators, and the error bound E beside
// each value.
//
// One launch per statement. Lanes run along whichever index makes the reads of the inner loop
// adjacent: an output index (one output per lane), or an index of the reduction (partial sums,
// combined at the end).
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/finish_kernel.h"
#include "codegen/kernel_module.h"
#include "codegen/loop_nest.h"
#include "codegen/reference_emitter.h"
#include "codegen/reference_on_gpu.h"
#include "codegen/writer.h"

namespace tilewright {
namespace {

using llvm::Value;

class HostReference : public ReferenceEmitter {
 public:
  HostReference(KernelModule& module, double u_acc, int threads)
      : ReferenceEmitter(module, u_acc), threads_(threads) {}

  void Write() {
    for (const Statement& statement : workload_.program().statements) WriteStatement(statement);
  }

 private:
  void WriteStatement(const Statement& statement) {
    const KernelModule::Entry entry =
        m_.BeginEntry(threads_, static_cast<int>(workload_.outputs().size()));
    host_entry_ = &entry;
    BeginStatement(entry);
    choice_ = ChooseReferenceLanes(workload_, statement);
    EmitContext context = NewContext();
    if (choice_.index >= 0 && !choice_.reduced) {
      AcrossOutputs(statement, context);
    } else {
      const Share share = ShareOf(m_, entry, PointCount(m_, entry, statement.indices));
      m_.For(share.begin, share.end, 1, "point", [&](Value* point) {
        SetIndicesFromPosition(m_, entry, statement.indices, point, &context);
        Store(statement, context);
      });
    }
    m_.EndEntry();
  }

  // Blocks of `lanes` positions of the lane index; what is left goes one by one.
  void AcrossOutputs(const Statement& statement, EmitContext context) {
    auto& b = m_.builder();
    std::vector<int> outer;
    for (int index : statement.indices) {
      if (index != choice_.index) outer.push_back(index);
    }
    Value* size = entry_->sizes[choice_.index];
    Value* blocks = m_.CeilDiv(size, choice_.lanes);
    const Share share =
        ShareOf(m_, *host_entry_, b.CreateNSWMul(PointCount(m_, *entry_, outer), blocks));
    m_.For(share.begin, share.end, 1, "block", [&](Value* item) {
      Value* position = b.CreateUDiv(item, blocks);
      Value* first = b.CreateNSWMul(b.CreateNSWSub(item, b.CreateNSWMul(position, blocks)),
                                    m_.Int(choice_.lanes));
      SetIndicesFromPosition(m_, *entry_, outer, position, &context);
      context.lane_index = choice_.index;
      auto whole = [&] {
        context.index_values[choice_.index] = first;
        context.lanes = choice_.lanes;
        Store(statement, context);
      };
      auto rest = [&] {
        m_.For(first, size, 1, "rest", [&](Value* i) {
          context.index_values[choice_.index] = i;
          context.lanes = 1;
          Store(statement, context);
        });
      };
      m_.If(b.CreateICmpSLE(b.CreateNSWAdd(first, m_.Int(choice_.lanes)), size), whole, rest);
    });
  }

  Bounded Reduce(const Expr& reduce, const EmitContext& context) override {
    auto& b = m_.builder();
    const bool rounds = AccumulatorRoundoff(reduce) > 0;
    std::vector<int> indices = reduce.reduce_indices;
    const auto lane = std::find(indices.begin(), indices.end(), choice_.index);
    const bool in_lanes = choice_.reduced && context.lanes == 1 && lane != indices.end();
    std::vector<Totals> totals = {NewTotals(reduce.reduce, context.lanes)};
    TermKind kind;
    EmitContext inner = context;
    if (!in_lanes) {
      ForEach(m_, *entry_, indices, &inner,
              [&] { kind = AddTerm(reduce, inner, totals[0], rounds); });
    } else {
      indices.erase(lane);
      totals.push_back(NewTotals(reduce.reduce, choice_.lanes));
      ForEach(m_, *entry_, indices, &inner, [&] {
        Value* size = entry_->sizes[choice_.index];
        Value* whole = b.CreateNSWSub(size, b.CreateURem(size, m_.Int(choice_.lanes)));
        m_.For(m_.Int(0), whole, choice_.lanes, "lanes", [&](Value* i) {
          inner.index_values[choice_.index] = i;
          inner.lanes = choice_.lanes;
          inner.lane_index = choice_.index;
          kind = AddTerm(reduce, inner, totals[1], rounds);
        });
        m_.For(whole, size, 1, "rest", [&](Value* i) {
          inner.index_values[choice_.index] = i;
          inner.lanes = 1;
          kind = AddTerm(reduce, inner, totals[0], rounds);
        });
      });
    }
    return Finish(reduce, Combined(reduce, totals), kind);
  }

  ReducedValues Combined(const Expr& reduce, const std::vector<Totals>& totals) {
    auto& b = m_.builder();
    // With two accumulators the second's lanes join the first's number.
    auto total = [&](llvm::AllocaInst* Totals::*part, ReduceOp op) {
      Value* sum = b.CreateLoad((totals[0].*part)->getAllocatedType(), totals[0].*part);
      if (totals.size() == 1) return sum;
      Value* lanes = b.CreateLoad((totals[1].*part)->getAllocatedType(), totals[1].*part);
      return EmitReduceStep(m_, op, sum, CombineLanes(m_, op, lanes));
    };
    const bool sums = reduce.reduce == ReduceOp::kSum;
    return {total(&Totals::value, reduce.reduce), total(&Totals::magnitude, ReduceOp::kSum),
            total(&Totals::error, sums ? ReduceOp::kSum : ReduceOp::kMax)};
  }

  const int threads_;
  // Of the statement being written.
  const KernelModule::Entry* host_entry_ = nullptr;
  ReferenceLanes choice_;
};

}  // namespace

absl::StatusOr<Kernel> WriteReferenceKernel(const Workload& workload, const Target& target,
                                            double u_acc, int threads,
                                            const WriteOptions& options) {
  if (threads < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("reference kernel: ", threads, " threads; at least 1"));
  KernelModule module(workload, target);
  if (target.is_gpu()) {
    WriteReferenceOnGpu(&module, u_acc);
  } else {
    HostReference(module, u_acc, threads).Write();
  }
  DumpFiles dump(options.dump_directory);
  auto kernel = FinishKernel(&module, {}, &dump);
  if (!kernel.ok()) return kernel;
  kernel->domain.alignments.resize(workload.parameters().size());
  kernel->domain.alignments.resize(workload.parameters().size() + 2 * workload.outputs().size(),
                                   sizeof(double));
  return kernel;
}

}  // namespace tilewright
