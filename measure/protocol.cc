#include "measure/protocol.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "measure/failure.h"
#include "openssl/rand.h"

namespace tilewright {
namespace {

using L = ProtocolLimits;

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// Collects the first fault of a message; fields are named as paths ("trials[3].seconds").
class Checker {
 public:
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  void Fail(absl::string_view field, absl::string_view what) {
    if (status_.ok()) status_ = Bad(field, what);
  }
  void Message(size_t bytes, size_t limit) {
    if (bytes > limit) {
      Fail("message", absl::StrCat(bytes, " bytes; at most ", limit, " are accepted"));
    }
  }
  void Id(absl::string_view field, absl::string_view id) {
    if (id.size() != L::kIdBytes) {
      Fail(field, absl::StrCat(id.size(), " bytes; an id has ", L::kIdBytes));
    }
  }
  void OptionalId(absl::string_view field, absl::string_view id) {
    if (!id.empty()) Id(field, id);
  }
  void Text(absl::string_view field, absl::string_view text, size_t limit) {
    if (text.size() > limit) {
      Fail(field, absl::StrCat(text.size(), " bytes; at most ", limit, " are accepted"));
    }
  }
  void Required(absl::string_view field, absl::string_view text, size_t limit) {
    if (text.empty()) Fail(field, "is missing");
    Text(field, text, limit);
  }
  void Count(absl::string_view field, int64_t count, int64_t low, int64_t high) {
    if (count < low || count > high) {
      Fail(field, absl::StrCat(count, "; must be from ", low, " to ", high));
    }
  }
  void Positive(absl::string_view field, double value) {
    if (!std::isfinite(value) || value <= 0) {
      Fail(field, absl::StrCat(value, "; must be finite and above 0"));
    }
  }

