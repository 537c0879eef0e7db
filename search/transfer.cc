#include "search/transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilewright {

absl::StatusOr<Transfer> TransferBetween(const RecordedSpace& from, const RecordedSpace& to,
                                         const TransferOptions& options) {
  struct Shared {
    absl::uint128 index;  // in `to`
    const RecordedConfiguration* there;
  };
  std::vector<Shared> shared;
  for (absl::uint128 i = 0; i < from.Count(); ++i) {
    const RecordedConfiguration& there = from.configuration(i);
    const absl::StatusOr<absl::uint128> here = to.IndexOf(there.schedule);
    if (here.ok()) shared.push_back({*here, &there});
  }
  if (shared.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nothing to transfer: none of the other space's ", absl::Uint128Low64(from.Count()),
        " configurations has the decisions and values of one of this space's"));
  }
  Transfer transfer;
  const size_t most = std::max(1, options.most_known);
  const size_t step = std::max<size_t>(1, (shared.size() + most - 1) / most);
  const double best = from.ascending_milliseconds().empty() ? 1 : from.ascending_milliseconds()[0];
  for (size_t i = 0; i < shared.size(); i += step) {
    Result result{.index = shared[i].index, .session = "transferred"};
    if (shared[i].there->milliseconds) result.cost = *shared[i].there->milliseconds / best;
    transfer.known.push_back(std::move(result));
  }
  std::erase_if(shared, [](const Shared& one) { return !one.there->milliseconds; });
  std::stable_sort(shared.begin(), shared.end(), [](const Shared& a, const Shared& b) {
    return *a.there->milliseconds < *b.there->milliseconds;
  });
  for (size_t i = 0; i < std::min<size_t>(options.best, shared.size()); ++i)
    transfer.best.push_back(shared[i].index);
  return transfer;
}

}  // namespace tilewright
