// A Space is a finite, indexed set of schedules: what a search strategy sees, whether the space is
// a workload's or was read from a file of recorded measurements.
//
// Everything is exact: Count() is the number of legal schedules, At() and IndexOf() are inverse to
// each other, Sample() is uniform. Immutable; safe to share between threads.
#ifndef TILEWRIGHT_SCHEDULE_SPACE_H_
#define TILEWRIGHT_SCHEDULE_SPACE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/schedule.h"

namespace tilewright {

class Space {
 public:
  virtual ~Space() = default;
  virtual absl::uint128 Count() const = 0;
  // Precondition: index < Count().
  virtual Schedule At(absl::uint128 index) const = 0;
  // InvalidArgument: not a schedule of this space; names the constraint and its numbers where one
  // is violated, or the unknown variant, decision or value and what would be accepted.
  virtual absl::StatusOr<absl::uint128> IndexOf(const Schedule& schedule) const = 0;
  // Every legal schedule got by changing one present decision; decisions that vanish are dropped,
  // those that appear take their first legal value. Sorted by index, without duplicates, without
  // `index` itself.
  virtual std::vector<absl::uint128> Neighbours(absl::uint128 index) const = 0;
  // The names of the variants in the union, and the half-open index range of each.
  struct Part {
    std::string variant;
    absl::uint128 begin;
    absl::uint128 end;
  };
  virtual absl::Span<const Part> Parts() const = 0;
};

// Uniform in [0, bound) for any 128-bit bound, the same on every platform (rejection, no
// std::uniform_int_distribution).
absl::uint128 UniformIndex(std::mt19937_64& random, absl::uint128 bound);

// ---- How a variant states its space
// -------------------------------------------------------------------------

struct DecisionValue {
  int64_t number;     // what constraints and plans compute with
  std::string token;  // what the text says: the number itself, or a label ("tma")
};

// The numbers of some decisions, in the order a reader declared them. An absent decision reads as
// kAbsent.
using Numbers = absl::Span<const int64_t>;
inline constexpr int64_t kAbsent = INT64_MIN;

// One named choice. `help` says what it changes in the kernel, its name elsewhere, and when a
// larger value loses.
struct Decision {
  std::string name;
  std::string help;
  std::vector<DecisionValue> values;  // ordered, not empty
  // Present only if `present(numbers of `depends_on`)`; a decision without effect under earlier
  // choices is absent. Empty depends_on: always present. Only earlier decisions may be named.
  std::vector<std::string> depends_on;
  std::function<bool(Numbers)> present;
  // For a decision added after a release: the token that older texts, which lack it, mean. Empty:
  // it must be stated.
  std::string value_of_older_texts;
};

// Integers as decision values: tokens are the numbers.
std::vector<DecisionValue> IntegerValues(absl::Span<const int64_t> numbers);

// A quantity computed from decisions once all are known, so that constraints may read it in place
// of them and the diagram keeps only its value ("tile_m * tile_n"). It may read earlier
// combinations too.
struct Combination {
  std::string name;
  std::vector<std::string> reads;  // decisions or earlier combinations
  std::function<int64_t(Numbers)> value;
};

// What a legal schedule fulfils. `holds` gets the numbers of `reads` (decisions or combinations,
// exactly those it needs) and the workload's sizes; it may be asked about any numbers that presence
// allows, also those that other constraints refuse, and from several threads at once. With ranged
// sizes it must hold at every size: `monotone_in` names the indices (numbers in Workload::sizes())
// in which it is monotone (both ends are evaluated), `breakpoints` adds sizes of them to evaluate
// at.
struct Constraint {
  std::string name;  // "shared_memory"
  std::vector<std::string> reads;
  std::function<bool(Numbers, absl::Span<const int64_t> sizes)> holds;
  // The numbers that broke it: "3 stages x 49152 B + 65536 B > 232448 B". Called only for a
  // violation.
  std::function<std::string(Numbers, absl::Span<const int64_t> sizes)> explain;
  std::vector<int> monotone_in;
  std::vector<std::vector<int64_t>> breakpoints;  // parallel to monotone_in; may be empty
};

struct SpaceDefinition {
  std::string variant;
  std::vector<Decision> decisions;
  std::vector<Combination> combinations;
  std::vector<Constraint> constraints;
};

// The layered diagram of one definition.
class VariantSpace : public Space {
 public:
  // Compiles the diagram. `size_points` are the sizes constraints are evaluated at (one entry if
  // all are fixed). InvalidArgument: a definition that names unknown or later decisions.
  // ResourceExhausted: a layer has more than 4 M keys.
  static absl::StatusOr<std::unique_ptr<VariantSpace>> Make(
      SpaceDefinition definition, std::vector<std::vector<int64_t>> size_points);
  virtual const SpaceDefinition& definition() const = 0;
  // Numbers of all decisions of a legal schedule in definition order, kAbsent where absent.
  // InvalidArgument as IndexOf.
  virtual absl::StatusOr<std::vector<int64_t>> NumbersOf(const Schedule& schedule) const = 0;
  // For `explain`: the number of schedules that remain when only the first n constraints
  // (definition order) hold, n = 0 … all.
  struct ConstraintCount {
    std::string constraint;  // "" for n = 0
    absl::uint128 count;
  };
  virtual std::vector<ConstraintCount> CountsAfterEachConstraint() const = 0;
};

// The disjoint union, in the given order. Empty parts are kept out.
std::unique_ptr<Space> NewUnionSpace(std::vector<std::shared_ptr<const Space>> parts);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_SPACE_H_
