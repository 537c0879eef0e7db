#include "codegen/kernel_module.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/convert.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/MDBuilder.h"

namespace tilewright {
namespace {

// How LLVM lays out data for a backend; a target's text says the rest. Both are LLVM 19's own for
// the triple.
struct BackendLayout {
  const char* backend;
  const char* triple;
  const char* data_layout;
};
constexpr BackendLayout kLayouts[] = {
    {"host", "x86_64-unknown-linux-gnu",
     "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"},
    {"nvptx", "nvptx64-nvidia-cuda", "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"},
};

// NVPTX address spaces and sizes (LLVM's NVPTXUsage, "Address Spaces"; a CUtensorMap has 128
// bytes).
constexpr unsigned kGlobalSpace = 1;
constexpr unsigned kSharedSpace = 3;
constexpr int kTensorMapBytes = 128;
// Dynamic shared memory: one object that all entries of a module share.
constexpr char kSharedName[] = "tw_shared";

}  // namespace

KernelModule::KernelModule(const Workload& workload, const Target& target)
    : context_(std::make_unique<llvm::LLVMContext>()),
      module_(std::make_unique<llvm::Module>("kernel", *context_)),
      builder_(*context_),
      workload_(workload),
      target_(target) {
  for (const BackendLayout& layout : kLayouts) {
    if (target.backend != layout.backend) continue;
    module_->setTargetTriple(layout.triple);
    module_->setDataLayout(layout.data_layout);
  }
  for (absl::Span<const int> buffers : {workload.parameters(), workload.outputs()}) {
    for (int tensor : buffers) alignments_.push_back(Info(workload.layout(tensor).type).bytes);
  }
  // A product and a sum may become one fused instruction; nothing else of fast math is allowed.
  llvm::FastMathFlags flags;
  flags.setAllowContract(true);
  builder_.setFastMathFlags(flags);
}

KernelModule::Entry KernelModule::BeginEntry(int threads, int extra_buffers) {
  const int number = static_cast<int>(launches_.size());
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Type* i64 = builder_.getInt64Ty();
  Launch launch;
  launch.entry = absl::StrCat("tw_entry_", number);  // WriteKernel gives the final symbol
  launch.threads = threads;
  std::vector<llvm::Type*> body_types = {pointer, pointer, i64, i64};
  const size_t buffers = workload_.parameters().size() + workload_.outputs().size() + extra_buffers;
  for (size_t i = 0; i < buffers; ++i) {
    launch.arguments.push_back({Argument::Kind::kBuffer, static_cast<int>(i), 0});
    body_types.push_back(pointer);
  }
  for (size_t i = 0; i < workload_.sizes().size(); ++i) {
    if (workload_.sizes()[i].fixed()) continue;
    launch.arguments.push_back({Argument::Kind::kSize, static_cast<int>(i), 0});
    body_types.push_back(i64);
  }

  // The body is a function of its own because only parameters can be declared noalias; the entry
  // loads the table and calls it.
  llvm::Type* i32 = builder_.getInt32Ty();
  auto* stub = llvm::Function::Create(
      llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, i32, i32}, false),
      llvm::Function::ExternalLinkage, launch.entry, *module_);
  auto* body = llvm::Function::Create(
      llvm::FunctionType::get(builder_.getVoidTy(), body_types, false),
      llvm::Function::PrivateLinkage, absl::StrCat("body_", number), *module_);
  body->addFnAttr(llvm::Attribute::NoInline);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(*context_, "entry", stub));
  std::vector<llvm::Value*> values = {stub->getArg(0), stub->getArg(1),
                                      builder_.CreateSExt(stub->getArg(2), i64),
                                      builder_.CreateSExt(stub->getArg(3), i64)};
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    llvm::Value* slot = builder_.CreateConstInBoundsGEP1_64(i64, stub->getArg(0), i);
    values.push_back(builder_.CreateAlignedLoad(body_types[values.size()], slot, llvm::Align(8)));
  }
  builder_.CreateCall(body, values);
  builder_.CreateRetVoid();

  Entry entry;
  entry.function = body;
  entry.args = body->getArg(0);
  entry.workspace = body->getArg(1);
  entry.thread = body->getArg(2);
  entry.threads = body->getArg(3);
  body->addParamAttr(1, llvm::Attribute::NoAlias);
  for (size_t i = 0; i < buffers; ++i) {
    const int parameter = static_cast<int>(4 + i);
    llvm::Argument* buffer = body->getArg(parameter);
    buffer->setName(absl::StrCat("buffer", i));
    body->addParamAttr(parameter, llvm::Attribute::NoAlias);
    body->addParamAttr(parameter, llvm::Attribute::NoCapture);
    if (i < workload_.parameters().size()) body->addParamAttr(parameter, llvm::Attribute::ReadOnly);
    entry.buffers.push_back(buffer);
  }
  int next = static_cast<int>(4 + buffers);
  for (const SizeRange& size : workload_.sizes()) {
    entry.sizes.push_back(size.fixed() ? Int(size.low)
                                       : static_cast<llvm::Value*>(body->getArg(next++)));
  }
  builder_.SetInsertPoint(llvm::BasicBlock::Create(*context_, "entry", body));
  launches_.push_back(std::move(launch));
  entry_ = body;
  return entry;
}

