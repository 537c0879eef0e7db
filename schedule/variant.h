// A variant is one method of writing a family's kernels: its space of schedules and its plan. One
// file per variant
// (`schedule/contraction_tiled.{h,cc}`) and one row in the list below; the kernel writer has a row
// of the same name in codegen/writers.cc.
//
// A Plan is what match + schedule + target come to in quantities. It is the only place where these
// are computed: constraints read it, features count it, codegen writes from it. Each variant
// derives its own plan struct from Plan.
#ifndef TILEWRIGHT_SCHEDULE_VARIANT_H_
#define TILEWRIGHT_SCHEDULE_VARIANT_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/schedule.h"
#include "schedule/space.h"
#include "schedule/target.h"
#include "schedule/workload.h"

namespace tilewright {

// A named quantity with its unit, for `explain`, dumps and the cost model's features.
struct Quantity {
  std::string name;  // "l2_bytes_read"
  std::string unit;  // "B", "op", "thread", "register", "" for a ratio
  double value = 0;
};

struct Plan {
  virtual ~Plan() = default;
  int threads = 1;              // threads of a launch; on a GPU the SMs that have work
  int64_t workspace_bytes = 0;  // at the highest sizes
  double operations = 0;        // what the kernel executes, padding included, at `sizes`
  double memory_bytes = 0;      // to and from main memory
  double l3_bytes = 0;          // between L3 and L2, all cores
  double l2_bytes = 0;          // between L2 and L1 (a GPU: and shared memory), all cores
  double l1_bytes = 0;          // loads and stores of the inner loops, all cores
  // 0..1: the share of the arithmetic peak that the inner loop's instruction mix allows. A GPU's
  // peak is Target::PeakOperationsPerCycle of Workload::SmallestParameterBytes.
  double issue_efficiency = 1;
  // 0..1: the share of the threads' time that has work (1 = balanced).
  double balance = 1;
  std::vector<Quantity> quantities;  // the variant's own, beside those above
};

struct Variant {
  std::string name;    // "contraction.tiled"
  std::string family;  // "contraction"
  std::string help;    // one line
  // Backends (codegen/backends.cc) whose targets may have it in their space.
  std::vector<std::string> backends;
  // The family's match and then this variant's own demands. FailedPrecondition: the statement and
  // the reason why this variant cannot write the program.
  std::function<absl::Status(const Workload&, const Target&)> applies;
  // Precondition of the rest: applies() is ok.
  std::function<SpaceDefinition(const Workload&, const Target&)> define;
  // `numbers` as VariantSpace::NumbersOf returns them; `sizes` where the quantities are wanted.
  std::function<std::unique_ptr<Plan>(const Workload&, const Target&,
                                      absl::Span<const int64_t> numbers,
                                      absl::Span<const int64_t> sizes)>
      plan;
  // Legal for every workload of the family.
  std::function<Schedule(const Workload&, const Target&)> default_schedule;
  // What else looks good on paper, the best first: where a search should look before it draws.
  // Some may be illegal. Null: nothing does.
  std::function<std::vector<Schedule>(const Workload&, const Target&)> suggestions = nullptr;
};

// The only list (variants.cc), naive variants first within a family.
absl::Span<const Variant> AllVariants();
absl::StatusOr<const Variant*> FindVariant(std::string_view name);

// Everything schedules of one workload on one target are asked about: the union of the legal
// variants' spaces, plans, and the default. `variants` is AllVariants() or, in tests, a list of
// their own.
class ScheduleSpace {
 public:
  // FailedPrecondition: no variant applies; the message has each family's statement and reason.
  static absl::StatusOr<std::shared_ptr<const ScheduleSpace>> Make(
      Workload workload, Target target, absl::Span<const Variant> variants);
  virtual ~ScheduleSpace() = default;
  virtual const Workload& workload() const = 0;
  virtual const Target& target() const = 0;
  virtual const Space& space() const = 0;
  virtual absl::Span<const Variant* const> variants() const = 0;  // those that apply
  virtual const VariantSpace& variant_space(
      std::string_view variant) const = 0;  // one of variants()
  virtual absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const Schedule& schedule,
                                                         absl::Span<const int64_t> sizes) const = 0;
  // The default of the best variant that applies, which is the last in the list; and naive's, the
  // first.
  virtual Schedule DefaultSchedule() const = 0;
  virtual Schedule NaiveSchedule() const = 0;
  // Of the variants that suggest anything, the best one first: their defaults, and then in turns
  // what they suggest. Legal, each once, at most `most`.
  virtual std::vector<Schedule> Suggestions(size_t most) const = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_VARIANT_H_
