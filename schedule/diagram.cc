#include "schedule/diagram.h"

#include <algorithm>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

using Node = Diagram::Node;

// A set of paths under construction. Edge e of a node is value number e of the layer's decision; a
// decision that may be absent has one more edge, its last, for absence. The root is node 0 of layer
// 0, the end node 0 of the last layer, which has no edges; the empty set has no nodes.
struct Graph {
  struct Layer {
    int edges = 0;
    size_t nodes = 0;
    std::vector<Node> children;  // node * edges + edge
  };
  std::vector<Layer> layers;
};

bool IsConditional(const ResolvedDefinition& resolved, int decision) {
  return static_cast<bool>(resolved.definition.decisions[decision].present);
}
int Edges(const ResolvedDefinition& resolved, int decision) {
  return static_cast<int>(resolved.definition.decisions[decision].values.size()) +
         (IsConditional(resolved, decision) ? 1 : 0);
}

// Distinct rows of one width, numbered in order of first appearance.
template <typename T>
class RowSet {
 public:
  explicit RowSet(size_t width) : width_(width), set_(0, Hash{this}, Equal{this}) {}
  RowSet(const RowSet&) = delete;
  RowSet& operator=(const RowSet&) = delete;

  size_t size() const { return count_; }
  absl::Span<const T> row(size_t i) const { return {rows_.data() + i * width_, width_}; }
  // The number of `row`; adds it if it is new.
  Node Insert(absl::Span<const T> row) {
    rows_.insert(rows_.end(), row.begin(), row.end());
    const auto [found, inserted] = set_.insert(static_cast<Node>(count_));
    if (inserted) {
      ++count_;
    } else {
      rows_.resize(count_ * width_);
    }
    return *found;
  }
  std::vector<T> TakeRows() && { return std::move(rows_); }

 private:
  struct Hash {
    const RowSet* rows;
    size_t operator()(Node i) const { return absl::HashOf(rows->row(i)); }
  };
  struct Equal {
    const RowSet* rows;
    bool operator()(Node a, Node b) const { return rows->row(a) == rows->row(b); }
  };
  const size_t width_;
  size_t count_ = 0;
  std::vector<T> rows_;
  absl::flat_hash_set<Node, Hash, Equal> set_;
};

// Bottom up: drops nodes from which the end cannot be reached and merges equal ones.
void Reduce(Graph& graph) {
  std::vector<Node> renumbered(graph.layers.back().nodes, 0);
  for (int i = static_cast<int>(graph.layers.size()) - 2; i >= 0; --i) {
    Graph::Layer& layer = graph.layers[i];
    RowSet<Node> rows(layer.edges);
    std::vector<Node> row(layer.edges);
    std::vector<Node> next(layer.nodes, Diagram::kNoNode);
    for (size_t node = 0; node < layer.nodes; ++node) {
      bool alive = false;
      for (int edge = 0; edge < layer.edges; ++edge) {
        const Node old = layer.children[node * layer.edges + edge];
        row[edge] = old == Diagram::kNoNode ? old : renumbered[old];
        alive |= row[edge] != Diagram::kNoNode;
      }
      if (alive) next[node] = rows.Insert(row);
    }
    layer.nodes = rows.size();
    layer.children = std::move(rows).TakeRows();
    renumbered = std::move(next);
  }
}

// By layer and node, the number of paths to the end. Empty if one exceeds 128 bits.
std::vector<std::vector<absl::uint128>> CountPaths(const Graph& graph) {
  std::vector<std::vector<absl::uint128>> paths(graph.layers.size());
  paths.back().assign(graph.layers.back().nodes, 1);
  for (int i = static_cast<int>(graph.layers.size()) - 2; i >= 0; --i) {
    const Graph::Layer& layer = graph.layers[i];
    paths[i].assign(layer.nodes, 0);
    for (size_t j = 0; j < layer.children.size(); ++j) {
      if (layer.children[j] == Diagram::kNoNode) continue;
      absl::uint128& sum = paths[i][j / layer.edges];
      const absl::uint128 add = paths[i + 1][layer.children[j]];
      if (absl::Uint128Max() - sum < add) return {};
      sum += add;
    }
  }
  return paths;
}

