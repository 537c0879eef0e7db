#include "schedule/diagram.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

// Distinct rows of int64_t of one width, numbered in order of first appearance.
class RowSet {
 public:
  explicit RowSet(size_t width) : width_(width), set_(0, Hash{this}, Equal{this}) {}
  RowSet(const RowSet&) = delete;
  RowSet& operator=(const RowSet&) = delete;

  size_t size() const { return count_; }
  absl::Span<const int64_t> row(size_t i) const { return {rows_.data() + i * width_, width_}; }
  // The number of the row that the caller has written to; adds it if it is new.
  uint32_t Insert(absl::Span<const int64_t> row) {
    rows_.insert(rows_.end(), row.begin(), row.end());
    const auto [found, inserted] = set_.insert(static_cast<uint32_t>(count_));
    if (inserted) {
      ++count_;
    } else {
      rows_.resize(count_ * width_);
    }
    return *found;
  }

 private:
  struct Hash {
    const RowSet* rows;
    size_t operator()(uint32_t i) const { return absl::HashOf(rows->row(i)); }
  };
  struct Equal {
    const RowSet* rows;
    bool operator()(uint32_t a, uint32_t b) const { return rows->row(a) == rows->row(b); }
  };
  const size_t width_;
  size_t count_ = 0;
  std::vector<int64_t> rows_;
  absl::flat_hash_set<uint32_t, Hash, Equal> set_;
};

// Expands states layer by layer. Shared by the compiler of the diagram and by counting.
class Expansion {
 public:
  // Only the first `constraints` constraints are applied.
  Expansion(const ResolvedDefinition& resolved, absl::Span<const std::vector<int64_t>> size_points,
            int constraints)
      : resolved_(resolved), size_points_(size_points), values_(resolved.variables(), 0) {
    const int layers = resolved.decisions();
    // last_read[v]: the last layer in which something reads v, which is then in that layer's state.
    std::vector<int> last_read(resolved.variables(), -1);
    const auto read = [&](absl::Span<const int> reads, int layer) {
      for (int v : reads) last_read[v] = std::max(last_read[v], layer);
    };
    for (int i = 0; i < layers; ++i) read(resolved.presence_reads[i], i);
    std::vector<bool> used(resolved.variables(), false);
    constraints_at_.resize(layers + 1);
    for (int i = 0; i < constraints; ++i) {
      read(resolved.constraint_reads[i], resolved.constraint_known[i]);
      for (int v : resolved.constraint_reads[i]) used[v] = true;
      constraints_at_[resolved.constraint_known[i] + 1].push_back(i);
    }
    // Combinations read only earlier ones, so the last comes first.
    combinations_at_.resize(layers + 1);
    for (int i = static_cast<int>(resolved.combination_reads.size()) - 1; i >= 0; --i) {
      if (!used[layers + i]) continue;
      const int known = resolved.known[layers + i];
      read(resolved.combination_reads[i], known);
      for (int v : resolved.combination_reads[i]) used[v] = true;
      combinations_at_[known + 1].insert(combinations_at_[known + 1].begin(), i);
    }
    live_.resize(layers + 1);
    for (int layer = 0; layer <= layers; ++layer) {
      for (int v = 0; v < resolved.variables(); ++v) {
        if (resolved.known[v] < layer && last_read[v] >= layer) live_[layer].push_back(v);
      }
    }
  }

  // What the state before `layer` holds, in order.
  absl::Span<const int> live(int layer) const { return live_[layer]; }

  // Calls `reach(state)` once unless what reads no decision is already violated.
  template <typename Reach>
  void Start(Reach&& reach) {
    if (Settle(-1)) reach(State(0));
  }

