#include "measure/launch_pool.h"

#include <gtest/gtest.h>

#include <atomic>

namespace tilewright {
namespace {

struct Count {
  std::vector<std::atomic<int>> calls;
  explicit Count(int n) : calls(n) {}
};

void CountCall(void* context, int32_t number, int32_t count) {
  auto& c = *static_cast<Count*>(context);
  EXPECT_EQ(count, static_cast<int32_t>(c.calls.size()));
  ++c.calls[number];
}

TEST(LaunchPool, CallsEachNumberOnceWhetherActiveOrAsleep) {
  const auto pool = LaunchPool::Make({0, 0, 0}, [] {});
  for (bool active : {false, true, false, true}) {
    pool->SetActive(active);
    for (int count : {1, 2, 3, 4, 7, 100}) {
      Count counter(count);
      pool->Run(CountCall, &counter, count);
      for (const std::atomic<int>& calls : counter.calls) EXPECT_EQ(calls, 1);
    }
  }
}

TEST(LaunchPool, LaunchesFollowEachOtherThousandsOfTimes) {
  const auto pool = LaunchPool::Make({0, 1}, [] {});
  pool->SetActive(true);
  int64_t sums[2] = {0, 0};
  for (int i = 0; i < 5000; ++i) {
    pool->Run(
        [](void* context, int32_t number, int32_t) { ++static_cast<int64_t*>(context)[number]; },
        sums, 2);
  }
  EXPECT_EQ(sums[0], 5000);
  EXPECT_EQ(sums[1], 5000);
}

TEST(LaunchPool, RangesCoverEverythingOnce) {
  const auto pool = LaunchPool::Make({0, 0}, [] {});
  for (int64_t items : {0, 1, 2, 3, 1000}) {
    std::vector<std::atomic<int>> seen(items);
    pool->ForRanges(items, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[i];
    });
    for (const std::atomic<int>& count : seen) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace tilewright