 private:
  absl::Status status_;
};

void CheckFailure(Checker* check, const std::string& at, const v1::Failure& failure) {
  absl::StatusOr<FailureKind> kind = ParseFailureKind(failure.kind());
  if (!kind.ok()) check->Fail(absl::StrCat(at, ".kind"), kind.status().message());
  check->Text(absl::StrCat(at, ".text"), failure.text(), L::kFailureBytes);
}

void CheckFacts(Checker* check, const std::string& at, const v1::BuildFacts& facts) {
  check->Text(absl::StrCat(at, ".ir_digest"), facts.ir_digest(), L::kNameBytes);
  check->Text(absl::StrCat(at, ".assembly_digest"), facts.assembly_digest(), L::kNameBytes);
  check->Text(absl::StrCat(at, ".binary_digest"), facts.binary_digest(), L::kNameBytes);
  check->Count(absl::StrCat(at, ".resources"), facts.resources_size(), 0, L::kResources);
  for (const v1::Resource& resource : facts.resources()) {
    check->Required(absl::StrCat(at, ".resources.name"), resource.name(), L::kNameBytes);
  }
}

void CheckTrial(Checker* check, const std::string& at, const v1::TrialResult& trial,
                const v1::ReturnRequest& request) {
  check->Id(absl::StrCat(at, ".trial_id"), trial.trial_id());
  check->Required(absl::StrCat(at, ".schedule"), trial.schedule(), L::kScheduleBytes);
  check->OptionalId(absl::StrCat(at, ".session_id"), trial.session_id());
  if (!trial.session_id().empty() && trial.session_id() != request.session().session_id()) {
    check->Fail(absl::StrCat(at, ".session_id"), "is not the session of the request");
  }
  CheckFacts(check, absl::StrCat(at, ".facts"), trial.facts());
  check->Text(absl::StrCat(at, ".check"), trial.check(), L::kFailureBytes);
  check->Count(absl::StrCat(at, ".samples_seconds"), trial.samples_seconds_size(), 0, L::kSamples);
  for (double sample : trial.samples_seconds()) {
    check->Positive(absl::StrCat(at, ".samples_seconds"), sample);
  }
  if (trial.anchor_seconds() != 0) {
    check->Positive(absl::StrCat(at, ".anchor_seconds"), trial.anchor_seconds());
  }
  if (trial.has_failure()) {
    CheckFailure(check, absl::StrCat(at, ".failure"), trial.failure());
    if (trial.seconds() != 0) check->Fail(absl::StrCat(at, ".seconds"), "a failure has no time");
    if (!trial.same_as().empty())
      check->Fail(absl::StrCat(at, ".same_as"), "a failure has no twin");
  } else if (!trial.same_as().empty()) {
    check->Id(absl::StrCat(at, ".same_as"), trial.same_as());
    if (trial.same_as() == trial.trial_id()) {
      check->Fail(absl::StrCat(at, ".same_as"), "a trial is not its own twin");
    }
    if (trial.seconds() != 0) check->Fail(absl::StrCat(at, ".seconds"), "a twin was not run");
  } else {
    check->Positive(absl::StrCat(at, ".seconds"), trial.seconds());
    check->Positive(absl::StrCat(at, ".anchor_seconds"), trial.anchor_seconds());
    check->Id(absl::StrCat(at, ".session_id"), trial.session_id());
  }
}

void CheckFinals(Checker* check, const std::string& at, const v1::FinalsResult& finals,
                 const v1::ReturnRequest& request) {
  check->Id(absl::StrCat(at, ".trial_id"), finals.trial_id());
  check->OptionalId(absl::StrCat(at, ".session_id"), finals.session_id());
  if (!finals.session_id().empty() && finals.session_id() != request.session().session_id()) {
    check->Fail(absl::StrCat(at, ".session_id"), "is not the session of the request");
  }
  check->Count(absl::StrCat(at, ".entrants"), finals.entrants_size(), 0, L::kEntrants);
  if (finals.has_failure()) CheckFailure(check, absl::StrCat(at, ".failure"), finals.failure());
  for (int i = 0; i < finals.entrants_size() && check->ok(); ++i) {
    const v1::FinalsResult::Entrant& entrant = finals.entrants(i);
    const std::string of = absl::StrCat(at, ".entrants[", i, "]");
    check->Required(absl::StrCat(of, ".schedule"), entrant.schedule(), L::kScheduleBytes);
    CheckFacts(check, absl::StrCat(of, ".facts"), entrant.facts());
    check->Text(absl::StrCat(of, ".check"), entrant.check(), L::kFailureBytes);
    if (entrant.has_failure()) CheckFailure(check, absl::StrCat(of, ".failure"), entrant.failure());
    check->Count(absl::StrCat(of, ".round_seconds"), entrant.round_seconds_size(), 0, L::kRounds);
    for (double seconds : entrant.round_seconds()) {  // NaN: a dropped sample
      if (!std::isnan(seconds)) check->Positive(absl::StrCat(of, ".round_seconds"), seconds);
    }
  }
}

void CheckSession(Checker* check, const v1::SessionReport& session) {
  check->OptionalId("session.session_id", session.session_id());
  if (session.session_id().empty() && session.refusal().empty()) {
    check->Fail("session.session_id", "is missing");
  }
  check->Count("session.anchor_seconds", session.anchor_seconds_size(), 0, L::kSamples);
  for (double seconds : session.anchor_seconds())
    check->Positive("session.anchor_seconds", seconds);
  check->Text("session.anchor_schedule", session.anchor_schedule(), L::kScheduleBytes);
  check->Text("session.refusal", session.refusal(), L::kFailureBytes);
  check->Count("session.anchor_failures", session.anchor_failures_size(), 0, L::kItems);
  for (const v1::Failure& failure : session.anchor_failures()) {
    CheckFailure(check, "session.anchor_failures", failure);
  }
  if (!std::isfinite(session.reference_seconds()) || session.reference_seconds() < 0) {
    check->Fail("session.reference_seconds", "must be finite and not negative");
  }
}

void CheckFinalsSpec(Checker* check, const v1::Finals& finals) {
  check->Count("finals.schedules", finals.schedules_size(), 1, L::kEntrants);
  for (const std::string& schedule : finals.schedules()) {
    check->Required("finals.schedules", schedule, L::kScheduleBytes);
  }
  check->Count("finals.rounds", finals.rounds(), 1, L::kRounds);
  check->Count("finals.idle_ms", finals.idle_ms(), 0, L::kWaitMs);
}

}  // namespace

absl::StatusOr<uint32_t> NegotiateProtocol(uint32_t ours, uint32_t theirs) {
  if (theirs == 0 || (theirs != ours && theirs + 1 != ours)) {
    return absl::FailedPreconditionError(
        absl::StrCat("protocol version ", theirs, " of the worker; this coordinator speaks ", ours,
                     ours > 1 ? absl::StrCat(" and ", ours - 1) : std::string()));
  }
  return theirs;
}

absl::Status CheckRequest(const v1::EnrolRequest& request) {
  Checker check;
  check.Message(request.ByteSizeLong(), L::kControlBytes);
  check.Required("toolchain_id", request.toolchain_id(), L::kNameBytes);
  check.Required("device_uuid", request.device_uuid(), L::kNameBytes);
  check.Required("target_text", request.target_text(), L::kScheduleBytes);
  check.Text("timer", request.timer(), L::kNameBytes);
  check.Text("driver", request.driver(), L::kNameBytes);
  check.Text("worker_name", request.worker_name(), L::kNameBytes);
  check.Id("worker_nonce", request.worker_nonce());
  return check.status();
}

absl::Status CheckRequest(const v1::LeaseRequest& request) {
  Checker check;
  check.Message(request.ByteSizeLong(), L::kControlBytes);
  check.Id("enrolment_id", request.enrolment_id());
  check.Count("max_items", request.max_items(), 1, L::kItems);
  check.Count("wait_ms", request.wait_ms(), 0, L::kWaitMs);
  check.Count("held", request.held_size(), 0, L::kItems);
  return check.status();
}

absl::Status CheckRequest(const v1::BuiltRequest& request) {
  Checker check;
  check.Message(request.ByteSizeLong(), L::kControlBytes);
  check.Id("enrolment_id", request.enrolment_id());
  check.Id("run_id", request.run_id());
  check.Id("trial_id", request.trial_id());
  CheckFacts(&check, "facts", request.facts());
  return check.status();
}

absl::Status CheckRequest(const v1::RenewRequest& request) {
  Checker check;
  check.Message(request.ByteSizeLong(), L::kControlBytes);
  check.Id("enrolment_id", request.enrolment_id());
  check.Count("epochs", request.epochs_size(), 0, L::kItems);
  return check.status();
}

absl::Status CheckRequest(const v1::ReturnRequest& request) {
  Checker check;
  check.Message(request.ByteSizeLong(), L::kResultBytes);
  check.Id("enrolment_id", request.enrolment_id());
  const bool of_run = request.trials_size() + request.finals_size() + request.released_size() > 0 ||
                      request.has_session();
  if (of_run) check.Id("run_id", request.run_id());
  check.Count("trials", request.trials_size(), 0, L::kItems);
  check.Count("finals", request.finals_size(), 0, L::kItems);
  check.Count("released", request.released_size(), 0, L::kItems);
  if (request.has_session()) CheckSession(&check, request.session());
  for (int i = 0; i < request.trials_size() && check.ok(); ++i) {
    CheckTrial(&check, absl::StrCat("trials[", i, "]"), request.trials(i), request);
  }
  for (int i = 0; i < request.finals_size() && check.ok(); ++i) {
    CheckFinals(&check, absl::StrCat("finals[", i, "]"), request.finals(i), request);
  }
  for (const std::string& id : request.released()) check.Id("released", id);
  return check.status();
}

absl::Status CheckRunSpec(const v1::RunSpec& spec) {
  Checker check;
  check.Message(spec.ByteSizeLong(), L::kControlBytes);
  check.Id("run_id", spec.run_id());
  check.Required("workload_text", spec.workload_text(), L::kWorkloadBytes);
  check.Required("target_text", spec.target_text(), L::kScheduleBytes);
  check.Text("regime_text", spec.regime_text(), L::kNameBytes);
  check.Required("anchor_schedule", spec.anchor_schedule(), L::kScheduleBytes);
  check.Count("build_timeout_ms", spec.build_timeout_ms(), 1, 3600 * 1000);
  check.Count("run_timeout_ms", spec.run_timeout_ms(), 1, 3600 * 1000);
  check.Count("at_sizes", spec.at_sizes_size(), 0, L::kItems);
  for (int64_t size : spec.at_sizes()) check.Count("at_sizes", size, 1, INT64_MAX);
  return check.status();
}

absl::Status CheckWorkItem(const v1::WorkItem& item) {
  Checker check;
  check.OptionalId("trial_id", item.trial_id());
  if (item.has_screen()) {
    check.Required("screen.schedule", item.screen().schedule(), L::kScheduleBytes);
  } else if (item.has_finals()) {
    CheckFinalsSpec(&check, item.finals());
  } else {
    check.Fail("work", "is missing; must be screen or finals");
  }
  return check.status();
}

absl::Status CheckPlaintextAddress(std::string_view text) {
  const absl::string_view address(text.data(), text.size());
  constexpr absl::string_view kAccepted =
      "plaintext is for this machine only: unix:PATH, localhost:PORT, 127.x.x.x:PORT or "
      "[::1]:PORT; "
      "other addresses need TLS, which this version does not speak";
  if (absl::StartsWith(address, "unix:")) {
    constexpr size_t kSunPath = 107;  // sockaddr_un::sun_path without its terminator, unix(7)
    const absl::string_view path = address.substr(5);
    if (path.empty() || path.size() > kSunPath) {
      return Bad(address, absl::StrCat("a socket's path has 1 to ", kSunPath, " bytes"));
    }
    return absl::OkStatus();
  }
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return Bad(address, kAccepted);
  }
  const absl::string_view host = address.substr(0, colon);
  if (host == "localhost" || host == "[::1]") return absl::OkStatus();
  const std::vector<absl::string_view> bytes = absl::StrSplit(host, '.');
  bool loopback = bytes.size() == 4 && bytes[0] == "127";
  for (absl::string_view byte : bytes) {
    int value = 0;
    loopback = loopback && absl::SimpleAtoi(byte, &value) && value >= 0 && value <= 255;
  }
  return loopback ? absl::OkStatus() : Bad(address, kAccepted);
}

