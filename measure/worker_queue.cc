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
  std::scoped_lock lock(mutex_);
  if (!ready_.empty()) return;
  wanted_ = true;
  changed_.notify_all();
}

bool WorkerQueue::AwaitWant() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return wanted_ || end_.has_value(); });
  return !end_.has_value();
}

void WorkerQueue::AddLease(v1::LeaseReply lease) {
  std::scoped_lock lock(mutex_);
  wanted_ = false;
  open_items_[Key(lease.epoch())] += lease.items_size();
  ready_.push_back(std::move(lease));
  changed_.notify_all();
}

std::optional<v1::LeaseReply> WorkerQueue::TakeLease(absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                    [this] { return !ready_.empty() || end_.has_value(); });
  if (ready_.empty()) return std::nullopt;
  v1::LeaseReply lease = std::move(ready_.front());
  ready_.pop_front();
  return lease;
}

std::vector<v1::Epoch> WorkerQueue::Held() const {
  std::scoped_lock lock(mutex_);
  std::vector<v1::Epoch> held;
  for (const auto& [key, items] : open_items_) {
    v1::Epoch& epoch = held.emplace_back();
    epoch.set_generation(key.first);
    epoch.set_counter(key.second);
  }
  return held;
}

void WorkerQueue::MarkLost(const v1::Epoch& epoch) {
  std::scoped_lock lock(mutex_);
  if (open_items_.contains(Key(epoch))) lost_.insert(Key(epoch));
}

bool WorkerQueue::IsLost(const v1::Epoch& epoch) const {
  std::scoped_lock lock(mutex_);
  return lost_.contains(Key(epoch));
}

void WorkerQueue::Drop(const v1::Epoch& epoch, int items) {
  std::scoped_lock lock(mutex_);
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
  std::scoped_lock lock(mutex_);
  outgoing_.push_back(std::move(outgoing));
  changed_.notify_all();
}

bool WorkerQueue::AwaitOutgoing(v1::ReturnRequest* request) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !outgoing_.empty() || closed_; });
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
  std::scoped_lock lock(mutex_);
  for (; given_ > 0; --given_) {
    Settle(outgoing_.front().epoch(), ItemsOf(outgoing_.front()));
    outgoing_.pop_front();
  }
  changed_.notify_all();
}

bool WorkerQueue::AwaitEmpty(absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                           [this] { return outgoing_.empty(); });
}

void WorkerQueue::End(WorkerExit exit, std::string why) {
  std::scoped_lock lock(mutex_);
  if (end_.has_value()) return;
  end_ = {exit, std::move(why)};
  changed_.notify_all();
}

bool WorkerQueue::ending() const {
  std::scoped_lock lock(mutex_);
  return end_.has_value();
}

std::pair<WorkerExit, std::string> WorkerQueue::reason() const {
  std::scoped_lock lock(mutex_);
  return end_.value_or(std::make_pair(WorkerExit::kDrained, std::string()));
}

void WorkerQueue::Close() {
  std::scoped_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool WorkerQueue::Sleep(absl::Duration duration, bool until_closed) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(duration), [this, until_closed] {
    return closed_ || (!until_closed && end_.has_value());
  });
}

}  // namespace tilewright
