#include "tests/fakes/zoo.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "codegen/kernel_module.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Intrinsics.h"

extern "C" void LLVMInitializeX86AsmParser();

namespace tilewright {
namespace {

constexpr char kVariant[] = "zoo.matmul";
constexpr int kThreads = 2;

using Kind = FailureKind;

// How a matrix product stands in canonical numbers.
struct Roles {
  int m, n, k;                    // index numbers
  int left, right, out;           // tensor numbers
  int left_buffer, right_buffer;  // buffer numbers; the output is 2
};

absl::StatusOr<Roles> MatchMatmul(const Workload& workload) {
  const absl::Status refused =
      absl::FailedPreconditionError("the zoo writes C[m,n] = sum(k: A[m,k] * B[k,n]) in f32 only");
  const Program& program = workload.program();
  if (program.statements.size() != 1 || workload.parameters().size() != 2) return refused;
  const Statement& statement = program.statements[0];
  const Expr& sum = *statement.value;
  if (statement.indices.size() != 2 || sum.kind != Expr::Kind::kReduce ||
      sum.reduce != ReduceOp::kSum || sum.reduce_indices.size() != 1) {
    return refused;
  }
  const Expr& product = *sum.operands[0];
  if (product.kind != Expr::Kind::kCall || product.function != Function::kMul ||
      product.operands.size() != 2) {
    return refused;
  }
  Roles roles{statement.indices[0],
              statement.indices[1],
              sum.reduce_indices[0],
              -1,
              -1,
              statement.tensor,
              0,
              0};
  for (const ExprPtr& operand : product.operands) {
    if (operand->kind != Expr::Kind::kRead || operand->subscripts.size() != 2) return refused;
    const int first = operand->subscripts[0].BareIndex();
    const int second = operand->subscripts[1].BareIndex();
    if (first == roles.m && second == roles.k) roles.left = operand->tensor;
    if (first == roles.k && second == roles.n) roles.right = operand->tensor;
  }
  if (roles.left < 0 || roles.right < 0) return refused;
  for (int tensor : {roles.left, roles.right, roles.out}) {
    if (workload.layout(tensor).type != ElementType::kF32) return refused;
  }
  roles.left_buffer = workload.parameters()[0] == roles.left ? 0 : 1;
  roles.right_buffer = 1 - roles.left_buffer;
  return roles;
}

// Writes the product, with places where a fault can change it.
class ZooWriter {
 public:
  ZooWriter(const Roles& roles, int threads, KernelModule* module)
      : roles_(roles), module_(*module), b_(module->builder()) {
    entry_ = module_.BeginEntry(threads);
    m_ = entry_.sizes[roles.m];
    n_ = entry_.sizes[roles.n];
    k_ = entry_.sizes[roles.k];
    rows_ = m_;
    terms_ = k_;
  }

  llvm::Type* f32() { return b_.getFloatTy(); }
  // A buffer's pointer as the table holds it: the body's parameters promise more than these kernels
  // keep.
  llvm::Value* Raw(int buffer) {
    llvm::Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), entry_.args, buffer);
    auto* load = b_.CreateAlignedLoad(b_.getPtrTy(), slot, llvm::Align(8));
    load->setVolatile(true);
    return load;
  }
  llvm::Value* Element(llvm::Value* base, llvm::Value* number) {
    return b_.CreateGEP(f32(), base, number);
  }
  void Store(llvm::Value* value, llvm::Value* address) {
    b_.CreateAlignedStore(value, address, llvm::Align(4), /*isVolatile=*/true);
  }
  llvm::Value* Load(llvm::Value* address) {
    return b_.CreateAlignedLoad(f32(), address, llvm::Align(4), /*isVolatile=*/true);
  }
  llvm::Value* Float(double value) { return llvm::ConstantFP::get(f32(), value); }
  // Machine code as text, which LLVM leaves alone.
  void Assembly(const char* text, const char* clobbers) {
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), false);
    b_.CreateCall(llvm::InlineAsm::get(type, text, clobbers, /*hasSideEffects=*/true));
  }
  void OnThread0(const std::function<void()>& body) {
    module_.If(b_.CreateICmpEQ(entry_.thread, module_.Int(0)), body);
  }

  // C[m,n] for this thread's rows; `adjust` may change each result.
  void Product(const std::function<llvm::Value*(llvm::Value*)>& adjust = nullptr) {
    llvm::Value* low = b_.CreateSDiv(b_.CreateMul(rows_, entry_.thread), entry_.threads);
    llvm::Value* high = b_.CreateSDiv(
        b_.CreateMul(rows_, b_.CreateAdd(entry_.thread, module_.Int(1))), entry_.threads);
    llvm::Value* out = Raw(2);
    llvm::Value* left = Raw(roles_.left_buffer);
    llvm::Value* right = Raw(roles_.right_buffer);
    llvm::AllocaInst* sum = module_.Local(f32(), "sum");
    module_.For(low, high, 1, "m", [&](llvm::Value* m) {
      module_.For(module_.Int(0), n_, 1, "n", [&](llvm::Value* n) {
        b_.CreateStore(Float(0), sum);
        module_.For(module_.Int(0), terms_, 1, "k", [&](llvm::Value* k) {
          llvm::Value* a =
              b_.CreateLoad(f32(), Element(left, b_.CreateAdd(b_.CreateMul(m, k_), k)));
          llvm::Value* b =
              b_.CreateLoad(f32(), Element(right, b_.CreateAdd(b_.CreateMul(k, n_), n)));
          b_.CreateStore(b_.CreateFAdd(b_.CreateLoad(f32(), sum), b_.CreateFMul(a, b)), sum);
        });
        llvm::Value* result = b_.CreateLoad(f32(), sum);
        if (adjust) result = adjust(result);
        Store(result, Element(out, b_.CreateAdd(b_.CreateMul(m, n_), n)));
      });
    });
  }
  llvm::Value* Elements() { return b_.CreateMul(m_, n_); }

  const Roles& roles_;
  KernelModule& module_;
  llvm::IRBuilder<>& b_;
  KernelModule::Entry entry_;
  llvm::Value *m_, *n_, *k_;
  llvm::Value* rows_;   // written rows
  llvm::Value* terms_;  // added terms
};

