// Guarded memory: buffers for kernels that may be wrong. Around every buffer lies a guard band of
// at least 4 KiB with a known pattern, beyond that (where there is room in the page tables) a page
// nobody may touch, and around all of them 1 GiB of such pages. A near miss changes a band, a far
// one stops the runner, and the address says which buffer it was.
//
//   … untouchable | band | buffer | band | untouchable | band | buffer | band | untouchable …
//
// Buffers start at different offsets within their pages, as heap memory does: equal offsets would
// make loads and stores of different buffers alias in the first-level cache. Not thread-safe, but
// Locate() may be called from a signal handler.
#ifndef TILEWRIGHT_MEASURE_GUARDED_MEMORY_H_
#define TILEWRIGHT_MEASURE_GUARDED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tilewright {

class GuardedMemory {
 public:
  static constexpr int64_t kBandBytes = 4096;

  struct Buffer {
    std::byte* data = nullptr;  // aligned to 64
    int64_t bytes = 0;
    std::byte* begin = nullptr;  // of the pages that hold it and its bands
    std::byte* end = nullptr;
  };
  enum class Access { kNone, kRead, kReadWrite };
  enum class Place { kElsewhere, kInside, kOutside };  // of this memory; inside or beside a buffer
  struct Location {
    Place place = Place::kElsewhere;
    int buffer = -1;     // the nearest
    int64_t offset = 0;  // from its first byte
  };

  // Maps buffers of the given sizes, writable, with their bands written. ResourceExhausted: no
  // memory.
  static absl::StatusOr<std::unique_ptr<GuardedMemory>> Map(absl::Span<const int64_t> bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  absl::Span<const Buffer> buffers() const { return buffers_; }
  // Sets what may be done to buffers [first, first + count) and their bands.
  void Protect(int first, int count, Access access);
  void ProtectAll(Access access) { Protect(0, static_cast<int>(buffers_.size()), access); }
  // The offset from the buffer's first byte of the first changed band byte nearest to the buffer; 0
  // if both bands are intact (a band byte never has offset 0).
  int64_t FindBandDamage(int buffer) const;
  void RepairBands(int buffer);

  // Async-signal-safe.
  Location Locate(const void* address) const;

 private:
  GuardedMemory() = default;

  std::byte* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::vector<Buffer> buffers_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_GUARDED_MEMORY_H_