KernelModule::DeviceEntry KernelModule::BeginDeviceEntry(const DeviceLaunch& wanted,
                                                         const std::vector<TensorMap>& maps,
                                                         int extra_buffers) {
  Launch launch;
  launch.entry = absl::StrCat("tw_entry_", launches_.size());  // WriteKernel gives the final symbol
  launch.grid = wanted.grid;
  launch.block = wanted.block;
  launch.cluster = wanted.cluster;
  launch.shared_memory_bytes = wanted.shared_memory_bytes;
  launch.dependent_launch = wanted.dependent_launch;

  llvm::Type* pointer = builder_.getPtrTy(kGlobalSpace);
  llvm::Type* i64 = builder_.getInt64Ty();
  auto* map_type = llvm::ArrayType::get(i64, kTensorMapBytes / 8);
  std::vector<llvm::Type*> types;
  const size_t buffers = workload_.parameters().size() + workload_.outputs().size() + extra_buffers;
  for (size_t i = 0; i < buffers; ++i) {
    launch.arguments.push_back({Argument::Kind::kBuffer, static_cast<int>(i), 0});
    types.push_back(pointer);
  }
  for (size_t i = 0; i < workload_.sizes().size(); ++i) {
    if (workload_.sizes()[i].fixed()) continue;
    launch.arguments.push_back({Argument::Kind::kSize, static_cast<int>(i), 0});
    types.push_back(i64);
  }
  const size_t first_map = types.size();
  for (const TensorMap& map : maps) {
    launch.arguments.push_back(
        {Argument::Kind::kTensorMap, static_cast<int>(tensor_maps_.size()), 0});
    tensor_maps_.push_back(map);
    types.push_back(builder_.getPtrTy());
  }
  if (workspace_.bytes > 0) {
    launch.arguments.push_back({Argument::Kind::kWorkspace, 0, 0});
    types.push_back(pointer);
  }

  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(builder_.getVoidTy(), types, false),
                             llvm::Function::ExternalLinkage, launch.entry, *module_);
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  DeviceEntry entry;
  entry.function = function;
  for (size_t i = 0; i < buffers; ++i) {
    function->getArg(i)->setName(absl::StrCat("buffer", i));
    entry.buffers.push_back(function->getArg(i));
    if (wanted.dependent_launch) continue;
    function->addParamAttr(i, llvm::Attribute::NoAlias);
    if (i < workload_.parameters().size()) function->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  size_t next = buffers;
  for (const SizeRange& size : workload_.sizes()) {
    entry.sizes.push_back(size.fixed() ? Int(size.low)
                                       : static_cast<llvm::Value*>(function->getArg(next++)));
  }
  builder_.SetInsertPoint(llvm::BasicBlock::Create(*context_, "entry", function));

  // Annotations, as LLVM 19's NVPTXUtilities reads them. Without grid_constant a map would be
  // copied to local memory, where the copy engine cannot read it.
  llvm::NamedMDNode* annotations = module_->getOrInsertNamedMetadata("nvvm.annotations");
  auto* self = llvm::ConstantAsMetadata::get(function);
  auto annotate = [&](const char* name, llvm::Metadata* value) {
    annotations->addOperand(
        llvm::MDNode::get(*context_, {self, llvm::MDString::get(*context_, name), value}));
  };
  auto number = [&](int value) {
    return llvm::ConstantAsMetadata::get(builder_.getInt32(static_cast<uint32_t>(value)));
  };
  annotate("reqntidx", number(wanted.block));
  annotate("reqntidy", number(1));
  annotate("reqntidz", number(1));
  if (wanted.minimum_blocks > 0) annotate("minctasm", number(wanted.minimum_blocks));
  std::vector<llvm::Metadata*> constant_parameters;
  for (size_t i = first_map; i < first_map + maps.size(); ++i) {
    const auto parameter = static_cast<unsigned>(i);
    function->addParamAttr(parameter, llvm::Attribute::getWithByValType(*context_, map_type));
    function->addParamAttr(parameter,
                           llvm::Attribute::getWithAlignment(*context_, llvm::Align(64)));
    constant_parameters.push_back(number(static_cast<int>(i) + 1));  // counted from 1
    entry.tensor_maps.push_back(builder_.CreatePtrToInt(function->getArg(parameter), i64));
  }
  if (!maps.empty()) annotate("grid_constant", llvm::MDNode::get(*context_, constant_parameters));
  if (workspace_.bytes > 0) {
    entry.workspace = function->getArg(types.size() - 1);
    if (!wanted.dependent_launch)
      function->addParamAttr(types.size() - 1, llvm::Attribute::NoAlias);
  }
  entry.shared = module_->getNamedValue(kSharedName);
  if (entry.shared == nullptr) {
    auto* shared = new llvm::GlobalVariable(
        *module_, llvm::ArrayType::get(builder_.getInt8Ty(), 0), /*isConstant=*/false,
        llvm::GlobalValue::ExternalLinkage, nullptr, kSharedName, nullptr,
        llvm::GlobalValue::NotThreadLocal, kSharedSpace);
    shared->setAlignment(llvm::Align(1024));
    entry.shared = shared;
  }
  launches_.push_back(std::move(launch));
  entry_ = function;
  return entry;
}

