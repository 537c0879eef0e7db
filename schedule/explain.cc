#include "schedule/explain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

std::string ValuesText(const Decision& decision) {
  std::string text =
      absl::StrJoin(decision.values, " ",
                    [](std::string* out, const DecisionValue& value) { *out += value.token; });
  if (!decision.depends_on.empty()) {
    absl::StrAppend(&text, "  (present depending on ", absl::StrJoin(decision.depends_on, ", "),
                    ")");
  }
  return text;
}

void AppendVariant(const Variant& variant, const VariantSpace& space, std::string& text) {
  absl::StrAppend(&text, variant.name, ": ", variant.help, "\n");
  for (const Decision& decision : space.definition().decisions) {
    absl::StrAppend(&text, "  ", decision.name, " = ", ValuesText(decision), "\n");
    if (!decision.help.empty()) absl::StrAppend(&text, "      ", decision.help, "\n");
  }
  for (const VariantSpace::ConstraintCount& count : space.CountsAfterEachConstraint()) {
    const std::string what =
        count.constraint.empty() ? std::string("all combinations") : "after " + count.constraint;
    absl::StrAppendFormat(&text, "  %-40s %s\n", what, CountText(count.count));
  }
  absl::StrAppendFormat(&text, "  %-40s %s\n", "legal schedules", CountText(space.Count()));
}

void AppendQuantity(const Quantity& quantity, std::string& text) {
  absl::StrAppendFormat(&text, "  %-32s %.6g%s%s\n", quantity.name, quantity.value,
                        quantity.unit.empty() ? "" : " ", quantity.unit);
}

}  // namespace

std::string CountText(absl::uint128 count) {
  std::string reversed;
  int digits = 0;
  do {
    if (digits > 0 && digits % 3 == 0) reversed += ',';
    reversed += static_cast<char>('0' + static_cast<int>(count % 10));
    count /= 10;
    ++digits;
  } while (count > 0);
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

std::string ExplainSpace(const ScheduleSpace& space) {
  std::string text = absl::StrCat("target ", space.target().ToString(), "\n");
  for (const Variant* variant : space.variants()) {
    AppendVariant(*variant, space.variant_space(variant->name), text);
  }
  absl::StrAppend(&text, "total: ", CountText(space.space().Count()), " legal schedules\n");
  absl::StrAppend(&text, "default: ", space.DefaultSchedule().ToString(), "\n");
  constexpr size_t kMostSuggestions = 16;
  for (const Schedule& schedule : space.Suggestions(kMostSuggestions))
    absl::StrAppend(&text, "suggested: ", schedule.ToString(), "\n");
  return text;
}

std::string ExplainSchedule(const ScheduleSpace& space, const Schedule& schedule,
                            absl::Span<const int64_t> sizes) {
  absl::StatusOr<absl::uint128> index = space.space().IndexOf(schedule);
  if (!index.ok()) {
    return absl::StrCat(schedule.ToString(), "\nillegal: ", index.status().message(), "\n");
  }
  const Schedule canonical = space.space().At(*index);
  std::string text = absl::StrCat(canonical.ToString(), "\nlegal: schedule ", CountText(*index),
                                  " of ", CountText(space.space().Count()), ", ",
                                  space.space().Neighbours(*index).size(), " neighbours\n");
  absl::StatusOr<std::unique_ptr<Plan>> plan = space.MakePlan(canonical, sizes);
  if (!plan.ok()) return absl::StrCat(text, "no plan: ", plan.status().message(), "\n");
  const Plan& p = **plan;
  const Quantity shared[] = {
      {"threads", "thread", static_cast<double>(p.threads)},
      {"workspace_bytes", "B", static_cast<double>(p.workspace_bytes)},
      {"operations", "op", p.operations},
      {"memory_bytes", "B", p.memory_bytes},
      {"l3_bytes", "B", p.l3_bytes},
      {"l2_bytes", "B", p.l2_bytes},
      {"l1_bytes", "B", p.l1_bytes},
      {"issue_efficiency", "", p.issue_efficiency},
      {"balance", "", p.balance},
  };
  for (const Quantity& quantity : shared) AppendQuantity(quantity, text);
  for (const Quantity& quantity : p.quantities) AppendQuantity(quantity, text);
  return text;
}

}  // namespace tilewright
