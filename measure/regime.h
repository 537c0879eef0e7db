// A Regime is what is measured, part of a record's identity: `cache=cold chain=plain data=normal
// at=t:8192`.
#ifndef TILEWRIGHT_MEASURE_REGIME_H_
#define TILEWRIGHT_MEASURE_REGIME_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schedule/workload.h"

namespace tilewright {

struct Regime {
  enum class Cache {
    kCold,
    kWarm
  };  // rotated inputs (>= 2.5 times the last-level cache), or one set again and again
  enum class Chain { kPlain, kDependent };  // dependent launch; a CPU has plain only
  enum class Data { kNormal };              // normal random values
  Cache cache = Cache::kCold;
  Chain chain = Chain::kPlain;
  Data data = Data::kNormal;
  Sizes at;  // sizes to measure at, by canonical index number

  // All words in fixed order; `at=` names canonical indices that are ranged and is left out if none
  // is.
  std::string ToString(const Workload& workload) const;
  bool operator==(const Regime&) const = default;
};

// Words in any order, each with its default; `at=` is left to the caller (ParseSizesAt).
// InvalidArgument names the word and what is accepted.
absl::StatusOr<Regime> ParseRegime(std::string_view text, const Workload& workload);

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_REGIME_H_