llvm::Value* KernelModule::ThreadInBlock() {
  return builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
}
llvm::Value* KernelModule::BlockInGrid() {
  return builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
}
void KernelModule::Barrier() { builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

void KernelModule::EndEntry() {
  builder_.CreateRetVoid();
  builder_.ClearInsertionPoint();
  entry_ = nullptr;
}

llvm::Function* KernelModule::BeginFunction(const std::string& name,
                                            const std::vector<llvm::Type*>& parameters,
                                            bool always_inline) {
  saved_.push_back(builder_.saveIP());
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(builder_.getVoidTy(), parameters, false),
                             llvm::Function::PrivateLinkage, name, *module_);
  function->addFnAttr(always_inline ? llvm::Attribute::AlwaysInline : llvm::Attribute::NoInline);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(*context_, "entry", function));
  return function;
}

void KernelModule::EndFunction() {
  builder_.CreateRetVoid();
  builder_.restoreIP(saved_.back());
  saved_.pop_back();
}

llvm::Value* KernelModule::Int(int64_t value) {
  return builder_.getInt64(static_cast<uint64_t>(value));
}

llvm::Type* KernelModule::Type(ElementType type, int lanes) {
  llvm::Type* scalar = nullptr;
  switch (type) {
    case ElementType::kF64:
      scalar = builder_.getDoubleTy();
      break;
    case ElementType::kF32:
      scalar = builder_.getFloatTy();
      break;
    case ElementType::kF16:
      scalar = builder_.getHalfTy();
      break;
    case ElementType::kBF16:
      scalar = builder_.getBFloatTy();
      break;
    case ElementType::kE4M3:
    case ElementType::kE5M2:
    case ElementType::kI8:
      scalar = builder_.getInt8Ty();
      break;
    case ElementType::kI32:
      scalar = builder_.getInt32Ty();
      break;
  }
  return lanes > 1 ? llvm::FixedVectorType::get(scalar, lanes) : scalar;
}

