#include "schedule/target.h"

#include <limits>
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

// One row per fact: its name in text, its field, and what is accepted of a number. Text has them in
// this order.
struct Fact {
  const char* name;
  std::variant<std::string Target::*, int Target::*, int64_t Target::*> field;
  int64_t low = 0;
  int64_t high = 0;
};

constexpr int64_t kManyBytes = int64_t{1} << 50;

const std::vector<Fact>& Facts() {
  static const auto* const facts = new std::vector<Fact>{
      {"backend", &Target::backend},
      {"llvm_cpu", &Target::llvm_cpu},
      {"features", &Target::llvm_features},
      {"cores", &Target::cores, 1, 1 << 20},
      {"vector_bits", &Target::vector_bits, 0, 1 << 16},
      {"vector_registers", &Target::vector_registers, 0, 1 << 16},
      {"fma_per_cycle", &Target::fma_per_cycle, 1, 1 << 16},
      {"l1_bytes", &Target::l1_bytes, 1, kManyBytes},
      {"l2_bytes", &Target::l2_bytes, 1, kManyBytes},
      {"l3_bytes", &Target::l3_bytes, 0, kManyBytes},
      {"cache_line_bytes", &Target::cache_line_bytes, 1, 1 << 16},
  };
  return *facts;
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
  const int lanes = vector_bits == 0 ? 1 : vector_bits / (8 * bytes);
  return 2.0 * lanes * fma_per_cycle;
}

std::string Target::ToString() const {
  BracedText text{kind, {}};
  for (const Fact& fact : Facts()) text.words.emplace_back(fact.name, ReadFact(*this, fact));
  return tilewright::ToString(text);
}

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  absl::StatusOr<BracedText> parsed = ParseBracedText("target", text, /*empty_values=*/true);
  if (!parsed.ok()) return parsed.status();
  Target target;
  target.kind = parsed->name;
  std::vector<bool> seen(Facts().size(), false);
  for (const auto& [key, value] : parsed->words) {
    size_t i = 0;
    while (i < Facts().size() && key != Facts()[i].name) ++i;
    if (i == Facts().size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "target '", target.kind, "': unknown fact '", key,
          "'; known: ", absl::StrJoin(Facts(), ", ", [](std::string* out, const Fact& fact) {
            *out += fact.name;
          })));
    }
    seen[i] = true;
    absl::Status written = WriteFact(Facts()[i], value, target);
    if (!written.ok()) return written;
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("target '", target.kind, "': the fact '", Facts()[i].name, "' is missing"));
    }
  }
  if (target.backend.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target '", target.kind, "': backend must not be empty"));
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

double LimitSeconds(const Target& target, double operations, double /*compulsory_bytes*/,
                    int operand_bytes, bool /*cold*/) {
  // No x86 or Arm server core runs above 6 GHz. A CPU has no byte term: its caches may hold what a
  // cold GPU may not.
  constexpr double kHighestClockHz = 6e9;
  constexpr double kMargin = 0.95;
  return kMargin * operations /
         (target.cores * target.OperationsPerCycle(operand_bytes) * kHighestClockHz);
}

}  // namespace tilewright
