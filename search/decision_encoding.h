// Schedules as points, for models that learn from the decisions alone.
//
// Every number is scaled to [0, 1]. A decision whose values are positive numbers is their
// logarithm, since tile sizes matter by their ratio; one with negative values, or zero among
// others, stays close to it. Where the values are whole numbers but not all powers of two there is
// a second column, the logarithm of the odd part: 48 and 64 are close in size but differ in how
// they divide rows, banks and warps. Labels become one column each, as do the variants of a union.
// A decision that a schedule lacks reads as the middle of its range, with a flag beside it.
//
// What columns there are is learned from a seeded sample of the space, through the Space interface,
// so a recorded space works like a workload's. Not thread-safe.
#ifndef TILEWRIGHT_SEARCH_DECISION_ENCODING_H_
#define TILEWRIGHT_SEARCH_DECISION_ENCODING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "costmodel/booster.h"
#include "schedule/space.h"

namespace tilewright {

class DecisionEncoding {
 public:
  // Borrows the space. Precondition: it is not empty.
  DecisionEncoding(const Space* space, uint64_t seed);
  int columns() const { return columns_; }
  // Precondition: index < Count(). Valid until the next call.
  const std::vector<float>& Row(absl::uint128 index);
  DenseMatrix Rows(absl::Span<const absl::uint128> indices);

 private:
  struct Axis {
    enum class Scale { kLinear, kLogarithm, kLogarithmOfOnePlus, kLabels };
    Scale scale = Scale::kLinear;
    int column = 0;
    double least = 0, range = 1;  // of the scaled value
    bool has_odd_part = false;    // in the next column
    double odd_range = 1;
    std::map<std::string, int> labels;  // to columns; those not in the sample have none
    int absent_column = -1;             // -1: present in every schedule of the sample
  };
  static double ScaledValue(const Axis& axis, double value);
  void AddAxis(const std::string& name, const std::map<std::string, int>& counts, bool may_lack);
  std::vector<float> Encode(const Schedule& schedule) const;

  const Space& space_;
  std::map<std::string, Axis> axes_;     // by decision
  std::map<std::string, int> variants_;  // to columns; empty if there is one
  int columns_ = 0;
  absl::flat_hash_map<absl::uint128, std::vector<float>> rows_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_DECISION_ENCODING_H_
