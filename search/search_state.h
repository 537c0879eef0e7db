// The deterministic heart of a run: results in, batches out.
//
// A batch is a pure function of the seed, the run's start (starts, anchor, what the database knew),
// the first n results in commit order and the first t of them that the model was trained on. The
// tuner logs n and t with each batch before it is leased; Replay() makes the same batch again from
// the log, so that `--resume` goes on as if nothing had happened.
//
// Not thread-safe; the tuner's thread owns it.
#ifndef TILEWRIGHT_SEARCH_SEARCH_STATE_H_
#define TILEWRIGHT_SEARCH_SEARCH_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/space.h"
#include "search/strategy.h"

namespace tilewright {

// One committed result as the model learns from it.
struct Result {
  absl::uint128 index = 0;
  std::optional<double> cost;     // seconds / anchor seconds; absent: it failed
  bool trains_classifier = true;  // false for failures that say nothing about the candidate
  std::string session;            // costs of one session compare with each other
};

// A surrogate that learns from results.
class LearningSurrogate : public Surrogate {
 public:
  // Learns from the first results of a run (and whatever it was made with). A failure leaves it as
  // it was.
  virtual absl::Status Train(absl::Span<const Result> results) = 0;
};

struct Batch {
  int64_t results_seen = 0;  // n
  int64_t trained_on = 0;    // t
  std::vector<absl::uint128> indices;
};

// What a search begins from (StrategyContext says how).
struct SearchBeginning {
  std::vector<absl::uint128> starts;
  std::vector<absl::uint128> transferred;
};

class SearchState {
 public:
  // Borrows space and surrogate (may be null).
  static std::unique_ptr<SearchState> Make(const Space* space, const StrategyChoice& strategy,
                                           uint64_t seed, SearchBeginning beginning,
                                           LearningSurrogate* surrogate);
  virtual ~SearchState() = default;
  // Adds the next result in commit order.
  virtual void Commit(const Result& result) = 0;
  // The next batch, after training on all results if there are enough new ones. Empty: nothing is
  // left to propose.
  virtual Batch Propose(int count) = 0;
  // Makes a logged batch again. Precondition: at least `logged.results_seen` results were
  // committed. FailedPrecondition: this program proposes something else, so the run cannot be
  // continued.
  virtual absl::Status Replay(const Batch& logged) = 0;
  virtual absl::Span<const Result> results() const = 0;
  // Why the model was last left untrained; Ok if it never was.
  virtual const absl::Status& training_status() const = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SEARCH_SEARCH_STATE_H_
