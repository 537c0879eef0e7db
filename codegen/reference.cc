// The reference kernel: naive loops with f64 accumulators, and the error bound E beside each value.
//
// One launch per statement. Lanes run along whichever index makes the reads of the inner loop
// adjacent: an output index (one output per lane), or an index of the reduction (partial sums,
// combined at the end).
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/bound_emitter.h"
#include "codegen/convert.h"
#include "codegen/finish_kernel.h"
#include "codegen/kernel_module.h"
#include "codegen/loop_nest.h"
#include "codegen/tensor_access.h"
#include "codegen/writer.h"
#include "llvm/IR/Intrinsics.h"
#include "schedule/compute_type.h"
#include "schedule/match_pointwise.h"

namespace tilewright {
namespace {

using llvm::Value;

constexpr int64_t kAlignment = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Where a written tensor's values and bounds lie: an output's two buffers, or the workspace.
struct Place {
  int value_buffer = -1;  // -1: in the workspace
  int64_t value_offset = 0;
  int64_t bound_offset = 0;
  bool has_bound = false;  // set once its statement is written; else E is 0
};

// The lanes of one statement.
struct LaneChoice {
  int index = -1;
  bool reduced = false;  // an index of the reductions, not of the output
  int lanes = 1;
};

// Reads that are not adjacent or equal along `index`.
int Gathers(const Workload& workload, const Expr& value, int index) {
  int count = 0;
  Walk(value, [&](const Expr& e) {
    if (e.kind != Expr::Kind::kRead) return;
    const auto stride = FixedStride(workload, e.tensor, e.subscripts, index);
    if (!stride.has_value() || (*stride != 0 && *stride != 1)) ++count;
  });
  return count;
}

LaneChoice ChooseLanes(const Workload& workload, const Statement& statement) {
  std::set<int> reduced;
  bool costly = false;
  Walk(*statement.value, [&](const Expr& e) {
    reduced.insert(e.reduce_indices.begin(), e.reduce_indices.end());
    costly |= e.kind == Expr::Kind::kCall && Info(e.function).error_ulps > 0;
  });
  LaneChoice best;
  int best_rank = std::numeric_limits<int>::max();
  auto consider = [&](int index, bool is_reduced) {
    const int64_t size = workload.sizes()[index].high;
    int lanes = costly ? 8 : 16;
    while (lanes > size) lanes /= 2;
    const int rank =
        4 * Gathers(workload, *statement.value, index) + (lanes < 8 ? 2 : 0) + (is_reduced ? 1 : 0);
    if (lanes > 1 && rank < best_rank) {
      best = {index, is_reduced, lanes};
      best_rank = rank;
    }
  };
  for (size_t i = statement.indices.size(); i-- > 0;) consider(statement.indices[i], false);
  for (int index : reduced) consider(index, true);
  return best;
}

class ReferenceWriter {
 public:
  ReferenceWriter(KernelModule& module, double u_acc, int threads)
      : m_(module), workload_(module.workload()), u_acc_(u_acc), threads_(threads) {
    const Program& program = workload_.program();
    const Sizes high = workload_.HighestSizes();
    for (const Statement& statement : program.statements) {
      Place& place = places_[statement.tensor];
      const auto outputs = workload_.outputs();
      const auto found = std::find(outputs.begin(), outputs.end(), statement.tensor);
      if (found != outputs.end()) {
        place.value_buffer =
            static_cast<int>(workload_.parameters().size() + 2 * (found - outputs.begin()));
        continue;
      }
      int64_t bytes = 8;
      for (int64_t size : workload_.Shape(statement.tensor, high)) bytes *= size;
      bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      place.value_offset = m_.workspace().bytes;
      place.bound_offset = place.value_offset + bytes;
      m_.workspace().bytes += 2 * bytes;
    }
  }

  void Write() {
    for (const Statement& statement : workload_.program().statements) WriteStatement(statement);
  }

 private:
  Value* InWorkspace(int64_t offset) {
    return m_.builder().CreateConstGEP1_64(m_.builder().getInt8Ty(), entry_->workspace, offset);
  }
  Value* ValueBase(const Place& place) {
    return place.value_buffer >= 0 ? entry_->buffers[place.value_buffer]
                                   : InWorkspace(place.value_offset);
  }
  Value* BoundBase(const Place& place) {
    return place.value_buffer >= 0 ? entry_->buffers[place.value_buffer + 1]
                                   : InWorkspace(place.bound_offset);
  }

