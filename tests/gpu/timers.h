// Compares the ways to time a kernel on a GPU (docs/timers.md).
#ifndef TILEWRIGHT_TESTS_GPU_TIMERS_H_
#define TILEWRIGHT_TESTS_GPU_TIMERS_H_

#include <string>

namespace tilewright {

// Prints the table, with or without CUPTI's tracing on ("cupti", "event"): times of one and the
// same kernel by every timer that there then is, for kernels of about 2 us, 20 us and 2 ms, and the
// noise of each timer between two equal kernels. Returns the exit code.
int PrintTimers(const std::string& timer);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_GPU_TIMERS_H_
