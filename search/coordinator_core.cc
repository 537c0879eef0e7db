#include "search/coordinator_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "measure/protocol.h"

namespace tilewright {
namespace {

// How soon a commit that failed is tried again where no worker's repetition does.
constexpr absl::Duration kCommitRetry = absl::Seconds(1);

absl::Status Stopping() { return absl::UnavailableError("the coordinator is stopping"); }

}  // namespace

void EventQueue::Push(TuningEvent event) {
  std::scoped_lock lock(mutex_);
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void EventQueue::SetStatus(absl::Status status) {
  std::scoped_lock lock(mutex_);
  status_ = std::move(status);
  changed_.notify_all();
}

absl::StatusOr<std::vector<TuningEvent>> EventQueue::Take(absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                    [this] { return !events_.empty() || !status_.ok(); });
  std::vector<TuningEvent> taken(std::make_move_iterator(events_.begin()),
                                 std::make_move_iterator(events_.end()));
  events_.clear();
  if (taken.empty() && !status_.ok()) return status_;
  return taken;
}

absl::StatusOr<std::unique_ptr<CoordinatorCore>> CoordinatorCore::Make(
    Options options, std::unique_ptr<CommitSink> sink) {
  absl::StatusOr<uint64_t> generation = sink->NextGeneration();
  if (!generation.ok()) return generation.status();
  return std::unique_ptr<CoordinatorCore>(
      new CoordinatorCore(std::move(options), std::move(sink), *generation));
}

CoordinatorCore::CoordinatorCore(Options options, std::unique_ptr<CommitSink> sink,
                                 uint64_t generation)
    : options_(std::move(options)), sink_(std::move(sink)), generation_(generation) {
  LeaseBookOptions book;
  book.generation = generation;
  book.lease_time = options_.lease_time;
  book.enrolment_time = 2 * options_.lease_time;
  book.infrastructure_retries = options_.infrastructure_retries;
  book_ = LeaseBook::Make(std::move(book));
}

// ---- Workers
// ----------------------------------------------------------------------------------------------------

absl::Status CoordinatorCore::Enrol(const v1::EnrolRequest& request, v1::EnrolReply* reply) {
  absl::StatusOr<uint32_t> version =
      NegotiateProtocol(kProtocolVersion, request.protocol_version());
  if (!version.ok()) return version.status();
  if (stopped_) return Stopping();
  const std::string id = book_->Enrol(request, Now());
  Worker& worker = workers_[id];
  if (worker.device.device_uuid.empty()) {
    worker.enrolled = Now();
    worker.device = {request.worker_name(),
                     request.device_uuid(),
                     request.target_text(),
                     request.toolchain_id(),
                     request.timer(),
                     request.driver(),
                     generation_};
  }
  reply->set_enrolment_id(id);
  reply->set_protocol_version(*version);
  reply->set_heartbeat_ms(static_cast<uint32_t>(
      std::max<int64_t>(1, absl::ToInt64Milliseconds(options_.lease_time / 3))));
  return absl::OkStatus();
}

absl::Status CoordinatorCore::Renew(const v1::RenewRequest& request, v1::RenewReply* reply) {
  absl::StatusOr<v1::RenewReply> renewed = book_->Renew(request, Now());
  if (!renewed.ok()) return renewed.status();
  *reply = *std::move(renewed);
  reply->set_drain(draining_);
  return absl::OkStatus();
}

absl::Status CoordinatorCore::Built(const v1::BuiltRequest& request, v1::BuiltReply* reply) {
  *reply = book_->Built(request);
  return absl::OkStatus();
}

void CoordinatorCore::Lease(uint64_t call, const v1::LeaseRequest* request, v1::LeaseReply* reply,
                            Done done) {
  if (stopped_) return done(Stopping());
  // A worker asks once at a time: an earlier call of its is one whose answer it no longer waits
  // for.
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    if (it->request->enrolment_id() == request->enrolment_id()) {
      it->done(absl::CancelledError("the worker asked again"));
      it = waiters_.erase(it);
    } else {
      ++it;
    }
  }
  waiters_.push_back({call, request, reply, std::move(done),
                      Now() + absl::Milliseconds(static_cast<int64_t>(request->wait_ms()))});
}

