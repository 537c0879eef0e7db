// The code generator's front door: candidate in, kernel out.
//
//   Candidate ─► ScheduleSpace (is it legal?) ─► Plan ─► the variant's writer (LLVM IR) ─► the
//   target's backend (bytes)
//
// Deterministic: same candidate and toolchain, same bytes. Reads the target's text only, never the
// host. Thread-safe: each call has its own LLVMContext.
#ifndef TILEWRIGHT_CODEGEN_WRITER_H_
#define TILEWRIGHT_CODEGEN_WRITER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/kernel.h"
#include "schedule/schedule.h"
#include "schedule/target.h"
#include "schedule/variant.h"
#include "schedule/workload.h"

namespace tilewright {

// Raised when golden output changes. Part of the toolchain id.
inline constexpr int kCodegenVersion = 2;

struct Candidate {
  Workload workload;
  Target target;
  Schedule schedule;
};

class KernelModule;  // codegen/kernel_module.h

// One row per (variant, backend) that can be written.
struct Writer {
  std::string variant;
  std::string backend;
  // Adds the entries and the recipe's launches. The plan is the variant's own type.
  std::function<absl::Status(const Candidate&, const Plan&, KernelModule*)> write;
};
// The only list (writers.cc).
absl::Span<const Writer> AllWriters();

// The lists a process works with; tests hand in longer ones.
struct Catalogue {
  absl::Span<const Variant> variants;
  absl::Span<const Writer> writers;
};
Catalogue DefaultCatalogue();

struct WriteOptions {
  // Empty: nothing. Else numbered files are written there: schedule, plan, IR before and after
  // passes, assembly.
  std::string dump_directory;
};

// InvalidArgument: illegal schedule. FailedPrecondition: no variant or writer. ResourceExhausted: a
// resource limit (spills). Internal: LLVM's verifier or code generator refused; its text is in the
// message.
absl::StatusOr<Kernel> WriteKernel(const Candidate& candidate, const Catalogue& catalogue,
                                   const WriteOptions& options = {});

// The reference for output checks: naive loops with f64 accumulators, and beside each output value
// the absolute error bound E of DESIGN.md 6. Its buffers are the workload's parameters, then for
// each output a value buffer and a bound buffer, both f64 and dense row-major. `u_acc` is the unit
// roundoff of the candidate's accumulator; `threads` are those of a launch on a CPU.
absl::StatusOr<Kernel> WriteReferenceKernel(const Workload& workload, const Target& target,
                                            double u_acc, int threads,
                                            const WriteOptions& options = {});

// "tilewright-codegen 2, LLVM 19.1.7": what decides the bytes beside the candidate.
std::string ToolchainId(const Target& target);

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_WRITER_H_
