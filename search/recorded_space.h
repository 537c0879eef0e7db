// A RecordedSpace is a space whose every schedule was measured once and for all: what a search
// would have seen, without a device. `simulate` replays strategies on it.
//
//   absl::StatusOr<RecordedFile> file = ReadRecordedFile("gemm.json.gz", {});
//   for (const std::string& warning : file->warnings) Warn(warning);
//   const RecordedSpace& space = *file->space;
//   absl::uint128 index = strategy->Propose(1)[0];
//   std::optional<double> ms = space.configuration(index).milliseconds;  // absent: it failed
//
// Immutable; safe to share between threads.
#ifndef TILEWRIGHT_SEARCH_RECORDED_SPACE_H_
#define TILEWRIGHT_SEARCH_RECORDED_SPACE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/space.h"

namespace tilewright {

// One measured point. Times are in milliseconds, as the files have them, so that none is rounded.
struct RecordedConfiguration {
  Schedule schedule;
  std::string key;                     // what the file calls it
  std::optional<double> milliseconds;  // absent: it failed
  std::string failure;                 // why, in the file's words; empty if it did not fail
  std::vector<double> samples;         // milliseconds, one per call; may be empty
};

// One decision of a recorded space with every value that occurs, in order.
struct RecordedDecision {
  std::string name;
  std::vector<std::string> tokens;
  // What a model computes with: the values themselves if all are numbers (true and false count as 1
  // and 0), else their places in `tokens`.
  std::vector<double> numbers;
};

class RecordedSpace : public Space {
 public:
  // The schedules are the space, those that failed too. Values are ordered as numbers where all are
  // numbers, false before true, else as texts; indices follow the variants by name and then the
  // values, so that the order of the file does not matter. InvalidArgument: no configuration, the
  // same schedule twice, or schedules of one variant that hardly ever have the same decisions.
  static absl::StatusOr<std::unique_ptr<RecordedSpace>> Make(
      std::vector<RecordedConfiguration> configurations);

  absl::uint128 Count() const override { return configurations_.size(); }
  Schedule At(absl::uint128 index) const override { return configuration(index).schedule; }
  // InvalidArgument names the decision or value that does not occur, or says that the combination
  // was not recorded.
  absl::StatusOr<absl::uint128> IndexOf(const Schedule& schedule) const override;
  std::vector<absl::uint128> Neighbours(absl::uint128 index) const override;
  absl::Span<const Part> Parts() const override { return parts_; }

  // Precondition: index < Count().
  const RecordedConfiguration& configuration(absl::uint128 index) const {
    return configurations_[absl::Uint128Low64(index)];
  }
  // The decisions of all variants; those of one name are one decision.
  absl::Span<const RecordedDecision> decisions() const { return decisions_; }
  // The place of each decision's value in its tokens; kAbsentValue where the schedule lacks it.
  static constexpr int32_t kAbsentValue = -1;
  absl::Span<const int32_t> Values(absl::uint128 index) const {
    return absl::MakeConstSpan(values_).subspan(absl::Uint128Low64(index) * decisions_.size(),
                                                decisions_.size());
  }
  // The index of what the file calls `key`. NotFound if it has none.
  absl::StatusOr<absl::uint128> IndexOfKey(const std::string& key) const;

  // Times of all that did not fail, ascending. Empty if everything failed.
  absl::Span<const double> ascending_milliseconds() const { return ascending_; }

 private:
  // Schedules of one variant that have the same decisions.
  struct Shape {
    std::vector<bool> present;  // by decision
    int part = 0;
    // Schedules of other shapes of the variant, reached by a change that makes decisions appear or
    // vanish: by the values of the decisions that both have, the least index.
    struct Other {
      std::vector<int> shared;  // decisions
      absl::flat_hash_map<std::vector<int32_t>, uint32_t> least;
    };
    std::vector<Other> others;
  };

  RecordedSpace() = default;
  void CollectDecisions();
  absl::Status Sort();
  absl::Status NumberPoints();
  absl::Status FindShapes();
  absl::uint128 Code(int part, absl::Span<const int32_t> values) const;

  std::vector<RecordedConfiguration> configurations_;
  std::vector<Part> parts_;
  std::vector<RecordedDecision> decisions_;
  std::vector<int32_t> values_;  // [configurations, decisions]
  std::vector<absl::flat_hash_map<std::string, int32_t>> value_of_token_;  // by decision
  absl::flat_hash_map<std::string, int> decision_of_name_;
  std::vector<absl::uint128> strides_;  // of Code, by decision
  absl::uint128 part_stride_ = 0;
  absl::flat_hash_map<absl::uint128, uint32_t> index_of_code_;
  absl::flat_hash_map<std::string, uint32_t> index_of_key_;
  std::vector<Shape> shapes_;
  std::vector<int> shape_;  // by configuration
  std::vector<double> ascending_;
};

// What was read, and what is odd about it: notes on the file's form (it ends early, a unit is
// misspelt, no device is named) and reasons to think that its times are nonsense.
struct RecordedFile {
  std::unique_ptr<RecordedSpace> space;
  std::string device;  // empty if the file does not say
  std::string kernel;  // likewise
  std::vector<std::string> warnings;
};

struct RecordedFileOptions {
  std::string workload;  // of a tuning log with several: a name, or the beginning of a key
};

// Reads a Kernel Tuner cache, T4 results, a tuning log of Tilewright or an exported one; texts
// plain or gzipped (docs/formats/recorded_space.md). NotFound: no such file, or no such workload;
// InvalidArgument says what does not parse and where; else as Database::OpenReader.
absl::StatusOr<RecordedFile> ReadRecordedFile(const std::string& path,
                                              const RecordedFileOptions& options);

// Reasons to think that the times mean nothing; each one line. Empty for measurements in order.
//
// A configuration's samples scatter by noise, the configurations by what was chosen. If what the
// noise leaves open in a configuration's time is not small beside the spread of the configurations,
// their order is mostly chance: a median standard error (the samples' standard deviation / the root
// of their number) above a twentieth of the configurations' standard deviation, both of the
// logarithm. In well-measured spaces it is 0.001 to 0.011 of it. And if half of the configurations
// have the very same time, a clock's tick or a constant was recorded instead of kernels.
std::vector<std::string> NonsenseIn(const RecordedSpace& space);

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_RECORDED_SPACE_H_
