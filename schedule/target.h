// A Target is a device kind with its facts. Its full text travels with candidates and records;
// spaces, plans and codegen read only that text, never the host they run on.
//
//   cpu:amd-epyc-milan/avx2/2{backend=host llvm_cpu=znver3 features=+avx2,+fma cores=2
//   vector_bits=256 vector_registers=16 …}
//   cuda:h200{backend=nvptx llvm_cpu=sm_90a features=+ptx85 cores=132 clock_mhz=1980 …}
//
// Every backend's targets have the facts of that backend: a fact of another is not in the text and
// keeps its default. Kinds that are typed in stand in one list (targets.cc); a CPU found at run
// time is described by measure/ (cpu_device).
#ifndef TILEWRIGHT_SCHEDULE_TARGET_H_
#define TILEWRIGHT_SCHEDULE_TARGET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tilewright {

struct Target {
  std::string kind;           // "cpu:amd-epyc-milan/avx2/2", "cuda:h200"
  std::string backend;        // a row of codegen/backends.cc: "host", "nvptx"
  std::string llvm_cpu;       // -mcpu for LLVM; on a GPU its architecture, "sm_90a"
  std::string llvm_features;  // -mattr for LLVM, "+avx2,+fma"
  int cores = 1;              // cores a kernel may use (SMs on a GPU)

  // Of the backend `host`.
  int vector_bits = 128;      // widest vector register worth using; 0: none
  int vector_registers = 16;  // architectural vector registers
  int fma_per_cycle = 1;      // vector fused multiply-adds a core can start in a cycle
  int64_t l1_bytes = 32768;   // data cache of one core
  int64_t l2_bytes = 262144;  // of one core; of the whole chip on a GPU
  int64_t l3_bytes = 0;       // shared by all; 0: none
  int cache_line_bytes = 64;

  // Of the backend `nvptx`. Rates count a multiply and an add as 2 and are those of one SM.
  int clock_mhz = 1;                         // the highest SM clock
  int64_t memory_bytes_per_second = 1;       // in theory
  int64_t shared_memory_bytes = 49152;       // that one block may have, opted in
  int64_t shared_memory_per_core_bytes = 1;  // that all blocks of an SM share
  int registers_per_core = 65536;            // of 32 bits
  int threads_per_core = 2048;               // resident
  int f32_operations_per_cycle = 1;          // ordinary arithmetic
  int tensor_operations_per_cycle = 1;       // dense, 16-bit types; 8-bit twice, tf32 half of it
  int f64_operations_per_cycle = 1;          // tensor cores if they are faster

  bool is_gpu() const { return backend == "nvptx"; }

  // Floating-point operations (multiply and add count 2) of one core in a cycle for elements of
  // `bytes`. On a GPU those of ordinary arithmetic: half of f64_operations_per_cycle for 8 bytes,
  // as its tensor cores do twice as many, else f32_operations_per_cycle.
  double OperationsPerCycle(int bytes) const;
  // The most that a core can do in a cycle with operands of `bytes`, by whatever instruction.
  double PeakOperationsPerCycle(int bytes) const;

  std::string ToString() const;  // kind{facts in fixed order}
  bool operator==(const Target&) const = default;
};

// Reads what ToString wrote. InvalidArgument names the fact that is missing, unknown or out of
// range.
absl::StatusOr<Target> ParseTarget(std::string_view text);
// The typed-in kinds.
absl::Span<const Target> KnownTargets();
// A kind by name. InvalidArgument: an arch alone (`sm_90a`, `avx2`) is refused with the kinds that
// have it.
absl::StatusOr<Target> FindTarget(std::string_view kind);

// The physical limit of a workload on a target, in seconds: no kernel can be faster (DESIGN.md 6).
// On a CPU
//   operations / (cores * operations per cycle * 6 GHz) * 0.95
// On a GPU, where the second term counts only if the caches are cold,
//   max(operations / (cores * peak operations per cycle * highest clock),
//       compulsory bytes / memory bytes per second) * 0.95
double LimitSeconds(const Target& target, double operations, double compulsory_bytes,
                    int operand_bytes, bool cold);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_TARGET_H_
