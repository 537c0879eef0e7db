// What the records of one device say about another, on recorded spaces: `simulate --transfer-from`.
//
// A run that transfers begins with the best schedules of the other device, each measured here (a
// single copied best may be far from good), and with a model that was trained there. In `tune` the
// same comes from the log: starts.h, model_surrogate.h.
#ifndef TILEWRIGHT_SEARCH_TRANSFER_H_
#define TILEWRIGHT_SEARCH_TRANSFER_H_

#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "search/recorded_space.h"
#include "search/search_state.h"

namespace tilewright {

struct Transfer {
  std::vector<absl::uint128> best;  // in `to`, the best of `from` first
  std::vector<Result> known;        // of `from`, by schedules of `to`; costs over the best's
};

struct TransferOptions {
  int best = 50;
  int most_known = 1000;  // rows to learn from, evenly spaced over the other space
};

// InvalidArgument: the spaces have no schedule in common.
absl::StatusOr<Transfer> TransferBetween(const RecordedSpace& from, const RecordedSpace& to,
                                         const TransferOptions& options);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_TRANSFER_H_
