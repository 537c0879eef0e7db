#include "search/batch_search.h"

#include <algorithm>
#include <utility>

namespace tilewright {

BatchSearch::BatchSearch(const StrategyContext& context)
    : space_(*context.space),
      random_(context.seed),
      starts_(context.starts.begin(), context.starts.end()),
      proposals_(context.space) {}

std::vector<absl::uint128> BatchSearch::Propose(int count) {
  std::vector<absl::uint128> batch;
  while (static_cast<int>(batch.size()) < count) {
    std::optional<absl::uint128> next;
    if (!starts_.empty()) {
      next = starts_.front();
      starts_.pop_front();
      if (proposals_.Contains(*next)) continue;
    } else {
      next = Next();
      if (!next || proposals_.Contains(*next)) next = UniformDraw();
      if (!next) break;
    }
    proposals_.Take(*next);
    batch.push_back(*next);
  }
  return batch;
}

void BatchSearch::Observe(const Observation& observation) {
  proposals_.Take(observation.index);
  Learn(observation);
}

uint64_t BatchSearch::Below(uint64_t bound) {
  return absl::Uint128Low64(UniformIndex(random_, bound));
}

double BatchSearch::Uniform01() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

std::optional<absl::uint128> BatchSearch::UniformDraw() {
  return proposals_.Sample(random_, 0, space_.Count());
}

std::vector<absl::uint128> BatchSearch::NewNeighbours(absl::uint128 index) {
  std::vector<absl::uint128> neighbours = space_.Neighbours(index);
  std::erase_if(neighbours, [&](absl::uint128 other) { return proposals_.Contains(other); });
  Shuffle(&neighbours);
  return neighbours;
}

std::optional<absl::uint128> BatchSearch::Walk(absl::uint128 index, int steps) {
  for (int step = 0; step < steps; ++step) {
    const std::vector<absl::uint128> neighbours = space_.Neighbours(index);
    if (neighbours.empty()) return std::nullopt;
    index = neighbours[Below(neighbours.size())];
  }
  if (proposals_.Contains(index)) return std::nullopt;
  return index;
}

std::optional<absl::uint128> BatchSearch::Cross(absl::uint128 a, absl::uint128 b, double share) {
  Schedule child = space_.At(a);
  const Schedule other = space_.At(b);
  if (child.variant != other.variant) return std::nullopt;
  for (auto& [name, token] : child.decisions) {
    const std::string* theirs = other.Find(name);
    if (theirs != nullptr && Uniform01() < share) token = *theirs;
  }
  const absl::StatusOr<absl::uint128> index = space_.IndexOf(child);
  if (!index.ok()) return std::nullopt;
  return *index;
}

int IntegerParameter(const StrategyContext& context, const char* name, int least) {
  // Far below what an int holds, whatever was typed.
  return static_cast<int>(std::clamp<double>(context.parameters.at(name), least, 1e9));
}

}  // namespace tilewright
