// SpaceWriter builds a SpaceDefinition in which decisions that leave no choice do not appear: one
// that has a single value, or is absent whatever else is chosen, is remembered, and what reads it
// gets that value. So a variant can state its decisions and constraints once, for every workload.
#ifndef TILEWRIGHT_SCHEDULE_SPACE_WRITER_H_
#define TILEWRIGHT_SCHEDULE_SPACE_WRITER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/space.h"

namespace tilewright {

class SpaceWriter {
 public:
  explicit SpaceWriter(std::string variant) { definition_.variant = std::move(variant); }

  // As Decision; `present` may read decisions that do not appear.
  void Decide(std::string name, std::string help, std::vector<DecisionValue> values,
              const std::vector<std::string>& depends_on = {},
              const std::function<bool(Numbers)>& present = nullptr,
              std::string value_of_older_texts = "");
  // As Constraint, for one that does not depend on sizes. Left out if nothing that it reads is a
  // choice.
  void Constrain(std::string name, const std::vector<std::string>& reads,
                 const std::function<bool(Numbers)>& holds,
                 const std::function<std::string(Numbers)>& explain);

  const SpaceDefinition& definition() const { return definition_; }
  // Decisions that do not appear, by name.
  const std::map<std::string, int64_t>& fixed() const { return fixed_; }
  // All decisions by name, given those of the definition in its order.
  std::map<std::string, int64_t> AllNumbers(Numbers numbers) const;
  // The schedule whose present decisions have the largest value not above their wish, or the first
  // value where all are above. Precondition: `wishes` holds every decision that may be present.
  // Constraints are not looked at.
  Schedule ClosestTo(const std::map<std::string, int64_t>& wishes) const;

 private:
  // Some of the numbers that a function reads are given, the others known.
  struct Reader {
    std::vector<std::string> names;
    std::vector<int64_t> numbers;
    std::vector<size_t> given_at;
    std::vector<int64_t> All(Numbers given) const;
  };
  Reader Resolve(const std::vector<std::string>& reads) const;

  SpaceDefinition definition_;
  std::map<std::string, int64_t> fixed_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_SPACE_WRITER_H_
