// What a screening costs on a GPU.
#ifndef TILEWRIGHT_TESTS_GPU_COST_H_
#define TILEWRIGHT_TESTS_GPU_COST_H_

namespace tilewright {

// Prints for a few products how long a session takes to open, and how long one screening of the
// default schedule takes on the wall and on the device. Returns the exit code.
int PrintCost();

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_GPU_COST_H_
