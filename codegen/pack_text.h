// The texts of a pack's files: header, launcher, CMake package; and what they need to know of an
// entry. Only pack.cc and the pack's own sources include it. Deterministic, no input or output.
// Thread-safe.
#ifndef TILEWRIGHT_CODEGEN_PACK_TEXT_H_
#define TILEWRIGHT_CODEGEN_PACK_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/pack.h"

namespace tilewright {

// One tensor argument of a pack's function.
struct PackTensor {
  int buffer = 0;  // position in the kernel's buffers: parameters, then outputs
  int tensor = 0;  // number in the workload's program
  bool output = false;
  std::string name;  // as the caller wrote it
  std::string
      identifier;  // in C: the name, or with underscores appended where it is a keyword or taken
};

// One ranged size, which is an int64_t argument after the tensors.
struct PackSize {
  int index = 0;  // canonical number
  std::string name;
  std::string identifier;
};

struct PackSignature {
  std::vector<PackTensor> tensors;  // in argument order
  std::vector<PackSize> sizes;
};

// The arguments of an item's function, in the order in which its source names them (canonical order
// if it has no source). InvalidArgument: names and workload do not fit, or the source does not
// parse.
absl::StatusOr<PackSignature> SignatureOf(const PackItem& item);

// A feature that a kernel's instructions need and how a program finds out: bit `bit` of register
// `cpuid_register` of CPUID leaf `leaf`, subleaf `subleaf`; and the state that the operating system
// must save, as XGETBV(0) bits.
struct CpuFeature {
  std::string_view name;  // LLVM's
  uint32_t leaf;
  uint32_t subleaf;
  char cpuid_register;  // 'a', 'b', 'c' or 'd'
  int bit;
  uint32_t saved_state;
};
// Those of the list in pack_cpu.cc that LLVM's code for this target may use, in the list's order.
std::vector<CpuFeature> RequiredCpuFeatures(const Target& target);

// `f32 [t=1..8192, i=4096]`, with the strides where they are not dense.
std::string DescribeTensor(const Workload& workload, const Names& names, int tensor);

// Precondition of all three: BuildPack made or ReadPack read the pack, so every signature is valid.
std::string PackHeader(const Pack& pack);
std::string PackLauncher(const Pack& pack, const std::vector<CpuFeature>& features);
std::string PackCMakeConfig(const Pack& pack);

// Where an object lies in the directory: `kernels/<SHA-256 of its bytes>.o`.
std::string ObjectPath(const CodeObject& object);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_PACK_TEXT_H_
