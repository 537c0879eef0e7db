#include "search/coordinator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "measure/protocol.h"
#include "search/coordinator_core.h"
#include "search/coordinator_service.h"

namespace tilewright {
namespace {

// A sleep is never longer, so that a clock of a test is looked at in time.
constexpr absl::Duration kLongestSleep = absl::Milliseconds(200);

using Work = std::function<void(CoordinatorCore*)>;

// The wall clock at the start plus a steady clock: never goes backwards.
std::function<absl::Time()> SteadyWallClock() {
  const absl::Time wall = absl::Now();
  const auto start = std::chrono::steady_clock::now();
  return
      [wall, start] { return wall + absl::FromChrono(std::chrono::steady_clock::now() - start); };
}

// The one thread that owns the core, and what waits for it.
class CoordinatorThread {
 public:
  CoordinatorThread(std::unique_ptr<CoordinatorCore> core, std::function<absl::Time()> clock,
                    int max_pending)
      : core_(std::move(core)), clock_(std::move(clock)), max_pending_(max_pending) {
    thread_ = std::thread([this] { Loop(); });
  }
  // Runs what was accepted, then ends.
  ~CoordinatorThread() {
    {
      std::scoped_lock lock(mutex_);
      closed_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  // `bounded`: for work of peers, of which only so much may wait.
  bool Post(Work work, bool bounded) {
    std::scoped_lock lock(mutex_);
    if (closed_ || (bounded && static_cast<int>(queue_.size()) >= max_pending_)) return false;
    queue_.push_back(std::move(work));
    changed_.notify_one();
    return true;
  }

  // Runs `work` there and waits for it.
  template <typename Result>
  Result Call(const std::function<Result(CoordinatorCore*)>& work) {
    Result result = absl::UnavailableError("the coordinator is stopping");
    bool done = false;
    const bool accepted = Post(
        [&](CoordinatorCore* core) {
          Result answer = work(core);
          std::scoped_lock lock(mutex_);
          result = std::move(answer);
          done = true;
          answered_.notify_all();
        },
        /*bounded=*/false);
    if (accepted) {
      std::unique_lock lock(mutex_);
      answered_.wait(lock, [&] { return done; });
    }
    return result;
  }
  // Nothing to do if the thread has ended already.
  void Call(const std::function<void(CoordinatorCore*)>& work) {
    static_cast<void>(Call<absl::Status>([&](CoordinatorCore* core) {
      work(core);
      return absl::OkStatus();
    }));
  }

 private:
  void Loop() {
    absl::Time wake = absl::InfinitePast();
    while (true) {
      std::deque<Work> work;
      bool last = false;
      {
        const absl::Duration sleep =
            std::clamp(wake - clock_(), absl::ZeroDuration(), kLongestSleep);
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, absl::ToChronoNanoseconds(sleep),
                          [this] { return closed_ || !queue_.empty(); });
        work.swap(queue_);
        last = closed_;
      }
      for (const Work& one : work) one(core_.get());
      if (last) break;
      if (work.empty() && clock_() < wake) continue;
      core_->Turn();
      wake = core_->NextWake();
    }
    core_->Stop();
  }

  const std::unique_ptr<CoordinatorCore> core_;
  const std::function<absl::Time()> clock_;
  const int max_pending_;
  std::mutex mutex_;                  // guards queue_, closed_ and the answers of Call
  std::condition_variable changed_;   // tells the thread of work and of the end
  std::condition_variable answered_;  // tells callers of an answer
  std::deque<Work> queue_;
  bool closed_ = false;
  std::thread thread_;
};

class LocalTuningClient : public TuningClient {
 public:
  explicit LocalTuningClient(CoordinatorThread* thread) : thread_(thread) {}

