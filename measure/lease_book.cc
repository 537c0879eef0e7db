#include "measure/lease_book.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "measure/enrolments.h"
#include "measure/failure.h"
#include "measure/protocol.h"

namespace tilewright {
namespace {

struct Item {
  v1::WorkItem work;     // with its current trial id
  std::string added_as;  // its first trial id
  enum class State { kQueued, kLeased, kLost, kDone } state = State::kQueued;
  int losses = 0;
  uint64_t lease = 0;  // counter of the lease that has it
};
using ItemPtr = std::shared_ptr<Item>;

struct Run {
  v1::RunSpec spec;
  std::string toolchain_id;
  bool ended = false;
  std::deque<ItemPtr> queue;  // may hold items that are done meanwhile
  int queued = 0;
  int leased = 0;
  absl::flat_hash_map<std::string, ItemPtr> by_schedule;  // screenings
  absl::flat_hash_map<std::string, ItemPtr> by_id;        // every trial id an item ever had
  absl::flat_hash_map<std::string, v1::TrialResult>
      committed;  // by trial id; times and failure only
  struct FirstOfDigest {
    std::string trial_id;
    std::string enrolment_id;
  };
  absl::flat_hash_map<std::string, FirstOfDigest> digests;
  absl::flat_hash_set<std::string> refused_by;  // enrolment ids
};

struct LeaseState {
  std::string run_id;
  std::string enrolment_id;
  absl::Time deadline;
  std::vector<ItemPtr> items;  // those still with the worker
};

bool IsInfrastructure(const v1::Failure& failure) {
  absl::StatusOr<FailureKind> kind = ParseFailureKind(failure.kind());
  return kind.ok() && Info(*kind).retried;
}

const std::string& DigestOf(const v1::BuildFacts& facts) {
  if (!facts.binary_digest().empty()) return facts.binary_digest();
  if (!facts.assembly_digest().empty()) return facts.assembly_digest();
  return facts.ir_digest();
}

class LeaseBookImpl : public LeaseBook {
 public:
  explicit LeaseBookImpl(LeaseBookOptions options) : options_(std::move(options)) {}

  absl::Status AddRun(const v1::RunSpec& spec, const std::string& toolchain_id) override {
    auto [it, is_new] = runs_.try_emplace(spec.run_id());
    Run& run = it->second;
    if (!is_new) {
      if (run.spec.SerializeAsString() == spec.SerializeAsString() &&
          run.toolchain_id == toolchain_id && !run.ended) {
        return absl::OkStatus();
      }
      return absl::AlreadyExistsError(absl::StrCat("run ", IdToHex(spec.run_id()),
                                                   run.ended ? " has ended" : " is another run",
                                                   "; a new run needs a new id"));
    }
    run.spec = spec;
    run.toolchain_id = toolchain_id;
    run_order_.push_back(spec.run_id());
    return absl::OkStatus();
  }

  void EndRun(const std::string& run_id) override {
    Run* run = FindRun(run_id);
    if (run == nullptr || run->ended) return;
    run->ended = true;
    for (const ItemPtr& item : run->queue) item->state = Item::State::kDone;
    run->queue.clear();
    run->queued = 0;
    run_order_.erase(std::remove(run_order_.begin(), run_order_.end(), run_id), run_order_.end());
    std::erase_if(lost_, [&](const Lost& lost) { return lost.run_id == run_id; });
  }

  absl::Status AddItems(const std::string& run_id, absl::Span<const v1::WorkItem> items) override {
    Run* run = FindRun(run_id);
    if (run == nullptr || run->ended) {
      return absl::NotFoundError(
          absl::StrCat("run ", IdToHex(run_id), run == nullptr ? " is not known" : " has ended"));
    }
    for (const v1::WorkItem& work : items) {
      if (work.has_screen() && run->by_schedule.contains(work.screen().schedule())) continue;
      if (!work.trial_id().empty() && run->by_id.contains(work.trial_id())) continue;
      auto item = std::make_shared<Item>();
      item->work = work;
      if (work.trial_id().empty()) item->work.set_trial_id(options_.new_id());
      if (work.has_screen()) run->by_schedule[work.screen().schedule()] = item;
      item->added_as = item->work.trial_id();
      run->by_id[item->work.trial_id()] = item;
      run->queue.push_back(std::move(item));
      ++run->queued;
    }
    return absl::OkStatus();
  }

