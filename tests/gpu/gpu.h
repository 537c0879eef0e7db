// What the tests that need a GPU share.
#ifndef TILEWRIGHT_TESTS_GPU_GPU_H_
#define TILEWRIGHT_TESTS_GPU_GPU_H_

#include <gtest/gtest.h>

#include <cstdio>

#include "measure/devices.h"

namespace tilewright {

// Skips the test where there is no GPU. The word is what scripts look for.
#define TILEWRIGHT_SKIP_WITHOUT_GPU()                                           \
  const absl::StatusOr<DeviceDescription> device = DescribeCudaDevice("");      \
  if (!device.ok()) {                                                           \
    std::printf("[SKIP] %s\n", std::string(device.status().message()).c_str()); \
    GTEST_SKIP() << device.status().message();                                  \
  }                                                                             \
  static_assert(true)

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_GPU_GPU_H_
