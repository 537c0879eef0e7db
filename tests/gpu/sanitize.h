// The winners of a log under compute-sanitizer: `gpu_test sanitize` and what it starts.
#ifndef TILEWRIGHT_TESTS_GPU_SANITIZE_H_
#define TILEWRIGHT_TESTS_GPU_SANITIZE_H_

#include <string>

namespace tilewright {

// For each current verdict of an exported log (JSON lines), at most `most` (0: all), best known
// first in the log's order: runs the winner's schedule once under memcheck and once under
// racecheck on a product of the same kind whose tiles fill the device at most twice, and screens
// the winner at its own sizes on freshly seeded inputs. Prints a row for each. Exit code: 0 all
// pass, 1 one does not, 2 the log cannot be read.
int PrintSanitized(const std::string& log_path, int most);

// Writes, loads and calls one kernel twice on seeded inputs in buffers of exactly their size,
// without a check: what the sanitizer watches. `workload` is canonical text.
int RunKernelOnce(const std::string& workload, const std::string& schedule);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_GPU_SANITIZE_H_
