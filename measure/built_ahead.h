// What was built with a workload's first candidates, before its session is opened: the session's
// own kernels, and the candidates, the anchor mostly among them. So opening a session waits for no
// builder, while the next candidates have them all.
//
// Of the newest workload only. Thread-safe: one thread builds ahead while another measures.
#ifndef TILEWRIGHT_MEASURE_BUILT_AHEAD_H_
#define TILEWRIGHT_MEASURE_BUILT_AHEAD_H_

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
  // True for a workload that is not the newest, which it then is: what is built for it now shall be
  // kept.
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
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_BUILT_AHEAD_H_
