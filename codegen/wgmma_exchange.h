// Stream-K: sums of a tile whose k several CTAs share meet in the workspace.
//
// Each CTA leaves at most one part of a tile to another. Its consumers write their sums, each
// thread its own, to the CTA's place and raise the CTA's flag; the CTA that has the tile's last k
// block awaits the flags, adds the sums in a fixed order and lowers the flags, so that the next
// call finds them as this one did.
#ifndef TILEWRIGHT_CODEGEN_WGMMA_EXCHANGE_H_
#define TILEWRIGHT_CODEGEN_WGMMA_EXCHANGE_H_

#include <vector>

#include "codegen/wgmma_kernel.h"
#include "codegen/wgmma_tiles.h"

namespace tilewright {

// Borrows both. All threads of a consumer call it; `sums` as EmitMainloop returns them.
class PartialSums {
 public:
  PartialSums(WgmmaKernel& kernel, const TileWalk& walk) : k_(kernel), walk_(walk) {}

  void Leave(const std::vector<llvm::Value*>& sums);
  // `sums` and those of the tile's earlier parts, the nearest first. Leaves none out: waits.
  std::vector<llvm::Value*> AddOthers(const WgmmaTile& tile, const std::vector<llvm::Value*>& sums);

 private:
  // i64 addresses of a CTA's flag and of this thread's first four sums.
  llvm::Value* Flag(llvm::Value* cta) const;
  llvm::Value* Place(llvm::Value* cta) const;
  llvm::Value* Cta(llvm::Value* walker) const;
  llvm::Value* OwnBarrier() const;
  size_t QuadsAtOnce() const;

  WgmmaKernel& k_;
  const TileWalk& walk_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_EXCHANGE_H_
