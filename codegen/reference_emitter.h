// What reference kernels compute at a point, whatever the backend: values in f64 and beside each
// the error bound E (DESIGN.md 6). How a backend goes through points and terms is in reference.cc
// (CPU) and reference_on_gpu.cc.
#ifndef TILEWRIGHT_CODEGEN_REFERENCE_EMITTER_H_
#define TILEWRIGHT_CODEGEN_REFERENCE_EMITTER_H_

#include <map>
#include <memory>

#include "codegen/bound_emitter.h"
#include "codegen/emit_expr.h"
#include "codegen/kernel_module.h"
#include "codegen/loop_nest.h"
#include "codegen/tensor_access.h"
#include "schedule/compute_type.h"

namespace tilewright {

// The index along which neighbouring lanes (or threads) read neighbouring elements most often.
struct ReferenceLanes {
  int index = -1;        // -1: none
  bool reduced = false;  // an index of the reductions, not of the output
  int lanes = 1;         // of a vector on a CPU
};
ReferenceLanes ChooseReferenceLanes(const Workload& workload, const Statement& statement);

// Not thread-safe; one per kernel. Borrows the module.
class ReferenceEmitter {
 public:
  // Gives intermediates their places, so the module's workspace is known afterwards.
  ReferenceEmitter(KernelModule& module, double u_acc);
  virtual ~ReferenceEmitter() = default;

 protected:
  // Where a written tensor's values and bounds lie: an output's two buffers, or the workspace.
  struct Location {
    int value_buffer = -1;  // -1: in the workspace
    int64_t value_offset = 0;
    int64_t bound_offset = 0;
    bool has_bound = false;  // set once its statement is written; else E is 0
  };
  // Running totals of a reduction in one number of lanes.
  struct Totals {
    llvm::AllocaInst* value = nullptr;
    llvm::AllocaInst* magnitude = nullptr;  // sum of |term|
    llvm::AllocaInst* error = nullptr;      // sum, or largest, of E
  };
  // The same, all terms taken.
  struct ReducedValues {
    llvm::Value* value = nullptr;
    llvm::Value* magnitude = nullptr;
    llvm::Value* error = nullptr;
  };
  // Which parts of E a reduction's terms have; the same for all of them.
  struct TermKind {
    bool error = false;
    double relative = 0;
  };

  // A kReduce at the context's point: goes through its terms and calls Finish.
  virtual Bounded Reduce(const Expr& reduce, const EmitContext& context) = 0;

  // What follows is about the statement that began last, whose entry must outlive it.
  void BeginStatement(const KernelModule::EntryValues& entry);
  EmitContext NewContext() const;  // one lane, no index set
  // Evaluates the statement at the context's point and stores value and bound.
  void Store(const Statement& statement, const EmitContext& context);
  Bounded Evaluate(const Expr& expr, const EmitContext& context);
  // As part of an expression that kernels compute in `compute`.
  Bounded EvaluateIn(const Expr& expr, ElementType compute, const EmitContext& context);
  llvm::Value* ErrorOf(const Bounded& x, const EmitContext& context);
  // Whether every element of a tensor has E = 0.
  bool IsExact(int tensor) const;

  Totals NewTotals(ReduceOp op, int lanes);
  void AddTo(llvm::AllocaInst* total, ReduceOp op, llvm::Value* term);
  // `rounds`: the accumulator does.
  TermKind AddTerm(const Expr& reduce, const EmitContext& context, const Totals& totals,
                   bool rounds);
  double AccumulatorRoundoff(const Expr& reduce) const;
  Bounded Finish(const Expr& reduce, const ReducedValues& reduced, const TermKind& kind);

  KernelModule& m_;
  const Workload& workload_;
  const KernelModule::EntryValues* entry_ = nullptr;

 private:
  llvm::Value* InWorkspace(int64_t offset);
  llvm::Value* ValueBase(const Location& place);
  llvm::Value* BoundBase(const Location& place);
  Bounded Read(const Expr& read, ElementType compute, const EmitContext& context);

  const double u_acc_;
  std::map<int, Location> places_;  // by tensor
  std::unique_ptr<TensorAccess> values_;
  std::unique_ptr<TensorAccess> bounds_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_REFERENCE_EMITTER_H_
