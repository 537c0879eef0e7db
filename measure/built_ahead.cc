#include "measure/built_ahead.h"

#include <utility>

namespace tilewright {
namespace {

int64_t CodeBytes(const BuildOutcome& outcome) {
  int64_t bytes = 0;
  for (const CodeObject& object : outcome.kernel->objects)
    bytes += static_cast<int64_t>(object.bytes.size());
  return bytes;
}

}  // namespace

bool BuiltAhead::Begin(const Workload& workload) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (workload_ == workload.canonical_text()) return false;
  workload_ = workload.canonical_text();
  session_.clear();
  kernels_.clear();
  order_.clear();
  kept_bytes_ = 0;
  return true;
}

void BuiltAhead::Keep(const Workload& workload, const std::string& schedule,
                      const BuildOutcome& outcome) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (workload_ != workload.canonical_text() || !outcome.kernel) return;
  if (!kernels_.emplace(schedule, outcome).second) return;
  order_.push_back(schedule);
  kept_bytes_ += CodeBytes(outcome);
  while (kept_bytes_ > kMostKeptBytes) {
    const auto oldest = kernels_.find(order_.front());
    kept_bytes_ -= CodeBytes(oldest->second);
    kernels_.erase(oldest);
    order_.pop_front();
  }
}

bool BuiltAhead::Find(const Workload& workload, const std::string& schedule,
                      BuildOutcome* outcome) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = kernels_.find(schedule);
  if (workload_ != workload.canonical_text() || found == kernels_.end()) return false;
  *outcome = found->second;
  return true;
}

void BuiltAhead::KeepSession(const Workload& workload, std::vector<v1::BuiltKernel> built) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (workload_ == workload.canonical_text()) session_ = std::move(built);
}

std::vector<v1::BuiltKernel> BuiltAhead::Session(const Workload& workload) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (workload_ != workload.canonical_text()) return {};
  for (const v1::BuiltKernel& built : session_) {
    if (built.has_failure()) return {};
  }
  return session_;
}

}  // namespace tilewright
