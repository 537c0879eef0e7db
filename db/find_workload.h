// A person's word for a workload of the log.
#ifndef TILEWRIGHT_DB_FIND_WORKLOAD_H_
#define TILEWRIGHT_DB_FIND_WORKLOAD_H_

#include <string>

#include "absl/status/statusor.h"
#include "db/database.h"

namespace tilewright {

// The key of the workload that `word` names: its name or source as it stands, or the beginning of
// its key, six digits or more. NotFound: there is none; InvalidArgument: it fits several, which are
// listed.
absl::StatusOr<std::string> FindWorkloadKey(Database& log, const std::string& word);

}  // namespace tilewright

#endif  // TILEWRIGHT_DB_FIND_WORKLOAD_H_