// The paths that one presence or one constraint leaves, expanded top down. Layers whose decision
// has no part in it pass the state on along every edge.
class Expansion {
 public:
  // `constraint` < 0: only the presence of `decision` is applied.
  Expansion(const ResolvedDefinition& resolved, absl::Span<const std::vector<int64_t>> size_points,
            int decision, int constraint)
      : resolved_(resolved),
        size_points_(size_points),
        constraint_(constraint),
        relevant_(resolved.variables(), false),
        values_(resolved.variables(), kAbsent) {
    if (constraint >= 0) {
      for (int v : resolved.constraint_reads[constraint]) MarkRelevant(v);
    } else {
      MarkRelevant(decision);
    }
    FindLive();
  }

  absl::StatusOr<Graph> Run(size_t max_keys) {
    const int layers = resolved_.decisions();
    Graph graph;
    graph.layers.resize(layers + 1);
    auto states = std::make_unique<RowSet<int64_t>>(live_[0].size());
    if (Settle(-1)) states->Insert(State(0));
    for (int i = 0; i < layers; ++i) {
      auto next = std::make_unique<RowSet<int64_t>>(live_[i + 1].size());
      Graph::Layer& layer = graph.layers[i];
      layer.edges = Edges(resolved_, i);
      layer.nodes = states->size();
      layer.children.assign(layer.nodes * layer.edges, Diagram::kNoNode);
      for (size_t node = 0; node < layer.nodes; ++node) {
        absl::Span<const int64_t> state = states->row(node);
        for (size_t j = 0; j < state.size(); ++j) values_[live_[i][j]] = state[j];
        ExpandNode(i, absl::MakeSpan(&layer.children[node * layer.edges], layer.edges), *next);
      }
      if (next->size() > max_keys) return TooManyKeys(i, max_keys);
      states = std::move(next);
    }
    graph.layers[layers].nodes = states->size();
    return graph;
  }

 private:
  // A variable and all that it is computed from or present by.
  void MarkRelevant(int variable) {
    if (relevant_[variable]) return;
    relevant_[variable] = true;
    const int layers = resolved_.decisions();
    for (int v : variable < layers ? resolved_.presence_reads[variable]
                                   : resolved_.combination_reads[variable - layers]) {
      MarkRelevant(v);
    }
  }

  // A variable is in the state of the layers after the one that makes it known, up to the last that
  // reads it.
  void FindLive() {
    const int layers = resolved_.decisions();
    std::vector<int> last_read(resolved_.variables(), -1);
    const auto read = [&](absl::Span<const int> reads, int layer) {
      for (int v : reads) last_read[v] = std::max(last_read[v], layer);
    };
    for (int v = 0; v < resolved_.variables(); ++v) {
      if (!relevant_[v]) continue;
      if (v < layers) {
        read(resolved_.presence_reads[v], v);
      } else {
        read(resolved_.combination_reads[v - layers], resolved_.known[v]);
      }
    }
    if (constraint_ >= 0) {
      read(resolved_.constraint_reads[constraint_], resolved_.constraint_known[constraint_]);
    }
    live_.resize(layers + 1);
    for (int layer = 0; layer <= layers; ++layer) {
      for (int v = 0; v < resolved_.variables(); ++v) {
        if (resolved_.known[v] < layer && last_read[v] >= layer) live_[layer].push_back(v);
      }
    }
  }

  void ExpandNode(int layer, absl::Span<Node> children, RowSet<int64_t>& next) {
    if (!relevant_[layer]) {
      std::fill(children.begin(), children.end(), next.Insert(State(layer + 1)));
      return;
    }
    const std::vector<DecisionValue>& values = resolved_.definition.decisions[layer].values;
    if (!IsPresent(resolved_, layer, values_)) {
      values_[layer] = kAbsent;
      if (Settle(layer)) children.back() = next.Insert(State(layer + 1));
      return;
    }
    for (size_t value = 0; value < values.size(); ++value) {
      values_[layer] = values[value].number;
      if (Settle(layer)) children[value] = next.Insert(State(layer + 1));
    }
  }

