// What both ends of the wire agree on beside the messages of measure.proto: version, limits, and
// the checks that a request must pass before anything is done with it (docs/formats/protocol.md).
#ifndef TILEWRIGHT_MEASURE_PROTOCOL_H_
#define TILEWRIGHT_MEASURE_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "measure/measure.pb.h"

namespace tilewright {

// Raised when a peer must know a field to be understood. A coordinator accepts this version and the
// one before.
inline constexpr uint32_t kProtocolVersion = 1;

struct ProtocolLimits {
  static constexpr size_t kIdBytes = 16;
  static constexpr size_t kControlBytes = 1 << 20;  // a request but Return
  static constexpr size_t kResultBytes = 4 << 20;   // a Return, and any reply
  static constexpr size_t kNameBytes = 1 << 10;     // names, versions, digests
  static constexpr size_t kScheduleBytes = 16 << 10;
  static constexpr size_t kFailureBytes =
      64 << 10;  // the text of a failure, or the evidence of a check
  static constexpr size_t kWorkloadBytes = 256 << 10;
  static constexpr int kSamples = 65536;  // of one trial; anchor timings of one session
  static constexpr int kItems = 256;      // of one lease or one Return
  static constexpr int kEntrants = 64;    // of one finals item
  static constexpr int kRounds = 4096;
  static constexpr int kResources = 256;
  static constexpr uint32_t kWaitMs = 60000;
};

// The version that both speak: the lower. FailedPrecondition names both if the peer's is neither
// `ours` nor the one before.
absl::StatusOr<uint32_t> NegotiateProtocol(uint32_t ours, uint32_t theirs);

// InvalidArgument names the field and what is accepted ("trials[3].seconds: -1; must be finite and
// above 0").
absl::Status CheckRequest(const v1::EnrolRequest& request);
absl::Status CheckRequest(const v1::LeaseRequest& request);
absl::Status CheckRequest(const v1::BuiltRequest& request);
absl::Status CheckRequest(const v1::RenewRequest& request);
absl::Status CheckRequest(const v1::ReturnRequest& request);
absl::Status CheckRunSpec(const v1::RunSpec& spec);
absl::Status CheckWorkItem(const v1::WorkItem& item);

// Plaintext is for one machine only: OK for "unix:PATH", "localhost:PORT", "127.x.x.x:PORT" and
// "[::1]:PORT"; InvalidArgument says that other addresses need TLS, which this version does not
// speak.
absl::Status CheckPlaintextAddress(std::string_view address);

// 16 bytes from the kernel's random source.
std::string NewRandomId();
// Lower-case hexadecimal digits of an id, for messages.
std::string IdToHex(std::string_view id);
// `text` as protobuf takes it: bytes that are not UTF-8 become '?', and what is over `limit` is cut
// with a note of how much.
std::string CleanText(std::string_view text, size_t limit);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_PROTOCOL_H_