void CoordinatorCore::CancelLease(uint64_t call) {
  for (auto it = waiters_.begin(); it != waiters_.end(); ++it) {
    if (it->call != call) continue;
    it->done(absl::CancelledError("the worker hung up"));
    waiters_.erase(it);
    return;
  }
}

void CoordinatorCore::ServeWaiters() {
  std::deque<Waiter> waiting = std::exchange(waiters_, {});
  const absl::Time now = Now();
  for (Waiter& waiter : waiting) {
    absl::Status live = book_->CheckLive(waiter.request->enrolment_id());
    if (!live.ok()) {
      waiter.done(live);
      continue;
    }
    if (draining_) {
      waiter.reply->set_drain(true);
      waiter.done(absl::OkStatus());
      continue;
    }
    absl::StatusOr<v1::LeaseReply> reply = book_->Lease(*waiter.request, now);
    if (!reply.ok()) {
      waiter.done(reply.status());
    } else if (reply->has_run() || waiter.deadline <= now) {
      *waiter.reply = *std::move(reply);
      waiter.done(absl::OkStatus());
    } else {
      waiters_.push_back(std::move(waiter));
    }
  }
}

void CoordinatorCore::Return(const v1::ReturnRequest* request, v1::ReturnReply* reply, Done done) {
  if (stopped_) return done(Stopping());
  pending_.push_back({request, reply, std::move(done)});
}

// ---- The tuner
// --------------------------------------------------------------------------------------------------

absl::Status CoordinatorCore::StartRun(const v1::RunSpec& spec, const std::string& toolchain_id,
                                       const RunRow& record) {
  absl::Status good = CheckRunSpec(spec);
  if (!good.ok()) return good;
  if (runs_.contains(spec.run_id())) return book_->AddRun(spec, toolchain_id);
  absl::Status stored = sink_->StartRun(record);
  if (!stored.ok()) return stored;
  absl::Status added = book_->AddRun(spec, toolchain_id);
  if (!added.ok()) return added;
  runs_[spec.run_id()].events = std::make_shared<EventQueue>();
  for (const std::string& id : live_) {
    TuningEvent event;
    event.kind = TuningEvent::Kind::kWorkerJoined;
    event.device = workers_[id].device;
    event.suits_run = book_->Suits(spec.run_id(), *book_->FindEnrolment(id));
    Tell(spec.run_id(), std::move(event));
  }
  return absl::OkStatus();
}

absl::Status CoordinatorCore::AddItems(const std::string& run_id,
                                       const std::vector<v1::WorkItem>& items) {
  for (const v1::WorkItem& item : items) {
    absl::Status good = CheckWorkItem(item);
    if (!good.ok()) return good;
  }
  return book_->AddItems(run_id, items);
}

absl::Status CoordinatorCore::Propose(const Proposal& proposal) {
  std::vector<v1::WorkItem> items(proposal.schedules.size());
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].mutable_screen()->set_schedule(proposal.schedules[i]);
    absl::Status good = CheckWorkItem(items[i]);
    if (!good.ok()) return good;
  }
  absl::Status known = book_->AddItems(proposal.run_id, {});
  if (!known.ok()) return known;
  absl::Status logged = sink_->LogProposal(proposal);
  if (!logged.ok()) return logged;
  return book_->AddItems(proposal.run_id, items);
}

absl::Status CoordinatorCore::Requeue(const std::string& run_id,
                                      absl::Span<const std::string> schedules) {
  std::vector<v1::WorkItem> items(schedules.size());
  for (size_t i = 0; i < items.size(); ++i) items[i].mutable_screen()->set_schedule(schedules[i]);
  return AddItems(run_id, items);
}

absl::StatusOr<std::string> CoordinatorCore::Finals(const std::string& run_id,
                                                    const v1::Finals& finals) {
  v1::WorkItem item;
  item.set_trial_id(NewRandomId());
  *item.mutable_finals() = finals;
  absl::Status added = AddItems(run_id, {item});
  if (!added.ok()) return added;
  return item.trial_id();
}

absl::Status CoordinatorCore::EndRun(const std::string& run_id, const std::string& state) {
  auto it = runs_.find(run_id);
  if (it == runs_.end()) {
    return absl::NotFoundError(absl::StrCat("run ", IdToHex(run_id), " is not known"));
  }
  it->second.ended = true;
  book_->EndRun(run_id);
  std::erase_if(lost_, [&](const LeaseBook::Lost& lost) { return lost.run_id == run_id; });
  return sink_->EndRun(run_id, state);
}

