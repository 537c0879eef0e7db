#include "codegen/contraction_direct.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/contraction_reads.h"
#include "codegen/convert.h"
#include "codegen/kernel_module.h"
#include "codegen/output_tiles.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "schedule/contraction_direct.h"

namespace tilewright {
namespace {

using llvm::Value;

constexpr int kWarpThreads = 32;

DeviceLaunch LaunchOfDirect(const ContractionDirectPlan& plan) {
  DeviceLaunch launch;
  launch.grid[0] = plan.grid;
  launch.block = plan.block;
  launch.shared_memory_bytes = plan.shared_bytes;
  return launch;
}

// Elements as loaded: one load each, in storage bits, or widened already where an expression was
// applied.
struct LoadedPiece {
  std::vector<Value*> loads;
  bool widened = false;
};

class DirectWriter {
 public:
  DirectWriter(const ContractionDirectPlan& plan, KernelModule& module)
      : plan_(plan),
        m_(module),
        b_(module.builder()),
        c_(*plan.contraction),
        type_(c_.accumulator),
        entry_(module.BeginDeviceEntry(LaunchOfDirect(plan))),
        reads_(module, c_, entry_),
        tiles_(module, c_, entry_, reads_,
               {.tile_m = plan.tile_m(),
                .tile_n = plan.tile_n(),
                .grid = plan.grid,
                .block = plan.block,
                .one_each = !plan.several_tiles}) {
    a_.operand = &c_.a;
    a_.axis = &c_.m;
    a_.place = plan.a;
    a_.own = plan.rows;
    a_.threads = plan.threads_m;
    b_side_.operand = &c_.b;
    b_side_.axis = &c_.n;
    b_side_.place = plan.b;
    b_side_.own = plan.columns;
    b_side_.threads = plan.threads_n;
  }

  void Write() {
    PlaceThread();
    for (int i = 0; i < plan_.rows * plan_.columns; ++i)
      sums_.push_back(m_.Local(m_.Type(type_), "sum", 1, 8));
    tiles_.ForTiles([&] {
      BeginSide(&a_, tiles_.first_row());
      BeginSide(&b_side_, tiles_.first_column());
      for (llvm::AllocaInst* sum : sums_)
        b_.CreateStore(llvm::Constant::getNullValue(m_.Type(type_)), sum);
      AddAllProducts();
      Finish();
    });
    m_.EndEntry();
  }

 private:
  // One operand.
  struct Side {
    const ContractionOperand* operand = nullptr;
    const Axis* axis = nullptr;
    DirectOperand place;
    int own = 1;                // rows of a thread
    int threads = 1;            // side by side along them
    Value* position = nullptr;  // of this thread among them
    // Of the tile: each own row, at most the last there is; for those that are linear the offset of
    // its depth 0.
    std::vector<Value*> rows;
    std::vector<Value*> offsets;
  };

  // Neighbouring threads have neighbouring parts of k or neighbouring columns; rows are farthest.
  void PlaceThread() {
    Value* thread = tiles_.thread();
    auto next = [&](int count) {
      Value* own = b_.CreateURem(thread, m_.Int(count));
      thread = b_.CreateUDiv(thread, m_.Int(count));
      return own;
    };
    if (plan_.k_first) own_k_ = next(plan_.threads_k);
    b_side_.position = next(plan_.threads_n);
    if (!plan_.k_first) own_k_ = next(plan_.threads_k);
    a_.position = thread;
  }

  // The thread's i-th row of the tile: neighbours of one load, then those of the other threads.
  Value* OwnRow(const Side& side, int i) {
    const int lanes = side.place.row_lanes;
    Value* first = b_.CreateNSWMul(side.position, m_.Int(lanes));
    return b_.CreateNSWAdd(first, m_.Int(int64_t{i / lanes} * side.threads * lanes + i % lanes));
  }

  void BeginSide(Side* side, Value* first) {
    side->rows.clear();
    side->offsets.clear();
    Value* extent = reads_.Extent(*side->axis);
    const bool linear = side->operand->linear;
    Value* base = nullptr;
    if (linear) {
      const Expr& read = *side->operand->read;
      base = reads_.Offset(read.tensor, read.subscripts, tiles_.indices());
    }
    for (int i = 0; i < side->own; i += side->place.row_lanes) {
      // Rows that there are not read another's elements; nothing is stored for them. The last whole
      // load begins row_lanes before the end.
      Value* row = m_.Min(b_.CreateNSWAdd(first, OwnRow(*side, i)),
                          b_.CreateNSWSub(extent, m_.Int(side->place.row_lanes)));
      for (int lane = 0; lane < side->place.row_lanes; ++lane)
        side->rows.push_back(b_.CreateNSWAdd(row, m_.Int(lane)));
      if (!linear) continue;
      side->offsets.push_back(
          b_.CreateNSWAdd(base, b_.CreateNSWMul(row, reads_.Of(side->operand->row_stride))));
    }
  }

