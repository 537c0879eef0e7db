#include "measure/device_conditions.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewright {
namespace {

constexpr double kLowestClock = 0.75;  // of the top clock

std::optional<NvmlViolations> ReadViolations(CudaContext& context) {
  if (context.nvml() == nullptr) return std::nullopt;
  const absl::StatusOr<NvmlViolations> violations = context.nvml()->Violations();
  if (!violations.ok()) return std::nullopt;  // not permitted here: no rule
  return *violations;
}

}  // namespace

DeviceConditions JudgeConditions(const std::optional<NvmlViolations>& violations, double clock_mhz,
                                 int top_clock_mhz) {
  DeviceConditions conditions;
  conditions.clock_mhz = clock_mhz;
  if (violations) {
    conditions.power_capped = violations->power_ns > 0;
    conditions.thermal = violations->thermal_ns > 0 || violations->hardware_ns > 0;
  }
  conditions.low_clock = clock_mhz > 0 && top_clock_mhz > 0 && !conditions.power_capped &&
                         clock_mhz < kLowestClock * top_clock_mhz;
  return conditions;
}

absl::Status ConditionsWatch::Start() {
  before_ = ReadViolations(context_);
  if (absl::Status status = checker_.Begin(); !status.ok()) return status;
  const absl::StatusOr<int> clocks = checker_.ReadClocks();
  if (!clocks.ok()) return clocks.status();
  clocks_before_ = *clocks;
  return absl::OkStatus();
}

absl::StatusOr<DeviceConditions> ConditionsWatch::End() {
  const absl::StatusOr<int> clocks = checker_.ReadClocks();
  if (!clocks.ok()) return clocks.status();
  if (absl::Status status = checker_.Finish(); !status.ok()) return status;
  std::optional<NvmlViolations> between = ReadViolations(context_);
  if (between && before_) {
    between->power_ns -= before_->power_ns;
    between->thermal_ns -= before_->thermal_ns;
    between->hardware_ns -= before_->hardware_ns;
  } else {
    between.reset();
  }
  return JudgeConditions(between, checker_.ClockMhz(clocks_before_, *clocks),
                         context_.top_clock_mhz());
}

DeviceSurroundings ReadSurroundings(CudaContext& context) {
  DeviceSurroundings surroundings;
  if (context.nvml() == nullptr) return surroundings;
  surroundings.foreign_processes = context.nvml()->ForeignProcesses(getpid()).value_or(0);
  surroundings.temperature_celsius = context.nvml()->TemperatureCelsius().value_or(0);
  return surroundings;
}

std::string ConditionsJson(const CudaContext& context, const DeviceConditions& conditions,
                           const DeviceSurroundings& surroundings) {
  std::string text =
      absl::StrFormat(",\"timer\":\"%s\",\"clock_mhz\":%.0f",
                      context.trace() != nullptr ? "cupti" : "event", conditions.clock_mhz);
  if (conditions.power_capped) absl::StrAppend(&text, ",\"power_capped\":true");
  if (conditions.thermal) absl::StrAppend(&text, ",\"thermal_limit\":true");
  if (conditions.low_clock) absl::StrAppend(&text, ",\"low_clock\":true");
  if (surroundings.temperature_celsius > 0) {
    absl::StrAppend(&text, ",\"temperature_c\":", surroundings.temperature_celsius);
  }
  if (surroundings.foreign_processes > 0) {
    absl::StrAppend(&text, ",\"foreign_processes\":", surroundings.foreign_processes);
  }
  return text;
}

}  // namespace tilewright
