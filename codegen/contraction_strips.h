// Packing: copies rows of an operand into strips, [k][row], widened to the accumulator's type. Used
// by the contraction writers.
#ifndef TILEWRIGHT_CODEGEN_CONTRACTION_STRIPS_H_
#define TILEWRIGHT_CODEGEN_CONTRACTION_STRIPS_H_

#include <vector>

#include "codegen/contraction_reads.h"

namespace tilewright {

// What is packed: `rows` rows (fewer at the end of the extent) times `steps` steps of k from
// `first_step`.
struct StripSource {
  const ContractionOperand* operand = nullptr;
  const Axis* axis = nullptr;         // of its rows
  std::vector<llvm::Value*> indices;  // the batch's; those of row and k are 0
  llvm::Value* extent = nullptr;      // rows there are in all
  llvm::Value* first_step = nullptr;
  llvm::Value* steps = nullptr;
  int strip_rows = 1;
  ElementType accumulator = ElementType::kF32;
  int lanes = 1;  // of a vector of accumulators
};

// Packs strips [first, last) to `destination`, one after the other, strip_rows * steps elements
// each. Rows past the extent are filled with something finite or repeated; what is computed from
// them is never stored. Writes nothing past the last strip.
void EmitPackStrips(KernelModule& module, const ContractionReads& reads, const StripSource& source,
                    llvm::Value* first, llvm::Value* last, llvm::Value* destination);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_CONTRACTION_STRIPS_H_
