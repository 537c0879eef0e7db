#include "measure/worker_queue.h"

#include "measure/protocol.h"

namespace tilewright {
namespace {

// Results of one request: few, so that progress is live and a repetition is cheap.
constexpr int kResultsPerRequest = 16;

int ItemsOf(const v1::ReturnRequest& request) {
  return request.trials_size() + request.finals_size() + request.released_size();
}

bool BelongTogether(const v1::ReturnRequest& a, const v1::ReturnRequest& b) {
  return a.run_id() == b.run_id() && a.epoch().generation() == b.epoch().generation() &&
         a.epoch().counter() == b.epoch().counter() && a.has_session() == b.has_session() &&
         a.session().session_id() == b.session().session_id() &&
         a.session().refusal() == b.session().refusal();
}

}  // namespace

void WorkerQueue::WantLease() {
  absl::MutexLock lock(&mutex_);
  if (ready_.empty()) wanted_ = true;
}

bool WorkerQueue::AwaitWant() {
  absl::MutexLock lock(&mutex_);
  auto ready = [this]()
                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return wanted_ || end_.has_value(); };
  mutex_.Await(absl::Condition(&ready));
  return !end_.has_value();
}

void WorkerQueue::AddLease(v1::LeaseReply lease) {
  absl::MutexLock lock(&mutex_);
  wanted_ = false;
  open_items_[Key(lease.epoch())] += lease.items_size();
  ready_.push_back(std::move(lease));
}

std::optional<v1::LeaseReply> WorkerQueue::TakeLease(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !ready_.empty() || end_.has_value();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&ready), timeout);
  if (ready_.empty()) return std::nullopt;
  v1::LeaseReply lease = std::move(ready_.front());
  ready_.pop_front();
  return lease;
}

std::vector<v1::Epoch> WorkerQueue::Held() const {
  absl::MutexLock lock(&mutex_);
  std::vector<v1::Epoch> held;
  for (const auto& [key, items] : open_items_) {
    v1::Epoch& epoch = held.emplace_back();
    epoch.set_generation(key.first);
    epoch.set_counter(key.second);
  }
  return held;
}

void WorkerQueue::MarkLost(const v1::Epoch& epoch) {
  absl::MutexLock lock(&mutex_);
  if (open_items_.contains(Key(epoch))) lost_.insert(Key(epoch));
}

bool WorkerQueue::IsLost(const v1::Epoch& epoch) const {
  absl::MutexLock lock(&mutex_);
  return lost_.contains(Key(epoch));
}

void WorkerQueue::Drop(const v1::Epoch& epoch, int items) {
  absl::MutexLock lock(&mutex_);
  Settle(epoch, items);
}

void WorkerQueue::Settle(const v1::Epoch& epoch, int items) {
  auto it = open_items_.find(Key(epoch));
  if (it == open_items_.end()) return;
  it->second -= items;
  if (it->second > 0) return;
  open_items_.erase(it);
  lost_.erase(Key(epoch));
}

void WorkerQueue::Post(Outgoing outgoing) {
  absl::MutexLock lock(&mutex_);
  outgoing_.push_back(std::move(outgoing));
}

bool WorkerQueue::AwaitOutgoing(v1::ReturnRequest* request) {
  absl::MutexLock lock(&mutex_);
  auto ready = [this]()
                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !outgoing_.empty() || closed_; };
  mutex_.Await(absl::Condition(&ready));
  if (closed_) return false;
  *request = outgoing_.front();
  given_ = 1;
  size_t bytes = request->ByteSizeLong();
  for (size_t i = 1; i < outgoing_.size() && ItemsOf(*request) < kResultsPerRequest; ++i) {
    const Outgoing& next = outgoing_[i];
    bytes += next.ByteSizeLong();
    if (!BelongTogether(*request, next) || bytes > ProtocolLimits::kResultBytes / 2) break;
    request->mutable_trials()->MergeFrom(next.trials());
    request->mutable_finals()->MergeFrom(next.finals());
    request->mutable_released()->MergeFrom(next.released());
    if (next.has_session()) *request->mutable_session() = next.session();
    request->set_leaving(request->leaving() || next.leaving());
    ++given_;
  }
  return true;
}

void WorkerQueue::Acknowledge() {
  absl::MutexLock lock(&mutex_);
  for (; given_ > 0; --given_) {
    Settle(outgoing_.front().epoch(), ItemsOf(outgoing_.front()));
    outgoing_.pop_front();
  }
}

bool WorkerQueue::AwaitEmpty(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  auto empty = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return outgoing_.empty(); };
  return mutex_.AwaitWithTimeout(absl::Condition(&empty), timeout);
}

void WorkerQueue::End(WorkerExit exit, std::string why) {
  absl::MutexLock lock(&mutex_);
  if (!end_.has_value()) end_ = {exit, std::move(why)};
}

bool WorkerQueue::ending() const {
  absl::MutexLock lock(&mutex_);
  return end_.has_value();
}

std::pair<WorkerExit, std::string> WorkerQueue::reason() const {
  absl::MutexLock lock(&mutex_);
  return end_.value_or(std::make_pair(WorkerExit::kDrained, std::string()));
}

void WorkerQueue::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

bool WorkerQueue::Sleep(absl::Duration duration, bool until_closed) {
  absl::MutexLock lock(&mutex_);
  auto over = [this, until_closed]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || (!until_closed && end_.has_value());
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&over), duration);
}

}  // namespace tilewright
