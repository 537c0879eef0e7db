// Thermal throttling of the cores, where the system counts it (bare-metal Linux on Intel; a virtual
// CPU cannot see it, and then nothing is dropped). A sample during which a core was throttled says
// nothing about the kernel.
#ifndef TILEWRIGHT_MEASURE_THERMAL_H_
#define TILEWRIGHT_MEASURE_THERMAL_H_

#include <cstdint>

namespace tilewright {

// The sum of all cores' and packages' throttle counts; 0 where there are none.
struct ThermalMark {
  int64_t events = 0;
};
ThermalMark ReadThermalMark();
bool ThrottledSince(ThermalMark mark);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_THERMAL_H_
