#include "measure/kernel_caller.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "measure/crash_report.h"

namespace tilewright {
namespace {

// GuardedMemory aligns to 64; a kernel that asks for more gets the rest of the way inside its
// buffer.
constexpr int kNaturalAlignment = 64;
constexpr int kLargestAlignment = 4096;

absl::StatusOr<uint64_t> ArgumentValue(const Argument& argument, const BufferTable& buffers,
                                       absl::Span<const int64_t> sizes) {
  switch (argument.kind) {
    case Argument::Kind::kBuffer:
      if (argument.number >= 0 && argument.number < static_cast<int>(buffers.size())) {
        return reinterpret_cast<uint64_t>(buffers[argument.number]);
      }
      return absl::InvalidArgumentError(absl::StrCat("recipe: buffer ", argument.number, " of ",
                                                     buffers.size(), " does not exist"));
    case Argument::Kind::kSize:
      if (argument.number >= 0 && argument.number < static_cast<int>(sizes.size())) {
        return static_cast<uint64_t>(sizes[argument.number]);
      }
      return absl::InvalidArgumentError(
          absl::StrCat("recipe: size ", argument.number, " of ", sizes.size(), " does not exist"));
    case Argument::Kind::kInteger:
      return static_cast<uint64_t>(argument.value);
    case Argument::Kind::kTensorMap:
    case Argument::Kind::kWorkspace:
      return absl::InvalidArgumentError("recipe: an argument that only launches on GPUs have");
  }
  return absl::InvalidArgumentError("recipe: unknown kind of argument");
}

absl::Status CheckDomain(const Domain& domain, absl::Span<const int64_t> sizes,
                         const BufferTable& buffers) {
  for (size_t i = 0; i < domain.sizes.size() && i < sizes.size(); ++i) {
    if (sizes[i] >= domain.sizes[i].low && sizes[i] <= domain.sizes[i].high) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("size ", i, " is ", sizes[i], ", outside the kernel's domain ",
                     domain.sizes[i].low, "..", domain.sizes[i].high));
  }
  for (size_t i = 0; i < domain.alignments.size() && i < buffers.size(); ++i) {
    const uint64_t alignment = static_cast<uint64_t>(domain.alignments[i]);
    if (alignment == 0 || reinterpret_cast<uint64_t>(buffers[i]) % alignment == 0) continue;
    return absl::FailedPreconditionError(absl::StrCat("the kernel wants buffer ", i, " aligned to ",
                                                      alignment, " B, more than ",
                                                      kNaturalAlignment));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelCaller>> KernelCaller::Make(const Kernel& kernel,
                                                                 LaunchPool& pool) {
  auto caller = std::unique_ptr<KernelCaller>(new KernelCaller(kernel, pool));
  if (const absl::StatusOr<LibraryCall> call = ReadLibraryKernel(kernel); call.ok()) {
    absl::StatusOr<std::unique_ptr<HostProduct>> library = HostProduct::Make(*call, pool.threads());
    if (!library.ok()) return library.status();
    caller->product_ = call->product;
    caller->library_ = *std::move(library);
    return caller;
  }
  absl::StatusOr<std::unique_ptr<LoadedKernel>> code = LoadedKernel::Load(kernel);
  if (!code.ok()) return code.status();
  caller->code_ = *std::move(code);
  const Workspace& workspace = kernel.workspace;
  if (workspace.bytes < 0 || workspace.alignment < 1 || workspace.alignment > kLargestAlignment ||
      (workspace.alignment & (workspace.alignment - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "recipe: workspace of ", workspace.bytes, " B aligned to ", workspace.alignment,
        "; accepted are powers of two up to ", kLargestAlignment));
  }
  if (workspace.bytes > 0) {
    // The end is exact, so that the band begins where the workspace ends; the slack for alignment
    // lies before it.
    const int64_t slack = workspace.alignment > kNaturalAlignment ? workspace.alignment : 0;
    const int64_t bytes[] = {workspace.bytes + slack};
    absl::StatusOr<std::unique_ptr<GuardedMemory>> memory = GuardedMemory::Map(bytes);
    if (!memory.ok()) return memory.status();
    caller->workspace_ = *std::move(memory);
    const uint64_t start = reinterpret_cast<uint64_t>(caller->workspace_->buffers()[0].data);
    const uint64_t mask = static_cast<uint64_t>(workspace.alignment) - 1;
    caller->workspace_data_ = reinterpret_cast<void*>((start + mask) & ~mask);
    WatchMemory(caller->workspace_.get(), MemoryRole::kWorkspace, 1);
  }
  return caller;
}

KernelCaller::~KernelCaller() {
  if (workspace_) UnwatchMemory(workspace_.get());
}

absl::Status KernelCaller::Bind(absl::Span<const int64_t> sizes,
                                const std::vector<BufferTable>& sets) {
  arguments_.clear();
  steps_.clear();
  size_t per_set = 0;
  for (const Launch& launch : kernel_.launches) per_set += launch.arguments.size();
  arguments_.reserve(per_set * sets.size());  // pointers into it are kept
  for (const BufferTable& buffers : sets) {
    if (absl::Status status = CheckDomain(kernel_.domain, sizes, buffers); !status.ok()) {
      return status;
    }
    if (library_ != nullptr) continue;
    for (size_t l = 0; l < kernel_.launches.size(); ++l) {
      const Launch& launch = kernel_.launches[l];
      if (launch.threads < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("recipe: launch ", l, " has ", launch.threads, " threads"));
      }
      const uint64_t* table = arguments_.data() + arguments_.size();
      for (const Argument& argument : launch.arguments) {
        absl::StatusOr<uint64_t> value = ArgumentValue(argument, buffers, sizes);
        if (!value.ok()) return value.status();
        arguments_.push_back(*value);
      }
      steps_.push_back({code_->entries()[l], launch.threads, table, workspace_data_});
    }
  }
  return library_ != nullptr ? BindLibrary(sets) : absl::OkStatus();
}

absl::Status KernelCaller::BindLibrary(const std::vector<BufferTable>& sets) {
  matrices_.clear();
  for (const BufferTable& buffers : sets) {
    for (int number : {product_.a.buffer, product_.b.buffer, product_.c.buffer}) {
      if (number >= 0 && number < static_cast<int>(buffers.size())) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("recipe: buffer ", number, " of ", buffers.size(), " does not exist"));
    }
    matrices_.push_back({static_cast<const float*>(buffers[product_.a.buffer]),
                         static_cast<const float*>(buffers[product_.b.buffer]),
                         static_cast<float*>(buffers[product_.c.buffer])});
  }
  return absl::OkStatus();
}

void KernelCaller::ZeroWorkspace() {
  std::byte* data = static_cast<std::byte*>(workspace_data_);
  pool_.ForRanges(kernel_.workspace.bytes,
                  [data](int64_t begin, int64_t end) { memset(data + begin, 0, end - begin); });
}

void KernelCaller::Call(int set) {
  if (library_ != nullptr) {
    pool_.SetActive(false);
    const Matrices& matrices = matrices_[set];
    library_->Multiply(matrices.a, matrices.b, matrices.c);
    return;
  }
  if (kernel_.workspace.zeroed && workspace_ != nullptr) ZeroWorkspace();
  const size_t launches = kernel_.launches.size();
  for (size_t l = 0; l < launches; ++l) {
    const Step& step = steps_[set * launches + l];
    pool_.Run(
        [](void* opaque, int32_t number, int32_t count) {
          const Step& s = *static_cast<const Step*>(opaque);
          s.entry(s.arguments, s.workspace, number, count);
        },
        const_cast<Step*>(&step), step.threads);
  }
}

void KernelCaller::FillWorkspace(unsigned char value) {
  if (workspace_ == nullptr) return;
  std::byte* data = static_cast<std::byte*>(workspace_data_);
  pool_.ForRanges(kernel_.workspace.bytes,
                  [&](int64_t begin, int64_t end) { memset(data + begin, value, end - begin); });
}

int64_t KernelCaller::FindWorkspaceBandDamage() const {
  return workspace_ == nullptr ? 0 : workspace_->FindBandDamage(0);
}

}  // namespace tilewright
