// What was built for a workload and may be wanted again: with its first candidates, before its
// session is opened, the session's own kernels, so that opening a session waits for no builder; and
// the candidates, of which the anchor opens the session and the best enter the finals.
//
// Of the newest workload only, and of its candidates the newest whose code is kMostKeptBytes
// together. Thread-safe: one thread builds ahead while another measures.
#ifndef TILEWRIGHT_MEASURE_BUILT_AHEAD_H_
#define TILEWRIGHT_MEASURE_BUILT_AHEAD_H_

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "measure/measure.pb.h"
#include "measure/workbench.h"
#include "schedule/workload.h"

namespace tilewright {

class BuiltAhead {
 public:
  static constexpr int64_t kMostKeptBytes = int64_t{64} << 20;

  // True for a workload that is not the newest, which it then is: what is built for it from now on
  // shall be kept.
  bool Begin(const Workload& workload);

  // Keeps a candidate that was built; one that was not is forgotten.
  void Keep(const Workload& workload, const std::string& schedule, const BuildOutcome& outcome);
  bool Find(const Workload& workload, const std::string& schedule, BuildOutcome* outcome) const;

  void KeepSession(const Workload& workload, std::vector<v1::BuiltKernel> built);
  // As they were kept. Empty: they were not, or one failed, so that the session tries again and
  // says why.
  std::vector<v1::BuiltKernel> Session(const Workload& workload) const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::string workload_;      // canonical text
  std::vector<v1::BuiltKernel> session_;
  std::map<std::string, BuildOutcome> kernels_;  // by schedule
  std::deque<std::string> order_;                // schedules of kernels_, the oldest first
  int64_t kept_bytes_ = 0;                       // of their code
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_BUILT_AHEAD_H_
