#include "codegen/contraction_simt.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "codegen/contraction_reads.h"
#include "codegen/convert.h"
#include "codegen/kernel_module.h"
#include "codegen/output_tiles.h"
#include "codegen/shared_copies.h"
#include "llvm/IR/Intrinsics.h"
#include "schedule/contraction_simt.h"

namespace tilewright {
namespace {

using llvm::Value;

DeviceLaunch LaunchOfSimt(const ContractionSimtPlan& plan) {
  DeviceLaunch launch;
  launch.grid[0] = plan.grid;
  launch.block = plan.block;
  launch.shared_memory_bytes = plan.shared_bytes;
  launch.minimum_blocks = plan.blocks_per_core;
  return launch;
}

SharedCopies::Shape CopiesOfSimt(const ContractionSimtPlan& plan) {
  return {plan.a, plan.b, plan.tile_k, plan.stages, plan.block};
}

class SimtWriter {
 public:
  SimtWriter(const ContractionSimtPlan& plan, KernelModule& module)
      : plan_(plan),
        m_(module),
        b_(module.builder()),
        type_(plan.contraction->accumulator),
        is_float_(Info(plan.contraction->accumulator).is_float),
        entry_(module.BeginDeviceEntry(LaunchOfSimt(plan))),
        reads_(module, *plan.contraction, entry_),
        tiles_(module, *plan.contraction, entry_, reads_,
               {plan.tile_m, plan.tile_n, plan.group_m, plan.grid, plan.block}),
        copies_(module, *plan.contraction, entry_, reads_, CopiesOfSimt(plan)) {}

  void Write() {
    PlaceThread();
    for (int i = 0; i < plan_.thread_m * plan_.thread_n; ++i)
      sums_.push_back(m_.Local(m_.Type(type_), "sum", 1, 8));
    tiles_.ForTiles([&] {
      copies_.BeginTile(tiles_.indices(), tiles_.first_row(), tiles_.first_column());
      for (llvm::AllocaInst* sum : sums_)
        b_.CreateStore(llvm::Constant::getNullValue(m_.Type(type_)), sum);
      copies_.ForSteps([&](Value* slot) { AddProducts(slot); });
      m_.Barrier();  // the shared memory of this tile is free again
      Finish();
    });
    m_.EndEntry();
  }

 private:
  // The thread's position among the tile's threads: warps of warp_m x warp_n.
  void PlaceThread() {
    const int64_t across = plan_.threads_n / plan_.warp_n;
    Value* warp = b_.CreateUDiv(tiles_.thread(), m_.Int(32));
    Value* lane = b_.CreateURem(tiles_.thread(), m_.Int(32));
    Value* warp_row = b_.CreateNSWMul(b_.CreateUDiv(warp, m_.Int(across)), m_.Int(plan_.warp_m));
    Value* warp_column = b_.CreateNSWMul(b_.CreateURem(warp, m_.Int(across)), m_.Int(plan_.warp_n));
    own_m_ = b_.CreateNSWAdd(warp_row, b_.CreateUDiv(lane, m_.Int(plan_.warp_n)));
    own_n_ = b_.CreateNSWAdd(warp_column, b_.CreateURem(lane, m_.Int(plan_.warp_n)));
  }

  // How many of a thread's rows lie side by side in the tile: those that one load brings.
  static int AdjacentRows(const SharedOperand& place, int own) {
    if (place.depth_contiguous) return 1;
    return std::min(own, 16 / std::max(4, Info(place.type).bytes));
  }
  // The thread's i-th row of a, or column of b, in the tile.
  Value* OwnRow(bool is_a, int i) {
    const int own = is_a ? plan_.thread_m : plan_.thread_n;
    const int threads = is_a ? plan_.threads_m : plan_.threads_n;
    const int adjacent = AdjacentRows(is_a ? plan_.a : plan_.b, own);
    Value* row = b_.CreateNSWMul(is_a ? own_m_ : own_n_, m_.Int(adjacent));
    return b_.CreateNSWAdd(row, m_.Int(int64_t{i / adjacent} * threads * adjacent + i % adjacent));
  }

