// The ring of stages between the producer and the consumers of a contraction.wgmma kernel.
//
// Each stage has two mbarriers. `full`: one arrival (the producer's, with the bytes it expects) and
// those bytes complete a phase. `empty`: an arrival of each warpgroup that has read the stage, in
// this CTA and, where operands are multicast, in its peer. Both sides walk the ring in the same
// order; a side knows where it is by a stage and the parity of the phase it waits for next.
#ifndef TILEWRIGHT_CODEGEN_WGMMA_PIPELINE_H_
#define TILEWRIGHT_CODEGEN_WGMMA_PIPELINE_H_

#include "codegen/wgmma_kernel.h"

namespace tilewright {

struct RingPosition {
  llvm::Value* stage;
  llvm::Value* parity;
};

class StageRing {
 public:
  // Makes the barriers, by one thread; all threads must be told before they use them.
  static void Initialise(WgmmaKernel& kernel);

  // A side's walk. The producer begins with parity 1, at which a fresh barrier does not wait: all
  // stages are empty.
  StageRing(WgmmaKernel& kernel, int first_parity);

  RingPosition Get() const { return {stage_.Get(), parity_.Get()}; }
  void Set(const RingPosition& position) const;
  // The position one stage, or any number of stages, further.
  RingPosition Next(const RingPosition& position) const;
  RingPosition Skip(const RingPosition& position, llvm::Value* stages) const;

  llvm::Value* Full(llvm::Value* stage) const;
  llvm::Value* Empty(llvm::Value* stage) const;
  llvm::Value* Data(llvm::Value* stage) const;  // address of the stage

 private:
  WgmmaKernel& k_;
  DeviceVariable stage_;
  DeviceVariable parity_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WGMMA_PIPELINE_H_