  // Is the layer's decision absent in `state`? Must be called before Step on the same state.
  bool Enter(int layer, absl::Span<const int64_t> state) {
    for (size_t i = 0; i < state.size(); ++i) values_[live_[layer][i]] = state[i];
    return !IsPresent(resolved_, layer, values_);
  }
  // Takes value number `value` (or absence) and calls `reach(next state)` if nothing is violated.
  template <typename Reach>
  void Step(int layer, bool absent, int value, Reach&& reach) {
    values_[layer] = absent ? kAbsent : resolved_.definition.decisions[layer].values[value].number;
    if (Settle(layer)) reach(State(layer + 1));
  }

 private:
  // Computes and checks what has become known with `layer`.
  bool Settle(int layer) {
    for (int i : combinations_at_[layer + 1]) {
      values_[resolved_.decisions() + i] = CombinationValue(resolved_, i, values_);
    }
    for (int i : constraints_at_[layer + 1]) {
      if (FirstViolation(resolved_, i, values_, size_points_) >= 0) return false;
    }
    return true;
  }
  absl::Span<const int64_t> State(int layer) {
    state_.clear();
    for (int v : live_[layer]) state_.push_back(values_[v]);
    return state_;
  }

  const ResolvedDefinition& resolved_;
  const absl::Span<const std::vector<int64_t>> size_points_;
  std::vector<std::vector<int>> combinations_at_;  // by layer + 1
  std::vector<std::vector<int>> constraints_at_;   // by layer + 1
  std::vector<std::vector<int>> live_;             // by layer
  std::vector<int64_t> values_;                    // by variable
  std::vector<int64_t> state_;
};

}  // namespace

class DiagramCompiler {
 public:
  DiagramCompiler(const ResolvedDefinition& resolved,
                  absl::Span<const std::vector<int64_t>> size_points, size_t max_keys)
      : resolved_(resolved),
        expansion_(resolved, size_points, static_cast<int>(resolved.definition.constraints.size())),
        max_keys_(max_keys) {}

  absl::StatusOr<Diagram> Compile() {
    absl::Status expanded = Expand();
    if (!expanded.ok()) return expanded;
    absl::Status reduced = Reduce();
    if (!reduced.ok()) return reduced;
    return std::move(diagram_);
  }

 private:
  // Top down: makes the states and edges of every layer. The end is one node.
  absl::Status Expand() {
    const int layers = resolved_.decisions();
    diagram_.layers_.resize(layers + 1);
    auto states = std::make_unique<RowSet>(expansion_.live(0).size());
    expansion_.Start([&](absl::Span<const int64_t> state) { states->Insert(state); });
    for (int i = 0; i < layers; ++i) {
      Diagram::Layer& layer = diagram_.layers_[i];
      layer.stride = static_cast<int>(resolved_.definition.decisions[i].values.size());
      layer.absent.resize(states->size());
      layer.children.assign(states->size() * layer.stride, Diagram::kNoNode);
      auto next = std::make_unique<RowSet>(expansion_.live(i + 1).size());
      for (size_t node = 0; node < states->size(); ++node) {
        const bool absent = expansion_.Enter(i, states->row(node));
        layer.absent[node] = absent;
        Diagram::Node* children = &layer.children[node * layer.stride];
        for (int value = 0; value < (absent ? 1 : layer.stride); ++value) {
          expansion_.Step(i, absent, value, [&](absl::Span<const int64_t> state) {
            children[value] = next->Insert(state);
          });
        }
        if (next->size() > max_keys_) return TooManyKeys(i + 1);
      }
      states = std::move(next);
    }
    Diagram::Layer& end = diagram_.layers_[layers];
    end.absent.assign(states->size(), 0);
    end.paths.assign(states->size(), 1);
    return absl::OkStatus();
  }

  absl::Status TooManyKeys(int layer) const {
    return absl::ResourceExhaustedError(
        absl::StrCat("space of ", resolved_.definition.variant, ": more than ", max_keys_,
                     " states after decision '", resolved_.definition.decisions[layer - 1].name,
                     "'; fewer are needed if constraints read combinations of what is live there: ",
                     absl::StrJoin(expansion_.live(layer), ", ", [&](std::string* out, int v) {
                       absl::StrAppend(out, resolved_.VariableName(v));
                     })));
  }

