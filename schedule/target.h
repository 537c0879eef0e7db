// A Target is a device kind with its facts. Its full text travels with candidates and records;
// spaces, plans and codegen read only that text, never the host they run on.
//
//   cpu:amd-epyc-milan/avx2/2{backend=host llvm_cpu=znver3 features=+avx2,+fma cores=2
//   vector_bits=256 vector_registers=16 …}
//
// Kinds that are typed in stand in one list (targets.cc); a CPU found at run time is described by
// measure/ (cpu_device).
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
  std::string backend;        // a row of codegen/backends.cc: "host"
  std::string llvm_cpu;       // -mcpu for LLVM
  std::string llvm_features;  // -mattr for LLVM, "+avx2,+fma"
  int cores = 1;              // cores a kernel may use (SMs on a GPU)
  int vector_bits = 128;      // widest vector register worth using; 0: none
  int vector_registers = 16;  // architectural vector registers
  int fma_per_cycle = 1;      // vector fused multiply-adds a core can start in a cycle
  int64_t l1_bytes = 32768;   // data cache of one core
  int64_t l2_bytes = 262144;  // of one core
  int64_t l3_bytes = 0;       // shared by all; 0: none
  int cache_line_bytes = 64;

  // Floating-point operations (multiply and add count 2) of one core in a cycle for elements of
  // `bytes`.
  double OperationsPerCycle(int bytes) const;

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
double LimitSeconds(const Target& target, double operations, double compulsory_bytes,
                    int operand_bytes, bool cold);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_TARGET_H_
