// A CallGraph is N back-to-back calls of a kernel as one graph, the unit that is timed on a GPU:
// the ranking figure is (end of the last launch - start of the first) / N (DESIGN.md 6). Start and
// end come from the kernel trace where there is one, else from events that stand in the graph
// before the first and after the last launch.
#ifndef TILEWRIGHT_MEASURE_CALL_GRAPH_H_
#define TILEWRIGHT_MEASURE_CALL_GRAPH_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "measure/cuda_context.h"
#include "measure/cuda_kernel.h"

namespace tilewright {

// Two events around work on the context's stream.
class EventPair {
 public:
  static absl::StatusOr<std::unique_ptr<EventPair>> Make(CudaContext& context);
  ~EventPair();
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;

  // `in_graph`: while a capture is on, the event becomes a node.
  absl::Status RecordStart(bool in_graph = false) { return Record(start_, in_graph); }
  absl::Status RecordEnd(bool in_graph = false) { return Record(end_, in_graph); }
  // Precondition: the work between has been waited for.
  absl::StatusOr<double> Seconds() const;

 private:
  explicit EventPair(CudaContext& context) : context_(context) {}
  absl::Status Record(CUevent event, bool in_graph);

  CudaContext& context_;
  CUevent start_ = nullptr;
  CUevent end_ = nullptr;
};

class CallGraph {
 public:
  // One call on each of `sets`, in order. Precondition: the kernel is bound. Borrows the kernel.
  static absl::StatusOr<std::unique_ptr<CallGraph>> Capture(CudaContext& context,
                                                            CudaKernel& kernel,
                                                            absl::Span<const int> sets);
  ~CallGraph();
  CallGraph(const CallGraph&) = delete;
  CallGraph& operator=(const CallGraph&) = delete;

  struct Times {
    double seconds = 0;        // per call: the ranking figure, by the context's timer
    double event_seconds = 0;  // per call, by events
    double busy_seconds = 0;   // per call, sum of its kernels' own times; 0 without a trace
  };
  // Launches the graph and waits. Internal: the trace lost records.
  absl::StatusOr<Times> Run();
  int calls() const { return calls_; }

 private:
  explicit CallGraph(CudaContext& context) : context_(context) {}
  absl::Status Enqueue(CudaKernel& kernel, absl::Span<const int> sets);

  CudaContext& context_;
  std::unique_ptr<EventPair> events_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  int calls_ = 0;
  int kernels_ = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_MEASURE_CALL_GRAPH_H_