  void WriteStatement(const Statement& statement) {
    KernelModule::Entry entry =
        m_.BeginEntry(threads_, static_cast<int>(workload_.outputs().size()));
    TensorAccess values(m_, entry);
    TensorAccess bounds(m_, entry);
    entry_ = &entry;
    values_ = &values;
    bounds_ = &bounds;
    for (const auto& [tensor, place] : places_) {
      values.Place(tensor, ValueBase(place), ElementType::kF64);
      bounds.Place(tensor, BoundBase(place), ElementType::kF64);
    }
    choice_ = ChooseLanes(workload_, statement);
    EmitContext context;
    context.index_values.resize(entry.sizes.size(), nullptr);
    context.sizes = entry.sizes;
    context.compute = ElementType::kF64;
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
        ShareOf(m_, *entry_, b.CreateNSWMul(PointCount(m_, *entry_, outer), blocks));
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

  void Store(const Statement& statement, const EmitContext& context) {
    auto& b = m_.builder();
    const Bounded result = Evaluate(*statement.value, context);
    Place& place = places_[statement.tensor];
    const std::vector<AffineIndex> subscripts = SubscriptsOf(statement);
    values_->Write(statement.tensor, subscripts, result.value, context);
    Value* zero = ComputeConstant(m_, ElementType::kF64, context.lanes, 0);
    Value* error = ErrorOf(result, context);
    place.has_bound |= error != nullptr;
    if (error == nullptr) {
      error = zero;
    } else {  // NaN: nothing is known, which an infinite bound says
      error =
          b.CreateSelect(b.CreateFCmpUNO(error, error),
                         ComputeConstant(m_, ElementType::kF64, context.lanes, kInfinity), error);
    }
    bounds_->Write(statement.tensor, subscripts, error, context);
  }

  Value* ErrorOf(const Bounded& x, const EmitContext& context) {
    return BoundEmitter(m_, context, ElementType::kF64, {}).Error(x);
  }

  Bounded Evaluate(const Expr& expr, const EmitContext& context) {
    const ElementType compute = ComputeType(workload_, expr);
    BoundEmitter::Callbacks callbacks;
    callbacks.read = [&](const Expr& read) { return Read(read, compute, context); };
    callbacks.reduce = [&](const Expr& reduce) {
      Bounded result = Reduce(reduce, context);
      if (Converts(ComputeType(workload_, *reduce.operands[0]), compute))
        result.relative += Info(compute).unit_roundoff;
      return result;
    };
    return BoundEmitter(m_, context, compute, callbacks).Emit(expr);
  }

  // Whether kernels round when they take a value of one compute type into another.
  static bool Converts(ElementType from, ElementType to) {
    return to == ElementType::kF32 && (from == ElementType::kI32 || from == ElementType::kF64);
  }

  Bounded Read(const Expr& read, ElementType compute, const EmitContext& context) {
    Bounded result{values_->Read(read, context), nullptr, 0};
    auto place = places_.find(read.tensor);
    if (place != places_.end() && place->second.has_bound)
      result.error = bounds_->Read(read, context);
    if (Converts(ValueType(workload_, read.tensor), compute))
      result.relative = Info(compute).unit_roundoff;
    return result;
  }

  // Running totals of a reduction in one number of lanes.
  struct Totals {
    llvm::AllocaInst* value = nullptr;
    llvm::AllocaInst* magnitude = nullptr;  // sum of |term|
    llvm::AllocaInst* error = nullptr;      // sum, or largest, of E
  };

  Totals NewTotals(ReduceOp op, int lanes) {
    llvm::Type* type = m_.Type(ElementType::kF64, lanes);
    Totals totals{m_.Local(type, "value"), m_.Local(type, "magnitude"), m_.Local(type, "error")};
    Value* zero = ComputeConstant(m_, ElementType::kF64, lanes, 0);
    m_.builder().CreateStore(ReduceIdentity(m_, op, ElementType::kF64, lanes), totals.value);
    m_.builder().CreateStore(zero, totals.magnitude);
    m_.builder().CreateStore(zero, totals.error);
    return totals;
  }

  void AddTo(llvm::AllocaInst* total, ReduceOp op, Value* term) {
    Value* before = m_.builder().CreateLoad(total->getAllocatedType(), total);
    m_.builder().CreateStore(EmitReduceStep(m_, op, before, term), total);
  }

  // Which parts of E a reduction's terms have; the same for all of them.
  struct TermKind {
    bool error = false;
    double relative = 0;
  };

  TermKind AddTerm(const Expr& reduce, const EmitContext& context, const Totals& totals,
                   bool rounds) {
    auto& b = m_.builder();
    const Bounded term = Evaluate(*reduce.operands[0], context);
    AddTo(totals.value, reduce.reduce, term.value);
    if (reduce.reduce != ReduceOp::kSum) {
      Value* error = ErrorOf(term, context);
      if (error != nullptr) AddTo(totals.error, ReduceOp::kMax, error);
      return {error != nullptr, 0};
    }
    if (rounds || term.relative > 0) {
      AddTo(totals.magnitude, ReduceOp::kSum,
            b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, term.value));
    }
    if (term.error != nullptr) {
      Value* error = ErrorOf({term.value, term.error, 0}, context);
      AddTo(totals.error, ReduceOp::kSum, error);
    }
    return {term.error != nullptr, term.relative};
  }

