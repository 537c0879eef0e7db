#include "measure/kernel_trace.h"

#include <cupti.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// F(member, function)
#define TILEWRIGHT_CUPTI_FUNCTIONS(F)                                  \
  F(GetVersion, cuptiGetVersion)                                       \
  F(GetResultString, cuptiGetResultString)                             \
  F(Subscribe, cuptiSubscribe)                                         \
  F(EnableCallback, cuptiEnableCallback)                               \
  F(RegisterTimestampCallback, cuptiActivityRegisterTimestampCallback) \
  F(RegisterCallbacks, cuptiActivityRegisterCallbacks)                 \
  F(Enable, cuptiActivityEnable)                                       \
  F(FlushAll, cuptiActivityFlushAll)                                   \
  F(GetNextRecord, cuptiActivityGetNextRecord)                         \
  F(GetNumDroppedRecords, cuptiActivityGetNumDroppedRecords)

struct Cupti {
#define TILEWRIGHT_CUPTI_MEMBER(member, function) decltype(&::function) member = nullptr;
  TILEWRIGHT_CUPTI_FUNCTIONS(TILEWRIGHT_CUPTI_MEMBER)
#undef TILEWRIGHT_CUPTI_MEMBER

  absl::Status Check(CUptiResult result, const char* function) const {
    if (result == CUPTI_SUCCESS) return absl::OkStatus();
    const char* text = nullptr;
    if (GetResultString(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "unknown";
    return absl::UnavailableError(
        absl::StrCat(function, ": ", text, " ", static_cast<int>(result)));
  }
};

constexpr size_t kRecordBufferBytes = 1 << 20;
// Records of launches that nobody asked for are forgotten beyond this many launches.
constexpr size_t kMostLaunches = 4096;

// Where toolkits put it when it is not on the loader's path.
std::vector<std::string> CuptiPaths() {
  std::vector<std::string> paths;
  if (const char* named = getenv("TILEWRIGHT_CUPTI"); named != nullptr) return {named};
  paths.push_back("libcupti.so.13");
  std::vector<std::string> roots = {"/usr/local/cuda", "/usr/local/cuda-13.0"};
  if (const char* home = getenv("CUDA_HOME"); home != nullptr) roots.insert(roots.begin(), home);
  for (const std::string& root : roots) {
    for (const char* below : {"lib64", "extras/CUPTI/lib64", "lib"}) {
      paths.push_back(absl::StrCat(root, "/", below, "/libcupti.so.13"));
    }
  }
  return paths;
}

absl::StatusOr<Cupti> LoadCupti() {
  void* library = nullptr;
  std::string reason;
  for (const std::string& path : CuptiPaths()) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (reason.empty()) reason = dlerror();
  }
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no CUPTI here (TILEWRIGHT_CUPTI can name its file): ", reason));
  }
  Cupti cupti;
  std::string missing;
#define TILEWRIGHT_CUPTI_FIND(member, function)                                       \
  cupti.member = reinterpret_cast<decltype(cupti.member)>(dlsym(library, #function)); \
  if (cupti.member == nullptr && missing.empty()) missing = #function;
  TILEWRIGHT_CUPTI_FUNCTIONS(TILEWRIGHT_CUPTI_FIND)
#undef TILEWRIGHT_CUPTI_FIND
  if (!missing.empty()) return absl::UnavailableError(absl::StrCat("CUPTI lacks ", missing));
  // A library fills records in its own newest layout, so the layout compiled in must be that one.
  uint32_t version = 0;
  if (absl::Status status = cupti.Check(cupti.GetVersion(&version), "cuptiGetVersion");
      !status.ok()) {
    return status;
  }
  if (version != CUPTI_API_VERSION) {
    return absl::UnavailableError(absl::StrCat("CUPTI has API version ", version,
                                               "; this program can read records of ",
                                               CUPTI_API_VERSION, " only"));
  }
  return cupti;
}

const absl::StatusOr<Cupti>& TheCupti() {
  static const auto* const cupti = new absl::StatusOr<Cupti>(LoadCupti());
  return *cupti;
}

uint64_t MonotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// What the callbacks, which take no context, write to.
struct TraceState {
  std::atomic<uint32_t> last_launch{0};
  std::mutex mutex;
  std::map<uint32_t, KernelSpan> spans;  // by correlation id; guarded by mutex
  bool without_times = false;            // a record had no time stamps; guarded by mutex
};
TraceState& TheTraceState() {
  static auto* const state = new TraceState;
  return *state;
}

void OnLaunch(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite == CUPTI_API_ENTER) TheTraceState().last_launch = call->correlationId;
}

void GiveRecordBuffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, kRecordBufferBytes));
  *size = *buffer == nullptr ? 0 : kRecordBufferBytes;
  *most_records = 0;
}

void ReadRecordBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  TraceState& state = TheTraceState();
  std::lock_guard<std::mutex> lock(state.mutex);
  CUpti_Activity* record = nullptr;
  while (TheCupti()->GetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    if (kernel->start == 0 && kernel->end == 0) {
      state.without_times = true;
      continue;
    }
    KernelSpan& span = state.spans[kernel->correlationId];
    span.start_ns = span.kernels == 0 ? kernel->start : std::min(span.start_ns, kernel->start);
    span.end_ns = std::max(span.end_ns, kernel->end);
    span.busy_ns += kernel->end - kernel->start;
    ++span.kernels;
  }
  while (state.spans.size() > kMostLaunches) state.spans.erase(state.spans.begin());
  free(buffer);
}

class CuptiTrace : public KernelTrace {
 public:
  explicit CuptiTrace(const Cupti& cupti) : cupti_(cupti) {}

  uint32_t last_launch() const override { return TheTraceState().last_launch; }

  absl::StatusOr<KernelSpan> Take(uint32_t launch, int kernels) override {
    if (absl::Status status = cupti_.Check(cupti_.FlushAll(0), "cuptiActivityFlushAll");
        !status.ok()) {
      return status;
    }
    size_t dropped = 0;
    if (absl::Status status = cupti_.Check(cupti_.GetNumDroppedRecords(nullptr, 0, &dropped),
                                           "cuptiActivityGetNumDroppedRecords");
        !status.ok()) {
      return status;
    }
    TraceState& state = TheTraceState();
    std::lock_guard<std::mutex> lock(state.mutex);
    KernelSpan span;
    if (const auto found = state.spans.find(launch); found != state.spans.end()) {
      span = found->second;
    }
    // Older launches are checks that nobody asks about.
    state.spans.erase(state.spans.begin(), state.spans.upper_bound(launch));
    if (span.kernels == kernels || (kernels == 0 && span.kernels > 0)) return span;
    return absl::UnavailableError(
        absl::StrCat("CUPTI gave ", span.kernels, " records of a launch of ", kernels, " kernels",
                     dropped > 0 ? absl::StrCat("; it dropped ", dropped) : "",
                     state.without_times ? "; some have no time stamps" : ""));
  }

 private:
  const Cupti& cupti_;
};

}  // namespace

absl::Status KernelTrace::Probe() { return TheCupti().status(); }

absl::StatusOr<std::unique_ptr<KernelTrace>> KernelTrace::Start() {
  const absl::StatusOr<Cupti>& cupti = TheCupti();
  if (!cupti.ok()) return cupti.status();
  CUpti_SubscriberHandle subscriber = nullptr;
  // In this order: subscribing shows whether a profiler is attached already, and the time stamps'
  // clock must be set before a kind is enabled. The default clock is CLOCK_REALTIME, whose steps
  // would bend durations.
  absl::Status status =
      cupti->Check(cupti->Subscribe(&subscriber, OnLaunch, nullptr), "cuptiSubscribe");
  if (!status.ok()) return status;
  status = cupti->Check(cupti->EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                              CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch),
                        "cuptiEnableCallback");
  if (!status.ok()) return status;
  status = cupti->Check(cupti->RegisterTimestampCallback(MonotonicNanoseconds),
                        "cuptiActivityRegisterTimestampCallback");
  if (!status.ok()) return status;
  status = cupti->Check(cupti->RegisterCallbacks(GiveRecordBuffer, ReadRecordBuffer),
                        "cuptiActivityRegisterCallbacks");
  if (!status.ok()) return status;
  status =
      cupti->Check(cupti->Enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
  if (!status.ok()) return status;
  return std::make_unique<CuptiTrace>(*cupti);
}

}  // namespace tilewright
