// Any bytes as a schedule: parsing ends with a schedule or an error of one message; what parses
// prints to a text that parses back to the same schedule.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "schedule/schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<tilewright::Schedule> schedule = tilewright::ParseSchedule(text);
  if (!schedule.ok()) {
    if (schedule.status().message().empty()) std::abort();  // an error that says nothing
    return 0;
  }
  const absl::StatusOr<tilewright::Schedule> again =
      tilewright::ParseSchedule(schedule->ToString());
  if (!again.ok() || !(*again == *schedule)) std::abort();
  return 0;
}