void KernelModule::For(llvm::Value* begin, llvm::Value* end, int64_t step, const std::string& name,
                       const std::function<void(llvm::Value*)>& body, int unroll) {
  auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (first != nullptr && last != nullptr) {
    if (first->getSExtValue() >= last->getSExtValue()) return;
    if (first->getSExtValue() + step >= last->getSExtValue()) return body(begin);
  }
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  auto* preheader = llvm::BasicBlock::Create(*context_, name + ".preheader", function);
  auto* loop = llvm::BasicBlock::Create(*context_, name, function);
  auto* exit = llvm::BasicBlock::Create(*context_, name + ".exit", function);
  auto* after = llvm::BasicBlock::Create(*context_, name + ".after", function);
  builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), preheader, after);
  builder_.SetInsertPoint(preheader);
  builder_.CreateBr(loop);
  builder_.SetInsertPoint(loop);
  llvm::PHINode* i = builder_.CreatePHI(builder_.getInt64Ty(), 2, name + ".i");
  i->addIncoming(begin, preheader);
  body(i);
  llvm::Value* next = builder_.CreateNSWAdd(i, Int(step));
  i->addIncoming(next, builder_.GetInsertBlock());
  auto* branch = builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), loop, exit);
  if (unroll != 0) {
    llvm::Metadata* wish =
        unroll == 1 ? llvm::MDNode::get(*context_,
                                        llvm::MDString::get(*context_, "llvm.loop.unroll.disable"))
                    : llvm::MDNode::get(*context_,
                                        {llvm::MDString::get(*context_, "llvm.loop.unroll.count"),
                                         llvm::ConstantAsMetadata::get(builder_.getInt32(unroll))});
    llvm::MDNode* id = llvm::MDNode::getDistinct(*context_, {nullptr, wish});
    id->replaceOperandWith(0, id);
    branch->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  builder_.SetInsertPoint(exit);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
}

void KernelModule::If(llvm::Value* condition, const std::function<void()>& then,
                      const std::function<void()>& otherwise) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (known->isOne())
      then();
    else if (otherwise != nullptr)
      otherwise();
    return;
  }
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  auto* then_block = llvm::BasicBlock::Create(*context_, "then", function);
  auto* else_block =
      otherwise != nullptr ? llvm::BasicBlock::Create(*context_, "else", function) : nullptr;
  auto* after = llvm::BasicBlock::Create(*context_, "endif", function);
  builder_.CreateCondBr(condition, then_block, else_block != nullptr ? else_block : after);
  builder_.SetInsertPoint(then_block);
  then();
  builder_.CreateBr(after);
  if (else_block != nullptr) {
    builder_.SetInsertPoint(else_block);
    otherwise();
    builder_.CreateBr(after);
  }
  builder_.SetInsertPoint(after);
}

llvm::Value* KernelModule::Min(llvm::Value* a, llvm::Value* b) {
  return builder_.CreateSelect(builder_.CreateICmpSLT(a, b), a, b);
}

llvm::Value* KernelModule::Max(llvm::Value* a, llvm::Value* b) {
  return builder_.CreateSelect(builder_.CreateICmpSGT(a, b), a, b);
}