  // ---- Rounds: in each every thread of a sum has one piece of k

  std::optional<int64_t> KnownK() const {
    auto* known = llvm::dyn_cast<llvm::ConstantInt>(reads_.K());
    return known == nullptr ? std::nullopt : std::optional<int64_t>(known->getSExtValue());
  }

  Value* DepthOfRound(Value* round) {
    Value* piece = b_.CreateNSWAdd(b_.CreateNSWMul(round, m_.Int(plan_.threads_k)), own_k_);
    return b_.CreateNSWMul(piece, m_.Int(plan_.vector_k));
  }

  void AddAllProducts() {
    // Whole pieces: a plan has wider ones only where they fill k.
    const int64_t round = int64_t{plan_.threads_k} * plan_.vector_k;
    Value* full = b_.CreateUDiv(reads_.K(), m_.Int(round));
    Value* grouped =
        b_.CreateNSWMul(b_.CreateUDiv(full, m_.Int(plan_.unroll)), m_.Int(plan_.unroll));
    m_.For(m_.Int(0), grouped, plan_.unroll, "round",
           [&](Value* first) { AddRounds(first, plan_.unroll, plan_.unroll); });
    if (const std::optional<int64_t> k = KnownK()) {
      const int64_t whole = *k / round, rounds = (*k + round - 1) / round;
      const int64_t left = rounds - whole / plan_.unroll * plan_.unroll;
      AddRounds(grouped, static_cast<int>(left), static_cast<int>(left - (rounds > whole ? 1 : 0)));
      return;
    }
    // At most `unroll` rounds are left, each of which may lack some or all of its depths.
    m_.If(b_.CreateICmpSLT(b_.CreateNSWMul(grouped, m_.Int(round)), reads_.K()),
          [&] { AddRounds(grouped, plan_.unroll, 0); });
  }

  // `count` rounds from `first`, the first `whole` of which have all their depths; all loads come
  // before the first product.
  void AddRounds(Value* first, int count, int whole) {
    std::vector<LoadedPiece> a, b;
    std::vector<Value*> there;
    for (int i = 0; i < count; ++i) {
      Value* depth = DepthOfRound(b_.CreateNSWAdd(first, m_.Int(i)));
      there.push_back(nullptr);
      if (i >= whole) {
        there.back() = b_.CreateICmpSLT(depth, reads_.K());
        depth = b_.CreateSelect(there.back(), depth, m_.Int(0));
      }
      a.push_back(Load(a_, depth));
      b.push_back(Load(b_side_, depth));
    }
    for (int i = 0; i < count; ++i) {
      const std::vector<Value*> rows = Widen(a_, a[i], there[i]);
      const std::vector<Value*> columns = Widen(b_side_, b[i], there[i]);
      for (int k = 0; k < plan_.vector_k; ++k) {
        for (int y = 0; y < plan_.rows; ++y) {
          for (int x = 0; x < plan_.columns; ++x) {
            AddProduct(sums_[y * plan_.columns + x], rows[k * plan_.rows + y],
                       columns[k * plan_.columns + x]);
          }
        }
      }
    }
  }

  void AddProduct(llvm::AllocaInst* slot, Value* x, Value* y) {
    llvm::Type* type = m_.Type(type_);
    Value* sum = b_.CreateAlignedLoad(type, slot, llvm::Align(8));
    sum = Info(type_).is_float ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, sum})
                               : b_.CreateAdd(b_.CreateMul(x, y), sum);
    b_.CreateAlignedStore(sum, slot, llvm::Align(8));
  }

  // A thread's piece of an operand: its rows at vector_k depths from `depth`.
  LoadedPiece Load(const Side& side, Value* depth) {
    const ContractionOperand& operand = *side.operand;
    const bool stored = operand.linear && operand.value.get() == operand.read;
    LoadedPiece piece;
    piece.widened = !stored;
    for (int k = 0; k < plan_.vector_k; k += side.place.depth_lanes) {
      Value* at = b_.CreateNSWAdd(depth, m_.Int(k));
      Value* along =
          operand.linear ? b_.CreateNSWMul(at, reads_.Of(operand.depth_stride)) : nullptr;
      for (int i = 0; i < side.own; i += side.place.row_lanes) {
        if (!operand.linear) {
          piece.loads.push_back(Computed(side, side.rows[i], at));
          continue;
        }
        Value* offset = b_.CreateNSWAdd(side.offsets[i / side.place.row_lanes], along);
        piece.loads.push_back(stored ? LoadStored(side, offset)
                                     : reads_.Adjacent(operand, offset, 1));
      }
    }
    return piece;
  }

