// A CommitSink in memory, with faults on request. What it stored outlives it and its coordinator,
// as a file does.
#ifndef TILEWRIGHT_TESTS_FAKES_MEMORY_SINK_H_
#define TILEWRIGHT_TESTS_FAKES_MEMORY_SINK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "search/commit_sink.h"

namespace tilewright {

// The "file". Thread-safe.
class MemoryLog {
 public:
  struct Stored {
    v1::TrialResult result;
    std::string late_reason;
  };
  // Asked before (`after` false) and after each commit; an error is returned to the coordinator,
  // which after the commit means that everything is stored although it seems to have failed.
  void SetFault(std::function<absl::Status(bool after)> fault);

  std::map<std::pair<std::string, std::string>, Stored> trials() const;  // by run and schedule
  std::vector<Stored> late() const;
  std::map<std::string, v1::SessionReport> sessions() const;
  std::vector<Proposal> proposals() const;
  int commits() const;
  std::string run_state(const std::string& run_id) const;

 private:
  friend class MemorySink;
  mutable absl::Mutex mutex_;
  std::function<absl::Status(bool)> fault_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int commits_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<std::string, std::string>, Stored> trials_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, bool> ids_ ABSL_GUARDED_BY(mutex_);  // of every stored trial
  std::vector<Stored> late_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, v1::SessionReport> sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<Proposal> proposals_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> run_states_ ABSL_GUARDED_BY(mutex_);
};

std::unique_ptr<CommitSink> NewMemorySink(MemoryLog* log);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_FAKES_MEMORY_SINK_H_
