#include "codegen/contraction_mma.h"

#include <array>
#include <vector>

#include "codegen/contraction_reads.h"
#include "codegen/convert.h"
#include "codegen/kernel_module.h"
#include "codegen/output_tiles.h"
#include "codegen/shared_copies.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "schedule/contraction_mma.h"

namespace tilewright {
namespace {

using llvm::Value;

// A lane's 32-bit registers of 16 rows by 32 bytes of k (a), or of twice 8 columns by 32 bytes (b).
using Fragment = std::array<Value*, 4>;

DeviceLaunch LaunchOfMma(const ContractionMmaPlan& plan) {
  DeviceLaunch launch;
  launch.grid[0] = plan.grid;
  launch.block = plan.block;
  launch.shared_memory_bytes = plan.shared_bytes;
  launch.minimum_blocks = plan.blocks_per_core;
  return launch;
}

SharedCopies::Shape CopiesOfMma(const ContractionMmaPlan& plan) {
  return {plan.a, plan.b, plan.tile_k, plan.stages, plan.block};
}

llvm::Intrinsic::ID MultiplyOf(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32;
    case ElementType::kBF16:
      return llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16;
    case ElementType::kI8:
      return llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_s8;
    default:
      return llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
  }
}

class MmaWriter {
 public:
  MmaWriter(const ContractionMmaPlan& plan, KernelModule& module)
      : plan_(plan),
        m_(module),
        b_(module.builder()),
        accumulator_(plan.contraction->accumulator),
        entry_(module.BeginDeviceEntry(LaunchOfMma(plan))),
        reads_(module, *plan.contraction, entry_),
        tiles_(module, *plan.contraction, entry_, reads_,
               {plan.tile_m, plan.tile_n, plan.group_m, plan.grid, plan.block}),
        copies_(module, *plan.contraction, entry_, reads_, CopiesOfMma(plan)) {}

  void Write() {
    Value* warp = b_.CreateUDiv(tiles_.thread(), m_.Int(32));
    lane_ = b_.CreateURem(tiles_.thread(), m_.Int(32));
    warp_row_ = b_.CreateNSWMul(b_.CreateUDiv(warp, m_.Int(plan_.warps_n)),
                                m_.Int(plan_.tile_m / plan_.warps_m));
    warp_column_ = b_.CreateNSWMul(b_.CreateURem(warp, m_.Int(plan_.warps_n)),
                                   m_.Int(plan_.tile_n / plan_.warps_n));
    for (int i = 0; i < plan_.blocks_m * plan_.blocks_n * 4; ++i)
      sums_.push_back(m_.Local(m_.Type(accumulator_), "sum", 1, 4));
    tiles_.ForTiles([&] {
      copies_.BeginTile(tiles_.indices(), tiles_.first_row(), tiles_.first_column());
      for (llvm::AllocaInst* sum : sums_)
        b_.CreateStore(llvm::Constant::getNullValue(m_.Type(accumulator_)), sum);
      copies_.ForSteps([&](Value* slot) {
        for (int64_t k = 0; k < plan_.tile_k; k += plan_.block_k) AddProducts(slot, k);
      });
      m_.Barrier();  // the shared memory of this tile is free again
      Finish();
    });
    m_.EndEntry();
  }

 private:
  // Adds the products of one block of k.
  void AddProducts(Value* slot, int64_t k) {
    std::vector<Fragment> a, b;
    for (int i = 0; i < plan_.blocks_m; ++i) a.push_back(LoadA(slot, i, k));
    for (int j = 0; j < plan_.blocks_n; j += 2) b.push_back(LoadB(slot, j, k));
    for (int i = 0; i < plan_.blocks_m; ++i) {
      for (int j = 0; j < plan_.blocks_n; ++j) {
        const Fragment& pair = b[j / 2];
        Multiply(i, j, a[i], pair[2 * (j % 2)], pair[2 * (j % 2) + 1]);
      }
    }
  }

  // PTX ISA, "ldmatrix": lanes 8i to 8i+7 give the addresses of the lines of matrix i, 16 bytes
  // each; with .trans a line is a depth. Matrices of a: rows 0-7 then 8-15 of the first 16 bytes of
  // k, then of the second.
  Fragment LoadA(Value* slot, int block, int64_t k) {
    const int64_t half = plan_.block_k / 2;
    Value* in_matrix = b_.CreateURem(lane_, m_.Int(8));
    Value* odd = b_.CreateURem(b_.CreateUDiv(lane_, m_.Int(8)), m_.Int(2));  // matrix 1 or 3
    Value* late = b_.CreateUDiv(lane_, m_.Int(16));                          // matrix 2 or 3
    Value* row = b_.CreateNSWAdd(warp_row_, m_.Int(int64_t{block} * 16));
    row = b_.CreateNSWAdd(row, b_.CreateNSWMul(odd, m_.Int(8)));
    Value* depth = b_.CreateNSWAdd(m_.Int(k), b_.CreateNSWMul(late, m_.Int(half)));
    if (plan_.a.depth_contiguous) {
      row = b_.CreateNSWAdd(row, in_matrix);
    } else {
      depth = b_.CreateNSWAdd(depth, in_matrix);
    }
    return LoadMatrices(copies_.AddressOfA(slot, row, depth), !plan_.a.depth_contiguous, plan_.a);
  }

