#include "schedule/target.h"

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "schedule/braced_text.h"

namespace tilewright {
namespace {

// Backends whose targets have a fact.
constexpr absl::string_view kAnyBackend[] = {"host", "nvptx"};
constexpr absl::string_view kHostOnly[] = {"host"};
constexpr absl::string_view kNvptxOnly[] = {"nvptx"};

// One row per fact: its name in text, its field, what is accepted of a number, and which targets
// have it. Text has them in this order.
struct Fact {
  const char* name;
  std::variant<std::string Target::*, int Target::*, int64_t Target::*> field;
  int64_t low = 0;
  int64_t high = 0;
  absl::Span<const absl::string_view> backends = kAnyBackend;

  bool IsOf(const std::string& backend) const {
    return std::find(backends.begin(), backends.end(), backend) != backends.end();
  }
};

constexpr int64_t kManyBytes = int64_t{1} << 50;

const std::vector<Fact>& Facts() {
  static const auto* const facts = new std::vector<Fact>{
      {"backend", &Target::backend},
      {"llvm_cpu", &Target::llvm_cpu},
      {"features", &Target::llvm_features},
      {"cores", &Target::cores, 1, 1 << 20},
      {"clock_mhz", &Target::clock_mhz, 1, 1 << 20, kNvptxOnly},
      {"memory_bytes_per_second", &Target::memory_bytes_per_second, 1, kManyBytes, kNvptxOnly},
      {"vector_bits", &Target::vector_bits, 0, 1 << 16, kHostOnly},
      {"vector_registers", &Target::vector_registers, 0, 1 << 16, kHostOnly},
      {"fma_per_cycle", &Target::fma_per_cycle, 1, 1 << 16, kHostOnly},
      {"l1_bytes", &Target::l1_bytes, 1, kManyBytes, kHostOnly},
      {"l2_bytes", &Target::l2_bytes, 1, kManyBytes},
      {"l3_bytes", &Target::l3_bytes, 0, kManyBytes, kHostOnly},
      {"cache_line_bytes", &Target::cache_line_bytes, 1, 1 << 16, kHostOnly},
      {"shared_memory_bytes", &Target::shared_memory_bytes, 1, kManyBytes, kNvptxOnly},
      {"shared_memory_per_core_bytes", &Target::shared_memory_per_core_bytes, 1, kManyBytes,
       kNvptxOnly},
      {"registers_per_core", &Target::registers_per_core, 1, 1 << 24, kNvptxOnly},
      {"threads_per_core", &Target::threads_per_core, 32, 1 << 16, kNvptxOnly},
      {"f32_operations_per_cycle", &Target::f32_operations_per_cycle, 1, 1 << 24, kNvptxOnly},
      {"tensor_operations_per_cycle", &Target::tensor_operations_per_cycle, 1, 1 << 24, kNvptxOnly},
      {"f64_operations_per_cycle", &Target::f64_operations_per_cycle, 1, 1 << 24, kNvptxOnly},
  };
  return *facts;
}

std::vector<const Fact*> FactsOf(const std::string& backend) {
  std::vector<const Fact*> facts;
  for (const Fact& fact : Facts()) {
    if (fact.IsOf(backend)) facts.push_back(&fact);
  }
  return facts;
}

std::string ReadFact(const Target& target, const Fact& fact) {
  return std::visit([&](auto field) { return absl::StrCat(target.*field); }, fact.field);
}

absl::Status WriteFact(const Fact& fact, const std::string& value, Target& target) {
  if (const auto* field = std::get_if<std::string Target::*>(&fact.field)) {
    target.*(*field) = value;
    return absl::OkStatus();
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < fact.low || number > fact.high) {
    return absl::InvalidArgumentError(absl::StrCat("target '", target.kind, "': ", fact.name, "=",
                                                   value, " must be an integer from ", fact.low,
                                                   " to ", fact.high));
  }
  if (const auto* field = std::get_if<int Target::*>(&fact.field)) {
    target.*(*field) = static_cast<int>(number);
  } else {
    target.*std::get<int64_t Target::*>(fact.field) = number;
  }
  return absl::OkStatus();
}

// True if `name` is what only a part of the kind says: its CPU for LLVM, one of its features, a
// part of its name.
bool HasArch(const Target& target, const std::string& name) {
  if (name.empty()) return false;
  if (target.llvm_cpu == name) return true;
  for (absl::string_view feature : absl::StrSplit(target.llvm_features, ',')) {
    if (!feature.empty() && feature.substr(1) == name) {
      return true;
    }
  }
  for (absl::string_view part : absl::StrSplit(target.kind, absl::ByAnyChar(":/"))) {
    if (part == name) return true;
  }
  return false;
}

}  // namespace

double Target::OperationsPerCycle(int bytes) const {
  if (is_gpu()) return bytes == 8 ? f64_operations_per_cycle / 2.0 : f32_operations_per_cycle;
  const int lanes = vector_bits == 0 ? 1 : vector_bits / (8 * bytes);
  return 2.0 * lanes * fma_per_cycle;
}

double Target::PeakOperationsPerCycle(int bytes) const {
  if (!is_gpu()) return OperationsPerCycle(bytes);
  if (bytes == 8) return f64_operations_per_cycle;
  // 16-bit types at the full rate, half the width twice as fast.
  return std::max<double>(f32_operations_per_cycle, tensor_operations_per_cycle * 2.0 / bytes);
}

std::string Target::ToString() const {
  BracedText text{kind, {}};
  for (const Fact* fact : FactsOf(backend))
    text.words.emplace_back(fact->name, ReadFact(*this, *fact));
  return tilewright::ToString(text);
}

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  absl::StatusOr<BracedText> parsed = ParseBracedText("target", text, /*empty_values=*/true);
  if (!parsed.ok()) return parsed.status();
  Target target;
  target.kind = parsed->name;
  std::string backend;
  for (const auto& [key, value] : parsed->words) {
    if (key == "backend") backend = value;
  }
  const std::vector<const Fact*> facts = FactsOf(backend);
  if (facts.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target '", target.kind, "': backend='", backend,
                     "'; accepted: ", absl::StrJoin(kAnyBackend, ", ")));
  }
  std::set<const Fact*> seen;
  for (const auto& [key, value] : parsed->words) {
    const std::string& name = key;
    const auto fact = std::find_if(facts.begin(), facts.end(),
                                   [&](const Fact* known) { return name == known->name; });
    if (fact == facts.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "target '", target.kind, "': unknown fact '", key,
          "'; known: ", absl::StrJoin(facts, ", ", [](std::string* out, const Fact* known) {
            *out += known->name;
          })));
    }
    seen.insert(*fact);
    absl::Status written = WriteFact(**fact, value, target);
    if (!written.ok()) return written;
  }
  for (const Fact* fact : facts) {
    if (seen.count(fact) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("target '", target.kind, "': the fact '", fact->name, "' is missing"));
    }
  }
  return target;
}

