#include "measure/call_graph.h"

#include "absl/strings/str_cat.h"

namespace tilewright {

absl::StatusOr<std::unique_ptr<EventPair>> EventPair::Make(CudaContext& context) {
  auto pair = std::unique_ptr<EventPair>(new EventPair(context));
  const CudaDriver& driver = context.driver();
  for (CUevent* event : {&pair->start_, &pair->end_}) {
    absl::Status status =
        driver.Check(driver.EventCreate(event, CU_EVENT_DEFAULT), "cuEventCreate");
    if (!status.ok()) return status;
  }
  return pair;
}

EventPair::~EventPair() {
  for (CUevent event : {start_, end_}) {
    if (event != nullptr) (void)context_.driver().EventDestroy(event);
  }
}

absl::Status EventPair::Record(CUevent event, bool in_graph) {
  const CudaDriver& driver = context_.driver();
  return driver.Check(
      driver.EventRecordWithFlags(event, context_.stream(),
                                  in_graph ? CU_EVENT_RECORD_EXTERNAL : CU_EVENT_RECORD_DEFAULT),
      "cuEventRecordWithFlags");
}

absl::StatusOr<double> EventPair::Seconds() const {
  float milliseconds = 0;
  const CudaDriver& driver = context_.driver();
  absl::Status status =
      driver.Check(driver.EventElapsedTime(&milliseconds, start_, end_), "cuEventElapsedTime");
  if (!status.ok()) return status;
  return static_cast<double>(milliseconds) * 1e-3;
}

absl::Status CallGraph::Enqueue(CudaKernel& kernel, absl::Span<const int> sets) {
  if (absl::Status status = events_->RecordStart(true); !status.ok()) return status;
  for (size_t i = 0; i < sets.size(); ++i) {
    if (absl::Status status = kernel.Enqueue(sets[i], i > 0); !status.ok()) return status;
  }
  return events_->RecordEnd(true);
}

absl::StatusOr<std::unique_ptr<CallGraph>> CallGraph::Capture(CudaContext& context,
                                                              CudaKernel& kernel,
                                                              absl::Span<const int> sets) {
  auto graph = std::unique_ptr<CallGraph>(new CallGraph(context));
  graph->calls_ = static_cast<int>(sets.size());
  graph->kernels_ = graph->calls_ * kernel.launches();
  absl::StatusOr<std::unique_ptr<EventPair>> events = EventPair::Make(context);
  if (!events.ok()) return events.status();
  graph->events_ = *std::move(events);
  const CudaDriver& driver = context.driver();
  absl::Status status =
      driver.Check(driver.StreamBeginCapture(context.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                   "cuStreamBeginCapture");
  if (!status.ok()) return status;
  status = graph->Enqueue(kernel, sets);
  // A capture must be ended, also one that failed.
  absl::Status ended =
      driver.Check(driver.StreamEndCapture(context.stream(), &graph->graph_), "cuStreamEndCapture");
  if (!status.ok()) return status;
  if (!ended.ok()) return ended;
  status =
      driver.Check(driver.GraphInstantiate(&graph->exec_, graph->graph_, 0), "cuGraphInstantiate");
  if (!status.ok()) return status;
  status = driver.Check(driver.GraphUpload(graph->exec_, context.stream()), "cuGraphUpload");
  if (!status.ok()) return status;
  return graph;
}

CallGraph::~CallGraph() {
  const CudaDriver& driver = context_.driver();
  if (exec_ != nullptr) (void)driver.GraphExecDestroy(exec_);
  if (graph_ != nullptr) (void)driver.GraphDestroy(graph_);
}

absl::StatusOr<CallGraph::Times> CallGraph::Run() {
  const CudaDriver& driver = context_.driver();
  absl::Status status = driver.Check(driver.GraphLaunch(exec_, context_.stream()), "cuGraphLaunch");
  if (!status.ok()) return status;
  KernelTrace* trace = context_.trace();
  const uint32_t launch = trace != nullptr ? trace->last_launch() : 0;
  if (status = context_.Synchronize(); !status.ok()) return status;
  const absl::StatusOr<double> between = events_->Seconds();
  if (!between.ok()) return between.status();
  Times times;
  times.event_seconds = *between / calls_;
  times.seconds = times.event_seconds;
  if (trace == nullptr) return times;
  const absl::StatusOr<KernelSpan> span = trace->Take(launch, kernels_);
  if (!span.ok()) {
    return absl::InternalError(absl::StrCat("not timed: ", span.status().message()));
  }
  times.seconds = static_cast<double>(span->end_ns - span->start_ns) * 1e-9 / calls_;
  times.busy_seconds = static_cast<double>(span->busy_ns) * 1e-9 / calls_;
  return times;
}

}  // namespace tilewright
