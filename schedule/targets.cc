#include <vector>

#include "schedule/target.h"

namespace tilewright {

// The only list of typed-in kinds. The first two rows are the x86-64 psABI's microarchitecture
// levels with the facts of a typical server core of that level: v3 as AMD Zen 3 (L2 512 KiB, two
// 256-bit FMA pipes), v4 as Intel Ice Lake-SP (L1 48 KiB, L2 1.25 MiB, two 512-bit FMA pipes).
// Tests write kernels for them on any host.
//
// The CUDA rows. Shared memory, registers and threads of an SM: CUDA C++ Programming Guide,
// "Technical Specifications per Compute Capability" (9.0: 227 KB of 228 KB for one block; 8.0:
// 163 KB of 164 KB). SMs, highest clock and memory bandwidth: NVIDIA's data sheets of the H200 SXM
// (141 GB HBM3e), the H100 SXM5 (80 GB HBM3) and the A100 SXM4 in its 80 GB form (HBM2e, 2039 GB/s;
// the 40 GB form has 1555 GB/s). L2: what the driver reports (cudaDeviceProp::l2CacheSize). Rates
// of an SM follow from the data sheets' peaks at the boost clock they are stated for:
//   H100 SXM, 132 SMs: f32 66.9e12 / (132 * 1.98e9) = 256; f64 tensor the same; bf16 dense
//     989.4e12 / (132 * 1.83e9) = 4096
//   A100, 108 SMs at 1.41 GHz: f32 19.5e12 = 128; f64 tensor 19.5e12 = 128; bf16 312e12 = 2048
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
      {.kind = "cuda:h200",
       .backend = "nvptx",
       .llvm_cpu = "sm_90a",
       .llvm_features = "+ptx85",
       .cores = 132,
       .l2_bytes = 60 << 20,
       .clock_mhz = 1980,
       .memory_bytes_per_second = 4'800'000'000'000,
       .shared_memory_bytes = 227 << 10,
       .shared_memory_per_core_bytes = 228 << 10,
       .registers_per_core = 65536,
       .threads_per_core = 2048,
       .f32_operations_per_cycle = 256,
       .tensor_operations_per_cycle = 4096,
       .f64_operations_per_cycle = 256},
      {.kind = "cuda:h100-sxm",
       .backend = "nvptx",
       .llvm_cpu = "sm_90a",
       .llvm_features = "+ptx85",
       .cores = 132,
       .l2_bytes = 50 << 20,
       .clock_mhz = 1980,
       .memory_bytes_per_second = 3'350'000'000'000,
       .shared_memory_bytes = 227 << 10,
       .shared_memory_per_core_bytes = 228 << 10,
       .registers_per_core = 65536,
       .threads_per_core = 2048,
       .f32_operations_per_cycle = 256,
       .tensor_operations_per_cycle = 4096,
       .f64_operations_per_cycle = 256},
      {.kind = "cuda:a100",
       .backend = "nvptx",
       .llvm_cpu = "sm_80",
       .llvm_features = "+ptx85",
       .cores = 108,
       .l2_bytes = 40 << 20,
       .clock_mhz = 1410,
       .memory_bytes_per_second = 2'039'000'000'000,
       .shared_memory_bytes = 163 << 10,
       .shared_memory_per_core_bytes = 164 << 10,
       .registers_per_core = 65536,
       .threads_per_core = 2048,
       .f32_operations_per_cycle = 128,
       .tensor_operations_per_cycle = 2048,
       .f64_operations_per_cycle = 128},
  };
  return *targets;
}

}  // namespace tilewright
