#include "codegen/device_check.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "codegen/convert.h"
#include "codegen/finish_kernel.h"
#include "codegen/kernel_module.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tilewright {
namespace {

using llvm::Value;

constexpr unsigned kCheckedSpace = 1;
constexpr int64_t kWide = 16;  // bytes compared at once where addresses allow

class DeviceCheckWriter {
 public:
  explicit DeviceCheckWriter(KernelModule* module) : m_(*module), b_(module->builder()) {
    // The host's check contracts nothing; an allowance must not depend on who computes it.
    b_.clearFastMathFlags();
  }

  void Write() {
    WriteCompare();
    WriteClocks();
    const Workload& workload = m_.workload();
    for (int tensor : workload.outputs()) {
      WriteCheck(workload.layout(tensor).type,
                 static_cast<int>(workload.Shape(tensor, workload.HighestSizes()).size()));
    }
  }

 private:
  // Begins the next launch, with `parameters` of 64 bits.
  std::vector<Value*> Begin(int parameters) {
    Launch launch;
    launch.entry = absl::StrCat("tw_entry_", m_.launches().size());
    launch.block = kCheckThreads;
    auto* function = llvm::Function::Create(
        llvm::FunctionType::get(b_.getVoidTy(),
                                std::vector<llvm::Type*>(parameters, b_.getInt64Ty()), false),
        llvm::Function::ExternalLinkage, launch.entry, m_.module());
    function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    m_.launches().push_back(std::move(launch));
    b_.SetInsertPoint(llvm::BasicBlock::Create(m_.context(), "entry", function));
    std::vector<Value*> values;
    for (llvm::Argument& argument : function->args()) values.push_back(&argument);
    return values;
  }
  void End() {
    b_.CreateRetVoid();
    b_.ClearInsertionPoint();
  }

  Value* Special(llvm::Intrinsic::ID id) {
    Value* value = b_.CreateIntrinsic(id, {}, {});
    return b_.CreateZExt(value, b_.getInt64Ty());
  }
  Value* Pointer(Value* address) {
    return b_.CreateIntToPtr(address, llvm::PointerType::get(m_.context(), kCheckedSpace));
  }
  Value* At(Value* base, Value* offset_bytes) { return Pointer(b_.CreateAdd(base, offset_bytes)); }
  Value* Load(llvm::Type* type, Value* base, Value* offset_bytes) {
    return b_.CreateLoad(type, At(base, offset_bytes));
  }
  void Atomic(llvm::AtomicRMWInst::BinOp op, Value* address, Value* value) {
    b_.CreateAtomicRMW(op, address, value, llvm::MaybeAlign(8), llvm::AtomicOrdering::Monotonic);
  }
  llvm::AllocaInst* Variable(llvm::Type* type, const std::string& name, Value* value) {
    llvm::AllocaInst* slot = m_.Local(type, name, 1, 8);
    b_.CreateStore(value, slot);
    return slot;
  }

  // body(i) for this thread's share of [0, count): numbers number, number + threads, ….
  void ForShare(Value* count, const std::function<void(Value*)>& body) {
    Value* block = Special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
    Value* blocks = Special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
    Value* thread = Special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
    Value* first = b_.CreateAdd(b_.CreateMul(block, m_.Int(kCheckThreads)), thread);
    Value* step = b_.CreateMul(blocks, m_.Int(kCheckThreads));
    // Rounded up; not positive where there is nothing for this thread.
    Value* left = b_.CreateAdd(b_.CreateSub(count, first), b_.CreateSub(step, m_.Int(1)));
    m_.For(m_.Int(0), b_.CreateSDiv(left, step), 1, "share",
           [&](Value* n) { body(b_.CreateAdd(first, b_.CreateMul(n, step))); });
  }

