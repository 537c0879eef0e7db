#include "measure/launch_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace tilewright {
namespace {

// After this many pauses (about 100 us) a spinning thread also yields, in case something else needs
// its core.
constexpr int kSpinsBeforeYield = 2048;

void Pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // A core that was taken away since is no error: the thread then runs where the system lets it.
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class PinnedPool : public LaunchPool {
 public:
  PinnedPool(std::vector<int> cores, std::function<void()> on_thread_start)
      : count_(static_cast<int>(cores.size())), mailboxes_(cores.size()) {
    Pin(cores[0]);
    for (int i = 1; i < count_; ++i) {
      threads_.emplace_back([this, i, core = cores[i], on_thread_start] {
        Pin(core);
        on_thread_start();
        Serve(i);
      });
    }
  }
  ~PinnedPool() override {
    stopping_ = true;
    Wake();
    for (std::thread& thread : threads_) thread.join();
  }

  int threads() const override { return count_; }

  void SetActive(bool active) override {
    active_ = active;
    if (active) Wake();
  }

  void Run(Job job, void* context, int32_t count) override {
    if (count <= 1 || count_ == 1) {
      for (int32_t number = 0; number < count; ++number) job(context, number, count);
      return;
    }
    job_ = job;
    context_ = context;
    job_count_ = count;
    const int others = std::min(count, count_) - 1;
    ++ticket_;
    for (int i = 1; i <= others; ++i) {
      mailboxes_[i].ordered.store(ticket_, std::memory_order_release);
    }
    if (!active_) Wake();
    for (int32_t number = 0; number < count; number += count_) job(context, number, count);
    for (int i = 1; i <= others; ++i) Await(mailboxes_[i].done, ticket_);
  }

 private:
  // One thread's orders and answers: the number of the last job it is to do, and has done. A line
  // each, so that threads do not disturb each other.
  struct alignas(64) Mailbox {
    std::atomic<uint64_t> ordered{0};
    alignas(64) std::atomic<uint64_t> done{0};
  };

  static void Await(const std::atomic<uint64_t>& value, uint64_t expected) {
    for (int spins = 0; value.load(std::memory_order_acquire) != expected; ++spins) {
      Pause();
      if (spins >= kSpinsBeforeYield) sched_yield();
    }
  }

  void Wake() {
    wakes_.fetch_add(1);
    wakes_.notify_all();
  }

  void Serve(int i) {
    Mailbox& mailbox = mailboxes_[i];
    uint64_t served = 0;
    int spins = 0;
    for (;;) {
      const uint32_t wakes = wakes_.load();
      const uint64_t ordered = mailbox.ordered.load(std::memory_order_acquire);
      if (ordered != served) {
        for (int32_t number = i; number < job_count_; number += count_) {
          job_(context_, number, job_count_);
        }
        served = ordered;
        mailbox.done.store(served, std::memory_order_release);
        spins = 0;
        continue;
      }
      if (stopping_) return;
      if (!active_) {
        // A job ordered after `ordered` was read changes `wakes_`, so it is not slept through.
        wakes_.wait(wakes);
        continue;
      }
      Pause();
      if (++spins >= kSpinsBeforeYield) sched_yield();
    }
  }

  const int count_;
  std::vector<Mailbox> mailboxes_;
  uint64_t ticket_ = 0;
  Job job_ = nullptr;
  void* context_ = nullptr;
  int32_t job_count_ = 0;
  std::atomic<bool> active_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<uint32_t> wakes_{0};
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<LaunchPool> LaunchPool::Make(std::vector<int> cores,
                                             std::function<void()> on_thread_start) {
  return std::make_unique<PinnedPool>(std::move(cores), std::move(on_thread_start));
}

void LaunchPool::ForRanges(int64_t items,
                           const std::function<void(int64_t begin, int64_t end)>& body) {
  struct Context {
    int64_t items;
    const std::function<void(int64_t, int64_t)>* body;
  } context{items, &body};
  Run(
      [](void* opaque, int32_t number, int32_t count) {
        const Context& c = *static_cast<Context*>(opaque);
        const int64_t begin = c.items * number / count;
        const int64_t end = c.items * (number + 1) / count;
        if (begin < end) (*c.body)(begin, end);
      },
      &context, threads());
}

}  // namespace tilewright
