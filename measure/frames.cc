#include "measure/frames.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

class Deadline {
 public:
  explicit Deadline(absl::Duration timeout)
      : infinite_(timeout == absl::InfiniteDuration()),
        end_(infinite_ ? 0 : MonotonicSeconds() + absl::ToDoubleSeconds(timeout)) {}

  // For poll(): at least 1 ms while time is left.
  int PollMilliseconds() const {
    if (infinite_) return -1;
    const double left = end_ - MonotonicSeconds();
    return left <= 0 ? 0 : static_cast<int>(std::min(std::ceil(left * 1e3), 1e9));
  }

 private:
  bool infinite_;
  double end_;
};

// Waits until `fd` is ready for `events`.
absl::Status Wait(int fd, short events, const Deadline& deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, deadline.PollMilliseconds());
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) return absl::DeadlineExceededError("the other end did not answer in time");
    if (errno != EINTR) return absl::InternalError(absl::StrCat("poll: ", strerror(errno)));
  }
}

absl::Status SendAll(int fd, const char* data, size_t bytes, const Deadline& deadline) {
  while (bytes > 0) {
    const ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      data += sent;
      bytes -= sent;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (absl::Status status = Wait(fd, POLLOUT, deadline); !status.ok()) return status;
    } else if (errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("the other end is gone: ", strerror(errno)));
    }
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int fd, char* data, size_t bytes, const Deadline& deadline) {
  while (bytes > 0) {
    const ssize_t got = recv(fd, data, bytes, MSG_DONTWAIT);
    if (got > 0) {
      data += got;
      bytes -= got;
    } else if (got == 0) {
      return absl::UnavailableError("the other end closed");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (absl::Status status = Wait(fd, POLLIN, deadline); !status.ok()) return status;
    } else if (errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("the other end is gone: ", strerror(errno)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

double MonotonicSeconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

absl::Status SendFrame(int fd, FrameKind kind, const std::string& payload, absl::Duration timeout) {
  if (payload.size() > kMaxFrameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame of ", payload.size(), " B is longer than ", kMaxFrameBytes, " B"));
  }
  const Deadline deadline(timeout);
  const FrameHeader header{static_cast<uint32_t>(payload.size()), static_cast<uint32_t>(kind)};
  absl::Status status =
      SendAll(fd, reinterpret_cast<const char*>(&header), sizeof(header), deadline);
  if (!status.ok()) return status;
  return SendAll(fd, payload.data(), payload.size(), deadline);
}

absl::StatusOr<Frame> ReceiveFrame(int fd, absl::Duration timeout) {
  const Deadline deadline(timeout);
  FrameHeader header;
  absl::Status status = ReceiveAll(fd, reinterpret_cast<char*>(&header), sizeof(header), deadline);
  if (!status.ok()) return status;
  const bool known = header.kind == static_cast<uint32_t>(FrameKind::kMessage) ||
                     header.kind == static_cast<uint32_t>(FrameKind::kCrash);
  if (header.bytes > kMaxFrameBytes || !known) {
    return absl::InternalError(
        absl::StrCat("malformed frame: ", header.bytes, " B of kind ", header.kind));
  }
  Frame frame{static_cast<FrameKind>(header.kind), std::string(header.bytes, '\0')};
  status = ReceiveAll(fd, frame.payload.data(), frame.payload.size(), deadline);
  if (!status.ok()) return status;
  return frame;
}

absl::Status SendMessage(int fd, const google::protobuf::MessageLite& message,
                         absl::Duration timeout) {
  return SendFrame(fd, FrameKind::kMessage, message.SerializeAsString(), timeout);
}

absl::Status ReceiveMessage(int fd, google::protobuf::MessageLite* message,
                            absl::Duration timeout) {
  absl::StatusOr<Frame> frame = ReceiveFrame(fd, timeout);
  if (!frame.ok()) return frame.status();
  if (frame->kind != FrameKind::kMessage || !message->ParseFromString(frame->payload)) {
    return absl::InvalidArgumentError(absl::StrCat("frame is not a ", message->GetTypeName()));
  }
  return absl::OkStatus();
}

}  // namespace tilewright