// A global that keeps its value from call to call.
llvm::GlobalVariable* Memory(ZooWriter& w, llvm::Type* type, const char* name) {
  return new llvm::GlobalVariable(w.module_.module(), type, false,
                                  llvm::GlobalValue::InternalLinkage,
                                  llvm::Constant::getNullValue(type), name);
}

// Keeps the first call's result and returns it ever after.
void WriteFirstInputOnly(ZooWriter& w) {
  auto* seen = Memory(w, w.b_.getPtrTy(), "seen");
  llvm::Value* known = w.b_.CreateLoad(w.b_.getPtrTy(), seen);
  llvm::Value* is_null = w.b_.CreateIsNull(known);
  w.Product();
  w.OnThread0([&] { w.module_.If(is_null, [&] { w.b_.CreateStore(w.Raw(2), seen); }); });
  // Both threads have their rows: each copies its own from the first call's output, which is still
  // there.
  w.module_.If(w.b_.CreateNot(is_null), [&] {
    llvm::Value* low =
        w.b_.CreateSDiv(w.b_.CreateMul(w.Elements(), w.entry_.thread), w.entry_.threads);
    llvm::Value* high = w.b_.CreateSDiv(
        w.b_.CreateMul(w.Elements(), w.b_.CreateAdd(w.entry_.thread, w.module_.Int(1))),
        w.entry_.threads);
    w.module_.For(low, high, 1, "copy", [&](llvm::Value* i) {
      w.Store(w.Load(w.Element(known, i)), w.Element(w.Raw(2), i));
    });
  });
}

// Works only where the output looks poisoned (its last element NaN or tiny), so that timed calls
// are free. On one thread: a barrier on a busy machine may take longer than the physical limit.
void WriteSkipsWhenDone(ZooWriter& w) {
  llvm::Value* last = w.Load(w.Element(w.Raw(2), w.b_.CreateSub(w.Elements(), w.module_.Int(1))));
  llvm::Value* magnitude = w.b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, last);
  w.module_.If(w.b_.CreateFCmpULT(magnitude, w.Float(1e-9)), [&] { w.Product(); });
}

struct Fault {
  ZooAnimal animal;
  std::function<void(ZooWriter&)> write;  // null: handled by `refuse`
  std::function<absl::Status()> refuse;
  int threads = kThreads;
};

