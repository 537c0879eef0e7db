#include "measure/thermal.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// The counters that exist here (Linux: Documentation/ABI/stable/sysfs-devices-system-cpu,
// thermal_throttle).
const std::vector<std::string>& Counters() {
  static const auto* counters = [] {
    auto* found = new std::vector<std::string>;
    for (int core = 0;; ++core) {
      const std::string directory = absl::StrCat("/sys/devices/system/cpu/cpu", core);
      if (!std::ifstream(absl::StrCat(directory, "/uevent"))) break;
      for (const char* name : {"core_throttle_count", "package_throttle_count"}) {
        std::string path = absl::StrCat(directory, "/thermal_throttle/", name);
        if (std::ifstream(path)) found->push_back(std::move(path));
      }
    }
    return found;
  }();
  return *counters;
}

}  // namespace

ThermalMark ReadThermalMark() {
  ThermalMark mark;
  for (const std::string& path : Counters()) {
    std::ifstream file(path);
    int64_t events = 0;
    if (file >> events) mark.events += events;
  }
  return mark;
}

bool ThrottledSince(ThermalMark mark) { return ReadThermalMark().events != mark.events; }

}  // namespace tilewright
