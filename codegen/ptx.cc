#include "codegen/ptx.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tilewright {

using llvm::Value;

namespace {

// "$3, $4, $5"
std::string Placeholders(int first, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    absl::StrAppend(&text, i == 0 ? "" : ", ", "$", first + static_cast<int>(i));
  return text;
}

// ",r,r,r"
std::string Repeated(absl::string_view constraint, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) absl::StrAppend(&text, ",", constraint);
  return text;
}

const char* WgmmaTypeName(ElementType type) {
  return type == ElementType::kF16 ? "f16" : type == ElementType::kBF16 ? "bf16" : "e4m3";
}

}  // namespace

PtxBuilder::PtxBuilder(KernelModule& module) : m_(module), b_(module.builder()) {}

Value* PtxBuilder::Asm(llvm::Type* result, const std::string& text, const std::string& constraints,
                       absl::Span<Value* const> operands) {
  std::vector<llvm::Type*> types;
  for (Value* operand : operands) types.push_back(operand->getType());
  llvm::FunctionType* type = llvm::FunctionType::get(result, types, false);
  llvm::InlineAsm* code = llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true);
  llvm::CallInst* call =
      b_.CreateCall(type, code, llvm::ArrayRef<Value*>(operands.data(), operands.size()));
  call->addFnAttr(llvm::Attribute::Convergent);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  return call;
}

// ---- Who and where

Value* PtxBuilder::ThreadIndex() {
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
}
Value* PtxBuilder::BlockIndex() {
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
}
Value* PtxBuilder::GridBlocks() {
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}, {});
}
Value* PtxBuilder::ClusterRank() {
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank, {}, {});
}
Value* PtxBuilder::Lane() {
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, {}, {});
}

Value* PtxBuilder::FirstLane(Value* value) {
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {},
                            {b_.getInt32(0xffffffffu), value, b_.getInt32(0), b_.getInt32(31)});
}

Value* PtxBuilder::SharedAddress(Value* pointer) {
  return b_.CreatePtrToInt(pointer, b_.getInt32Ty());
}

Value* PtxBuilder::AddressInCluster(Value* address, Value* rank) {
  return Asm(b_.getInt32Ty(), "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", {address, rank});
}

// ---- Barriers

void PtxBuilder::Barrier(Value* id, int threads) {
  Asm(b_.getVoidTy(), absl::StrCat("bar.sync $0, ", threads, ";"), "r,~{memory}", {id});
}
void PtxBuilder::BarrierArrive(Value* id, int threads) {
  Asm(b_.getVoidTy(), absl::StrCat("bar.arrive $0, ", threads, ";"), "r,~{memory}", {id});
}
void PtxBuilder::WarpBarrier() {
  Asm(b_.getVoidTy(), "bar.warp.sync 0xffffffff;", "~{memory}", {});
}
void PtxBuilder::ClusterBarrier() {
  // Not .aligned: one thread of a producer's warp comes later than the others.
  Asm(b_.getVoidTy(), "barrier.cluster.arrive; barrier.cluster.wait;", "~{memory}", {});
}

// ---- mbarriers

void PtxBuilder::MbarrierInit(Value* address, int arrivals) {
  Asm(b_.getVoidTy(), absl::StrCat("mbarrier.init.shared::cta.b64 [$0], ", arrivals, ";"),
      "r,~{memory}", {address});
}
void PtxBuilder::FenceMbarrierInit() {
  Asm(b_.getVoidTy(), "fence.mbarrier_init.release.cluster;", "~{memory}", {});
}
void PtxBuilder::MbarrierExpect(Value* address, Value* bytes) {
  Asm(b_.getVoidTy(), "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}",
      {address, bytes});
}
void PtxBuilder::MbarrierArriveIf(Value* condition, Value* address) {
  Asm(b_.getVoidTy(),
      "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p mbarrier.arrive.shared::cta.b64 _, [$0]; }",
      "r,r,~{memory}", {address, b_.CreateZExt(condition, b_.getInt32Ty())});
}
void PtxBuilder::MbarrierArriveInClusterIf(Value* condition, Value* address) {
  Asm(b_.getVoidTy(),
      "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p mbarrier.arrive.shared::cluster.b64 _, [$0]; }",
      "r,r,~{memory}", {address, b_.CreateZExt(condition, b_.getInt32Ty())});
}
void PtxBuilder::MbarrierWait(Value* address, Value* parity) {
  Asm(b_.getVoidTy(),
      "{ .reg .pred p; WAIT_${:uid}: "
      "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; "
      "@p bra DONE_${:uid}; bra WAIT_${:uid}; DONE_${:uid}: }",
      "r,r,~{memory}", {address, parity});
}

