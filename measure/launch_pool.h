// A LaunchPool runs a kernel's launches on the device's cores: one thread per core, pinned, the
// caller being the first. Threads spin while the pool is active, so that a launch on two threads
// costs well under a microsecond; they sleep while it is not, so that builders have the cores.
//
// One thread owns it and calls everything.
#ifndef TILEWRIGHT_MEASURE_LAUNCH_POOL_H_
#define TILEWRIGHT_MEASURE_LAUNCH_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tilewright {

class LaunchPool {
 public:
  // A job is called once for each number 0 … count-1, at once where there are cores enough, else
  // one after another.
  using Job = void (*)(void* context, int32_t number, int32_t count);

  // `cores`: CPU numbers. Pins the calling thread to the first. `on_thread_start` runs first in
  // every new thread (signal stacks).
  static std::unique_ptr<LaunchPool> Make(std::vector<int> cores,
                                          std::function<void()> on_thread_start);
  virtual ~LaunchPool() = default;

  virtual int threads() const = 0;
  // Wakes the threads, or sends them to sleep. Run() works in both states; asleep it costs a
  // wake-up.
  virtual void SetActive(bool active) = 0;
  // Returns when all calls have returned.
  virtual void Run(Job job, void* context, int32_t count) = 0;

  // body(begin, end) over [0, items) in one contiguous piece per thread.
  void ForRanges(int64_t items, const std::function<void(int64_t begin, int64_t end)>& body);
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_LAUNCH_POOL_H_
