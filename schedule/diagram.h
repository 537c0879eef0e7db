// The layered diagram of a space definition: every legal schedule is one path from the root to the
// end, one layer for each decision, and no path is illegal.
//
// The idea. Decide in order. What one constraint (or one presence) can still ask about the past is
// its state: the values of exactly those decisions, or combinations of them, that it has yet to
// read. Two histories with equal state have the same futures, so they share a node; a combination
// takes its inputs' place, and the constraint is evaluated as soon as the last thing it reads is
// known. Each makes a diagram of its own in this way, which merging equal sub-diagrams from the end
// makes minimal; the space is their intersection, one constraint after another in the order of the
// definition, and each step's count is kept. Since every step is minimal again, constraints that
// have nothing to do with each other do not multiply states. (Reduced ordered multi-valued decision
// diagrams: Bergman, Cire, van Hoeve, Hooker, "Decision Diagrams for Optimization", 2016, chapters
// 3 and 4; the intersection of pairs: Bryant, "Graph-Based Algorithms for Boolean Function
// Manipulation", 1986, section 4.3.)
//
// Immutable; safe to share between threads.
#ifndef TILEWRIGHT_SCHEDULE_DIAGRAM_H_
#define TILEWRIGHT_SCHEDULE_DIAGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "schedule/space.h"

namespace tilewright {

// A definition with its names resolved. Variables are numbered: decisions in order, then
// combinations in order. Layer i decides decision i; a variable is known after layer known[v], -1
// if it reads nothing.
struct ResolvedDefinition {
  SpaceDefinition definition;
  std::vector<std::vector<int>> presence_reads;     // by decision
  std::vector<std::vector<int>> combination_reads;  // by combination
  std::vector<std::vector<int>> constraint_reads;   // by constraint
  std::vector<int> known;                           // by variable
  std::vector<int> constraint_known;                // by constraint: when all it reads is known

  int decisions() const { return static_cast<int>(definition.decisions.size()); }
  int variables() const { return static_cast<int>(known.size()); }
  std::string VariableName(int variable) const;
  // InvalidArgument: an unknown, later or repeated name, a decision without values or with a
  // repeated token, a missing function.
  static absl::StatusOr<ResolvedDefinition> Make(SpaceDefinition definition);
};

// Calls with the numbers of the variables `reads`, taken from `values` (by variable).
bool IsPresent(const ResolvedDefinition& resolved, int decision, absl::Span<const int64_t> values);
int64_t CombinationValue(const ResolvedDefinition& resolved, int combination,
                         absl::Span<const int64_t> values);
// The number of the first of `size_points` at which the constraint fails; -1 if it holds at all.
int FirstViolation(const ResolvedDefinition& resolved, int constraint,
                   absl::Span<const int64_t> values,
                   absl::Span<const std::vector<int64_t>> size_points);
std::vector<int64_t> Gather(absl::Span<const int> reads, absl::Span<const int64_t> values);

class Diagram {
 public:
  using Node = uint32_t;
  static constexpr Node kNoNode = UINT32_MAX;

  // ResourceExhausted: a layer has more than `max_keys` states (names the decision and what is live
  // there), or there are more than 2^128 - 1 schedules.
  static absl::StatusOr<Diagram> Compile(const ResolvedDefinition& resolved,
                                         absl::Span<const std::vector<int64_t>> size_points,
                                         size_t max_keys);

  absl::uint128 count() const { return counts_.back(); }
  // The number of schedules that the first n constraints leave, n = 0 ... all.
  absl::Span<const absl::uint128> counts() const { return counts_; }
  // Precondition: count() > 0.
  Node root() const { return 0; }
  // Does the node's layer skip its decision? Then its one edge is value 0.
  bool Absent(int layer, Node node) const { return layers_[layer].absent[node] != 0; }
  // The number of edges to look at: the decision's values, or 1 where it is absent.
  int Fanout(int layer, Node node) const { return Absent(layer, node) ? 1 : layers_[layer].stride; }
  // The node that value number `value` leads to in layer + 1; kNoNode if no legal schedule has it.
  Node Child(int layer, Node node, int value) const {
    return layers_[layer].children[static_cast<size_t>(node) * layers_[layer].stride + value];
  }
  // The number of legal ways from `node` of `layer` to the end; 0 for kNoNode.
  absl::uint128 Paths(int layer, Node node) const {
    return node == kNoNode ? absl::uint128(0) : layers_[layer].paths[node];
  }
  size_t nodes() const;
  size_t bytes() const;

 private:
  friend class DiagramCompiler;
  struct Layer {
    int stride = 1;
    std::vector<Node> children;   // node * stride + value
    std::vector<uint8_t> absent;  // by node
    std::vector<absl::uint128> paths;
  };
  std::vector<Layer> layers_;  // one per decision, and the end
  std::vector<absl::uint128> counts_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_DIAGRAM_H_