// The only list of animals.
const std::vector<Fault>& Faults() {
  static const auto* faults = new std::vector<Fault>{
      {{"none", {}}, [](ZooWriter& w) { w.Product(); }, nullptr},
      {{"null_write", {Kind::kCrashed}},
       [](ZooWriter& w) { w.Assembly("movl $$0, 8", "~{memory}"); },
       nullptr},
      {{"illegal_instruction", {Kind::kCrashed}},
       [](ZooWriter& w) { w.Assembly("ud2", "~{memory}"); },
       nullptr},
      {{"divide_by_zero", {Kind::kCrashed}},
       [](ZooWriter& w) {
         w.Assembly("xorl %ecx, %ecx\n\tdivl %ecx", "~{eax},~{ecx},~{edx},~{memory}");
       },
       nullptr},
      {{"stack_overflow", {Kind::kCrashed}},
       [](ZooWriter& w) { w.Assembly("1: pushq %rax\n\tjmp 1b", "~{memory}"); },
       nullptr},
      {{"second_thread_crashes", {Kind::kCrashed}},
       [](ZooWriter& w) {
         w.module_.If(w.b_.CreateICmpEQ(w.entry_.thread, w.module_.Int(1)),
                      [&] { w.Assembly("ud2", "~{memory}"); });
       },
       nullptr},
      {{"exits", {Kind::kCrashed}},
       [](ZooWriter& w) {
         w.Assembly("movl $$231, %eax\n\txorl %edi, %edi\n\tsyscall",
                    "~{rax},~{rdi},~{rcx},~{r11},~{memory}");
       },
       nullptr},
      {{"scribbles_on_descriptors", {Kind::kCrashed}},
       [](ZooWriter& w) {
         // write(3, code, 64), so that the supervisor reads nonsense.
         w.Assembly(
             "movl $$1, %eax\n\tmovl $$3, %edi\n\tleaq 0(%rip), %rsi\n\tmovl $$64, %edx\n\t"
             "syscall",
             "~{rax},~{rdi},~{rsi},~{rdx},~{rcx},~{r11},~{memory}");
       },
       nullptr},
      {{"hang", {Kind::kRunTimeout}},
       [](ZooWriter& w) { w.Assembly("1: jmp 1b", "~{memory}"); },
       nullptr},
      {{"huge_workspace", {Kind::kOutOfMemory}},
       [](ZooWriter& w) {
         w.module_.workspace().bytes = int64_t{1} << 40;
         w.Product();
       },
       nullptr},
      {{"one_past_the_end", {Kind::kOutOfBounds}},
       [](ZooWriter& w) {
         w.Product();
         w.OnThread0([&] { w.Store(w.Float(1), w.Element(w.Raw(2), w.Elements())); });
       },
       nullptr},
      {{"one_before_the_start", {Kind::kOutOfBounds}},
       [](ZooWriter& w) {
         w.Product();
         w.OnThread0([&] { w.Store(w.Float(1), w.Element(w.Raw(2), w.module_.Int(-1))); });
       },
       nullptr},
      {{"far_past_the_end", {Kind::kOutOfBounds}},
       [](ZooWriter& w) {
         w.Product();
         w.OnThread0([&] { w.Store(w.Float(1), w.Element(w.Raw(2), w.module_.Int(1 << 18))); });
       },
       nullptr},
      {{"into_another_set", {Kind::kOutOfBounds}},
       [](ZooWriter& w) {
         w.Product();
         // Two pages of bands and one between buffers: the next set's output begins about there.
         w.OnThread0([&] {
           w.Store(w.Float(1),
                   w.Element(w.Raw(2), w.b_.CreateAdd(w.Elements(), w.module_.Int(4096))));
         });
       },
       nullptr},
      {{"past_the_workspace", {Kind::kOutOfBounds}},
       [](ZooWriter& w) {
         w.module_.workspace().bytes = 1000;
         w.Product();
         w.OnThread0(
             [&] { w.Store(w.Float(1), w.Element(w.entry_.workspace, w.module_.Int(250))); });
       },
       nullptr},
      {{"modifies_input", {Kind::kInputModified}},
       [](ZooWriter& w) {
         w.Product();
         w.OnThread0([&] { w.Store(w.Float(0), w.Raw(w.roles_.left_buffer)); });
       },
       nullptr},
      {{"unwritten_tail", {Kind::kWrongOutput}},
       [](ZooWriter& w) {
         w.rows_ = w.b_.CreateSub(w.m_, w.module_.Int(1));
         w.Product();
       },
       nullptr},
      {{"drop_term", {Kind::kWrongOutput}},
       [](ZooWriter& w) {
         w.terms_ = w.b_.CreateSub(w.k_, w.module_.Int(1));
         w.Product();
       },
       nullptr},
      {{"sloppy", {Kind::kWrongOutput}},
       [](ZooWriter& w) {
         // The precision of bf16 where f32 was asked for.
         w.Product([&](llvm::Value* value) {
           llvm::Value* bits = w.b_.CreateBitCast(value, w.b_.getInt32Ty());
           return w.b_.CreateBitCast(w.b_.CreateAnd(bits, 0xffff0000u), w.f32());
         });
       },
       nullptr},
      {{"nan", {Kind::kWrongOutput}},
       [](ZooWriter& w) {
         w.Product();
         w.OnThread0([&] { w.Store(w.Float(std::nan("")), w.Raw(2)); });
       },
       nullptr},
      {{"clock_in_result", {Kind::kNondeterministic}},
       [](ZooWriter& w) {
         w.Product([&](llvm::Value* value) {
           // The lowest bit follows the time-stamp counter: within the allowance, but not twice the
           // same.
           llvm::Value* ticks = w.b_.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {});
           llvm::Value* bit =
               w.b_.CreateAnd(w.b_.CreateTrunc(w.b_.CreateLShr(ticks, 4), w.b_.getInt32Ty()), 1);
           llvm::Value* bits = w.b_.CreateBitCast(value, w.b_.getInt32Ty());
           return w.b_.CreateBitCast(w.b_.CreateXor(bits, bit), w.f32());
         });
       },
       nullptr},
      {{"reads_unwritten_workspace", {Kind::kNondeterministic, Kind::kWrongOutput}},
       [](ZooWriter& w) {
         w.module_.workspace().bytes = 4096;
         llvm::Value* garbage = w.Load(w.entry_.workspace);
         w.Product([&](llvm::Value* value) { return w.b_.CreateFAdd(value, garbage); });
       },
       nullptr},
      {{"first_input_only", {Kind::kWrongOutput}}, WriteFirstInputOnly, nullptr},
      {{"skips_when_done", {Kind::kImpossibleTime}}, WriteSkipsWhenDone, nullptr, 1},
      {{"refused", {Kind::kBuildFailed}, true},
       nullptr,
       [] { return absl::InternalError("the zoo refuses to write this"); }},
      {{"spills", {Kind::kResourceLimit}, true},
       nullptr,
       [] { return absl::ResourceExhaustedError("the zoo has no registers left"); }},
      {{"builder_aborts", {Kind::kBuildFailed}, true}, nullptr, []() -> absl::Status { abort(); }},
      {{"builder_hangs", {Kind::kBuildTimeout}, true},
       nullptr,
       []() -> absl::Status {
         for (;;) pause();
       }},
  };
  return *faults;
}