absl::StatusOr<TuningStats> CoordinatorCore::Stats(const std::string& run_id) {
  auto it = runs_.find(run_id);
  if (it == runs_.end()) {
    return absl::NotFoundError(absl::StrCat("run ", IdToHex(run_id), " is not known"));
  }
  TuningStats stats = it->second.counts;
  stats.queued = book_->QueuedItems(run_id);
  stats.leased = book_->LeasedItems(run_id);
  for (const auto& [id, worker] : workers_) {
    const LeaseBook::Enrolment* enrolment = book_->FindEnrolment(id);
    if (enrolment == nullptr || !book_->Suits(run_id, *enrolment)) continue;
    if (live_.contains(id)) ++stats.live_enrolments;
    stats.busy += worker.busy;
    stats.enrolled += worker.ended.value_or(Now()) - worker.enrolled;
  }
  return stats;
}

absl::StatusOr<std::shared_ptr<EventQueue>> CoordinatorCore::Events(const std::string& run_id) {
  auto it = runs_.find(run_id);
  if (it == runs_.end()) {
    return absl::NotFoundError(absl::StrCat("run ", IdToHex(run_id), " is not known"));
  }
  return it->second.events;
}

// ---- Turns
// ------------------------------------------------------------------------------------------------------

void CoordinatorCore::Turn() {
  CommitPending();
  book_->Expire(Now());
  TellOfWorkers();
  ServeWaiters();
  for (LeaseBook::Lost& lost : book_->TakeLost()) lost_.push_back(std::move(lost));
  CommitLost();
}

absl::Time CoordinatorCore::NextWake() const {
  absl::Time wake = book_->NextExpiry();
  for (const Waiter& waiter : waiters_) wake = std::min(wake, waiter.deadline);
  if (!lost_.empty() || sink_failing_since_.has_value())
    wake = std::min(wake, Now() + kCommitRetry);
  return wake;
}

void CoordinatorCore::Drain() { draining_ = true; }

void CoordinatorCore::Stop() {
  CommitPending();
  stopped_ = true;
  for (Waiter& waiter : std::exchange(waiters_, {})) waiter.done(Stopping());
  for (auto& [run_id, run] : runs_) run.events->SetStatus(Stopping());
}

void CoordinatorCore::TellOfWorkers() {
  std::set<std::string> live;
  for (const LeaseBook::Enrolment& enrolment : book_->LiveEnrolments()) live.insert(enrolment.id);
  if (live == live_) return;
  auto tell = [this](const std::string& id, TuningEvent::Kind kind) {
    TuningEvent event;
    event.kind = kind;
    event.device = workers_[id].device;
    const LeaseBook::Enrolment enrolment = {id, event.device.device_uuid, event.device.target_text,
                                            event.device.toolchain_id};
    for (auto& [run_id, run] : runs_) {
      event.suits_run = book_->Suits(run_id, enrolment);
      Tell(run_id, event);
    }
  };
  for (const std::string& id : live_) {
    if (live.contains(id)) continue;
    tell(id, TuningEvent::Kind::kWorkerLost);
    workers_[id].ended = Now();
  }
  for (const std::string& id : live) {
    if (!live_.contains(id)) tell(id, TuningEvent::Kind::kWorkerJoined);
  }
  live_ = std::move(live);
  std::erase_if(workers_,
                [this](const auto& entry) { return book_->FindEnrolment(entry.first) == nullptr; });
}

void CoordinatorCore::Tell(const std::string& run_id, TuningEvent event) {
  auto it = runs_.find(run_id);
  if (it != runs_.end() && !it->second.ended) it->second.events->Push(std::move(event));
}

void CoordinatorCore::NoteSink(const absl::Status& status) {
  if (status.ok()) {
    if (!sink_failing_since_.has_value()) return;
    sink_failing_since_.reset();
    for (auto& [run_id, run] : runs_) run.events->SetStatus(absl::OkStatus());
    return;
  }
  if (!sink_failing_since_.has_value()) sink_failing_since_ = Now();
  if (status.code() == absl::StatusCode::kDataLoss ||
      Now() - *sink_failing_since_ >= options_.sink_patience) {
    for (auto& [run_id, run] : runs_) run.events->SetStatus(status);
  }
}

}  // namespace tilewright
