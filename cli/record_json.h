// Records of the log as one line of JSON each, for --json.
#ifndef TILEWRIGHT_CLI_RECORD_JSON_H_
#define TILEWRIGHT_CLI_RECORD_JSON_H_

#include <string>

#include "db/database.h"

namespace tilewright {

std::string TrialJson(const TrialRow& trial);
std::string VerdictJson(const VerdictRow& verdict);
std::string RunJson(const RunRow& run);
std::string WorkloadJson(const WorkloadRow& workload);
std::string BestJson(const std::string& title, const BestAnswer& best);

}  // namespace tilewright

#endif  // TILEWRIGHT_CLI_RECORD_JSON_H_
