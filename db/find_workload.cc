#include "db/find_workload.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {

absl::StatusOr<std::string> FindWorkloadKey(Database& log, const std::string& word) {
  absl::StatusOr<std::vector<WorkloadRow>> rows = log.ListWorkloads();
  if (!rows.ok()) return rows.status();
  std::vector<std::string> keys;
  for (const WorkloadRow& row : *rows) {
    const bool fits = row.name == word || row.source == word ||
                      (word.size() >= 6 && absl::StartsWith(row.key, word));
    if (fits && std::find(keys.begin(), keys.end(), row.key) == keys.end()) keys.push_back(row.key);
  }
  if (keys.empty()) {
    return absl::NotFoundError(absl::StrCat("no workload in the log is named `", word,
                                            "` or has a key that begins so (6 digits "
                                            "or more); `tilewright query workloads` lists them"));
  }
  if (keys.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("`", word, "` fits ", keys.size(),
                                                   " workloads (", absl::StrJoin(keys, ", "),
                                                   "); give a key"));
  }
  return keys[0];
}

}  // namespace tilewright
