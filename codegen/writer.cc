#include "codegen/writer.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "codegen/backends.h"
#include "codegen/finish_kernel.h"
#include "codegen/kernel_module.h"
#include "llvm/Support/raw_ostream.h"

namespace tilewright {
namespace {

std::string PlanText(const Plan& plan) {
  std::string text;
  const std::vector<Quantity> fixed = {
      {"threads", "thread", static_cast<double>(plan.threads)},
      {"workspace_bytes", "B", static_cast<double>(plan.workspace_bytes)},
      {"operations", "op", plan.operations},
      {"memory_bytes", "B", plan.memory_bytes},
      {"l3_bytes", "B", plan.l3_bytes},
      {"l2_bytes", "B", plan.l2_bytes},
      {"l1_bytes", "B", plan.l1_bytes},
      {"issue_efficiency", "", plan.issue_efficiency},
      {"balance", "", plan.balance}};
  for (const auto* list : {&fixed, &plan.quantities}) {
    for (const Quantity& quantity : *list) {
      absl::StrAppendFormat(&text, "%-24s %.17g %s\n", quantity.name, quantity.value,
                            quantity.unit);
    }
  }
  return text;
}

// The row of one (variant, backend).
absl::StatusOr<const Writer*> FindWriter(absl::Span<const Writer> writers,
                                         const std::string& variant, const std::string& backend) {
  for (const Writer& writer : writers) {
    if (writer.variant == variant && writer.backend == backend) return &writer;
  }
  std::string known;
  for (const Writer& writer : writers)
    absl::StrAppend(&known, known.empty() ? "" : ", ", writer.variant, "/", writer.backend);
  return absl::FailedPreconditionError(absl::StrCat(
      "no writer for variant ", variant, " on backend ", backend, "; there are: ", known));
}

}  // namespace

Catalogue DefaultCatalogue() { return {AllVariants(), AllWriters()}; }

absl::StatusOr<Kernel> WriteKernel(const Candidate& candidate, const Catalogue& catalogue,
                                   const WriteOptions& options) {
  auto space = ScheduleSpace::Make(candidate.workload, candidate.target, catalogue.variants);
  if (!space.ok()) return space.status();
  auto plan = (*space)->MakePlan(candidate.schedule, candidate.workload.HighestSizes());
  if (!plan.ok()) return plan.status();
  auto writer = FindWriter(catalogue.writers, candidate.schedule.variant, candidate.target.backend);
  if (!writer.ok()) return writer.status();

  KernelModule module(candidate.workload, candidate.target);
  if (absl::Status status = (*writer)->write(candidate, **plan, &module); !status.ok())
    return status;

  DumpFiles dump(options.dump_directory);
  dump.Add("schedule.txt",
           absl::StrCat(candidate.workload.canonical_text(), "\n", candidate.target.ToString(),
                        "\n", candidate.schedule.ToString(), "\n"));
  dump.Add("plan.txt", PlanText(**plan));
  return FinishKernel(&module, {}, &dump);
}

std::string ToolchainId(const Target& target) {
  auto backend = FindBackend(target.backend);
  return absl::StrCat(
      "tilewright-codegen ", kCodegenVersion, ", ",
      backend.ok() ? (*backend)->toolchain() : absl::StrCat("unknown backend ", target.backend));
}

}  // namespace tilewright
