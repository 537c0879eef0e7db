#include "measure/devices.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {

absl::StatusOr<DeviceDescription> DescribeCudaDevice(std::string_view which) {
  const absl::StatusOr<std::vector<DeviceDescription>> devices = DescribeCudaDevices();
  if (!devices.ok()) return devices.status();
  if (which.empty() || which == "all") return devices->front();
  const std::string wanted(which);
  int number = -1;
  if (absl::SimpleAtoi(wanted, &number) && number >= 0 &&
      number < static_cast<int>(devices->size())) {
    return (*devices)[number];
  }
  for (const DeviceDescription& device : *devices) {
    if (wanted.size() > 4 && absl::StartsWith(device.uuid, wanted)) return device;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "device '", wanted, "' is not here; there are ",
      absl::StrJoin(*devices, ", ", [](std::string* out, const DeviceDescription& device) {
        absl::StrAppend(out, device.uuid, " (", device.target.kind, ")");
      })));
}

absl::StatusOr<DeviceDescription> DescribeDevice(const DeviceChoice& choice) {
  if (choice.kind == "cpu") return DescribeCpu(choice.cores);
  if (choice.kind == "cuda") return DescribeCudaDevice(choice.device);
  return absl::InvalidArgumentError(
      absl::StrCat("'", choice.kind,
                   "' is not a kind of device that can be found here; "
                   "cpu and cuda are"));
}

}  // namespace tilewright