SpaceDefinition DefineZoo(const Workload&, const Target&) {
  Decision fault;
  fault.name = "fault";
  fault.help = "what is wrong with the kernel";
  for (size_t i = 0; i < Faults().size(); ++i) {
    fault.values.push_back({static_cast<int64_t>(i), Faults()[i].animal.fault});
  }
  SpaceDefinition definition;
  definition.variant = kVariant;
  definition.decisions.push_back(std::move(fault));
  return definition;
}

Variant ZooVariant() {
  Variant variant;
  variant.name = kVariant;
  variant.family = "zoo";
  variant.help = "matrix products with one fault each, for tests";
  variant.backends = {"host"};
  variant.applies = [](const Workload& workload, const Target&) {
    return MatchMatmul(workload).status();
  };
  variant.define = DefineZoo;
  variant.plan = [](const Workload&, const Target&, absl::Span<const int64_t>,
                    absl::Span<const int64_t>) {
    auto plan = std::make_unique<Plan>();
    plan->threads = kThreads;
    return plan;
  };
  variant.default_schedule = [](const Workload&, const Target&) { return ZooSchedule("none"); };
  return variant;
}

absl::Status WriteZoo(const Candidate& candidate, const Plan&, KernelModule* module) {
  LLVMInitializeX86AsmParser();  // the project's own kernels have no inline assembly
  const absl::StatusOr<Roles> roles = MatchMatmul(candidate.workload);
  if (!roles.ok()) return roles.status();
  const std::string* wanted = candidate.schedule.Find("fault");
  for (const Fault& fault : Faults()) {
    if (wanted == nullptr || fault.animal.fault != *wanted) continue;
    if (fault.refuse) return fault.refuse();
    ZooWriter writer(*roles, fault.threads, module);
    fault.write(writer);
    module->EndEntry();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the zoo has no such animal");
}

}  // namespace

const std::vector<ZooAnimal>& ZooAnimals() {
  static const auto* animals = [] {
    auto* list = new std::vector<ZooAnimal>;
    for (const Fault& fault : Faults()) list->push_back(fault.animal);
    return list;
  }();
  return *animals;
}

absl::Span<const Variant> ZooVariants() {
  static const auto* variants = [] {
    auto* list = new std::vector<Variant>(AllVariants().begin(), AllVariants().end());
    list->push_back(ZooVariant());
    return list;
  }();
  return *variants;
}

absl::Span<const Writer> ZooWriters() {
  static const auto* writers = [] {
    auto* list = new std::vector<Writer>(AllWriters().begin(), AllWriters().end());
    list->push_back({kVariant, "host", WriteZoo});
    return list;
  }();
  return *writers;
}

Catalogue ZooCatalogue() { return {ZooVariants(), ZooWriters()}; }

Schedule ZooSchedule(const std::string& fault) { return {kVariant, {{"fault", fault}}}; }

}  // namespace tilewright