  // Adds the products of the step in `slot`.
  void AddProducts(Value* slot) {
    const int64_t products = int64_t{plan_.thread_m} * plan_.thread_n * plan_.step_k;
    const int64_t rounds = plan_.tile_k / plan_.step_k;
    const int64_t unroll = std::clamp<int64_t>(512 / products, 1, rounds);
    m_.For(
        m_.Int(0), m_.Int(plan_.tile_k), plan_.step_k, "depth",
        [&](Value* depth) {
          const auto a = Load(/*is_a=*/true, slot, depth);
          const auto b = Load(/*is_a=*/false, slot, depth);
          for (int k = 0; k < plan_.step_k; ++k) {
            for (int i = 0; i < plan_.thread_m; ++i) {
              for (int j = 0; j < plan_.thread_n; ++j)
                AddProduct(sums_[i * plan_.thread_n + j], a[k][i], b[k][j]);
            }
          }
        },
        static_cast<int>(unroll));
  }

  void AddProduct(llvm::AllocaInst* slot, Value* x, Value* y) {
    llvm::Type* type = m_.Type(type_);
    Value* sum = b_.CreateAlignedLoad(type, slot, llvm::Align(8));
    sum = is_float_ ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, sum})
                    : b_.CreateAdd(b_.CreateMul(x, y), sum);
    b_.CreateAlignedStore(sum, slot, llvm::Align(8));
  }

  // A thread's rows at step_k depths from `depth`, [depth][row], in the accumulator's type.
  std::vector<std::vector<Value*>> Load(bool is_a, Value* slot, Value* depth) {
    const SharedOperand& place = is_a ? plan_.a : plan_.b;
    const int own = is_a ? plan_.thread_m : plan_.thread_n;
    std::vector<std::vector<Value*>> values(plan_.step_k, std::vector<Value*>(own));
    auto load = [&](Value* row, Value* k, int lanes) {
      Value* address = is_a ? copies_.AddressOfA(slot, row, k) : copies_.AddressOfB(slot, row, k);
      const int64_t bytes = int64_t{Info(place.type).bytes} * lanes;
      Value* loaded =
          b_.CreateAlignedLoad(StorageBits(m_, place.type, lanes), copies_.Pointer(address),
                               llvm::Align(static_cast<uint64_t>(bytes)));
      return WidenElements(m_, place.type, loaded, type_);
    };
    auto lane = [&](Value* vector, int i) {
      return vector->getType()->isVectorTy()
                 ? b_.CreateExtractElement(vector, static_cast<uint64_t>(i))
                 : vector;
    };
    if (place.depth_contiguous) {
      for (int i = 0; i < own; ++i) {
        Value* vector = load(OwnRow(is_a, i), depth, plan_.step_k);
        for (int k = 0; k < plan_.step_k; ++k) values[k][i] = lane(vector, k);
      }
      return values;
    }
    const int adjacent = AdjacentRows(place, own);
    for (int k = 0; k < plan_.step_k; ++k) {
      for (int i = 0; i < own; i += adjacent) {
        Value* vector = load(OwnRow(is_a, i), b_.CreateNSWAdd(depth, m_.Int(k)), adjacent);
        for (int e = 0; e < adjacent; ++e) values[k][i + e] = lane(vector, e);
      }
    }
    return values;
  }

  void Finish() {
    for (int i = 0; i < plan_.thread_m; ++i) {
      for (int j = 0; j < plan_.thread_n; ++j) {
        Value* row = OwnRow(/*is_a=*/true, i);
        Value* column = OwnRow(/*is_a=*/false, j);
        Value* sum =
            b_.CreateAlignedLoad(m_.Type(type_), sums_[i * plan_.thread_n + j], llvm::Align(8));
        if (plan_.staged_epilogue) {
          tiles_.Stage(row, column, sum);
        } else {
          tiles_.Finish(row, column, sum);
        }
      }
    }
    if (plan_.staged_epilogue) tiles_.FinishStaged();
  }

  const ContractionSimtPlan& plan_;
  KernelModule& m_;
  llvm::IRBuilder<>& b_;
  const ElementType type_;
  const bool is_float_;
  const KernelModule::DeviceEntry entry_;
  const ContractionReads reads_;
  OutputTiles tiles_;
  SharedCopies copies_;
  Value* own_m_ = nullptr;  // the thread's position along m, in 0 … threads_m - 1
  Value* own_n_ = nullptr;
  std::vector<llvm::AllocaInst*> sums_;  // [row][column]
};

}  // namespace

absl::Status WriteContractionSimt(const Candidate&, const Plan& plan, KernelModule* module) {
  const auto& simt = static_cast<const ContractionSimtPlan&>(plan);
  SharedCopies::RequireAlignments(module, *simt.contraction, CopiesOfSimt(simt));
  SimtWriter(simt, *module).Write();
  return absl::OkStatus();
}

}  // namespace tilewright