  absl::Status StartRun(const v1::RunSpec& spec, const std::string& toolchain_id,
                        const RunRow& record) override {
    return thread_->Call<absl::Status>(
        [&](CoordinatorCore* core) { return core->StartRun(spec, toolchain_id, record); });
  }
  absl::Status Propose(const Proposal& proposal) override {
    return thread_->Call<absl::Status>(
        [&](CoordinatorCore* core) { return core->Propose(proposal); });
  }
  absl::Status Requeue(const std::string& run_id,
                       absl::Span<const std::string> schedules) override {
    return thread_->Call<absl::Status>(
        [&](CoordinatorCore* core) { return core->Requeue(run_id, schedules); });
  }
  absl::StatusOr<std::string> Finals(const std::string& run_id, const v1::Finals& finals) override {
    return thread_->Call<absl::StatusOr<std::string>>(
        [&](CoordinatorCore* core) { return core->Finals(run_id, finals); });
  }
  absl::StatusOr<std::vector<TuningEvent>> NextResults(const std::string& run_id,
                                                       absl::Duration timeout) override {
    absl::StatusOr<std::shared_ptr<EventQueue>> events =
        thread_->Call<absl::StatusOr<std::shared_ptr<EventQueue>>>(
            [&](CoordinatorCore* core) { return core->Events(run_id); });
    if (!events.ok()) return events.status();
    return (*events)->Take(timeout);
  }
  absl::Status RecordVerdict(const VerdictRow& verdict) override {
    return thread_->Call<absl::Status>(
        [&](CoordinatorCore* core) { return core->sink().RecordVerdict(verdict); });
  }
  absl::Status RecordEvaluation(const EvaluationRow& evaluation) override {
    return thread_->Call<absl::Status>(
        [&](CoordinatorCore* core) { return core->sink().RecordEvaluation(evaluation); });
  }
  absl::Status EndRun(const std::string& run_id, const std::string& state) override {
    return thread_->Call<absl::Status>(
        [&](CoordinatorCore* core) { return core->EndRun(run_id, state); });
  }
  absl::StatusOr<TuningStats> Stats(const std::string& run_id) override {
    return thread_->Call<absl::StatusOr<TuningStats>>(
        [&](CoordinatorCore* core) { return core->Stats(run_id); });
  }

 private:
  CoordinatorThread* const thread_;
};

class CoordinatorImpl : public Coordinator {
 public:
  CoordinatorImpl(CoordinatorOptions options, std::unique_ptr<CoordinatorCore> core)
      : options_(std::move(options)),
        generation_(core->generation()),
        thread_(std::make_unique<CoordinatorThread>(std::move(core), options_.clock,
                                                    options_.max_pending_calls)),
        service_(NewCoordinatorService(
            [this](Work work) { return thread_->Post(std::move(work), /*bounded=*/true); })) {}

  ~CoordinatorImpl() override {
    // First the thread ends what waits; then gRPC can shut down, while it still answers what comes
    // in meanwhile.
    thread_->Call([](CoordinatorCore* core) { core->Stop(); });
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
      server_->Wait();
    }
    thread_.reset();
  }

  absl::Status Listen() {
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    builder.SetMaxReceiveMessageSize(static_cast<int>(ProtocolLimits::kResultBytes));
    builder.SetMaxSendMessageSize(static_cast<int>(ProtocolLimits::kResultBytes));
    // Two coordinators on one port would each get half of the workers.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 15000);
    std::vector<int> ports(options_.listen.size(), 0);
    for (size_t i = 0; i < options_.listen.size(); ++i) {
      absl::Status local = CheckPlaintextAddress(options_.listen[i]);
      if (!local.ok()) return local;
      builder.AddListeningPort(options_.listen[i], grpc::InsecureServerCredentials(), &ports[i]);
    }
    server_ = builder.BuildAndStart();
    for (size_t i = 0; i < options_.listen.size(); ++i) {
      const std::string& address = options_.listen[i];
      if (server_ == nullptr || ports[i] == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(address, ": can't be listened on; is another coordinator there?"));
      }
      const bool is_socket = address.rfind("unix:", 0) == 0;
      addresses_.push_back(
          is_socket ? address : absl::StrCat(address.substr(0, address.rfind(':') + 1), ports[i]));
    }
    return absl::OkStatus();
  }

  const std::vector<std::string>& addresses() const override { return addresses_; }
  uint64_t generation() const override { return generation_; }

  void Drain() override {
    thread_->Call([](CoordinatorCore* core) { core->Drain(); });
  }

  int live_enrolments() const override {
    return thread_
        ->Call<absl::StatusOr<int>>(
            [](CoordinatorCore* core) { return absl::StatusOr<int>(core->live_enrolments()); })
        .value_or(0);
  }

 private:
  std::unique_ptr<TuningClient> NewClient() override {
    return std::make_unique<LocalTuningClient>(thread_.get());
  }

  const CoordinatorOptions options_;
  const uint64_t generation_;
  std::unique_ptr<CoordinatorThread> thread_;
  const std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> addresses_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(CoordinatorOptions options,
                                                                std::unique_ptr<CommitSink> sink) {
  if (options.clock == nullptr) options.clock = SteadyWallClock();
  CoordinatorCore::Options core_options = {options.lease_time, options.infrastructure_retries,
                                           options.sink_patience, options.clock};
  absl::StatusOr<std::unique_ptr<CoordinatorCore>> core =
      CoordinatorCore::Make(std::move(core_options), std::move(sink));
  if (!core.ok()) return core.status();
  auto coordinator = std::make_unique<CoordinatorImpl>(std::move(options), *std::move(core));
  absl::Status listening = coordinator->Listen();
  if (!listening.ok()) return listening;
  return std::unique_ptr<Coordinator>(std::move(coordinator));
}

std::unique_ptr<TuningClient> NewLocalTuningClient(Coordinator* coordinator) {
  return coordinator->NewClient();
}

}  // namespace tilewright
