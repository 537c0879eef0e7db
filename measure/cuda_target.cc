#include <cctype>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "measure/cuda_device.h"

namespace tilewright {
namespace {

// How the driver names the devices of a typed-in kind.
struct NamedKind {
  const char* kind;
  std::vector<const char*> words;   // all must stand in the name
  std::vector<const char*> others;  // none may
};
const std::vector<NamedKind>& NamedKinds() {
  static const auto* const kinds = new std::vector<NamedKind>{
      {"cuda:h200", {"H200"}, {"NVL"}},
      {"cuda:h100-sxm", {"H100", "HBM3"}, {"PCIe", "NVL"}},
      {"cuda:a100", {"A100", "80GB"}, {"PCIe", "PCIE"}},
  };
  return *kinds;
}

bool HasWordsOf(const NamedKind& kind, const std::string& name) {
  for (const char* word : kind.words) {
    if (!absl::StrContains(name, word)) return false;
  }
  for (const char* word : kind.others) {
    if (absl::StrContains(name, word)) return false;
  }
  return true;
}

// "NVIDIA GeForce RTX 4090" → "geforce-rtx-4090"
std::string SlugOf(const std::string& name) {
  std::string slug;
  for (char c : name) {
    const bool word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (word) {
      slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  constexpr const char* kVendor = "nvidia-";
  if (absl::StartsWith(slug, kVendor)) slug = slug.substr(7);
  return slug;
}

// Operations of one SM in a cycle, a multiply-add counting 2 (CUDA C++ Programming Guide,
// "Throughput of Native Arithmetic Instructions", and the architectures' white papers for tensor
// cores, dense 16-bit types).
struct CapabilityRates {
  int major;
  int minor;
  int f32;
  int tensor;
  int f64;
};
constexpr CapabilityRates kRates[] = {
    {8, 0, 128, 2048, 128}, {8, 6, 256, 512, 4},     {8, 7, 256, 512, 4},   {8, 9, 256, 1024, 4},
    {9, 0, 256, 4096, 256}, {10, 0, 256, 8192, 128}, {12, 0, 256, 1024, 4},
};

const CapabilityRates& RatesOf(int major, int minor) {
  const CapabilityRates* best = &kRates[0];
  for (const CapabilityRates& rates : kRates) {
    if (rates.major < major || (rates.major == major && rates.minor <= minor)) best = &rates;
  }
  return *best;
}

}  // namespace

absl::StatusOr<Target> CudaTargetOf(const CudaDeviceFacts& facts) {
  if (facts.major < 8) {
    return absl::UnimplementedError(absl::StrCat(facts.name, " has compute capability ",
                                                 facts.major, ".", facts.minor,
                                                 "; kernels are written for 8.0 and later"));
  }
  for (const NamedKind& named : NamedKinds()) {
    if (!HasWordsOf(named, facts.name)) continue;
    const absl::StatusOr<Target> known = FindTarget(named.kind);
    if (known.ok() && known->cores == facts.multiprocessors) return *known;
  }
  const CapabilityRates& rates = RatesOf(facts.major, facts.minor);
  Target target;
  target.kind = absl::StrCat("cuda:", SlugOf(facts.name));
  // A part of a known device (MIG), say.
  if (FindTarget(target.kind).ok()) absl::StrAppend(&target.kind, "/", facts.multiprocessors);
  target.backend = "nvptx";
  // Code with an architecture's own instructions exists for Hopper only.
  target.llvm_cpu = facts.major == 9  ? "sm_90a"
                    : facts.major > 9 ? "sm_90"
                                      : absl::StrCat("sm_", facts.major, facts.minor);
  target.llvm_features = "+ptx85";
  target.cores = facts.multiprocessors;
  target.l2_bytes = facts.l2_bytes;
  // Drivers of some virtual machines say no clocks; a clock too high makes no time impossible.
  target.clock_mhz = facts.clock_khz > 0 ? facts.clock_khz / 1000 : 3000;
  // Two transfers in a cycle.
  const double bytes_per_second =
      2e3 * facts.memory_clock_khz * (static_cast<double>(facts.memory_bus_bits) / 8);
  target.memory_bytes_per_second =
      bytes_per_second > 0 ? static_cast<int64_t>(bytes_per_second) : 10'000'000'000'000;
  target.shared_memory_bytes = facts.shared_memory_per_block;
  target.shared_memory_per_core_bytes = facts.shared_memory_per_multiprocessor;
  target.registers_per_core = facts.registers_per_multiprocessor;
  target.threads_per_core = facts.threads_per_multiprocessor;
  target.f32_operations_per_cycle = rates.f32;
  target.tensor_operations_per_cycle = rates.tensor;
  target.f64_operations_per_cycle = rates.f64;
  return target;
}

}  // namespace tilewright