  // Bottom up: drops dead nodes, merges equal ones, and counts paths.
  absl::Status Reduce() {
    std::vector<Diagram::Node> renumbered(diagram_.layers_.back().paths.size(), 0);
    if (!renumbered.empty()) diagram_.layers_.back().absent.resize(1);
    for (int i = resolved_.decisions() - 1; i >= 0; --i) {
      Diagram::Layer& layer = diagram_.layers_[i];
      const Diagram::Layer& below = diagram_.layers_[i + 1];
      Diagram::Layer merged;
      merged.stride = layer.stride;
      RowSet rows(layer.stride + 1);
      std::vector<int64_t> row(layer.stride + 1);
      std::vector<Diagram::Node> next(layer.absent.size(), Diagram::kNoNode);
      for (size_t node = 0; node < layer.absent.size(); ++node) {
        absl::uint128 paths = 0;
        for (int value = 0; value < layer.stride; ++value) {
          const Diagram::Node old = layer.children[node * layer.stride + value];
          const Diagram::Node child = old == Diagram::kNoNode ? old : renumbered[old];
          row[value] = child;
          if (child == Diagram::kNoNode) continue;
          if (absl::Uint128Max() - paths < below.paths[child]) return TooManySchedules();
          paths += below.paths[child];
        }
        if (paths == 0) continue;
        row[layer.stride] = layer.absent[node];
        const size_t before = rows.size();
        next[node] = rows.Insert(row);
        if (rows.size() == before) continue;
        merged.paths.push_back(paths);
        merged.absent.push_back(layer.absent[node]);
        merged.children.insert(merged.children.end(), row.begin(), row.end() - 1);
      }
      merged.paths.shrink_to_fit();
      merged.absent.shrink_to_fit();
      merged.children.shrink_to_fit();
      layer = std::move(merged);
      renumbered = std::move(next);
    }
    const std::vector<absl::uint128>& root = diagram_.layers_[0].paths;
    diagram_.root_count_ = root.empty() ? absl::uint128(0) : root[0];
    return absl::OkStatus();
  }

  absl::Status TooManySchedules() const {
    return absl::ResourceExhaustedError(
        absl::StrCat("space of ", resolved_.definition.variant, ": more than 2^128 - 1 schedules"));
  }

  const ResolvedDefinition& resolved_;
  Expansion expansion_;
  const size_t max_keys_;
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

absl::uint128 CountWithConstraints(const ResolvedDefinition& resolved,
                                   absl::Span<const std::vector<int64_t>> size_points,
                                   int constraints) {
  Expansion expansion(resolved, size_points, constraints);
  auto states = std::make_unique<RowSet>(expansion.live(0).size());
  std::vector<absl::uint128> ways;  // by state: the number of histories that lead to it
  expansion.Start([&](absl::Span<const int64_t> state) {
    states->Insert(state);
    ways.push_back(1);
  });
  for (int i = 0; i < resolved.decisions(); ++i) {
    const int values = static_cast<int>(resolved.definition.decisions[i].values.size());
    auto next = std::make_unique<RowSet>(expansion.live(i + 1).size());
    std::vector<absl::uint128> next_ways;
    for (size_t node = 0; node < states->size(); ++node) {
      const bool absent = expansion.Enter(i, states->row(node));
      for (int value = 0; value < (absent ? 1 : values); ++value) {
        expansion.Step(i, absent, value, [&](absl::Span<const int64_t> state) {
          const uint32_t to = next->Insert(state);
          if (to == next_ways.size()) next_ways.push_back(0);
          next_ways[to] += ways[node];
        });
      }
    }
    states = std::move(next);
    ways = std::move(next_ways);
  }
  return ways.empty() ? absl::uint128(0) : ways[0];
}

}  // namespace tilewright