absl::StatusOr<Target> FindTarget(std::string_view kind_view) {
  const std::string kind(kind_view);
  std::vector<std::string> known;
  std::vector<std::string> with_arch;
  for (const Target& target : KnownTargets()) {
    if (target.kind == kind) return target;
    known.push_back(target.kind);
    if (HasArch(target, kind)) with_arch.push_back(target.kind);
  }
  if (!with_arch.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "target '", kind, "' names an architecture, not a device kind; kinds that have it: ",
        absl::StrJoin(with_arch, ", ")));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown target '", kind, "'; known kinds: ", absl::StrJoin(known, ", ")));
}

double LimitSeconds(const Target& target, double operations, double compulsory_bytes,
                    int operand_bytes, bool cold) {
  constexpr double kMargin = 0.95;
  if (target.is_gpu()) {
    const double arithmetic =
        operations /
        (target.cores * target.PeakOperationsPerCycle(operand_bytes) * 1e6 * target.clock_mhz);
    const double memory =
        cold ? compulsory_bytes / static_cast<double>(target.memory_bytes_per_second) : 0;
    return kMargin * std::max(arithmetic, memory);
  }
  // No x86 or Arm server core runs above 6 GHz. A CPU has no byte term: its caches may hold what a
  // cold GPU may not.
  constexpr double kHighestClockHz = 6e9;
  return kMargin * operations /
         (target.cores * target.OperationsPerCycle(operand_bytes) * kHighestClockHz);
}

}  // namespace tilewright
