// What a tune shows while it works and when it is done.
#ifndef TILEWRIGHT_CLI_TUNE_REPORT_H_
#define TILEWRIGHT_CLI_TUNE_REPORT_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "search/tuner.h"

namespace tilewright {

// One line on standard error: rewritten in place on a terminal, else a new line every five seconds.
class ProgressLine {
 public:
  ProgressLine(std::string title, int number, int of, bool enabled);
  void Show(const TuneProgress& progress);
  // Leaves the last state on its line.
  void Finish();

 private:
  std::string title_;
  std::string prefix_;
  bool enabled_;
  bool terminal_;
  bool shown_ = false;
  absl::Time next_ = absl::InfinitePast();
};

// False if nothing was measured, in this run or in what it resumed.
bool HasBest(const TuneReport& report);
// The final table, the verdict and the command that replays the winner.
std::string ReportText(const TuneReport& report, const std::string& title, const std::string& db);
// How workloads shared a budget: what each got, and why; and what the program spends in each.
// `reports` by the tasks' order. "" if no report has a share.
std::string SharesText(const std::map<size_t, TuneReport>& reports);
// The report as one line of JSON.
std::string ReportJson(const TuneReport& report);

}  // namespace tilewright

#endif  // TILEWRIGHT_CLI_TUNE_REPORT_H_
