// ptxas: PTX text to a CUDA binary, in a child process, and what its log says of the kernel.
//
// It is not part of the build: it is looked for at run time, in $TILEWRIGHT_PTXAS (set to nothing:
// do without), then in PATH, then in /usr/local/cuda/bin.
#ifndef TILEWRIGHT_CODEGEN_PTXAS_H_
#define TILEWRIGHT_CODEGEN_PTXAS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tilewright {

struct Ptxas {
  std::string path;     // empty: there is none
  std::string version;  // "13.0.88"
};
// Looked for once in a process. NotFound: $TILEWRIGHT_PTXAS names no program that says its version.
absl::StatusOr<Ptxas> FindPtxas();

// What `ptxas -v` says, the largest of the module's entries.
struct PtxasReport {
  int64_t registers = 0;     // of a thread
  int64_t spill_bytes = 0;   // stores and loads
  int64_t stack_bytes = 0;   // of a thread
  int64_t shared_bytes = 0;  // static, of a block
  // Warnings that something was ignored or serialised, with their numbers: "C7510", and the line.
  std::vector<std::pair<std::string, std::string>> advisories;
};
PtxasReport ParsePtxasLog(std::string_view log);

// Why a kernel that ptxas has assembled is refused all the same: ResourceExhausted for spilled
// registers, a stack (unless allowed), setmaxnreg ignored (C7508) and wgmma serialised (C7510 to
// C7519); Internal for register allocation failures (C76xx).
absl::Status CheckPtxasReport(const PtxasReport& report, bool allow_spills);

struct Assembled {
  std::string cubin;
  std::string log;
  PtxasReport report;
};
// `arch` as "sm_90a". Internal: ptxas refused the text; ResourceExhausted: what it needs is more
// than the architecture has. DeadlineExceeded.
absl::StatusOr<Assembled> AssemblePtx(const Ptxas& ptxas, const std::string& ptx,
                                      const std::string& arch, absl::Duration deadline);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_PTXAS_H_
