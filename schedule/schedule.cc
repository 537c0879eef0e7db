#include "schedule/schedule.h"

#include "schedule/braced_text.h"

namespace tilewright {

const std::string* Schedule::Find(std::string_view name) const {
  for (const auto& [decision, token] : decisions) {
    if (decision == name) return &token;
  }
  return nullptr;
}

std::string Schedule::ToString() const {
  return tilewright::ToString(BracedText{variant, decisions});
}

absl::StatusOr<Schedule> ParseSchedule(std::string_view text) {
  absl::StatusOr<BracedText> parsed = ParseBracedText("schedule", text, /*empty_values=*/false);
  if (!parsed.ok()) return parsed.status();
  return Schedule{std::move(parsed->name), std::move(parsed->words)};
}

}  // namespace tilewright
