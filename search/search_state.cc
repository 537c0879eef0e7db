#include "search/search_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// The model is trained again when there is a quarter more to learn from, so that all trainings of a
// run cost a few times the last one.
int64_t LeastNewResults(int64_t trained_on) { return std::max<int64_t>(1, trained_on / 4); }
// Fewer results than this teach nothing; the bound ranks.
constexpr int64_t kLeastResults = 8;

class SearchStateImpl : public SearchState {
 public:
  SearchStateImpl(const Space* space, const StrategyChoice& strategy, uint64_t seed,
                  SearchBeginning beginning, LearningSurrogate* surrogate)
      : surrogate_(strategy.row->guided ? surrogate : nullptr) {
    if (!strategy.row->guided) {
      beginning.starts.insert(beginning.starts.end(), beginning.transferred.begin(),
                              beginning.transferred.end());
      beginning.transferred.clear();
    }
    strategy_ = strategy.row->make({.space = space,
                                    .seed = seed,
                                    .starts = std::move(beginning.starts),
                                    .transferred = std::move(beginning.transferred),
                                    .surrogate = surrogate_,
                                    .parameters = strategy.parameters});
  }

  void Commit(const Result& result) override { results_.push_back(result); }

  Batch Propose(int count) override {
    const int64_t n = results_.size();
    const bool due = n >= kLeastResults && n - trained_on_ >= LeastNewResults(trained_on_);
    return ProposeAt(n, surrogate_ != nullptr && due ? n : trained_on_, count);
  }

  absl::Status Replay(const Batch& logged) override {
    const Batch again =
        ProposeAt(logged.results_seen, logged.trained_on, static_cast<int>(logged.indices.size()));
    if (again.indices != logged.indices) {
      return absl::FailedPreconditionError(
          absl::StrCat("the batch proposed after ", logged.results_seen,
                       " results is not the one in the log: this program searches differently from "
                       "the one that began the "
                       "run; start a new run, which begins from what this one measured"));
    }
    return absl::OkStatus();
  }

  absl::Span<const Result> results() const override { return results_; }
  const absl::Status& training_status() const override { return training_status_; }

 private:
  Batch ProposeAt(int64_t n, int64_t t, int count) {
    for (; observed_ < n; ++observed_) {
      const Result& result = results_[observed_];
      strategy_->Observe(
          {.index = result.index, .ok = result.cost.has_value(), .cost = result.cost.value_or(0)});
    }
    if (t != trained_on_ && surrogate_ != nullptr) {
      training_status_ = surrogate_->Train(absl::MakeConstSpan(results_).subspan(0, t));
      trained_on_ = t;
    }
    return {.results_seen = n, .trained_on = trained_on_, .indices = strategy_->Propose(count)};
  }

  LearningSurrogate* surrogate_;
  std::unique_ptr<Strategy> strategy_;
  std::vector<Result> results_;
  int64_t observed_ = 0;
  int64_t trained_on_ = 0;
  absl::Status training_status_;
};

}  // namespace

std::unique_ptr<SearchState> SearchState::Make(const Space* space, const StrategyChoice& strategy,
                                               uint64_t seed, SearchBeginning beginning,
                                               LearningSurrogate* surrogate) {
  return std::make_unique<SearchStateImpl>(space, strategy, seed, std::move(beginning), surrogate);
}

}  // namespace tilewright