  Bounded Reduce(const Expr& reduce, const EmitContext& context) {
    auto& b = m_.builder();
    const ElementType type = ComputeType(workload_, *reduce.operands[0]);
    const double u_acc = type == ElementType::kI32   ? 0
                         : type == ElementType::kF64 ? Info(type).unit_roundoff
                                                     : u_acc_;
    std::vector<int> indices = reduce.reduce_indices;
    const auto lane = std::find(indices.begin(), indices.end(), choice_.index);
    const bool in_lanes = choice_.reduced && context.lanes == 1 && lane != indices.end();
    std::vector<Totals> totals = {NewTotals(reduce.reduce, context.lanes)};
    TermKind kind;
    EmitContext inner = context;
    if (!in_lanes) {
      ForEach(m_, *entry_, indices, &inner,
              [&] { kind = AddTerm(reduce, inner, totals[0], u_acc > 0); });
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
          kind = AddTerm(reduce, inner, totals[1], u_acc > 0);
        });
        m_.For(whole, size, 1, "rest", [&](Value* i) {
          inner.index_values[choice_.index] = i;
          inner.lanes = 1;
          kind = AddTerm(reduce, inner, totals[0], u_acc > 0);
        });
      });
    }
    return Total(reduce, totals, kind, u_acc);
  }

  Bounded Total(const Expr& reduce, const std::vector<Totals>& totals, const TermKind& kind,
                double u_acc) {
    auto& b = m_.builder();
    // With two accumulators the second's lanes join the first's number.
    auto total = [&](llvm::AllocaInst* Totals::*part, ReduceOp op) {
      Value* sum = b.CreateLoad((totals[0].*part)->getAllocatedType(), totals[0].*part);
      if (totals.size() == 1) return sum;
      Value* lanes = b.CreateLoad((totals[1].*part)->getAllocatedType(), totals[1].*part);
      return EmitReduceStep(m_, op, sum, CombineLanes(m_, op, lanes));
    };
    Bounded result{total(&Totals::value, reduce.reduce), nullptr, 0};
    const bool sums = reduce.reduce == ReduceOp::kSum;
    if (kind.error) result.error = total(&Totals::error, sums ? ReduceOp::kSum : ReduceOp::kMax);
    if (!sums || (kind.relative == 0 && u_acc == 0)) return result;
    const int lanes = LanesOf(result.value);
    Value* count =
        m_.builder().CreateSIToFP(PointCount(m_, *entry_, reduce.reduce_indices), b.getDoubleTy());
    Value* root = b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, count);
    Value* share =
        b.CreateFAdd(b.CreateFMul(root, llvm::ConstantFP::get(b.getDoubleTy(), 8 * u_acc)),
                     llvm::ConstantFP::get(b.getDoubleTy(), kind.relative));
    Value* part = b.CreateFMul(Splat(m_, share, lanes), total(&Totals::magnitude, ReduceOp::kSum));
    result.error = result.error == nullptr ? part : b.CreateFAdd(result.error, part);
    return result;
  }

  KernelModule& m_;
  const Workload& workload_;
  const double u_acc_;
  const int threads_;
  std::map<int, Place> places_;  // by tensor
  // Of the statement being written.
  KernelModule::Entry* entry_ = nullptr;
  TensorAccess* values_ = nullptr;
  TensorAccess* bounds_ = nullptr;
  LaneChoice choice_;
};

}  // namespace

absl::StatusOr<Kernel> WriteReferenceKernel(const Workload& workload, const Target& target,
                                            double u_acc, int threads) {
  if (threads < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("reference kernel: ", threads, " threads; at least 1"));
  KernelModule module(workload, target);
  ReferenceWriter(module, u_acc, threads).Write();
  DumpFiles no_dump("");
  auto kernel = FinishKernel(&module, {}, &no_dump);
  if (!kernel.ok()) return kernel;
  kernel->domain.alignments.resize(workload.parameters().size());
  kernel->domain.alignments.resize(workload.parameters().size() + 2 * workload.outputs().size(),
                                   sizeof(double));
  return kernel;
}

}  // namespace tilewright