  Value* LoadStored(const Side& side, Value* offset) {
    const int tensor = side.operand->read->tensor;
    const ElementType type = m_.workload().layout(tensor).type;
    const int lanes = side.place.depth_lanes * side.place.row_lanes;
    Value* address = b_.CreateGEP(StorageBits(m_, type, 1), reads_.Buffer(tensor), offset);
    return b_.CreateAlignedLoad(StorageBits(m_, type, lanes), address,
                                llvm::Align(static_cast<uint64_t>(lanes) * Info(type).bytes));
  }

  Value* Computed(const Side& side, Value* row, Value* depth) {
    std::vector<Value*> indices = tiles_.indices();
    if (!side.axis->indices.empty()) indices[side.axis->lead()] = row;
    reads_.SetK(depth, &indices);
    return reads_.Element(*side.operand, indices);
  }

  // [depth][row] in the accumulator's type; 0 where the piece is not there.
  std::vector<Value*> Widen(const Side& side, const LoadedPiece& piece, Value* there) {
    std::vector<Value*> values(static_cast<size_t>(plan_.vector_k) * side.own);
    size_t next = 0;
    for (int k = 0; k < plan_.vector_k; k += side.place.depth_lanes) {
      for (int i = 0; i < side.own; i += side.place.row_lanes) {
        const std::vector<Value*> elements = WidenLoad(side, piece.loads[next++], piece.widened);
        for (size_t e = 0; e < elements.size(); ++e) {
          const size_t depth = side.place.depth_lanes > 1 ? k + e : k;
          const size_t row = side.place.depth_lanes > 1 ? i : i + e;
          Value* value = elements[e];
          if (there != nullptr)
            value = b_.CreateSelect(there, value, llvm::Constant::getNullValue(value->getType()));
          values[depth * side.own + row] = value;
        }
      }
    }
    return values;
  }

  std::vector<Value*> WidenLoad(const Side& side, Value* load, bool widened) {
    const int lanes = side.place.depth_lanes * side.place.row_lanes;
    if (widened) return {load};
    const ElementType type = m_.workload().layout(side.operand->read->tensor).type;
    std::vector<Value*> elements;
    if (type == ElementType::kBF16 && type_ == ElementType::kF32 && lanes > 1) {
      // Two in a register: one instruction for each.
      Value* words = b_.CreateBitCast(load, llvm::FixedVectorType::get(b_.getInt32Ty(), lanes / 2));
      for (int i = 0; i < lanes; ++i) {
        Value* word = b_.CreateExtractElement(words, static_cast<uint64_t>(i / 2));
        word = i % 2 == 0 ? b_.CreateShl(word, 16) : b_.CreateAnd(word, b_.getInt32(0xffff0000));
        elements.push_back(b_.CreateBitCast(word, b_.getFloatTy()));
      }
      return elements;
    }
    Value* wide = WidenElements(m_, type, load, type_);
    if (lanes == 1) return {wide};
    for (int i = 0; i < lanes; ++i)
      elements.push_back(b_.CreateExtractElement(wide, static_cast<uint64_t>(i)));
    return elements;
  }

  // ---- The threads' parts of a sum

  void Finish() {
    std::vector<Value*> sums;
    for (llvm::AllocaInst* slot : sums_)
      sums.push_back(b_.CreateAlignedLoad(m_.Type(type_), slot, llvm::Align(8)));
    // Threads of one sum are `stride` apart.
    const int stride = plan_.k_first ? 1 : plan_.threads_n;
    for (int apart = stride; apart < stride * plan_.lanes_k; apart *= 2) {
      for (Value*& sum : sums) sum = Add(sum, FromLane(sum, apart));
    }
    if (plan_.parts > 1) return FinishParts(sums);
    auto finish = [&] {
      ForSums([&](int i, Value* row, Value* column) { tiles_.Finish(row, column, sums[i]); });
    };
    if (plan_.threads_k == 1) return finish();
    m_.If(b_.CreateICmpEQ(own_k_, m_.Int(0)), finish);
  }

