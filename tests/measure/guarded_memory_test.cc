#include "measure/guarded_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tilewright {
namespace {

TEST(GuardedMemory, BuffersAreAlignedSeparateAndWritable) {
  const auto memory = GuardedMemory::Map({100, 4096, 1, 70000});
  ASSERT_TRUE(memory.ok());
  const std::byte* last_end = nullptr;
  for (const GuardedMemory::Buffer& buffer : (*memory)->buffers()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data) % 64, 0u);
    EXPECT_GE(buffer.data - buffer.begin, GuardedMemory::kBandBytes);
    EXPECT_GE(buffer.end - (buffer.data + buffer.bytes), GuardedMemory::kBandBytes);
    EXPECT_GT(buffer.begin, last_end);
    last_end = buffer.end;
    memset(buffer.data, 0xff, buffer.bytes);
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ((*memory)->FindBandDamage(i), 0);
}

TEST(GuardedMemory, FindsADamagedByteAnywhereInTheBands) {
  const auto memory = GuardedMemory::Map({1000});
  ASSERT_TRUE(memory.ok());
  const GuardedMemory::Buffer& buffer = (*memory)->buffers()[0];
  const int64_t before = buffer.begin - buffer.data;
  const int64_t after = buffer.end - buffer.data;
  for (int64_t offset :
       {before, before + 1, int64_t{-1}, int64_t{1000}, int64_t{1001}, after - 1}) {
    const std::byte kept = buffer.data[offset];
    buffer.data[offset] ^= std::byte{1};
    EXPECT_EQ((*memory)->FindBandDamage(0), offset);
    (*memory)->RepairBands(0);
    EXPECT_EQ(buffer.data[offset], kept);
    EXPECT_EQ((*memory)->FindBandDamage(0), 0);
  }
}

TEST(GuardedMemory, LocatesAddressesInsideBesideAndElsewhere) {
  const auto memory = GuardedMemory::Map({1000, 1000});
  ASSERT_TRUE(memory.ok());
  const GuardedMemory::Buffer& second = (*memory)->buffers()[1];
  auto location = (*memory)->Locate(second.data + 5);
  EXPECT_EQ(location.place, GuardedMemory::Place::kInside);
  EXPECT_EQ(location.buffer, 1);
  EXPECT_EQ(location.offset, 5);
  location = (*memory)->Locate(second.data + 5000);
  EXPECT_EQ(location.place, GuardedMemory::Place::kOutside);
  EXPECT_EQ(location.buffer, 1);
  location = (*memory)->Locate(&memory);
  EXPECT_EQ(location.place, GuardedMemory::Place::kElsewhere);
}

TEST(GuardedMemoryDeathTest, ReadOnlyBuffersAndTheSpaceBeyondStopAWriter) {
  const auto memory = GuardedMemory::Map({1000, 1000});
  ASSERT_TRUE(memory.ok());
  const GuardedMemory::Buffer& first = (*memory)->buffers()[0];
  volatile std::byte* data = first.data;
  EXPECT_DEATH(data[first.end - first.data] = std::byte{1}, "");
  EXPECT_DEATH(data[-(1 << 20)] = std::byte{1}, "");
  (*memory)->Protect(0, 1, GuardedMemory::Access::kRead);
  EXPECT_DEATH(data[0] = std::byte{1}, "");
  (*memory)->Protect(0, 1, GuardedMemory::Access::kReadWrite);
  data[0] = std::byte{1};
}

TEST(GuardedMemory, MoreMemoryThanThereIsIsAnErrorNotACrash) {
  EXPECT_EQ(GuardedMemory::Map({int64_t{1} << 60}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tilewright
