#include "tests/codegen/host_loader.h"

#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace tilewright {
namespace {

class OrcKernel : public LoadedKernel {
 public:
  OrcKernel(const Kernel& kernel, std::unique_ptr<llvm::orc::LLJIT> jit,
            std::vector<HostEntry> entries)
      : kernel_(kernel), jit_(std::move(jit)), entries_(std::move(entries)) {
    const size_t alignment = kernel.workspace.alignment;
    const size_t bytes = (kernel.workspace.bytes + alignment) / alignment * alignment;
    workspace_.reset(std::aligned_alloc(alignment, bytes));
    workspace_bytes_ = bytes;
  }

  void Run(const std::vector<void*>& buffers, const std::vector<int64_t>& sizes,
           Order order) override {
    // A workspace that need not be zero holds anything: NaN patterns here.
    std::memset(workspace_.get(), kernel_.workspace.zeroed ? 0 : 0xff, workspace_bytes_);
    for (size_t i = 0; i < kernel_.launches.size(); ++i) {
      const Launch& launch = kernel_.launches[i];
      std::vector<uint64_t> args;
      for (const Argument& argument : launch.arguments) {
        switch (argument.kind) {
          case Argument::Kind::kBuffer:
            args.push_back(reinterpret_cast<uint64_t>(buffers[argument.number]));
            break;
          case Argument::Kind::kSize:
            args.push_back(static_cast<uint64_t>(sizes[argument.number]));
            break;
          case Argument::Kind::kInteger:
            args.push_back(static_cast<uint64_t>(argument.value));
            break;
          case Argument::Kind::kTensorMap:
          case Argument::Kind::kWorkspace:
            std::abort();  // of GPUs
        }
      }
      auto call = [&](int thread) {
        entries_[i](args.data(), workspace_.get(), thread, launch.threads);
      };
      if (order == Order::kForwards) {
        for (int t = 0; t < launch.threads; ++t) call(t);
      } else if (order == Order::kBackwards) {
        for (int t = launch.threads; t-- > 0;) call(t);
      } else {
        std::vector<std::thread> threads;
        for (int t = 1; t < launch.threads; ++t) threads.emplace_back(call, t);
        call(0);
        for (std::thread& thread : threads) thread.join();
      }
    }
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  const Kernel kernel_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::vector<HostEntry> entries_;
  std::unique_ptr<void, Free> workspace_;
  size_t workspace_bytes_ = 0;
};

absl::Status ToStatus(llvm::Error error) {
  return absl::InternalError(llvm::toString(std::move(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadedKernel::Load(const Kernel& kernel) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return ToStatus(jit.takeError());
  for (const CodeObject& object : kernel.objects) {
    if (llvm::Error error =
            (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object.bytes, "kernel"))) {
      return ToStatus(std::move(error));
    }
  }
  std::vector<HostEntry> entries;
  for (const Launch& launch : kernel.launches) {
    auto address = (*jit)->lookup(launch.entry);
    if (!address) return ToStatus(address.takeError());
    entries.push_back(address->toPtr<HostEntry>());
  }
  return std::make_unique<OrcKernel>(kernel, std::move(*jit), std::move(entries));
}

}  // namespace tilewright