  // Computes and checks what becomes known with `layer`.
  bool Settle(int layer) {
    const int layers = resolved_.decisions();
    for (int v = layers; v < resolved_.variables(); ++v) {
      if (relevant_[v] && resolved_.known[v] == layer) {
        values_[v] = CombinationValue(resolved_, v - layers, values_);
      }
    }
    return constraint_ < 0 || resolved_.constraint_known[constraint_] != layer ||
           FirstViolation(resolved_, constraint_, values_, size_points_) < 0;
  }

  absl::Span<const int64_t> State(int layer) {
    state_.clear();
    for (int v : live_[layer]) state_.push_back(values_[v]);
    return state_;
  }

  absl::Status TooManyKeys(int layer, size_t max_keys) const {
    const std::string where =
        constraint_ < 0 ? "a presence"
                        : "constraint '" + resolved_.definition.constraints[constraint_].name + "'";
    return absl::ResourceExhaustedError(absl::StrCat(
        "space of ", resolved_.definition.variant, ": ", where, " keeps more than ", max_keys,
        " states after decision '", resolved_.definition.decisions[layer].name,
        "'; fewer are needed if it reads combinations of: ",
        absl::StrJoin(live_[layer + 1], ", ",
                      [&](std::string* out, int v) { *out += resolved_.VariableName(v); })));
  }

  const ResolvedDefinition& resolved_;
  const absl::Span<const std::vector<int64_t>> size_points_;
  const int constraint_;
  std::vector<bool> relevant_;          // by variable
  std::vector<std::vector<int>> live_;  // by layer: what its state holds, in order
  std::vector<int64_t> values_;         // by variable
  std::vector<int64_t> state_;
};

// The paths that are in both, reduced. A node of the result is a pair of nodes.
absl::StatusOr<Graph> Intersect(const ResolvedDefinition& resolved, const Graph& a, const Graph& b,
                                size_t max_keys) {
  Graph result;
  result.layers.resize(a.layers.size());
  std::vector<std::pair<Node, Node>> pairs;
  if (a.layers[0].nodes > 0 && b.layers[0].nodes > 0) pairs.emplace_back(0, 0);
  for (size_t i = 0; i + 1 < a.layers.size(); ++i) {
    Graph::Layer& layer = result.layers[i];
    layer.edges = a.layers[i].edges;
    layer.nodes = pairs.size();
    layer.children.reserve(layer.nodes * layer.edges);
    std::vector<std::pair<Node, Node>> next;
    absl::flat_hash_map<std::pair<Node, Node>, Node> numbers;
    for (const auto& [from_a, from_b] : pairs) {
      for (int edge = 0; edge < layer.edges; ++edge) {
        const Node to_a = a.layers[i].children[from_a * size_t(layer.edges) + edge];
        const Node to_b = b.layers[i].children[from_b * size_t(layer.edges) + edge];
        if (to_a == Diagram::kNoNode || to_b == Diagram::kNoNode) {
          layer.children.push_back(Diagram::kNoNode);
          continue;
        }
        const auto [found, inserted] =
            numbers.try_emplace({to_a, to_b}, static_cast<Node>(next.size()));
        if (inserted) next.emplace_back(to_a, to_b);
        layer.children.push_back(found->second);
      }
    }
    if (next.size() > max_keys) {
      return absl::ResourceExhaustedError(
          absl::StrCat("space of ", resolved.definition.variant, ": more than ", max_keys,
                       " states after decision '", resolved.definition.decisions[i].name,
                       "'; put decisions that constraints couple next to each other"));
    }
    pairs = std::move(next);
  }
  result.layers.back().nodes = pairs.size();
  Reduce(result);
  return result;
}