  void WriteCompare() {
    const std::vector<Value*> p = Begin(2);
    llvm::Type* i64 = b_.getInt64Ty();
    Value* row = Special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y);
    Value* task = b_.CreateMul(row, m_.Int(sizeof(CompareTask)));
    Value* a = Load(i64, p[0], task);
    Value* b = Load(i64, p[0], b_.CreateAdd(task, m_.Int(offsetof(CompareTask, b))));
    Value* bytes = Load(i64, p[0], b_.CreateAdd(task, m_.Int(offsetof(CompareTask, bytes))));
    Value* first = Pointer(b_.CreateAdd(p[1], b_.CreateMul(row, m_.Int(8))));
    const auto differs = [&](Value* offset) { Atomic(llvm::AtomicRMWInst::UMin, first, offset); };
    Value* aligned = b_.CreateICmpEQ(b_.CreateAnd(b_.CreateOr(a, b), m_.Int(kWide - 1)), m_.Int(0));
    Value* wide_bytes = b_.CreateSelect(aligned, b_.CreateAnd(bytes, m_.Int(-kWide)), m_.Int(0));
    llvm::Type* wide = llvm::FixedVectorType::get(i64, 2);
    ForShare(b_.CreateLShr(wide_bytes, m_.Int(4)), [&](Value* i) {
      Value* offset = b_.CreateMul(i, m_.Int(kWide));
      const auto load = [&](Value* base) {
        return b_.CreateAlignedLoad(wide, At(base, offset), llvm::Align(kWide));
      };
      Value* difference = b_.CreateXor(load(a), load(b));
      Value* low = b_.CreateExtractElement(difference, uint64_t{0});
      Value* high = b_.CreateExtractElement(difference, uint64_t{1});
      m_.If(b_.CreateICmpNE(b_.CreateOr(low, high), m_.Int(0)), [&] {
        // The first byte is the lowest set bit's: memory is little-endian.
        Value* in_low = b_.CreateICmpNE(low, m_.Int(0));
        Value* part = b_.CreateSelect(in_low, low, high);
        Value* zeros = b_.CreateIntrinsic(llvm::Intrinsic::cttz, {i64}, {part, b_.getFalse()});
        Value* byte = b_.CreateAdd(b_.CreateLShr(zeros, m_.Int(3)),
                                   b_.CreateSelect(in_low, m_.Int(0), m_.Int(8)));
        differs(b_.CreateAdd(offset, byte));
      });
    });
    ForShare(b_.CreateSub(bytes, wide_bytes), [&](Value* i) {
      Value* offset = b_.CreateAdd(wide_bytes, i);
      Value* equal =
          b_.CreateICmpEQ(Load(b_.getInt8Ty(), a, offset), Load(b_.getInt8Ty(), b, offset));
      m_.If(b_.CreateNot(equal), [&] { differs(offset); });
    });
    End();
  }

