// How the roles of a contraction become addresses and loads. Used by the writers of that family.
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_READS_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_READS_H_

#include <vector>

#include "codegen/emit_expr.h"
#include "codegen/kernel_module.h"
#include "schedule/match.h"

namespace tilewright {

// Values of one entry. Borrows all it is made of.
class ContractionReads {
 public:
  ContractionReads(KernelModule& module, const Contraction& contraction,
                   const KernelModule::EntryValues& entry);

  llvm::Value* Extent(const Axis& axis) const;
  llvm::Value* BatchCount() const { return batches_; }
  // Number of combinations of the batch axes that an operand depends on.
  llvm::Value* BatchCount(const ContractionOperand& operand) const;
  llvm::Value* K() const { return k_; }
  llvm::Value* Of(const Stride& stride) const;
  llvm::Value* Buffer(int tensor) const;

  // Values of all indices at a position of the batch, 0 for those of m, n and k.
  std::vector<llvm::Value*> AtBatch(llvm::Value* position) const;
  // The same from a position among the batch axes that the operand depends on.
  std::vector<llvm::Value*> AtBatch(const ContractionOperand& operand, llvm::Value* position) const;
  // The operand's position among its own batch axes.
  llvm::Value* OwnBatch(const ContractionOperand& operand,
                        const std::vector<llvm::Value*>& indices) const;
  // Sets the k indices from a flattened position.
  void SetK(llvm::Value* position, std::vector<llvm::Value*>* indices) const;

  // Element offset of tensor[subscripts].
  llvm::Value* Offset(int tensor, absl::Span<const AffineIndex> subscripts,
                      const std::vector<llvm::Value*>& indices) const;
  // The value of a read in `lanes` lanes along `lane_index`; 0 where a compound subscript leaves
  // the tensor.
  llvm::Value* Read(const Expr& read, const std::vector<llvm::Value*>& indices, int lane_index,
                    int lanes, ElementType compute) const;
  // One element of an operand, in the accumulator's type.
  llvm::Value* Element(const ContractionOperand& operand,
                       const std::vector<llvm::Value*>& indices) const;
  // `lanes` elements of a linear operand, adjacent in memory from element `offset` of its tensor.
  llvm::Value* Adjacent(const ContractionOperand& operand, llvm::Value* offset, int lanes) const;
  // The statement's value where the sum has the value `sum`, in Contraction::compute.
  llvm::Value* Epilogue(llvm::Value* sum, const std::vector<llvm::Value*>& indices,
                        int lanes) const;

 private:
  void SetBatch(absl::Span<const int> axes, llvm::Value* position,
                std::vector<llvm::Value*>* indices) const;
  llvm::Value* ReadOne(const Expr& read, const std::vector<llvm::Value*>& indices,
                       ElementType compute) const;

  KernelModule& module_;
  const Contraction& contraction_;
  const KernelModule::EntryValues& entry_;
  llvm::Value* batches_;
  llvm::Value* k_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_READS_H_
