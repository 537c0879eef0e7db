// A workbench without a device: what a candidate comes to stands in its schedule.
//
//   fake{us=120}                      takes 120 microseconds a call
//   fake{us=120 fail=wrong_output}    fails when it is run (`_`: a blank in the kind's name)
//   fake{us=120 build=build_failed}   does not build
//   fake{us=120 digest=7}             has the same kernel as every other one with digest=7
//   fake{us=120 sleep_ms=50}          occupies the device for 50 ms
//   fake{us=120 die=/tmp/x}           kills this process when run, unless the file exists
//   fake{us=120 die=always}           … every time
//   fake{us=120 lost=1}               fails with `device lost` and quarantines the device
#ifndef TILEWRIGHT_TESTS_FAKES_FAKE_WORKBENCH_H_
#define TILEWRIGHT_TESTS_FAKES_FAKE_WORKBENCH_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "measure/measure.pb.h"
#include "measure/workbench.h"
#include "measure/worker.h"

namespace tilewright {

// What fake workbenches did, together. Thread-safe.
class FakeBenchLog {
 public:
  void CountScreen(const std::string& schedule);
  int screens(const std::string& schedule) const;
  int screens() const;
  void CountBuilds(int count);
  // The most schedules that were built and not yet screened when another was screened.
  int most_built_ahead() const;

  // May be set before work begins: what OpenSession and builds_ahead answer.
  std::function<absl::Status(const SessionSpec&)> open_session;
  bool builds_ahead = false;

 private:
  mutable std::mutex mutex_;  // guards what follows
  int built_ = 0;
  int screened_ = 0;
  int most_ahead_ = 0;
  std::map<std::string, int> screens_;
};

// `log` may be null; else it outlives the workbench.
std::unique_ptr<Workbench> NewFakeWorkbench(FakeBenchLog* log);

// Parts for RunWorker: device number `device` of the one fake kind.
WorkerParts FakeWorkerParts(int device, FakeBenchLog* log);
Target FakeTarget();
inline constexpr char kFakeToolchain[] = "fake toolchain 1";

// A run of an 8 x 8 x 8 matmul on the fake kind, with the anchor fake{us=100}.
v1::RunSpec FakeRunSpec(const std::string& run_id);

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_FAKES_FAKE_WORKBENCH_H_