llvm::Value* KernelModule::CeilDiv(llvm::Value* a, int64_t b) {
  if (b == 1) return a;
  return builder_.CreateUDiv(builder_.CreateNSWAdd(a, Int(b - 1)), Int(b));
}

llvm::AllocaInst* KernelModule::Local(llvm::Type* type, const std::string& name, int64_t count,
                                      int alignment) {
  llvm::BasicBlock& block = builder_.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&block, block.begin());
  auto* slot = at_entry.CreateAlloca(type, count == 1 ? nullptr : Int(count), name);
  slot->setAlignment(llvm::Align(alignment));
  return slot;
}

llvm::Value* KernelModule::LoadElements(ElementType type, llvm::Value* base, llvm::Value* offset,
                                        int lanes, ElementType as, llvm::Value* mask) {
  llvm::Type* bits = StorageBits(*this, type, lanes);
  llvm::Value* address = builder_.CreateGEP(StorageBits(*this, type, 1), base, offset);
  const llvm::Align alignment(Info(type).bytes);
  llvm::Value* stored;
  if (mask == nullptr) {
    stored = builder_.CreateAlignedLoad(bits, address, alignment);
  } else if (lanes == 1) {
    // A masked scalar is a branch: the address may be invalid.
    llvm::Value* slot = Local(bits, "element", 1, Info(type).bytes);
    builder_.CreateAlignedStore(llvm::Constant::getNullValue(bits), slot, alignment);
    If(mask, [&] {
      builder_.CreateAlignedStore(builder_.CreateAlignedLoad(bits, address, alignment), slot,
                                  alignment);
    });
    stored = builder_.CreateAlignedLoad(bits, slot, alignment);
  } else {
    stored = builder_.CreateMaskedLoad(bits, address, alignment, mask,
                                       llvm::Constant::getNullValue(bits));
  }
  return WidenElements(*this, type, stored, as);
}

void KernelModule::StoreElements(ElementType type, llvm::Value* value, llvm::Value* base,
                                 llvm::Value* offset, int lanes, llvm::Value* mask) {
  llvm::Value* stored = NarrowElements(*this, type, value);
  llvm::Value* address = builder_.CreateGEP(StorageBits(*this, type, 1), base, offset);
  const llvm::Align alignment(Info(type).bytes);
  if (mask == nullptr) {
    builder_.CreateAlignedStore(stored, address, alignment);
  } else if (lanes == 1) {
    If(mask, [&] { builder_.CreateAlignedStore(stored, address, alignment); });
  } else {
    builder_.CreateMaskedStore(stored, address, alignment, mask);
  }
}

llvm::Value* KernelModule::LaneMask(llvm::Value* first, llvm::Value* end, int lanes) {
  if (lanes == 1) return builder_.CreateICmpSLT(first, end);
  // Compared as 32 bits, so that the mask has the lanes' own width: the number of lanes left, at
  // most `lanes`.
  llvm::Value* left = Min(builder_.CreateNSWSub(end, first), Int(lanes));
  llvm::Value* narrow = builder_.CreateTrunc(left, builder_.getInt32Ty());
  std::vector<uint32_t> numbers(lanes);
  for (int i = 0; i < lanes; ++i) numbers[i] = i;
  return builder_.CreateICmpSLT(llvm::ConstantDataVector::get(*context_, numbers),
                                builder_.CreateVectorSplat(lanes, narrow));
}

llvm::Value* KernelModule::Iota(llvm::Value* first, int lanes) {
  if (lanes == 1) return first;
  std::vector<uint64_t> numbers(lanes);
  for (int i = 0; i < lanes; ++i) numbers[i] = i;
  return builder_.CreateAdd(builder_.CreateVectorSplat(lanes, first),
                            llvm::ConstantDataVector::get(*context_, numbers));
}

}  // namespace tilewright
