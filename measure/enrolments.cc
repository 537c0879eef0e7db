#include "measure/enrolments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "measure/protocol.h"

namespace tilewright {
namespace {

// Ended enrolments, and owners, that are remembered per device.
constexpr size_t kRememberedEnrolments = 16;
constexpr size_t kRememberedOwners = 64;

}  // namespace

Enrolments::Enrolled Enrolments::Enrol(const v1::EnrolRequest& request, absl::Time now,
                                       const std::function<std::string()>& new_id) {
  std::optional<std::string> superseded;
  for (auto& [id, entry] : entries_) {
    if (entry.enrolment.device_uuid != request.device_uuid() ||
        entry.state != Entry::State::kLive) {
      continue;
    }
    if (entry.nonce == request.worker_nonce() &&
        entry.enrolment.target_text == request.target_text() &&
        entry.enrolment.toolchain_id == request.toolchain_id()) {
      entry.last_seen = now;
      return {id, std::nullopt};
    }
    entry.state = Entry::State::kSuperseded;
    superseded = id;
  }
  if (superseded.has_value()) Remember(request.device_uuid(), *superseded);
  const std::string id = new_id();
  Entry& entry = entries_[id];
  entry.enrolment = {id, request.device_uuid(), request.target_text(), request.toolchain_id()};
  entry.nonce = request.worker_nonce();
  entry.last_seen = now;
  std::vector<Owner>& owners = owners_[request.device_uuid()];
  if (owners.empty() || owners.back().nonce != entry.nonce) owners.push_back({now, entry.nonce});
  if (owners.size() > kRememberedOwners) owners.erase(owners.begin());
  return {id, superseded};
}

void Enrolments::Leave(const std::string& id) {
  Entry* entry = Find(id);
  if (entry == nullptr) return;
  if (entry->state == Entry::State::kLive) entry->state = Entry::State::kLeft;
  Remember(entry->enrolment.device_uuid, id);
}

Enrolments::Entry* Enrolments::Find(const std::string& id) {
  auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

const Enrolments::Entry* Enrolments::Find(const std::string& id) const {
  auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

absl::Status Enrolments::CheckLive(const std::string& id) const {
  const Entry* entry = Find(id);
  if (entry == nullptr || entry->state == Entry::State::kLeft) {
    return absl::NotFoundError(
        absl::StrCat("enrolment ", IdToHex(id), " is not known; enrol again"));
  }
  if (entry->state == Entry::State::kSuperseded) {
    return absl::FailedPreconditionError(absl::StrCat("enrolment ", IdToHex(id),
                                                      " is superseded: another worker has device ",
                                                      entry->enrolment.device_uuid));
  }
  return absl::OkStatus();
}

bool Enrolments::WasSuperseded(const std::string& id, std::optional<absl::Time> measured) const {
  const Entry* entry = Find(id);
  if (entry == nullptr) return true;
  auto owners = owners_.find(entry->enrolment.device_uuid);
  if (owners == owners_.end()) return false;
  const Owner* owner = nullptr;
  for (const Owner& candidate : owners->second) {
    if (!measured.has_value() || candidate.since <= *measured) owner = &candidate;
  }
  return owner != nullptr && owner->nonce != entry->nonce;
}

std::vector<LeaseBook::Enrolment> Enrolments::Live() const {
  std::vector<LeaseBook::Enrolment> live;
  for (const auto& [id, entry] : entries_) {
    if (entry.state == Entry::State::kLive) live.push_back(entry.enrolment);
  }
  return live;
}

std::vector<std::string> Enrolments::SilentSince(absl::Time last) const {
  std::vector<std::string> silent;
  for (const auto& [id, entry] : entries_) {
    if (entry.state == Entry::State::kLive && entry.last_seen <= last) silent.push_back(id);
  }
  return silent;
}

absl::Time Enrolments::EarliestSeen() const {
  absl::Time earliest = absl::InfiniteFuture();
  for (const auto& [id, entry] : entries_) {
    if (entry.state == Entry::State::kLive) earliest = std::min(earliest, entry.last_seen);
  }
  return earliest;
}

void Enrolments::Remember(const std::string& device_uuid, const std::string& id) {
  std::deque<std::string>& ended = ended_[device_uuid];
  if (std::find(ended.begin(), ended.end(), id) != ended.end()) return;
  ended.push_back(id);
  if (ended.size() <= kRememberedEnrolments) return;
  entries_.erase(ended.front());
  ended.pop_front();
}

}  // namespace tilewright
