#include "measure/guarded_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kMoat = int64_t{1} << 30;
// A process may have 65,530 mappings (vm.max_map_count); each untouchable page between buffers
// costs two.
constexpr size_t kMostSeparatedBuffers = 8192;
// No byte of the pattern repeats at a distance of 8, so that a shifted copy of a band is seen as
// damage.
constexpr unsigned char kPattern[8] = {0xc3, 0x5a, 0x96, 0x3c, 0xe1, 0x1e, 0xb4, 0x4b};

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// Buffer i begins this far into its first page after the band: a multiple of 64 that differs
// between neighbours.
int64_t Stagger(size_t i) { return static_cast<int64_t>((i * 11) % 16) * 64; }

void WritePattern(std::byte* begin, std::byte* end) {
  for (std::byte* p = begin; p < end; ++p) {
    *p = std::byte{kPattern[reinterpret_cast<uintptr_t>(p) % sizeof(kPattern)]};
  }
}

// Null if [begin, end) holds the pattern.
const std::byte* FindDamage(const std::byte* begin, const std::byte* end) {
  uint64_t word;
  memcpy(&word, kPattern, sizeof(word));
  const std::byte* p = begin;
  for (; p < end && reinterpret_cast<uintptr_t>(p) % 8 != 0; ++p) {
    if (*p != std::byte{kPattern[reinterpret_cast<uintptr_t>(p) % 8]}) return p;
  }
  uint64_t difference = 0;
  const std::byte* whole = p;
  for (; p + 8 <= end; p += 8) {
    uint64_t got;
    memcpy(&got, p, 8);
    difference |= got ^ word;
  }
  if (difference != 0) p = whole;
  for (; p < end; ++p) {
    if (*p != std::byte{kPattern[reinterpret_cast<uintptr_t>(p) % 8]}) return p;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GuardedMemory>> GuardedMemory::Map(absl::Span<const int64_t> bytes) {
  auto memory = std::unique_ptr<GuardedMemory>(new GuardedMemory);
  const int64_t gap = bytes.size() <= kMostSeparatedBuffers ? kPage : 0;
  int64_t total = 2 * kMoat;
  std::vector<int64_t> spans;
  for (size_t i = 0; i < bytes.size(); ++i) {
    spans.push_back(RoundUp(2 * kBandBytes + Stagger(i) + bytes[i], kPage));
    total += spans.back() + gap;
  }
  void* mapping =
      mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot reserve ", total, " B for buffers: ", strerror(errno)));
  }
  memory->mapping_ = static_cast<std::byte*>(mapping);
  memory->mapping_bytes_ = total;
  std::byte* next = memory->mapping_ + kMoat;
  for (size_t i = 0; i < bytes.size(); ++i) {
    Buffer buffer;
    buffer.begin = next;
    buffer.end = next + spans[i];
    buffer.data = next + kBandBytes + Stagger(i);
    buffer.bytes = bytes[i];
    next = buffer.end + gap;
    if (mprotect(buffer.begin, spans[i], PROT_READ | PROT_WRITE) != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot map a buffer of ", bytes[i], " B: ", strerror(errno)));
    }
    // Faults the pages in now; a failure here is a lack of memory, reported instead of a signal
    // later.
    if (madvise(buffer.begin, spans[i], MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for a buffer of ", bytes[i], " B: ", strerror(errno)));
    }
    memory->buffers_.push_back(buffer);
    memory->RepairBands(static_cast<int>(i));
  }
  return memory;
}

GuardedMemory::~GuardedMemory() { munmap(mapping_, mapping_bytes_); }

void GuardedMemory::Protect(int first, int count, Access access) {
  if (count == 0) return;
  const int protection = access == Access::kNone   ? PROT_NONE
                         : access == Access::kRead ? PROT_READ
                                                   : PROT_READ | PROT_WRITE;
  // Buffer by buffer: the pages between them stay untouchable.
  for (int i = first; i < first + count; ++i) {
    mprotect(buffers_[i].begin, buffers_[i].end - buffers_[i].begin, protection);
  }
}

int64_t GuardedMemory::FindBandDamage(int buffer) const {
  const Buffer& b = buffers_[buffer];
  if (const std::byte* after = FindDamage(b.data + b.bytes, b.end)) return after - b.data;
  if (FindDamage(b.begin, b.data) == nullptr) return 0;
  // Nearest to the buffer: the last damaged byte before it.
  const std::byte* p = b.data - 1;
  while (*p == std::byte{kPattern[reinterpret_cast<uintptr_t>(p) % sizeof(kPattern)]}) --p;
  return p - b.data;
}

void GuardedMemory::RepairBands(int buffer) {
  const Buffer& b = buffers_[buffer];
  WritePattern(b.begin, b.data);
  WritePattern(b.data + b.bytes, b.end);
}

GuardedMemory::Location GuardedMemory::Locate(const void* address) const {
  const std::byte* p = static_cast<const std::byte*>(address);
  Location location;
  if (p < mapping_ || p >= mapping_ + mapping_bytes_) return location;
  location.place = Place::kOutside;
  int64_t nearest = INT64_MAX;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& b = buffers_[i];
    const int64_t offset = p - b.data;
    const int64_t distance = offset < 0 ? -offset : std::max<int64_t>(0, offset - b.bytes + 1);
    if (distance >= nearest) continue;
    nearest = distance;
    location.buffer = static_cast<int>(i);
    location.offset = offset;
    if (distance == 0) location.place = Place::kInside;
  }
  return location;
}

}  // namespace tilewright
