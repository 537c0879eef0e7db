// A worker's program with a fake workbench: what LocalWorker starts in tests.
//   fake_worker worker --connect ADDRESS --local [--device N] [--exit CODE] [--batch N]
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "measure/local_worker.h"
#include "measure/worker.h"
#include "tests/fakes/fake_workbench.h"

namespace {
std::atomic<bool> stop{false};
}  // namespace

int main(int argc, char** argv) {
  tilewright::EnterLocalWorker();
  signal(SIGTERM, [](int) { stop = true; });
  tilewright::WorkerOptions options;
  int device = 0;
  for (int i = 2; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (std::strcmp(argv[i], "--connect") == 0) options.address = value;
    if (std::strcmp(argv[i], "--device") == 0) device = std::atoi(value);
    if (std::strcmp(argv[i], "--batch") == 0) options.batch = std::atoi(value);
    if (std::strcmp(argv[i], "--exit") == 0) return std::atoi(value);
  }
  std::string error;
  return static_cast<int>(
      tilewright::RunWorker(options, tilewright::FakeWorkerParts(device, nullptr), stop, &error));
}
