// Copies of a contraction's operands to a ring of stages in shared memory, on a GPU, as
// schedule/shared_operand.h lays them out.
//
//   SharedCopies copies(module, contraction, entry, reads, {…});
//   copies.BeginTile(indices, first_row, first_column);
//   copies.ForSteps([&](llvm::Value* slot) { … products of the step in `slot` … });
//
// Not thread-safe; one per entry. Borrows all it is made of.
#ifndef TILEWRIGHT_CODEGEN_SHARED_COPIES_H_
#define TILEWRIGHT_CODEGEN_SHARED_COPIES_H_

#include <functional>
#include <vector>

#include "codegen/contraction_reads.h"
#include "codegen/kernel_module.h"
#include "schedule/shared_operand.h"

namespace tilewright {

class SharedCopies {
 public:
  struct Shape {
    SharedOperand a;
    SharedOperand b;
    int64_t tile_k = 0;
    int stages = 1;
    int block = 0;  // threads
  };
  // Begins inside the entry.
  SharedCopies(KernelModule& module, const Contraction& contraction,
               const KernelModule::DeviceEntry& entry, const ContractionReads& reads,
               const Shape& shape);
  // cp.async needs addresses that are multiples of what it copies: raises the module's alignments.
  static void RequireAlignments(KernelModule* module, const Contraction& contraction,
                                const Shape& shape);

  // Turns to the tile of the output that begins at `row` and `column` of the batch in `indices`.
  void BeginTile(const std::vector<llvm::Value*>& indices, llvm::Value* row, llvm::Value* column);
  // Goes through the steps of k: body(slot) for each, whose data are then in that slot of the ring.
  // Elements outside the operand are 0. Afterwards the threads' copies have ended; shared memory
  // may be used otherwise after a barrier.
  void ForSteps(const std::function<void(llvm::Value*)>& body);

  // Bytes from the start of shared memory to an element of the step in `slot`; row and depth count
  // from the tile's corner.
  llvm::Value* AddressOfA(llvm::Value* slot, llvm::Value* row, llvm::Value* depth) {
    return AddressOf(a_, slot, row, depth);
  }
  llvm::Value* AddressOfB(llvm::Value* slot, llvm::Value* row, llvm::Value* depth) {
    return AddressOf(b_side_, slot, row, depth);
  }
  llvm::Value* Pointer(llvm::Value* bytes);

 private:
  // One operand.
  struct Side {
    const ContractionOperand* operand = nullptr;
    const SharedOperand* place = nullptr;
    const Axis* axis = nullptr;
    llvm::Value* extent = nullptr;  // rows there are
    int64_t shared_offset = 0;      // bytes
    llvm::Value* first = nullptr;   // the tile's first row
    llvm::Value* base = nullptr;    // element offset of row 0, depth 0; null if not linear
    bool fills_tiles = false;       // every tile has all its rows
    // What an element-by-element copy has read and not yet stored, by piece.
    std::vector<llvm::AllocaInst*> held;
  };
  llvm::Value* AddressOf(const Side& side, llvm::Value* slot, llvm::Value* row, llvm::Value* depth);
  void ForPieces(const SharedOperand& place, bool along_depth, int64_t length,
                 const std::function<void(llvm::Value*, llvm::Value*, int)>& body);
  llvm::Value* ElementOffset(const Side& side, llvm::Value* row, llvm::Value* depth);
  void CopyAsync(const Side& side, llvm::Value* slot, llvm::Value* depth0);
  void ReadElements(Side* side, llvm::Value* depth0);
  llvm::Value* AnyElement(const Side& side, llvm::Value* row, llvm::Value* depth);
  void StoreElements(const Side& side, llvm::Value* slot);
  void StartStep(llvm::Value* slot, llvm::Value* depth);
  void StoreStep(llvm::Value* slot);
  void WaitForCopies(int pending);
  bool AnyCopied() const { return shape_.a.copied || shape_.b.copied; }

  KernelModule& m_;
  llvm::IRBuilder<>& b_;
  const Contraction& c_;
  const KernelModule::DeviceEntry& entry_;
  const ContractionReads& reads_;
  const Shape shape_;
  bool fills_steps_;  // every step has all its depths
  llvm::Value* thread_;
  Side a_;
  Side b_side_;
  std::vector<llvm::Value*> indices_;  // of the tile
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_SHARED_COPIES_H_