  void WriteClocks() {
    const std::vector<Value*> p = Begin(1);
    Value* thread = Special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
    m_.If(b_.CreateICmpEQ(thread, m_.Int(0)), [&] {
      Value* sm = Special(llvm::Intrinsic::nvvm_read_ptx_sreg_smid);
      Value* mark = b_.CreateAdd(p[0], b_.CreateMul(sm, m_.Int(sizeof(ClockMark))));
      Value* time = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_globaltimer, {}, {});
      Value* cycles = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_clock64, {}, {});
      b_.CreateStore(time, Pointer(mark));
      b_.CreateStore(cycles, At(mark, m_.Int(offsetof(ClockMark, cycles))));
    });
    End();
  }

  // Of one element: does it pass, and its error over the allowance (0 where that says nothing).
  struct Judgement {
    Value* passes;
    Value* ratio;
  };

  Value* F64(double value) { return llvm::ConstantFP::get(b_.getDoubleTy(), value); }
  Value* Abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* IsFinite(Value* x) {
    return b_.CreateFCmpOLT(Abs(x), F64(std::numeric_limits<double>::infinity()));
  }
  Value* IsInfinite(Value* x) {
    return b_.CreateFCmpOEQ(Abs(x), F64(std::numeric_limits<double>::infinity()));
  }
  Value* IsNan(Value* x) { return b_.CreateFCmpUNO(x, x); }
  Value* IsNegative(Value* x) {
    return b_.CreateICmpSLT(b_.CreateBitCast(x, b_.getInt64Ty()), m_.Int(0));
  }
  // The terms in the order of measure/check.cc's Allowance, so that both sides round alike.
  Value* AllowanceOf(const ElementTypeInfo& info, Value* reference, Value* rounded, Value* bound) {
    Value* twice = b_.CreateFMul(F64(2), bound);
    if (!info.is_float) {
      Value* whole = b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, reference);
      Value* exact =
          b_.CreateAnd(b_.CreateFCmpOEQ(bound, F64(0)), b_.CreateFCmpOEQ(reference, whole));
      Value* near = b_.CreateSelect(b_.CreateFCmpOGT(twice, F64(1)), twice, F64(1));
      return b_.CreateSelect(exact, F64(0), near);
    }
    Value* step = Abs(b_.CreateFSub(reference, rounded));
    Value* ties = b_.CreateAnd(b_.CreateFCmpOGT(bound, F64(0)), IsFinite(step));
    Value* relative = b_.CreateFMul(F64(info.unit_roundoff), Abs(reference));
    Value* sum = b_.CreateFAdd(b_.CreateFAdd(twice, relative), F64(info.smallest_subnormal));
    return b_.CreateFAdd(sum, b_.CreateSelect(ties, step, F64(0)));
  }

  // measure/check.h's ElementPasses, with selects for its returns.
  Judgement Judge(const ElementTypeInfo& info, Value* out, Value* reference, Value* bound) {
    Value* rounded = RoundToElement(m_, info.type, reference);
    Value* allowance = AllowanceOf(info, reference, rounded, bound);
    Value* error = Abs(b_.CreateFSub(out, rounded));
    Value* passes = b_.CreateFCmpOLE(error, allowance);
    Value* measurable = b_.CreateFCmpOGT(allowance, F64(0));
    Value* ratio = b_.CreateSelect(measurable, b_.CreateFDiv(error, allowance), F64(0));
    if (!info.is_float) return {passes, ratio};
    const auto unless = [&](Value* condition, Value* decides) {
      passes = b_.CreateSelect(condition, decides, passes);
      ratio = b_.CreateSelect(condition, F64(0), ratio);
    };
    unless(b_.CreateOr(IsInfinite(rounded), b_.CreateNot(IsFinite(out))),
           b_.CreateFCmpOEQ(out, rounded));
    unless(IsNan(rounded), IsNan(out));
    // Half a step above the largest finite value: what rounds to it and what overflows.
    const double threshold =
        info.max_finite + std::ldexp(info.unit_roundoff, std::ilogb(info.max_finite));
    Value* magnitude = Abs(reference);
    Value* twice = b_.CreateFMul(F64(2), bound);
    Value* above = b_.CreateFCmpOGE(b_.CreateFAdd(magnitude, twice), F64(threshold));
    Value* below = b_.CreateFCmpOLE(b_.CreateFSub(magnitude, twice), F64(threshold));
    Value* straddles = b_.CreateAnd(IsFinite(reference), b_.CreateAnd(above, below));
    Value* near = b_.CreateFCmpOLE(Abs(b_.CreateFSub(out, reference)), allowance);
    Value* same_sign = b_.CreateICmpEQ(IsNegative(out), IsNegative(reference));
    Value* right = b_.CreateSelect(IsInfinite(out), same_sign, near);
    if (!info.has_infinity) right = b_.CreateOr(right, IsNan(out));
    unless(straddles, right);
    return {passes, ratio};
  }

  void WriteCheck(ElementType type, int rank) {
    const std::vector<Value*> p = Begin(6);
    llvm::Type* i64 = b_.getInt64Ty();
    const ElementTypeInfo& info = Info(type);
    std::vector<Value*> shape;
    std::vector<Value*> strides;
    for (int d = 0; d < rank; ++d) {
      shape.push_back(Load(i64, p[3], m_.Int(8 * d)));
      strides.push_back(Load(i64, p[3], m_.Int(8 * (rank + d))));
    }
    llvm::AllocaInst* wrong = Variable(i64, "wrong", m_.Int(0));
    llvm::AllocaInst* first = Variable(i64, "first", m_.Int(-1));
    llvm::AllocaInst* worst = Variable(b_.getDoubleTy(), "worst", F64(0));
    llvm::AllocaInst* unbounded = Variable(i64, "unbounded", m_.Int(-1));
    const auto lower = [&](llvm::AllocaInst* slot, Value* condition, Value* number) {
      Value* now = b_.CreateLoad(i64, slot);
      Value* lowers = b_.CreateAnd(condition, b_.CreateICmpULT(number, now));
      b_.CreateStore(b_.CreateSelect(lowers, number, now), slot);
    };
    ForShare(p[4], [&](Value* number) {
      Value* offset = m_.Int(0);
      Value* rest = number;
      for (int d = rank; d-- > 0;) {
        offset = b_.CreateAdd(offset, b_.CreateMul(b_.CreateURem(rest, shape[d]), strides[d]));
        if (d > 0) rest = b_.CreateUDiv(rest, shape[d]);
      }
      Value* at = b_.CreateMul(number, m_.Int(8));
      Value* reference = Load(b_.getDoubleTy(), p[1], at);
      Value* bound = Load(b_.getDoubleTy(), p[2], at);
      Value* out = m_.LoadElements(type, Pointer(p[0]), offset, 1, ElementType::kF64);
      const Judgement judged = Judge(info, out, reference, bound);
      Value* fails = b_.CreateNot(judged.passes);
      b_.CreateStore(b_.CreateAdd(b_.CreateLoad(i64, wrong), b_.CreateZExt(fails, i64)), wrong);
      lower(first, fails, number);
      lower(unbounded, b_.CreateNot(IsFinite(bound)), number);
      Value* now = b_.CreateLoad(b_.getDoubleTy(), worst);
      Value* raises = b_.CreateAnd(judged.passes, b_.CreateFCmpOGT(judged.ratio, now));
      b_.CreateStore(b_.CreateSelect(raises, judged.ratio, now), worst);
    });
    const auto result = [&](size_t offset) {
      return At(p[5], m_.Int(static_cast<int64_t>(offset)));
    };
    Value* wrong_total = b_.CreateLoad(i64, wrong);
    m_.If(b_.CreateICmpNE(wrong_total, m_.Int(0)), [&] {
      Atomic(llvm::AtomicRMWInst::Add, result(offsetof(DeviceCheckResult, wrong)), wrong_total);
      Atomic(llvm::AtomicRMWInst::UMin, result(offsetof(DeviceCheckResult, first_wrong)),
             b_.CreateLoad(i64, first));
    });
    Value* first_unbounded = b_.CreateLoad(i64, unbounded);
    m_.If(b_.CreateICmpNE(first_unbounded, m_.Int(-1)), [&] {
      Atomic(llvm::AtomicRMWInst::UMin, result(offsetof(DeviceCheckResult, first_unbounded)),
             first_unbounded);
    });
    // Most threads find a larger ratio there already and need no atomic.
    Value* ratio = b_.CreateBitCast(b_.CreateLoad(b_.getDoubleTy(), worst), i64);
    Value* worst_address = result(offsetof(DeviceCheckResult, worst_ratio_bits));
    llvm::LoadInst* known = b_.CreateAlignedLoad(i64, worst_address, llvm::Align(8), true);
    m_.If(b_.CreateICmpUGT(ratio, known),
          [&] { Atomic(llvm::AtomicRMWInst::UMax, worst_address, ratio); });
    End();
  }

  KernelModule& m_;
  llvm::IRBuilder<>& b_;
};

}  // namespace

absl::StatusOr<Kernel> WriteDeviceCheck(const Workload& workload, const Target& target) {
  if (target.backend != "nvptx") {
    return absl::FailedPreconditionError(
        absl::StrCat("there are check kernels for backend nvptx, not for '", target.backend, "'"));
  }
  KernelModule module(workload, target);
  module.AllowSpills();  // it must exist, however slow
  DeviceCheckWriter(&module).Write();
  DumpFiles no_dump("");
  return FinishKernel(&module, {}, &no_dump);
}

}  // namespace tilewright
