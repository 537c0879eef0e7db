#include <vector>

#include "schedule/target.h"

namespace tilewright {

// The only list of typed-in kinds. The two rows are the x86-64 psABI's microarchitecture levels
// with the facts of a typical server core of that level: v3 as AMD Zen 3 (L2 512 KiB, two 256-bit
// FMA pipes), v4 as Intel Ice Lake-SP (L1 48 KiB, L2 1.25 MiB, two 512-bit FMA pipes). Tests write
// kernels for them on any host.
absl::Span<const Target> KnownTargets() {
  static const auto* const targets = new std::vector<Target>{
      {.kind = "cpu:x86-64-v3",
       .backend = "host",
       .llvm_cpu = "x86-64-v3",
       .llvm_features = "+avx,+avx2,+f16c,+fma",
       .cores = 8,
       .vector_bits = 256,
       .vector_registers = 16,
       .fma_per_cycle = 2,
       .l1_bytes = 32 << 10,
       .l2_bytes = 512 << 10,
       .l3_bytes = 32 << 20,
       .cache_line_bytes = 64},
      {.kind = "cpu:x86-64-v4",
       .backend = "host",
       .llvm_cpu = "x86-64-v4",
       .llvm_features = "+avx,+avx2,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl,+f16c,+fma",
       .cores = 8,
       .vector_bits = 512,
       .vector_registers = 32,
       .fma_per_cycle = 2,
       .l1_bytes = 48 << 10,
       .l2_bytes = 1280 << 10,
       .l3_bytes = 32 << 20,
       .cache_line_bytes = 64},
  };
  return *targets;
}

}  // namespace tilewright
