// A CommitSink in memory, with faults on request. What it stored outlives it and its coordinator,
// as a file does.
#ifndef TILEWRIGHT_TESTS_FAKES_MEMORY_SINK_H_
#define TILEWRIGHT_TESTS_FAKES_MEMORY_SINK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

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
  mutable std::mutex mutex_;  // guards all that follows
  std::function<absl::Status(bool)> fault_;
  uint64_t generation_ = 0;
  int commits_ = 0;
  std::map<std::pair<std::string, std::string>, Stored> trials_;
  std::map<std::string, bool> ids_;  // of every stored trial
  std::vector<Stored> late_;
  std::map<std::string, v1::SessionReport> sessions_;
  std::vector<Proposal> proposals_;
  std::map<std::string, std::string> run_states_;
};

std::unique_ptr<CommitSink> NewMemorySink(MemoryLog* log);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_FAKES_MEMORY_SINK_H_
