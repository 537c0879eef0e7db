#include "tests/codegen/two_launches.h"

#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_module.h"

namespace tilewright {
namespace {

constexpr char kName[] = "test.two_launches";

absl::Status WriteTwoLaunches(const Candidate& candidate, const Plan& plan, KernelModule* module) {
  const int unroll = *candidate.schedule.Find("unroll") == "2" ? 2 : 1;
  llvm::IRBuilder<>& builder = module->builder();
  llvm::Type* f32 = module->Type(ElementType::kF32);
  module->workspace() = {.bytes = 3 * 4, .alignment = 64, .zeroed = true};

  KernelModule::Entry add = module->BeginEntry(3);
  llvm::Value* slot = builder.CreateGEP(f32, add.workspace, add.thread);
  llvm::Value* one_more = builder.CreateSIToFP(builder.CreateAdd(add.thread, module->Int(1)), f32);
  builder.CreateStore(builder.CreateFAdd(builder.CreateLoad(f32, slot), one_more), slot);
  module->EndEntry();

  KernelModule::Entry copy = module->BeginEntry(2);
  llvm::Value* sum = llvm::ConstantFP::get(f32, 0.0);
  for (int i = 0; i < 3; ++i) {
    llvm::Value* term =
        builder.CreateLoad(f32, builder.CreateGEP(f32, copy.workspace, module->Int(i)));
    sum = builder.CreateFAdd(sum, term);
  }
  module->For(
      copy.thread, copy.sizes[0], 2, "i",
      [&](llvm::Value* i) {
        llvm::Value* x =
            module->LoadElements(ElementType::kF32, copy.buffers[0], i, 1, ElementType::kF32);
        module->StoreElements(ElementType::kF32, builder.CreateFAdd(x, sum), copy.buffers[1], i, 1);
      },
      unroll);
  module->EndEntry();
  return absl::OkStatus();
}

Variant MakeVariant() {
  Variant variant;
  variant.name = kName;
  variant.family = "test";
  variant.help = "adds six in two launches";
  variant.backends = {"host"};
  variant.applies = [](const Workload&, const Target&) { return absl::OkStatus(); };
  variant.define = [](const Workload&, const Target&) {
    SpaceDefinition definition;
    definition.variant = kName;
    definition.decisions.push_back(
        {.name = "unroll", .help = "of the copy", .values = IntegerValues({1, 2})});
    return definition;
  };
  variant.plan = [](const Workload&, const Target&, absl::Span<const int64_t>,
                    absl::Span<const int64_t>) { return std::make_unique<Plan>(); };
  variant.default_schedule = [](const Workload&, const Target&) {
    return Schedule{kName, {{"unroll", "1"}}};
  };
  return variant;
}

}  // namespace

Catalogue TwoLaunchesCatalogue() {
  static const auto* variants = new std::vector<Variant>{MakeVariant()};
  static const auto* writers = new std::vector<Writer>{{kName, "host", WriteTwoLaunches}};
  return {*variants, *writers};
}

Target TwoLaunchesTarget() {
  Target target;
  target.kind = "cpu:test/avx2/2";
  target.backend = "host";
  target.llvm_cpu = "x86-64-v3";
  target.llvm_features = "+avx2,+fma";
  target.cores = 2;
  target.vector_bits = 256;
  return target;
}

}  // namespace tilewright