  // body(number of the sum, its row and column in the tile).
  void ForSums(const std::function<void(int, Value*, Value*)>& body) {
    for (int y = 0; y < plan_.rows; ++y) {
      for (int x = 0; x < plan_.columns; ++x)
        body(y * plan_.columns + x, OwnRow(a_, y), OwnRow(b_side_, x));
    }
  }

  // Elements of shared memory from one part to the next.
  int64_t PartPitch() const { return plan_.tile_m() * plan_.tile_n(); }

  void FinishParts(const std::vector<Value*>& sums) {
    Value* part = b_.CreateUDiv(own_k_, m_.Int(plan_.lanes_k));
    m_.If(b_.CreateICmpEQ(b_.CreateURem(own_k_, m_.Int(plan_.lanes_k)), m_.Int(0)), [&] {
      Value* base = b_.CreateNSWMul(part, m_.Int(PartPitch()));
      ForSums([&](int i, Value* row, Value* column) {
        Value* at = b_.CreateNSWAdd(b_.CreateNSWMul(row, m_.Int(plan_.tile_n())), column);
        m_.StoreElements(type_, sums[i], entry_.shared, b_.CreateNSWAdd(base, at), 1);
      });
    });
    m_.Barrier();
    m_.For(tiles_.thread(), m_.Int(PartPitch()), plan_.block, "point", [&](Value* at) {
      Value* sum = nullptr;
      for (int i = 0; i < plan_.parts; ++i) {
        Value* own = m_.LoadElements(type_, entry_.shared,
                                     b_.CreateNSWAdd(at, m_.Int(i * PartPitch())), 1, type_);
        sum = sum == nullptr ? own : Add(sum, own);
      }
      tiles_.Finish(b_.CreateUDiv(at, m_.Int(plan_.tile_n())),
                    b_.CreateURem(at, m_.Int(plan_.tile_n())), sum);
    });
    if (plan_.several_tiles) m_.Barrier();
  }

  Value* Add(Value* x, Value* y) {
    return Info(type_).is_float ? b_.CreateFAdd(x, y) : b_.CreateAdd(x, y);
  }

  // The value of the lane whose number differs in the bit `apart` (PTX ISA, "shfl.sync").
  Value* FromLane(Value* value, int apart) {
    auto word = [&](Value* bits) {
      return b_.CreateIntrinsic(
          llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
          {b_.getInt32(0xffffffff), bits, b_.getInt32(apart), b_.getInt32(kWarpThreads - 1)});
    };
    if (Info(type_).bytes == 4) {
      return b_.CreateBitCast(word(b_.CreateBitCast(value, b_.getInt32Ty())), value->getType());
    }
    Value* bits = b_.CreateBitCast(value, b_.getInt64Ty());
    Value* low = word(b_.CreateTrunc(bits, b_.getInt32Ty()));
    Value* high = word(b_.CreateTrunc(b_.CreateLShr(bits, 32), b_.getInt32Ty()));
    bits = b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()),
                       b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), 32));
    return b_.CreateBitCast(bits, value->getType());
  }

  const ContractionDirectPlan& plan_;
  KernelModule& m_;
  llvm::IRBuilder<>& b_;
  const Contraction& c_;
  const ElementType type_;
  const KernelModule::DeviceEntry entry_;
  const ContractionReads reads_;
  OutputTiles tiles_;
  Side a_;
  Side b_side_;
  Value* own_k_ = nullptr;               // the thread's place among those that share a sum
  std::vector<llvm::AllocaInst*> sums_;  // [row][column]
};

// Vector loads need addresses that are multiples of what they bring.
void RequireAlignment(const ContractionOperand& operand, const DirectOperand& place,
                      KernelModule* module) {
  if (!operand.linear) return;
  const auto parameters = module->workload().parameters();
  const auto found = std::find(parameters.begin(), parameters.end(), operand.read->tensor);
  const int64_t bytes = int64_t{place.depth_lanes} * place.row_lanes *
                        Info(module->workload().layout(operand.read->tensor).type).bytes;
  int64_t& alignment = module->alignments()[found - parameters.begin()];
  alignment = std::max(alignment, bytes);
}

}  // namespace

absl::Status WriteContractionDirect(const Candidate&, const Plan& plan, KernelModule* module) {
  const auto& direct = static_cast<const ContractionDirectPlan&>(plan);
  RequireAlignment(direct.contraction->a, direct.a, module);
  RequireAlignment(direct.contraction->b, direct.b, module);
  DirectWriter(direct, *module).Write();
  return absl::OkStatus();
}

}  // namespace tilewright
