#include "tests/codegen/device_emulator.h"

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/ThreadSafeModule.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "schedule/element_type.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace tilewright {
namespace {

constexpr int kWarp = 32;
constexpr size_t kStackBytes = 128 << 10;
constexpr size_t kSharedBytes = 256 << 10;
constexpr unsigned char kSpoilt = 0xfe;
constexpr int kMostArguments = 10;  // of an instruction that a warp executes together

using Wrapper = void (*)(const uint64_t* arguments);

struct Copy {
  char* to;
  const char* from;
  int bytes;
  int chunk;
};

struct Fiber {
  enum class State { kReady, kAtBarrier, kAtExchange, kDone };
  State state = State::kDone;
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(kStackBytes);
  // What the thread hands to its warp, twice: the slowest may still read the last exchange's.
  int exchanges = 0;
  uint64_t handed[2][kMostArguments] = {};
  std::vector<Copy> started;
  std::deque<std::vector<Copy>> groups;
};

// The block that runs.
struct Block {
  std::vector<Fiber> fibers;
  int thread = 0;  // the fiber that runs
  int block = 0;
  ucontext_t scheduler;
  Wrapper wrapper = nullptr;
  const uint64_t* arguments = nullptr;

  Fiber& self() { return fibers[thread]; }
  void Wait(Fiber::State state) {
    Fiber& fiber = self();
    fiber.state = state;
    swapcontext(&fiber.context, &scheduler);
  }
};
Block* running = nullptr;

alignas(1024) char shared_memory[kSharedBytes];

void Arrive(const std::vector<Copy>& group) {
  for (const Copy& copy : group) {
    std::memset(copy.to, 0, copy.chunk);
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

// What the kernels call in place of NVPTX's intrinsics.
int32_t ThreadId() { return running->thread; }
int32_t BlockId() { return running->block; }
void BarrierSync() { running->Wait(Fiber::State::kAtBarrier); }
// Waits for the warp; then the arguments of lane `lane` can be read from Handed(lane).
int Exchange(const uint64_t* arguments, int count) {
  Fiber& self = running->self();
  const int phase = self.exchanges++ & 1;
  std::copy(arguments, arguments + count, self.handed[phase]);
  running->Wait(Fiber::State::kAtExchange);
  return phase;
}
const uint64_t* Handed(int lane, int phase) {
  return running->fibers[running->thread / kWarp * kWarp + lane].handed[phase];
}

int32_t ShuffleButterfly(int32_t, int32_t value, int32_t distance, int32_t) {
  const auto argument = static_cast<uint64_t>(static_cast<uint32_t>(value));
  const int phase = Exchange(&argument, 1);
  return static_cast<int32_t>(Handed((running->thread % kWarp) ^ distance, phase)[0]);
}

// PTX ISA, "ldmatrix" and "mma": fragments by lane. Arguments are 32-bit registers or addresses,
// results four 32-bit registers.
using Together = void (*)(uint32_t* results, const uint64_t* arguments);

template <bool kTransposed>
void LoadMatrices(uint32_t* results, const uint64_t* arguments) {
  const int phase = Exchange(arguments, 1);
  const int lane = running->thread % kWarp;
  for (int matrix = 0; matrix < 4; ++matrix) {
    uint16_t pair[2];
    for (int i = 0; i < 2; ++i) {
      const int row = lane / 4, column = 2 * (lane % 4) + i;
      const int line = kTransposed ? column : row, at = kTransposed ? row : column;
      std::memcpy(&pair[i],
                  reinterpret_cast<const char*>(Handed(8 * matrix + line, phase)[0]) + 2 * at, 2);
    }
    results[matrix] = pair[0] | static_cast<uint32_t>(pair[1]) << 16;
  }
}

// Element `i` of the k positions that a 32-bit register holds, as a number.
double PartOf(ElementType type, uint64_t bits, int i) {
  const auto word = static_cast<uint32_t>(bits);
  char bytes[4];
  std::memcpy(bytes, &word, 4);
  return LoadElement(type, bytes + i * Info(type).bytes);
}

template <ElementType kType>
void MultiplyMatrices(uint32_t* results, const uint64_t* arguments) {
  const int phase = Exchange(arguments, 10);
  const int lane = running->thread % kWarp;
  const int parts = 4 / Info(kType).bytes;  // k positions in a register
  const int quarter = 4 * parts;            // k positions of a lane group's first register
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
    float bound = 0;
    std::memcpy(&bound, &arguments[6 + i], 4);
    double sum = kType == ElementType::kI8 ? static_cast<int32_t>(arguments[6 + i]) : bound;
    for (int k = 0; k < 2 * quarter; ++k) {
      const int owner = k % quarter / parts, late = k / quarter;
      const uint64_t a = Handed(row % 8 * 4 + owner, phase)[row / 8 + 2 * late];
      const uint64_t b = Handed(column * 4 + owner, phase)[4 + late];
      sum += PartOf(kType, a, k % parts) * PartOf(kType, b, k % parts);
    }
    if (kType == ElementType::kI8) {
      results[i] = static_cast<uint32_t>(static_cast<int32_t>(sum));
    } else {
      const auto rounded = static_cast<float>(sum);
      std::memcpy(&results[i], &rounded, 4);
    }
  }
}

void StartCopy(char* to, const char* from, int32_t bytes, int chunk) {
  std::memset(to, kSpoilt, chunk);
  running->self().started.push_back({to, from, bytes, chunk});
}
void StartCopy4(char* to, const char* from, int32_t bytes) { StartCopy(to, from, bytes, 4); }
void StartCopy8(char* to, const char* from, int32_t bytes) { StartCopy(to, from, bytes, 8); }
void StartCopy16(char* to, const char* from, int32_t bytes) { StartCopy(to, from, bytes, 16); }
void CommitCopies() {
  Fiber& self = running->self();
  self.groups.push_back(std::exchange(self.started, {}));
}
void AwaitCopies(int32_t pending) {
  Fiber& self = running->self();
  while (self.groups.size() > static_cast<size_t>(pending)) {
    Arrive(self.groups.front());
    self.groups.pop_front();
  }
}

// One unit off, this way or that.
float ApproximateReciprocal(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return std::nextafter(1 / x, bits % 2 == 0 ? 0.0f : std::numeric_limits<float>::infinity());
}

// Two units off, this way or that; no subnormals.
float ApproximatePower(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  float power = std::exp2(x);
  for (int i = 0; i < 2; ++i)
    power = std::nextafter(power, bits % 2 == 0 ? 0.0f : std::numeric_limits<float>::infinity());
  return power < std::numeric_limits<float>::min() ? 0 : power;
}

const std::map<std::string, void*>& Substitutes() {
  static const auto* const kSubstitutes = new std::map<std::string, void*>{
      {"llvm.nvvm.read.ptx.sreg.tid.x", reinterpret_cast<void*>(ThreadId)},
      {"llvm.nvvm.read.ptx.sreg.ctaid.x", reinterpret_cast<void*>(BlockId)},
      {"llvm.nvvm.barrier0", reinterpret_cast<void*>(BarrierSync)},
      {"llvm.nvvm.shfl.sync.bfly.i32", reinterpret_cast<void*>(ShuffleButterfly)},
      {"llvm.nvvm.cp.async.ca.shared.global.4.s", reinterpret_cast<void*>(StartCopy4)},
      {"llvm.nvvm.cp.async.ca.shared.global.8.s", reinterpret_cast<void*>(StartCopy8)},
      {"llvm.nvvm.cp.async.cg.shared.global.16.s", reinterpret_cast<void*>(StartCopy16)},
      {"llvm.nvvm.rcp.approx.ftz.f", reinterpret_cast<void*>(ApproximateReciprocal)},
      {"llvm.nvvm.ex2.approx.ftz.f", reinterpret_cast<void*>(ApproximatePower)},
      {"llvm.nvvm.cp.async.commit.group", reinterpret_cast<void*>(CommitCopies)},
      {"llvm.nvvm.cp.async.wait.group", reinterpret_cast<void*>(AwaitCopies)},
  };
  return *kSubstitutes;
}

// Instructions with four results: called as void(results, arguments).
const std::map<std::string, Together>& Collectives() {
  static const auto* const kCollectives = new std::map<std::string, Together>{
      {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3", LoadMatrices<false>},
      {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3", LoadMatrices<true>},
      {"llvm.nvvm.mma.m16n8k16.row.col.f32.f32", MultiplyMatrices<ElementType::kF16>},
      {"llvm.nvvm.mma.m16n8k16.row.col.bf16", MultiplyMatrices<ElementType::kBF16>},
      {"llvm.nvvm.mma.m16n8k32.row.col.s8", MultiplyMatrices<ElementType::kI8>},
      {"llvm.nvvm.mma.m16n8k8.row.col.tf32", MultiplyMatrices<ElementType::kF32>},
  };
  return *kCollectives;
}

void RunFiber() {
  running->wrapper(running->arguments);
  running->Wait(Fiber::State::kDone);
}

// Lets go on who need not wait any longer; false if nobody may.
bool Release(Block* block) {
  bool any = false, all_at_barrier = true;
  for (const Fiber& fiber : block->fibers) {
    any |= fiber.state != Fiber::State::kDone;
    all_at_barrier &= fiber.state == Fiber::State::kAtBarrier || fiber.state == Fiber::State::kDone;
  }
  if (!any) return false;
  bool released = false;
  if (all_at_barrier) {
    for (Fiber& fiber : block->fibers) {
      if (fiber.state == Fiber::State::kAtBarrier) fiber.state = Fiber::State::kReady;
    }
    return true;
  }
  for (size_t first = 0; first + kWarp <= block->fibers.size(); first += kWarp) {
    bool together = true;
    for (int i = 0; i < kWarp; ++i)
      together &= block->fibers[first + i].state == Fiber::State::kAtExchange;
    if (!together) continue;
    for (int i = 0; i < kWarp; ++i) block->fibers[first + i].state = Fiber::State::kReady;
    released = true;
  }
  if (!released) {
    std::fprintf(stderr, "device emulator: threads of block %d wait for different things\n",
                 block->block);
    std::abort();
  }
  return true;
}

void RunBlock(Block* block, int threads, bool backwards) {
  running = block;
  std::memset(shared_memory, 0xff, sizeof shared_memory);
  block->fibers.resize(threads);
  for (Fiber& fiber : block->fibers) {
    fiber.state = Fiber::State::kReady;
    fiber.started.clear();
    fiber.groups.clear();
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, RunFiber, 0);
  }
  do {
    for (int i = 0; i < threads; ++i) {
      block->thread = backwards ? threads - 1 - i : i;
      if (block->self().state == Fiber::State::kReady)
        swapcontext(&block->scheduler, &block->self().context);
    }
  } while (Release(block));
  running = nullptr;
}

class DeviceKernel : public LoadedKernel {
 public:
  DeviceKernel(const Kernel& kernel, std::unique_ptr<llvm::orc::LLJIT> jit,
               std::vector<Wrapper> wrappers)
      : kernel_(kernel), jit_(std::move(jit)), wrappers_(std::move(wrappers)) {}

  void Run(const std::vector<void*>& buffers, const std::vector<int64_t>& sizes,
           Order order) override {
    std::vector<char> workspace(kernel_.workspace.bytes,
                                static_cast<char>(kernel_.workspace.zeroed ? 0 : 0xff));
    for (size_t i = 0; i < kernel_.launches.size(); ++i) {
      const Launch& launch = kernel_.launches[i];
      std::vector<uint64_t> arguments;
      for (const Argument& argument : launch.arguments) {
        switch (argument.kind) {
          case Argument::Kind::kBuffer:
            arguments.push_back(reinterpret_cast<uint64_t>(buffers[argument.number]));
            break;
          case Argument::Kind::kSize:
            arguments.push_back(static_cast<uint64_t>(sizes[argument.number]));
            break;
          case Argument::Kind::kInteger:
            arguments.push_back(static_cast<uint64_t>(argument.value));
            break;
          case Argument::Kind::kWorkspace:
            arguments.push_back(reinterpret_cast<uint64_t>(workspace.data() + argument.value));
            break;
          case Argument::Kind::kTensorMap:
            std::abort();  // refused by EmulateDevice
        }
      }
      Block block;
      block.wrapper = wrappers_[i];
      block.arguments = arguments.data();
      for (block.block = 0; block.block < launch.grid[0]; ++block.block)
        RunBlock(&block, launch.block, order == Order::kBackwards);
    }
  }

 private:
  const Kernel kernel_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::vector<Wrapper> wrappers_;
};

absl::Status AsStatus(llvm::Error error) {
  return absl::InternalError(llvm::toString(std::move(error)));
}

// x86-64 has no instruction for it before AVX512-BF16.
void ReplaceBFloatRounding(llvm::Function& function) {
  std::vector<llvm::Instruction*> found;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (llvm::isa<llvm::FPTruncInst>(instruction) &&
        instruction.getType()->getScalarType()->isBFloatTy())
      found.push_back(&instruction);
  }
  for (llvm::Instruction* instruction : found) {
    llvm::IRBuilder<> b(instruction);
    llvm::Value* x = instruction->getOperand(0);
    llvm::Type* i32 = x->getType()->getWithNewType(b.getInt32Ty());
    llvm::Type* i16 = x->getType()->getWithNewType(b.getInt16Ty());
    auto constant = [&](uint64_t value) { return llvm::ConstantInt::get(i32, value); };
    llvm::Value* bits = b.CreateBitCast(x, i32);
    llvm::Value* odd = b.CreateAnd(b.CreateLShr(bits, constant(16)), constant(1));
    llvm::Value* rounded = b.CreateAdd(b.CreateAdd(bits, constant(0x7fff)), odd);
    rounded = b.CreateSelect(b.CreateFCmpUNO(x, x), constant(0x7fff0000), rounded);
    llvm::Value* high = b.CreateTrunc(b.CreateLShr(rounded, constant(16)), i16);
    instruction->replaceAllUsesWith(b.CreateBitCast(high, instruction->getType()));
    instruction->eraseFromParent();
  }
}

// Calls of an instruction with four results go through memory, whatever a C++ compiler thinks of
// structs in registers.
void ReplaceCollective(llvm::Function* function, Together substitute) {
  std::vector<llvm::CallInst*> calls;
  for (llvm::User* user : function->users()) calls.push_back(llvm::cast<llvm::CallInst>(user));
  for (llvm::CallInst* call : calls) {
    llvm::IRBuilder<> entry(&*call->getFunction()->getEntryBlock().begin());
    llvm::Type* i64 = entry.getInt64Ty();
    llvm::Type* i32 = entry.getInt32Ty();
    llvm::Value* arguments = entry.CreateAlloca(i64, entry.getInt32(kMostArguments));
    llvm::Value* results = entry.CreateAlloca(i32, entry.getInt32(4));
    llvm::IRBuilder<> b(call);
    for (unsigned i = 0; i < call->arg_size(); ++i) {
      llvm::Value* value = call->getArgOperand(i);
      value = value->getType()->isPointerTy() ? b.CreatePtrToInt(value, i64)
                                              : b.CreateZExt(b.CreateBitCast(value, i32), i64);
      b.CreateStore(value, b.CreateConstInBoundsGEP1_64(i64, arguments, i));
    }
    llvm::Value* address = b.CreateIntToPtr(
        llvm::ConstantInt::get(i64, reinterpret_cast<uint64_t>(substitute)), b.getPtrTy());
    b.CreateCall(llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false),
                 address, {results, arguments});
    auto* type = llvm::cast<llvm::StructType>(call->getType());
    llvm::Value* result = llvm::PoisonValue::get(type);
    for (unsigned i = 0; i < 4; ++i) {
      llvm::Value* slot = b.CreateConstInBoundsGEP1_64(i32, results, i);
      result = b.CreateInsertValue(result, b.CreateLoad(type->getElementType(i), slot), i);
    }
    call->replaceAllUsesWith(result);
    call->eraseFromParent();
  }
}

// Makes the module one for this machine, with a wrapper for each launch.
absl::Status Retarget(llvm::Module* module, const Kernel& kernel, llvm::orc::SymbolMap* symbols,
                      llvm::orc::LLJIT* jit) {
  module->setTargetTriple(jit->getTargetTriple().str());
  module->setDataLayout(jit->getDataLayout());
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : *module) functions.push_back(&function);
  for (llvm::Function* function : functions) {
    function->setCallingConv(llvm::CallingConv::C);
    function->removeFnAttr("target-cpu");
    function->removeFnAttr("target-features");
    ReplaceBFloatRounding(*function);
    const std::string name = function->getName().str();
    if (name.rfind("llvm.nvvm.", 0) != 0) continue;
    const auto collective = Collectives().find(name);
    if (collective != Collectives().end()) {
      ReplaceCollective(function, collective->second);
      function->eraseFromParent();
      continue;
    }
    const auto substitute = Substitutes().find(name);
    if (substitute == Substitutes().end())
      return absl::InternalError(absl::StrCat("the device emulator has no ", name));
    const std::string own = absl::StrCat("emulated.", name);
    auto* replacement = llvm::Function::Create(function->getFunctionType(),
                                               llvm::Function::ExternalLinkage, own, *module);
    function->replaceAllUsesWith(replacement);
    (*symbols)[jit->mangleAndIntern(own)] = {llvm::orc::ExecutorAddr::fromPtr(substitute->second),
                                             llvm::JITSymbolFlags::Exported};
  }
  if (llvm::GlobalVariable* shared = module->getNamedGlobal("tw_shared")) {
    auto* address = llvm::ConstantInt::get(llvm::Type::getInt64Ty(module->getContext()),
                                           reinterpret_cast<uint64_t>(shared_memory));
    shared->replaceAllUsesWith(llvm::ConstantExpr::getIntToPtr(address, shared->getType()));
  }
  for (const Launch& launch : kernel.launches) {
    llvm::Function* entry = module->getFunction(launch.entry);
    if (entry == nullptr) return absl::InternalError(absl::StrCat("no entry ", launch.entry));
    llvm::IRBuilder<> b(module->getContext());
    auto* wrapper = llvm::Function::Create(
        llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
        llvm::Function::ExternalLinkage, absl::StrCat("run_", launch.entry), *module);
    b.SetInsertPoint(llvm::BasicBlock::Create(module->getContext(), "entry", wrapper));
    std::vector<llvm::Value*> values;
    for (llvm::Argument& parameter : entry->args()) {
      llvm::Value* slot =
          b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), wrapper->getArg(0), values.size());
      values.push_back(b.CreateLoad(parameter.getType(), slot));
    }
    b.CreateCall(entry, values);
    b.CreateRetVoid();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedKernel>> EmulateDevice(const Kernel& kernel,
                                                            const std::string& ir) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  for (const Launch& launch : kernel.launches) {
    if (launch.cluster > 1 || !kernel.tensor_maps.empty())
      return absl::InternalError("the device emulator has no clusters and no tensor maps");
  }
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(ir, diagnostic, *context);
  if (module == nullptr) return absl::InternalError(diagnostic.getMessage().str());
  llvm::orc::JITTargetMachineBuilder machine((llvm::Triple("x86_64-unknown-linux-gnu")));
  machine.setCPU("x86-64-v3");
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(machine).create();
  if (!jit) return AsStatus(jit.takeError());
  llvm::orc::SymbolMap symbols;
  if (absl::Status status = Retarget(module.get(), kernel, &symbols, jit->get()); !status.ok())
    return status;
  if (llvm::Error error =
          (*jit)->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return AsStatus(std::move(error));
  if (llvm::Error error =
          (*jit)->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))))
    return AsStatus(std::move(error));
  std::vector<Wrapper> wrappers;
  for (const Launch& launch : kernel.launches) {
    auto address = (*jit)->lookup(absl::StrCat("run_", launch.entry));
    if (!address) return AsStatus(address.takeError());
    wrappers.push_back(address->toPtr<Wrapper>());
  }
  return std::make_unique<DeviceKernel>(kernel, std::move(*jit), std::move(wrappers));
}

}  // namespace tilewright