std::string NewRandomId() {
  std::string id(L::kIdBytes, '\0');
  // The system's generator does not fail on Linux once it is seeded, which it is before any user
  // process.
  if (RAND_bytes(reinterpret_cast<unsigned char*>(id.data()), static_cast<int>(id.size())) != 1) {
    std::abort();
  }
  return id;
}

std::string IdToHex(std::string_view id) {
  return absl::BytesToHexString(absl::string_view(id.data(), id.size()));
}

std::string CleanText(std::string_view text, size_t limit) {
  std::string clean;
  clean.reserve(std::min(text.size(), limit));
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    // Length of a well-formed sequence by its lead byte, RFC 3629 section 4.
    size_t length = lead < 0x80   ? 1
                    : lead < 0xC2 ? 0
                    : lead < 0xE0 ? 2
                    : lead < 0xF0 ? 3
                    : lead < 0xF5 ? 4
                                  : 0;
    bool good = length > 0 && i + length <= text.size();
    for (size_t k = 1; good && k < length; ++k) {
      good = (static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80;
    }
    if (good && length >= 3) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      good = !(lead == 0xE0 && second < 0xA0) && !(lead == 0xED && second > 0x9F) &&
             !(lead == 0xF0 && second < 0x90) && !(lead == 0xF4 && second > 0x8F);
    }
    if (!good) length = 1;
    constexpr size_t kNoteBytes = 40;
    if (clean.size() + length + kNoteBytes > limit && text.size() - i + clean.size() > limit) {
      absl::StrAppend(&clean, "… (", text.size() - i, " more bytes)");
      break;
    }
    if (good) {
      clean.append(text.substr(i, length));
    } else {
      clean.push_back('?');
    }
    i += length;
  }
  return clean;
}

}  // namespace tilewright