// ---- TMA

void PtxBuilder::PrefetchTensorMap(Value* map) {
  Asm(b_.getVoidTy(), "prefetch.tensormap [$0];", "l,~{memory}", {map});
}

void PtxBuilder::TmaLoad(Value* map, Value* to, Value* mbarrier,
                         absl::Span<Value* const> coordinates) {
  std::vector<Value*> operands = {to, map, mbarrier};
  operands.insert(operands.end(), coordinates.begin(), coordinates.end());
  Asm(b_.getVoidTy(),
      absl::StrCat("cp.async.bulk.tensor.", coordinates.size(),
                   "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {",
                   Placeholders(3, coordinates.size()), "}], [$2];"),
      absl::StrCat("r,l,r", Repeated("r", coordinates.size()), ",~{memory}"), operands);
}

void PtxBuilder::TmaLoadMulticast(Value* map, Value* to, Value* mbarrier,
                                  absl::Span<Value* const> coordinates, int cta_mask) {
  std::vector<Value*> operands = {to, map, mbarrier, b_.getInt16(static_cast<uint16_t>(cta_mask))};
  operands.insert(operands.end(), coordinates.begin(), coordinates.end());
  Asm(b_.getVoidTy(),
      absl::StrCat("cp.async.bulk.tensor.", coordinates.size(),
                   "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                   "[$0], [$1, {",
                   Placeholders(4, coordinates.size()), "}], [$2], $3;"),
      absl::StrCat("r,l,r,h", Repeated("r", coordinates.size()), ",~{memory}"), operands);
}

void PtxBuilder::TmaStore(Value* map, Value* from, absl::Span<Value* const> coordinates) {
  std::vector<Value*> operands = {map, from};
  operands.insert(operands.end(), coordinates.begin(), coordinates.end());
  Asm(b_.getVoidTy(),
      absl::StrCat("cp.async.bulk.tensor.", coordinates.size(),
                   "d.global.shared::cta.tile.bulk_group [$0, {",
                   Placeholders(2, coordinates.size()), "}], [$1];"),
      absl::StrCat("l,r", Repeated("r", coordinates.size()), ",~{memory}"), operands);
}

void PtxBuilder::PrefetchLine(Value* address) {
  Asm(b_.getVoidTy(), "prefetch.global.L2 [$0];", "l,~{memory}", {address});
}
void PtxBuilder::BulkCommit() {
  Asm(b_.getVoidTy(), "cp.async.bulk.commit_group;", "~{memory}", {});
}
void PtxBuilder::BulkWaitRead(int groups_in_flight) {
  Asm(b_.getVoidTy(), absl::StrCat("cp.async.bulk.wait_group.read ", groups_in_flight, ";"),
      "~{memory}", {});
}
void PtxBuilder::FenceAsyncShared() {
  Asm(b_.getVoidTy(), "fence.proxy.async.shared::cta;", "~{memory}", {});
}

// ---- wgmma

namespace {

// "{$0, $1, …}" of one block's accumulators.
std::string AccumulatorList(int first, int count) {
  return absl::StrCat("{", Placeholders(first, count), "}");
}

}  // namespace

// The operands are numbered: results, then the accumulators tied to them, then the three words.
std::vector<Value*> PtxBuilder::Wgmma(const WgmmaGroup& group,
                                      absl::Span<Value* const> accumulators, Value* a_low,
                                      Value* b_low, Value* accumulate) {
  const int count = group.accumulators();
  const int per_block = group.columns / 2;
  const bool has_transpose = group.type != ElementType::kE4M3;
  const std::string a = absl::StrCat("$", 2 * count), b = absl::StrCat("$", 2 * count + 1);
  // Descriptors are put together here from a constant high word and a low word that moves.
  std::string text = absl::StrCat(
      "{\n\t.reg .pred first, yes;\n\t.reg .b32 low;\n\t.reg .b64 da, db;\n\t"
      "setp.ne.b32 first, $",
      2 * count + 2, ", 0;\n\tsetp.eq.u32 yes, 0, 0;\n\twgmma.fence.sync.aligned;\n\t");
  for (size_t step = 0; step < group.b_step_offsets.size(); ++step) {
    absl::StrAppend(&text, "add.u32 low, ", b, ", ", group.b_step_offsets[step],
                    ";\n\tmov.b64 db, {low, ", group.b_high, "};\n\t");
    for (size_t block = 0; block < group.block_offsets.size(); ++block) {
      absl::StrAppend(&text, "add.u32 low, ", a, ", ",
                      group.a_step_offsets[step] + group.block_offsets[block],
                      ";\n\tmov.b64 da, {low, ", group.a_high, "};\n\t");
      absl::StrAppend(&text, "wgmma.mma_async.sync.aligned.m64n", group.columns, "k",
                      32 / Info(group.type).bytes, ".f32.", WgmmaTypeName(group.type), ".",
                      WgmmaTypeName(group.type), " ",
                      AccumulatorList(static_cast<int>(block) * per_block, per_block), ", da, db, ",
                      step == 0 ? "first" : "yes", ", 1, 1");
      if (has_transpose) {
        absl::StrAppend(&text, ", ", group.a_transposed ? 1 : 0, ", ", group.b_transposed ? 1 : 0);
      }
      absl::StrAppend(&text, ";\n\t");
    }
  }
  absl::StrAppend(&text, "wgmma.commit_group.sync.aligned;\n\t}");

  std::string constraints = "=f";
  absl::StrAppend(&constraints, Repeated("=f", count - 1));
  for (int i = 0; i < count; ++i) absl::StrAppend(&constraints, ",", i);
  absl::StrAppend(&constraints, ",r,r,r,~{memory}");
  std::vector<Value*> operands(accumulators.begin(), accumulators.end());
  operands.insert(operands.end(), {a_low, b_low, accumulate});
  llvm::Type* result =
      llvm::StructType::get(m_.context(), std::vector<llvm::Type*>(count, b_.getFloatTy()));
  Value* sums = Asm(result, text, constraints, operands);
  std::vector<Value*> values;
  for (int i = 0; i < count; ++i)
    values.push_back(b_.CreateExtractValue(sums, {static_cast<unsigned>(i)}));
  return values;
}

void PtxBuilder::WgmmaWait(int groups_in_flight) {
  Asm(b_.getVoidTy(), absl::StrCat("wgmma.wait_group.sync.aligned ", groups_in_flight, ";"),
      "~{memory}", {});
}

// The accumulators pass through, so that nothing reads them earlier.
std::vector<Value*> PtxBuilder::WgmmaWaitAll(absl::Span<Value* const> accumulators) {
  const int count = static_cast<int>(accumulators.size());
  std::string constraints = "=f";
  absl::StrAppend(&constraints, Repeated("=f", count - 1));
  for (int i = 0; i < count; ++i) absl::StrAppend(&constraints, ",", i);
  absl::StrAppend(&constraints, ",~{memory}");
  llvm::Type* result =
      llvm::StructType::get(m_.context(), std::vector<llvm::Type*>(count, b_.getFloatTy()));
  Value* sums = Asm(result, "wgmma.wait_group.sync.aligned 0;", constraints, accumulators);
  std::vector<Value*> values;
  for (int i = 0; i < count; ++i)
    values.push_back(b_.CreateExtractValue(sums, {static_cast<unsigned>(i)}));
  return values;
}

void PtxBuilder::SetMaxRegisters(int registers, bool increase) {
  Asm(b_.getVoidTy(),
      absl::StrCat("setmaxnreg.", increase ? "inc" : "dec", ".sync.aligned.u32 ", registers, ";"),
      "~{memory}", {});
}

// ---- Results

Value* PtxBuilder::PackPair(ElementType type, Value* low, Value* high) {
  const llvm::Intrinsic::ID pack = type == ElementType::kBF16 ? llvm::Intrinsic::nvvm_ff2bf16x2_rn
                                                              : llvm::Intrinsic::nvvm_ff2f16x2_rn;
  return b_.CreateBitCast(b_.CreateIntrinsic(pack, {}, {high, low}), b_.getInt32Ty());
}

void PtxBuilder::StoreMatrix(Value* address, absl::Span<Value* const> registers, bool transposed) {
  std::vector<Value*> operands = {address};
  operands.insert(operands.end(), registers.begin(), registers.end());
  Asm(b_.getVoidTy(),
      absl::StrCat("stmatrix.sync.aligned.m8n8.x", registers.size(), transposed ? ".trans" : "",
                   ".shared.b16 [$0], {", Placeholders(1, registers.size()), "};"),
      absl::StrCat("r", Repeated("r", registers.size()), ",~{memory}"), operands);
}

void PtxBuilder::StoreShared(Value* address, Value* value) {
  Asm(b_.getVoidTy(), "st.shared.f32 [$0], $1;", "r,f,~{memory}", {address, value});
}

std::vector<Value*> PtxBuilder::LoadShared(Value* address, int count, bool in_cluster) {
  const std::string space = in_cluster ? "ld.shared::cluster" : "ld.shared";
  if (count == 1) {
    return {
        Asm(b_.getFloatTy(), absl::StrCat(space, ".f32 $0, [$1];"), "=f,r,~{memory}", {address})};
  }
  llvm::Type* result = llvm::StructType::get(m_.context(), {b_.getFloatTy(), b_.getFloatTy()});
  Value* pair =
      Asm(result, absl::StrCat(space, ".v2.f32 {$0, $1}, [$2];"), "=f,=f,r,~{memory}", {address});
  return {b_.CreateExtractValue(pair, {0}), b_.CreateExtractValue(pair, {1})};
}

// ---- Between CTAs

void PtxBuilder::RaiseFlag(Value* address) {
  Asm(b_.getVoidTy(), "st.release.gpu.global.u32 [$0], 1;", "l,~{memory}", {address});
}
void PtxBuilder::AwaitAndLowerFlag(Value* address) {
  Asm(b_.getVoidTy(),
      "{ .reg .pred p; .reg .b32 flag; WAIT_${:uid}: ld.acquire.gpu.global.u32 flag, [$0]; "
      "setp.eq.u32 p, flag, 0; @p bra WAIT_${:uid}; st.relaxed.gpu.global.u32 [$0], 0; }",
      "l,~{memory}", {address});
}
void PtxBuilder::StoreQuad(Value* address, absl::Span<Value* const> values) {
  Asm(b_.getVoidTy(), "st.global.cg.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f,~{memory}",
      {address, values[0], values[1], values[2], values[3]});
}
std::vector<Value*> PtxBuilder::LoadQuad(Value* address) {
  llvm::Type* f32 = b_.getFloatTy();
  Value* quad =
      Asm(llvm::StructType::get(m_.context(), {f32, f32, f32, f32}),
          "ld.global.cg.v4.f32 {$0, $1, $2, $3}, [$4];", "=f,=f,=f,=f,l,~{memory}", {address});
  std::vector<Value*> values;
  for (unsigned i = 0; i < 4; ++i) values.push_back(b_.CreateExtractValue(quad, {i}));
  return values;
}

// ---- Dependent launch

void PtxBuilder::WaitForEarlierGrids() {
  Asm(b_.getVoidTy(), "griddepcontrol.wait;", "~{memory}", {});
}
void PtxBuilder::LetLaterGridsStart() {
  Asm(b_.getVoidTy(), "griddepcontrol.launch_dependents;", "~{memory}", {});
}

}  // namespace tilewright
