#include "codegen/naive.h"

#include "absl/strings/str_cat.h"
#include "codegen/convert.h"
#include "codegen/emit_expr.h"
#include "codegen/kernel_module.h"
#include "codegen/loop_nest.h"
#include "codegen/tensor_access.h"
#include "schedule/naive.h"

namespace tilewright {
namespace {

using llvm::Value;

// Writes the points of one statement, in an entry that has begun.
class StatementWriter {
 public:
  StatementWriter(KernelModule& module, const NaivePlan& plan, const Statement& statement,
                  const KernelModule::EntryValues& entry)
      : m_(module), statement_(statement), entry_(entry), access_(module, entry) {
    for (const NaivePlan::Placement& placement : plan.placements) {
      Value* base = m_.builder().CreateConstGEP1_64(m_.builder().getInt8Ty(), entry_.workspace,
                                                    placement.offset_bytes);
      // The statement's own tensor is stored to both places, its buffer first.
      if (placement.tensor == statement.tensor) {
        kept_ = base;
        kept_type_ = placement.type;
      } else {
        access_.Place(placement.tensor, base, placement.type);
      }
    }
  }

  Value* PointCount() { return tilewright::PointCount(m_, entry_, statement_.indices); }

  void Point(Value* point) {
    EmitContext context;
    context.index_values.resize(entry_.sizes.size(), nullptr);
    context.sizes = entry_.sizes;
    SetIndicesFromPosition(m_, entry_, statement_.indices, point, &context);
    Value* value = Evaluate(*statement_.value, &context);
    if (kept_ != nullptr) m_.StoreElements(kept_type_, value, kept_, point, 1);
    if (!m_.workload().program().tensors[statement_.tensor].is_output) return;
    std::vector<AffineIndex> subscripts;
    for (int index : statement_.indices) {
      AffineIndex subscript;
      subscript.terms.push_back({1, AffineTerm::Kind::kIndex, index, nullptr, 1});
      subscripts.push_back(subscript);
    }
    access_.Write(statement_.tensor, subscripts, value, context);
  }

 private:
  // The value in the expression's own compute type, at the point in `context`.
  Value* Evaluate(const Expr& expr, EmitContext* context) {
    EmitContext inner = *context;
    inner.compute = ComputeType(m_.workload(), expr);
    inner.read = [&](const Expr& read) { return access_.Read(read, inner); };
    inner.reduce = [&](const Expr& reduce) {
      return ConvertCompute(m_, Reduce(reduce, &inner), inner.compute);
    };
    return EmitExpr(m_, expr, inner);
  }

  Value* Reduce(const Expr& reduce, EmitContext* context) {
    const ElementType type = ComputeType(m_.workload(), *reduce.operands[0]);
    Value* sum = m_.Local(m_.Type(type), "accumulator");
    m_.builder().CreateStore(ReduceIdentity(m_, reduce.reduce, type, 1), sum);
    EmitContext inner = *context;
    ForEach(m_, entry_, reduce.reduce_indices, &inner, [&] {
      Value* term = Evaluate(*reduce.operands[0], &inner);
      Value* before = m_.builder().CreateLoad(m_.Type(type), sum);
      m_.builder().CreateStore(EmitReduceStep(m_, reduce.reduce, before, term), sum);
    });
    return m_.builder().CreateLoad(m_.Type(type), sum);
  }

  KernelModule& m_;
  const Statement& statement_;
  const KernelModule::EntryValues& entry_;
  TensorAccess access_;
  Value* kept_ = nullptr;
  ElementType kept_type_ = ElementType::kF32;
};

}  // namespace

absl::Status WriteNaive(const Candidate& candidate, const Plan& plan, KernelModule* module) {
  const auto& naive = static_cast<const NaivePlan&>(plan);
  module->workspace().bytes = naive.workspace_bytes;
  for (const Statement& statement : candidate.workload.program().statements) {
    const KernelModule::Entry entry = module->BeginEntry(naive.threads);
    StatementWriter writer(*module, naive, statement, entry);
    const Share share = ShareOf(*module, entry, writer.PointCount());
    module->For(share.begin, share.end, 1, "point", [&](Value* point) { writer.Point(point); });
    module->EndEntry();
  }
  return absl::OkStatus();
}

absl::Status WriteNaiveOnGpu(const Candidate& candidate, const Plan& plan, KernelModule* module) {
  const auto& naive = static_cast<const NaivePlan&>(plan);
  module->workspace().bytes = naive.workspace_bytes;
  module->AllowSpills();
  size_t number = 0;
  for (const Statement& statement : candidate.workload.program().statements) {
    DeviceLaunch launch;
    launch.grid[0] = naive.grids[number++];
    launch.block = naive.block;
    const KernelModule::DeviceEntry entry = module->BeginDeviceEntry(launch);
    StatementWriter writer(*module, naive, statement, entry);
    ForGridStride(*module, launch, writer.PointCount(), [&](Value* point) { writer.Point(point); });
    module->EndEntry();
  }
  return absl::OkStatus();
}

}  // namespace tilewright
