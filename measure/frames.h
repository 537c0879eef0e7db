// Frames: how a worker and its children speak over a socket pair. A frame is an 8-byte header
// (payload length and kind, both 32 bits, host order) and the payload.
//
// Both ends are the same executable on the same machine. Lengths are bounded, reads have deadlines,
// and a closed peer is an error, never a signal. One thread at a time per descriptor.
#ifndef TILEWRIGHT_MEASURE_FRAMES_H_
#define TILEWRIGHT_MEASURE_FRAMES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"

namespace tilewright {

// The descriptor a child finds its end of the socket pair on.
inline constexpr int kChildDescriptor = 3;
inline constexpr uint32_t kMaxFrameBytes = 512u << 20;

enum class FrameKind : uint32_t {
  kMessage = 1,  // a protobuf message
  kCrash = 2,    // a CrashRecord (crash_report.h), written from a signal handler
};

struct FrameHeader {
  uint32_t bytes;
  uint32_t kind;
};

struct Frame {
  FrameKind kind;
  std::string payload;
};

// Deadlines are on the monotonic clock, as a duration from now; absl::InfiniteDuration() waits
// until the peer closes. DeadlineExceeded: not all sent or received in time. Unavailable: the peer
// closed. Internal: a malformed frame.
absl::Status SendFrame(int fd, FrameKind kind, const std::string& payload, absl::Duration timeout);
absl::StatusOr<Frame> ReceiveFrame(int fd, absl::Duration timeout);

// A message in a frame of kind kMessage. InvalidArgument: another kind, or the payload does not
// parse.
absl::Status SendMessage(int fd, const google::protobuf::MessageLite& message,
                         absl::Duration timeout);
absl::Status ReceiveMessage(int fd, google::protobuf::MessageLite* message, absl::Duration timeout);

// Seconds on the clock that deadlines, samples and busy times are taken from (CLOCK_MONOTONIC).
double MonotonicSeconds();

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_FRAMES_H_
