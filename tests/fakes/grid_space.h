// A space that is a plain grid: every combination of d0 in 0 … sizes[0]-1, d1 in 0 … sizes[1]-1, …
// is legal. For tests of what sees the Space interface only.
#ifndef TILEWRIGHT_TESTS_FAKES_GRID_SPACE_H_
#define TILEWRIGHT_TESTS_FAKES_GRID_SPACE_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "schedule/space.h"

namespace tilewright {

class GridSpace : public Space {
 public:
  explicit GridSpace(std::vector<int> sizes) : sizes_(std::move(sizes)) {
    count_ = 1;
    for (int size : sizes_) count_ *= size;
    parts_ = {{"grid", 0, count_}};
  }

  absl::uint128 Count() const override { return count_; }
  absl::Span<const Part> Parts() const override { return parts_; }

  std::vector<int> Point(absl::uint128 index) const {
    std::vector<int> point(sizes_.size());
    for (size_t d = sizes_.size(); d-- > 0;) {
      point[d] = static_cast<int>(absl::Uint128Low64(index % sizes_[d]));
      index /= sizes_[d];
    }
    return point;
  }
  absl::uint128 Index(const std::vector<int>& point) const {
    absl::uint128 index = 0;
    for (size_t d = 0; d < sizes_.size(); ++d) index = index * sizes_[d] + point[d];
    return index;
  }

  Schedule At(absl::uint128 index) const override {
    Schedule schedule{"grid", {}};
    const std::vector<int> point = Point(index);
    for (size_t d = 0; d < point.size(); ++d) {
      schedule.decisions.emplace_back(absl::StrCat("d", d), absl::StrCat(point[d]));
    }
    return schedule;
  }
  absl::StatusOr<absl::uint128> IndexOf(const Schedule& schedule) const override {
    std::vector<int> point;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      const std::string* token = schedule.Find(absl::StrCat("d", d));
      int value = -1;
      if (token == nullptr || !absl::SimpleAtoi(*token, &value) || value < 0 ||
          value >= sizes_[d]) {
        return absl::InvalidArgumentError(absl::StrCat("d", d, " is not in the grid"));
      }
      point.push_back(value);
    }
    return Index(point);
  }
  std::vector<absl::uint128> Neighbours(absl::uint128 index) const override {
    std::vector<absl::uint128> neighbours;
    const std::vector<int> point = Point(index);
    for (size_t d = 0; d < sizes_.size(); ++d) {
      for (int value = 0; value < sizes_[d]; ++value) {
        if (value == point[d]) continue;
        std::vector<int> moved = point;
        moved[d] = value;
        neighbours.push_back(Index(moved));
      }
    }
    std::sort(neighbours.begin(), neighbours.end());
    return neighbours;
  }

 private:
  std::vector<int> sizes_;
  absl::uint128 count_;
  std::vector<Part> parts_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_FAKES_GRID_SPACE_H_