  // Matrices of b: the first and the second 16 bytes of k of columns 0-7, then of 8-15.
  Fragment LoadB(Value* slot, int block, int64_t k) {
    const int64_t half = plan_.block_k / 2;
    Value* in_matrix = b_.CreateURem(lane_, m_.Int(8));
    Value* odd = b_.CreateURem(b_.CreateUDiv(lane_, m_.Int(8)), m_.Int(2));
    Value* late = b_.CreateUDiv(lane_, m_.Int(16));
    Value* column = b_.CreateNSWAdd(warp_column_, m_.Int(int64_t{block} * 8));
    column = b_.CreateNSWAdd(column, b_.CreateNSWMul(late, m_.Int(8)));
    Value* depth = b_.CreateNSWAdd(m_.Int(k), b_.CreateNSWMul(odd, m_.Int(half)));
    if (plan_.b.depth_contiguous) {
      column = b_.CreateNSWAdd(column, in_matrix);
    } else {
      depth = b_.CreateNSWAdd(depth, in_matrix);
    }
    return LoadMatrices(copies_.AddressOfB(slot, column, depth), !plan_.b.depth_contiguous,
                        plan_.b);
  }

  Fragment LoadMatrices(Value* address, bool transposed, const SharedOperand& place) {
    Value* loaded = b_.CreateIntrinsic(
        transposed ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                   : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
        {entry_.shared->getType()}, {copies_.Pointer(address)});
    Fragment fragment;
    for (unsigned i = 0; i < 4; ++i) {
      fragment[i] = b_.CreateExtractValue(loaded, i);
      // What went through registers has been rounded on the way.
      if (plan_.tf32 && place.copied) {
        Value* number = b_.CreateBitCast(fragment[i], b_.getFloatTy());
        fragment[i] = b_.CreateBitCast(RoundToTf32Bits(m_, number), b_.getInt32Ty());
      }
    }
    return fragment;
  }

  void Multiply(int block_m, int block_n, const Fragment& a, Value* b0, Value* b1) {
    llvm::Type* part = plan_.type == ElementType::kF16
                           ? llvm::FixedVectorType::get(b_.getHalfTy(), 2)
                           : static_cast<llvm::Type*>(b_.getInt32Ty());
    std::vector<Value*> values;
    for (Value* value : {a[0], a[1], a[2], a[3], b0, b1})
      values.push_back(b_.CreateBitCast(value, part));
    llvm::AllocaInst** sums = &sums_[(block_m * plan_.blocks_n + block_n) * 4];
    for (int i = 0; i < 4; ++i) values.push_back(b_.CreateLoad(m_.Type(accumulator_), sums[i]));
    Value* result = b_.CreateIntrinsic(MultiplyOf(plan_.type), {}, values);
    for (unsigned i = 0; i < 4; ++i) b_.CreateStore(b_.CreateExtractValue(result, i), sums[i]);
  }

  // PTX ISA, "Matrix Fragments for mma.m16n8k16": a lane's four sums are two neighbours in row
  // lane / 4 and two in the row eight below, from column 2 * (lane % 4).
  void Finish() {
    Value* row = b_.CreateNSWAdd(warp_row_, b_.CreateUDiv(lane_, m_.Int(4)));
    Value* column =
        b_.CreateNSWAdd(warp_column_, b_.CreateNSWMul(b_.CreateURem(lane_, m_.Int(4)), m_.Int(2)));
    for (int i = 0; i < plan_.blocks_m; ++i) {
      for (int j = 0; j < plan_.blocks_n; ++j) {
        for (int part = 0; part < 4; ++part) {
          Value* y = b_.CreateNSWAdd(row, m_.Int(int64_t{i} * 16 + (part / 2) * 8));
          Value* x = b_.CreateNSWAdd(column, m_.Int(int64_t{j} * 8 + part % 2));
          Value* sum =
              b_.CreateLoad(m_.Type(accumulator_), sums_[(i * plan_.blocks_n + j) * 4 + part]);
          if (plan_.staged_epilogue) {
            tiles_.Stage(y, x, sum);
          } else {
            tiles_.Finish(y, x, sum);
          }
        }
      }
    }
    if (plan_.staged_epilogue) tiles_.FinishStaged();
  }

  const ContractionMmaPlan& plan_;
  KernelModule& m_;
  llvm::IRBuilder<>& b_;
  const ElementType accumulator_;
  const KernelModule::DeviceEntry entry_;
  const ContractionReads reads_;
  OutputTiles tiles_;
  SharedCopies copies_;
  Value* lane_ = nullptr;
  Value* warp_row_ = nullptr;  // of the warp's part of the tile
  Value* warp_column_ = nullptr;
  std::vector<llvm::AllocaInst*> sums_;  // [block_m][block_n][4]
};

}  // namespace

absl::Status WriteContractionMma(const Candidate&, const Plan& plan, KernelModule* module) {
  const auto& mma = static_cast<const ContractionMmaPlan&>(plan);
  SharedCopies::RequireAlignments(module, *mma.contraction, CopiesOfMma(mma));
  MmaWriter(mma, *module).Write();
  return absl::OkStatus();
}

}  // namespace tilewright
