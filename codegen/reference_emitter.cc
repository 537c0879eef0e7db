#include "codegen/reference_emitter.h"

#include <algorithm>
#include <limits>
#include <set>

#include "codegen/convert.h"
#include "llvm/IR/Intrinsics.h"
#include "schedule/match_pointwise.h"

namespace tilewright {
namespace {

using llvm::Value;

constexpr int64_t kAlignment = 64;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

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

// Whether kernels round when they take a value of one compute type into another.
bool Converts(ElementType from, ElementType to) {
  return to == ElementType::kF32 && (from == ElementType::kI32 || from == ElementType::kF64);
}

}  // namespace

ReferenceLanes ChooseReferenceLanes(const Workload& workload, const Statement& statement) {
  std::set<int> reduced;
  bool costly = false;
  Walk(*statement.value, [&](const Expr& e) {
    reduced.insert(e.reduce_indices.begin(), e.reduce_indices.end());
    costly |= e.kind == Expr::Kind::kCall && Info(e.function).error_ulps > 0;
  });
  ReferenceLanes best;
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

ReferenceEmitter::ReferenceEmitter(KernelModule& module, double u_acc)
    : m_(module), workload_(module.workload()), u_acc_(u_acc) {
  const Program& program = workload_.program();
  const Sizes high = workload_.HighestSizes();
  for (const Statement& statement : program.statements) {
    Location& place = places_[statement.tensor];
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

void ReferenceEmitter::BeginStatement(const KernelModule::EntryValues& entry) {
  entry_ = &entry;
  values_ = std::make_unique<TensorAccess>(m_, entry);
  bounds_ = std::make_unique<TensorAccess>(m_, entry);
  for (const auto& [tensor, place] : places_) {
    values_->Place(tensor, ValueBase(place), ElementType::kF64);
    bounds_->Place(tensor, BoundBase(place), ElementType::kF64);
  }
}

EmitContext ReferenceEmitter::NewContext() const {
  EmitContext context;
  context.index_values.resize(entry_->sizes.size(), nullptr);
  context.sizes = entry_->sizes;
  context.compute = ElementType::kF64;
  return context;
}

bool ReferenceEmitter::IsExact(int tensor) const {
  auto place = places_.find(tensor);
  return place == places_.end() || !place->second.has_bound;
}

Value* ReferenceEmitter::InWorkspace(int64_t offset) {
  return m_.builder().CreateConstGEP1_64(m_.builder().getInt8Ty(), entry_->workspace, offset);
}
Value* ReferenceEmitter::ValueBase(const Location& place) {
  return place.value_buffer >= 0 ? entry_->buffers[place.value_buffer]
                                 : InWorkspace(place.value_offset);
}
Value* ReferenceEmitter::BoundBase(const Location& place) {
  return place.value_buffer >= 0 ? entry_->buffers[place.value_buffer + 1]
                                 : InWorkspace(place.bound_offset);
}

void ReferenceEmitter::Store(const Statement& statement, const EmitContext& context) {
  auto& b = m_.builder();
  const Bounded result = Evaluate(*statement.value, context);
  Location& place = places_[statement.tensor];
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
                       ComputeConstant(m_, ElementType::kF64, context.lanes, kUnbounded), error);
  }
  bounds_->Write(statement.tensor, subscripts, error, context);
}

Value* ReferenceEmitter::ErrorOf(const Bounded& x, const EmitContext& context) {
  return BoundEmitter(m_, context, ElementType::kF64, {}).Error(x);
}

Bounded ReferenceEmitter::Evaluate(const Expr& expr, const EmitContext& context) {
  return EvaluateIn(expr, ComputeType(workload_, expr), context);
}

Bounded ReferenceEmitter::EvaluateIn(const Expr& expr, ElementType compute,
                                     const EmitContext& context) {
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

Bounded ReferenceEmitter::Read(const Expr& read, ElementType compute, const EmitContext& context) {
  Bounded result{values_->Read(read, context), nullptr, 0};
  auto place = places_.find(read.tensor);
  if (place != places_.end() && place->second.has_bound)
    result.error = bounds_->Read(read, context);
  if (Converts(ValueType(workload_, read.tensor), compute))
    result.relative = Info(compute).unit_roundoff;
  return result;
}

ReferenceEmitter::Totals ReferenceEmitter::NewTotals(ReduceOp op, int lanes) {
  llvm::Type* type = m_.Type(ElementType::kF64, lanes);
  Totals totals{m_.Local(type, "value"), m_.Local(type, "magnitude"), m_.Local(type, "error")};
  Value* zero = ComputeConstant(m_, ElementType::kF64, lanes, 0);
  m_.builder().CreateStore(ReduceIdentity(m_, op, ElementType::kF64, lanes), totals.value);
  m_.builder().CreateStore(zero, totals.magnitude);
  m_.builder().CreateStore(zero, totals.error);
  return totals;
}

void ReferenceEmitter::AddTo(llvm::AllocaInst* total, ReduceOp op, Value* term) {
  Value* before = m_.builder().CreateLoad(total->getAllocatedType(), total);
  m_.builder().CreateStore(EmitReduceStep(m_, op, before, term), total);
}

ReferenceEmitter::TermKind ReferenceEmitter::AddTerm(const Expr& reduce, const EmitContext& context,
                                                     const Totals& totals, bool rounds) {
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

double ReferenceEmitter::AccumulatorRoundoff(const Expr& reduce) const {
  const ElementType type = ComputeType(workload_, *reduce.operands[0]);
  if (type == ElementType::kI32) return 0;
  return type == ElementType::kF64 ? Info(type).unit_roundoff : u_acc_;
}

Bounded ReferenceEmitter::Finish(const Expr& reduce, const ReducedValues& reduced,
                                 const TermKind& kind) {
  auto& b = m_.builder();
  const double u_acc = AccumulatorRoundoff(reduce);
  Bounded result{reduced.value, nullptr, 0};
  if (kind.error) result.error = reduced.error;
  if (reduce.reduce != ReduceOp::kSum || (kind.relative == 0 && u_acc == 0)) return result;
  Value* count = b.CreateSIToFP(PointCount(m_, *entry_, reduce.reduce_indices), b.getDoubleTy());
  Value* root = b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, count);
  Value* share = b.CreateFAdd(b.CreateFMul(root, llvm::ConstantFP::get(b.getDoubleTy(), 8 * u_acc)),
                              llvm::ConstantFP::get(b.getDoubleTy(), kind.relative));
  Value* part = b.CreateFMul(Splat(m_, share, LanesOf(result.value)), reduced.magnitude);
  result.error = result.error == nullptr ? part : b.CreateFAdd(result.error, part);
  return result;
}

}  // namespace tilewright