Graph Everything(const ResolvedDefinition& resolved) {
  Graph graph;
  graph.layers.resize(resolved.decisions() + 1);
  for (int i = 0; i < resolved.decisions(); ++i) {
    const int edges = Edges(resolved, i);
    graph.layers[i] = {edges, 1, std::vector<Node>(edges, 0)};
  }
  graph.layers.back().nodes = 1;
  return graph;
}

}  // namespace

class DiagramCompiler {
 public:
  DiagramCompiler(const ResolvedDefinition& resolved,
                  absl::Span<const std::vector<int64_t>> size_points, size_t max_keys)
      : resolved_(resolved),
        size_points_(size_points),
        max_keys_(max_keys),
        graph_(Everything(resolved)) {}

  absl::StatusOr<Diagram> Compile() {
    for (int i = 0; i < resolved_.decisions(); ++i) {
      if (!IsConditional(resolved_, i)) continue;
      absl::Status applied = Apply(i, -1);
      if (!applied.ok()) return applied;
    }
    absl::Status counted = Count();
    if (!counted.ok()) return counted;
    for (size_t i = 0; i < resolved_.definition.constraints.size(); ++i) {
      absl::Status applied = Apply(-1, static_cast<int>(i));
      if (!applied.ok()) return applied;
      counted = Count();
      if (!counted.ok()) return counted;
    }
    Finish();
    return std::move(diagram_);
  }

 private:
  absl::Status Apply(int decision, int constraint) {
    absl::StatusOr<Graph> expanded =
        Expansion(resolved_, size_points_, decision, constraint).Run(max_keys_);
    if (!expanded.ok()) return expanded.status();
    Reduce(*expanded);
    absl::StatusOr<Graph> both = Intersect(resolved_, graph_, *expanded, max_keys_);
    if (!both.ok()) return both.status();
    graph_ = *std::move(both);
    return absl::OkStatus();
  }

  absl::Status Count() {
    paths_ = CountPaths(graph_);
    if (paths_.empty()) {
      return absl::ResourceExhaustedError(absl::StrCat("space of ", resolved_.definition.variant,
                                                       ": more than 2^128 - 1 schedules"));
    }
    diagram_.counts_.push_back(paths_[0].empty() ? absl::uint128(0) : paths_[0][0]);
    return absl::OkStatus();
  }

  // Takes the edge for absence out: a node has either that one or some of the others.
  void Finish() {
    diagram_.layers_.resize(graph_.layers.size());
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      const Graph::Layer& from = graph_.layers[i];
      Diagram::Layer& to = diagram_.layers_[i];
      to.paths = std::move(paths_[i]);
      to.absent.assign(from.nodes, 0);
      if (i + 1 == graph_.layers.size()) break;
      const bool conditional = IsConditional(resolved_, static_cast<int>(i));
      to.stride = from.edges - (conditional ? 1 : 0);
      for (size_t node = 0; node < from.nodes; ++node) {
        const Node* children = &from.children[node * from.edges];
        to.children.insert(to.children.end(), children, children + to.stride);
        if (!conditional || children[to.stride] == Diagram::kNoNode) continue;
        to.absent[node] = 1;
        to.children[node * to.stride] = children[to.stride];
      }
    }
  }

  const ResolvedDefinition& resolved_;
  const absl::Span<const std::vector<int64_t>> size_points_;
  const size_t max_keys_;
  Graph graph_;
  std::vector<std::vector<absl::uint128>> paths_;
  Diagram diagram_;
};

absl::StatusOr<Diagram> Diagram::Compile(const ResolvedDefinition& resolved,
                                         absl::Span<const std::vector<int64_t>> size_points,
                                         size_t max_keys) {
  return DiagramCompiler(resolved, size_points, max_keys).Compile();
}

size_t Diagram::nodes() const {
  size_t total = 0;
  for (const Layer& layer : layers_) total += layer.absent.size();
  return total;
}

size_t Diagram::bytes() const {
  size_t total = 0;
  for (const Layer& layer : layers_) {
    total += layer.children.capacity() * sizeof(Node) + layer.absent.capacity() +
             layer.paths.capacity() * sizeof(absl::uint128);
  }
  return total;
}

}  // namespace tilewright