  std::string Enrol(const v1::EnrolRequest& request, absl::Time now) override {
    Enrolments::Enrolled enrolled = enrolments_.Enrol(request, now, options_.new_id);
    if (enrolled.superseded.has_value()) TakeBackLeases(*enrolled.superseded, /*blame=*/true);
    return std::move(enrolled.id);
  }

  void Leave(const std::string& enrolment_id) override {
    TakeBackLeases(enrolment_id, /*blame=*/false);
    enrolments_.Leave(enrolment_id);
  }

  const Enrolment* FindEnrolment(const std::string& enrolment_id) const override {
    const Enrolments::Entry* entry = enrolments_.Find(enrolment_id);
    return entry == nullptr ? nullptr : &entry->enrolment;
  }

  absl::Status CheckLive(const std::string& enrolment_id) const override {
    return enrolments_.CheckLive(enrolment_id);
  }

  absl::StatusOr<v1::LeaseReply> Lease(const v1::LeaseRequest& request, absl::Time now) override {
    absl::Status live = CheckLive(request.enrolment_id());
    if (!live.ok()) return live;
    Enrolments::Entry* enrolment = enrolments_.Find(request.enrolment_id());
    enrolment->last_seen = now;
    TakeBackUnknownLeases(request);
    v1::LeaseReply reply;
    const auto [holds_any, holds_suspect] = WhatHolds(request.enrolment_id());
    Run* run = holds_suspect ? nullptr : NextRun(enrolment);
    if (run == nullptr) return reply;
    std::vector<ItemPtr> items =
        TakeBatch(run, static_cast<int>(request.max_items()), /*suspects=*/!holds_any);
    if (items.empty()) return reply;
    const uint64_t counter = ++counter_;
    LeaseState& lease = leases_[counter];
    lease = {run->spec.run_id(), request.enrolment_id(), now + options_.lease_time, items};
    for (const ItemPtr& item : items) {
      item->lease = counter;
      *reply.add_items() = item->work;
    }
    reply.mutable_epoch()->set_generation(options_.generation);
    reply.mutable_epoch()->set_counter(counter);
    *reply.mutable_run() = run->spec;
    reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.lease_time)));
    return reply;
  }

  absl::StatusOr<v1::RenewReply> Renew(const v1::RenewRequest& request, absl::Time now) override {
    absl::Status live = CheckLive(request.enrolment_id());
    if (!live.ok()) return live;
    enrolments_.Find(request.enrolment_id())->last_seen = now;
    v1::RenewReply reply;
    for (const v1::Epoch& epoch : request.epochs()) {
      LeaseState* lease = FindLease(epoch, request.enrolment_id());
      if (lease != nullptr) {
        lease->deadline = now + options_.lease_time;
      } else {
        *reply.add_lost() = epoch;
      }
    }
    return reply;
  }

  void Refuse(const std::string& run_id, const std::string& enrolment_id) override {
    Run* run = FindRun(run_id);
    if (run != nullptr) run->refused_by.insert(enrolment_id);
  }

  Verdict JudgeTrial(const v1::ReturnRequest& request,
                     const v1::TrialResult& result) const override {
    using Kind = Verdict::Kind;
    const Run* run = FindRun(request.run_id());
    if (run == nullptr) return {Kind::kUnknown, "the run is not known"};
    if (run->committed.contains(result.trial_id())) return {Kind::kDuplicate, ""};
    absl::StatusOr<const Item*> found = FindItem(*run, request.epoch(), result.trial_id());
    if (!found.ok()) return {Kind::kInvalid, std::string(found.status().message())};
    const Item* item = *found;
    if (item != nullptr && item->work.screen().schedule() != result.schedule()) {
      return {Kind::kInvalid, absl::StrCat("trial ", IdToHex(result.trial_id()),
                                           " is of another schedule than was leased")};
    }
    if (result.has_failure() && IsInfrastructure(result.failure())) {
      // Nothing of the candidate's own: only the last of its attempts is stored, and only by the
      // one who holds it.
      const bool current = item != nullptr && item->state == Item::State::kLeased &&
                           item->work.trial_id() == result.trial_id();
      if (!current || item->losses < options_.infrastructure_retries) {
        return {Kind::kRetry, result.failure().kind()};
      }
    }
    std::string late = WhyLate(*run, request, result);
    if (!late.empty()) return {Kind::kLate, std::move(late)};
    if (!result.same_as().empty()) {
      auto first = run->committed.find(result.same_as());
      if (first == run->committed.end() ||
          (first->second.has_failure() && IsInfrastructure(first->second.failure()))) {
        return {Kind::kRetry, "the trial it is the twin of has no result"};
      }
    }
    return {Kind::kCommit, ""};
  }

  Verdict JudgeFinals(const v1::ReturnRequest& request,
                      const v1::FinalsResult& result) const override {
    using Kind = Verdict::Kind;
    const Run* run = FindRun(request.run_id());
    if (run == nullptr) return {Kind::kUnknown, "the run is not known"};
    auto it = run->by_id.find(result.trial_id());
    if (it == run->by_id.end()) return {Kind::kLate, "the finals are not of this generation"};
    const Item& item = *it->second;
    if (!item.work.has_finals()) return {Kind::kInvalid, "the item is not finals"};
    if (run->ended) return {Kind::kLate, "the run has ended"};
    if (item.state == Item::State::kDone) return {Kind::kDuplicate, ""};
    if (item.work.finals().schedules_size() != result.entrants_size() && !result.has_failure()) {
      return {Kind::kInvalid, "the entrants are not those that were leased"};
    }
    for (int i = 0; i < result.entrants_size(); ++i) {
      if (i >= item.work.finals().schedules_size() ||
          result.entrants(i).schedule() != item.work.finals().schedules(i)) {
        return {Kind::kInvalid, "the entrants are not those that were leased"};
      }
    }
    if (result.has_failure() && IsInfrastructure(result.failure()) &&
        (item.work.trial_id() != result.trial_id() ||
         item.losses < options_.infrastructure_retries)) {
      return {Kind::kRetry, result.failure().kind()};
    }
    if (enrolments_.WasSuperseded(request.enrolment_id(), std::nullopt)) {
      return {Kind::kLate, "the enrolment was superseded"};
    }
    return {Kind::kCommit, ""};
  }

  const v1::TrialResult* FindCommitted(const std::string& run_id,
                                       const std::string& trial_id) const override {
    const Run* run = FindRun(run_id);
    if (run == nullptr) return nullptr;
    auto it = run->committed.find(trial_id);
    return it == run->committed.end() ? nullptr : &it->second;
  }

  bool Committed(const std::string& run_id, const v1::TrialResult& result, bool is_trial) override {
    Run* run = FindRun(run_id);
    if (run == nullptr) return false;
    if (is_trial) {
      v1::TrialResult kept;
      kept.set_trial_id(result.trial_id());
      kept.set_session_id(result.session_id());
      kept.set_seconds(result.seconds());
      kept.set_anchor_seconds(result.anchor_seconds());
      if (result.has_failure()) *kept.mutable_failure() = result.failure();
      run->committed[result.trial_id()] = std::move(kept);
    }
    ItemPtr& item = run->by_schedule[result.schedule()];
    if (item == nullptr) {  // measured for an earlier generation, and not queued in this one yet
      item = std::make_shared<Item>();
      item->state = Item::State::kDone;
      item->work.mutable_screen()->set_schedule(result.schedule());
      item->work.set_trial_id(result.trial_id());
      run->by_id[result.trial_id()] = item;
      return false;
    }
    return Finish(run, item.get());
  }

  std::optional<std::string> CommittedFinals(const std::string& run_id,
                                             const std::string& trial_id) override {
    Run* run = FindRun(run_id);
    if (run == nullptr) return std::nullopt;
    auto it = run->by_id.find(trial_id);
    if (it == run->by_id.end() || !Finish(run, it->second.get())) return std::nullopt;
    return it->second->added_as;
  }

  void Retry(const std::string& run_id, const std::string& trial_id, bool blame) override {
    Run* run = FindRun(run_id);
    if (run == nullptr) return;
    auto it = run->by_id.find(trial_id);
    if (it == run->by_id.end()) return;
    const ItemPtr item = it->second;
    if (item->state != Item::State::kLeased || item->work.trial_id() != trial_id) return;
    TakeBack(run, item, blame);
  }

  void Release(const std::string& run_id, absl::Span<const std::string> trial_ids) override {
    for (auto id = trial_ids.rbegin(); id != trial_ids.rend(); ++id) {
      Retry(run_id, *id, /*blame=*/false);
    }
  }

  void Expire(absl::Time now) override {
    std::vector<uint64_t> expired;
    for (const auto& [counter, lease] : leases_) {
      if (lease.deadline <= now) expired.push_back(counter);
    }
    for (uint64_t counter : expired) TakeBackLease(counter, /*blame=*/true);
    for (const std::string& id : enrolments_.SilentSince(now - options_.enrolment_time)) {
      TakeBackLeases(id, /*blame=*/true);
      enrolments_.Forget(id);
    }
  }

  absl::Time NextExpiry() const override {
    absl::Time next = enrolments_.EarliestSeen() + options_.enrolment_time;
    for (const auto& [counter, lease] : leases_) next = std::min(next, lease.deadline);
    return next;
  }

  std::vector<Lost> TakeLost() override { return std::exchange(lost_, {}); }

  v1::BuiltReply Built(const v1::BuiltRequest& request) override {
    v1::BuiltReply reply;
    reply.set_verdict(v1::BuiltReply::LOST);
    Run* run = FindRun(request.run_id());
    const LeaseState* lease = FindLease(request.epoch(), request.enrolment_id());
    if (run == nullptr || lease == nullptr || !Holds(*lease, request.trial_id())) return reply;
    reply.set_verdict(v1::BuiltReply::RUN);
    const std::string& digest = DigestOf(request.facts());
    if (digest.empty()) return reply;
    auto [it, is_new] = run->digests.try_emplace(digest);
    Run::FirstOfDigest& first = it->second;
    if (!is_new && first.trial_id != request.trial_id() &&
        HasOrWillHaveResult(*run, first, request.enrolment_id())) {
      reply.set_verdict(v1::BuiltReply::SAME_KERNEL);
      reply.set_same_as(first.trial_id);
      return reply;
    }
    first = {request.trial_id(), request.enrolment_id()};
    return reply;
  }

  int QueuedItems(const std::string& run_id) const override {
    const Run* run = FindRun(run_id);
    return run == nullptr ? 0 : run->queued;
  }

  int LeasedItems(const std::string& run_id) const override {
    const Run* run = FindRun(run_id);
    return run == nullptr ? 0 : run->leased;
  }

  std::vector<Enrolment> LiveEnrolments() const override { return enrolments_.Live(); }

  bool Suits(const std::string& run_id, const Enrolment& enrolment) const override {
    const Run* run = FindRun(run_id);
    return run != nullptr && !run->ended && Suits(*run, enrolment);
  }

 private:
  Run* FindRun(const std::string& run_id) {
    auto it = runs_.find(run_id);
    return it == runs_.end() ? nullptr : &it->second;
  }
  const Run* FindRun(const std::string& run_id) const {
    auto it = runs_.find(run_id);
    return it == runs_.end() ? nullptr : &it->second;
  }

  // Null: of an earlier generation, which this book knows nothing of.
  absl::StatusOr<const Item*> FindItem(const Run& run, const v1::Epoch& epoch,
                                       const std::string& trial_id) const {
    auto it = run.by_id.find(trial_id);
    if (it != run.by_id.end()) {
      if (it->second->work.has_screen()) return it->second.get();
      return absl::InvalidArgumentError("the item is not a screening");
    }
    if (epoch.generation() < options_.generation) return nullptr;
    return absl::InvalidArgumentError(
        absl::StrCat("trial ", IdToHex(trial_id), " was never leased in generation ",
                     epoch.generation(), " (this is ", options_.generation, ")"));
  }

  bool Suits(const Run& run, const Enrolment& enrolment) const {
    return run.spec.target_text() == enrolment.target_text &&
           run.toolchain_id == enrolment.toolchain_id && !run.refused_by.contains(enrolment.id);
  }

  // Null: not a live lease of this enrolment.
  LeaseState* FindLease(const v1::Epoch& epoch, const std::string& enrolment_id) {
    if (epoch.generation() != options_.generation) return nullptr;
    auto it = leases_.find(epoch.counter());
    if (it == leases_.end() || it->second.enrolment_id != enrolment_id) return nullptr;
    return &it->second;
  }

  static bool Holds(const LeaseState& lease, const std::string& trial_id) {
    return std::any_of(lease.items.begin(), lease.items.end(),
                       [&](const ItemPtr& item) { return item->work.trial_id() == trial_id; });
  }

  // The kernel's first trial is committed, or stands before the asker's in the same worker's hands.
  bool HasOrWillHaveResult(const Run& run, const Run::FirstOfDigest& first,
                           const std::string& asker) const {
    auto committed = run.committed.find(first.trial_id);
    if (committed != run.committed.end()) {
      return !committed->second.has_failure() || !IsInfrastructure(committed->second.failure());
    }
    auto it = run.by_id.find(first.trial_id);
    return first.enrolment_id == asker && it != run.by_id.end() &&
           it->second->state == Item::State::kLeased &&
           it->second->work.trial_id() == first.trial_id;
  }

  // Empty: it may be the trial.
  std::string WhyLate(const Run& run, const v1::ReturnRequest& request,
                      const v1::TrialResult& result) const {
    if (run.ended) return "the run has ended";
    const Enrolment* enrolment = FindEnrolment(request.enrolment_id());
    if (enrolment == nullptr) return "the enrolment is not known";
    if (enrolment->target_text != run.spec.target_text()) return "measured on another device kind";
    if (enrolment->toolchain_id != run.toolchain_id) return "built with another toolchain";
    std::optional<absl::Time> measured;
    if (result.measured_unix_ns() != 0) {
      measured = absl::FromUnixNanos(static_cast<int64_t>(result.measured_unix_ns()));
    }
    if (enrolments_.WasSuperseded(request.enrolment_id(), measured)) {
      return "the enrolment was superseded when it was measured";
    }
    auto it = run.by_schedule.find(result.schedule());
    if (it != run.by_schedule.end() && it->second->state == Item::State::kDone) {
      return "the candidate has a trial already";
    }
    return "";
  }

  // The run whose turn it is. Null: no queue that this enrolment may work on.
  Run* NextRun(Enrolments::Entry* asker) {
    auto has_work = [&](const std::string& run_id) {
      const Run& run = runs_[run_id];
      return run.queued > 0 && Suits(run, asker->enrolment);
    };
    auto last = std::find(run_order_.begin(), run_order_.end(), asker->last_run);
    if (last != run_order_.end() && asker->batches_of_last_run < options_.batches_in_a_row &&
        has_work(*last)) {
      ++asker->batches_of_last_run;
      return &runs_[*last];
    }
    const size_t start = last == run_order_.end() ? 0 : last - run_order_.begin() + 1;
    for (size_t i = 0; i < run_order_.size(); ++i) {
      const std::string& run_id = run_order_[(start + i) % run_order_.size()];
      if (!has_work(run_id)) continue;
      asker->last_run = run_id;
      asker->batches_of_last_run = 1;
      return &runs_[run_id];
    }
    return nullptr;
  }

  struct Holding {
    bool any = false;
    bool suspect = false;  // an item that was lost before
  };
  Holding WhatHolds(const std::string& enrolment_id) const {
    Holding holding;
    for (const auto& [counter, lease] : leases_) {
      if (lease.enrolment_id != enrolment_id) continue;
      holding.any = true;
      for (const ItemPtr& item : lease.items) holding.suspect |= item->losses > 0;
    }
    return holding;
  }

  // Finals, and items that were lost before, are leased alone; the latter only if `suspects`.
  std::vector<ItemPtr> TakeBatch(Run* run, int max_items, bool suspects) {
    std::vector<ItemPtr> batch;
    while (!run->queue.empty() && static_cast<int>(batch.size()) < max_items) {
      ItemPtr item = run->queue.front();
      if (item->state != Item::State::kQueued) {
        run->queue.pop_front();
        continue;
      }
      const bool alone = item->losses > 0 || item->work.has_finals();
      if (alone && (!batch.empty() || (item->losses > 0 && !suspects))) break;
      run->queue.pop_front();
      item->state = Item::State::kLeased;
      --run->queued;
      ++run->leased;
      batch.push_back(std::move(item));
      if (alone) break;
    }
    return batch;
  }

  // Takes an item out of its lease; the lease ends with its last item.
  void Detach(Run* run, Item* item) {
    --run->leased;
    auto it = leases_.find(item->lease);
    if (it == leases_.end()) return;
    std::erase_if(it->second.items, [&](const ItemPtr& held) { return held.get() == item; });
    if (it->second.items.empty()) leases_.erase(it);
  }

  // True if it was not done before.
  bool Finish(Run* run, Item* item) {
    if (item->state == Item::State::kDone) return false;
    if (item->state == Item::State::kQueued) --run->queued;
    if (item->state == Item::State::kLeased) Detach(run, item);
    item->state = Item::State::kDone;
    return true;
  }

  // Precondition: leased.
  void TakeBack(Run* run, const ItemPtr& item, bool blame) {
    Detach(run, item.get());
    if (run->ended) {
      item->state = Item::State::kDone;
      return;
    }
    if (blame && ++item->losses > options_.infrastructure_retries) {
      item->state = Item::State::kLost;
      lost_.push_back({run->spec.run_id(), item->work,
                       absl::StrCat("lost with its worker ", item->losses, " times")});
      return;
    }
    item->work.set_trial_id(options_.new_id());
    item->state = Item::State::kQueued;
    run->by_id[item->work.trial_id()] = item;
    run->queue.push_front(item);
    ++run->queued;
  }

  void TakeBackLease(uint64_t counter, bool blame) {
    auto it = leases_.find(counter);
    if (it == leases_.end()) return;
    Run* run = FindRun(it->second.run_id);
    const std::vector<ItemPtr> items = it->second.items;
    for (auto item = items.rbegin(); item != items.rend(); ++item) TakeBack(run, *item, blame);
  }

  void TakeBackLeases(const std::string& enrolment_id, bool blame) {
    std::vector<uint64_t> counters;
    for (const auto& [counter, lease] : leases_) {
      if (lease.enrolment_id == enrolment_id) counters.push_back(counter);
    }
    // Later leases first, so that the items stand in the queue as they did.
    for (auto it = counters.rbegin(); it != counters.rend(); ++it) TakeBackLease(*it, blame);
  }

  void TakeBackUnknownLeases(const v1::LeaseRequest& request) {
    std::vector<uint64_t> unknown;
    for (const auto& [counter, lease] : leases_) {
      if (lease.enrolment_id != request.enrolment_id()) continue;
      const bool held = std::any_of(
          request.held().begin(), request.held().end(), [&, id = counter](const v1::Epoch& epoch) {
            return epoch.generation() == options_.generation && epoch.counter() == id;
          });
      if (!held) unknown.push_back(counter);
    }
    // With blame, although its answer may only have been lost: else an item whose results are
    // refused would come back for ever.
    for (auto it = unknown.rbegin(); it != unknown.rend(); ++it) TakeBackLease(*it, true);
  }

  const LeaseBookOptions options_;
  std::map<std::string, Run> runs_;
  std::vector<std::string> run_order_;     // those that have not ended
  std::map<uint64_t, LeaseState> leases_;  // by counter
  uint64_t counter_ = 0;
  Enrolments enrolments_;
  std::vector<Lost> lost_;
};

}  // namespace

std::unique_ptr<LeaseBook> LeaseBook::Make(LeaseBookOptions options) {
  if (options.new_id == nullptr) options.new_id = NewRandomId;
  return std::make_unique<LeaseBookImpl>(std::move(options));
}

}  // namespace tilewright
