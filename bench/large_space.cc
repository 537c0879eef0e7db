#include "bench/large_space.h"

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

std::vector<int64_t> Multiples(int64_t step, int64_t last) {
  std::vector<int64_t> result;
  for (int64_t x = step; x <= last; x += step) result.push_back(x);
  return result;
}

Constraint Rule(std::string name, std::vector<std::string> reads,
                std::function<bool(Numbers)> holds) {
  return {.name = std::move(name),
          .reads = std::move(reads),
          .holds = [holds](Numbers n, absl::Span<const int64_t>) { return holds(n); },
          .explain = [](Numbers n, absl::Span<const int64_t>) { return absl::StrCat(n[0]); }};
}

std::vector<Decision> Decisions() {
  return {
      {.name = "tile_m", .values = IntegerValues({64, 128, 192, 256})},
      {.name = "tile_n", .values = IntegerValues(Multiples(8, 256))},
      {.name = "tile_k", .values = IntegerValues(Multiples(32, 256))},
      {.name = "stages", .values = IntegerValues(Multiples(1, 12))},
      {.name = "consumers", .values = IntegerValues({1, 2, 3, 4})},
      {.name = "ping_pong",
       .values = IntegerValues({0, 1}),
       .depends_on = {"consumers"},
       .present = [](Numbers n) { return n[0] == 2; }},
      {.name = "cluster_m", .values = IntegerValues({1, 2, 3, 4, 5, 6, 7, 8})},
      {.name = "cluster_n", .values = IntegerValues({1, 2, 3, 4, 5, 6, 7, 8})},
      {.name = "multicast",
       .values = IntegerValues({0, 1, 2, 3}),
       .depends_on = {"cluster_m", "cluster_n"},
       .present = [](Numbers n) { return n[0] * n[1] > 1; }},
      {.name = "split_k", .values = IntegerValues(Multiples(1, 32))},
      {.name = "reduce",
       .values = {{0, "serial"}, {1, "parallel"}, {2, "cluster"}},
       .depends_on = {"split_k"},
       .present = [](Numbers n) { return n[0] > 1; }},
      {.name = "raster", .values = IntegerValues(Multiples(1, 64))},
      {.name = "store", .values = {{0, "direct"}, {1, "staged"}, {2, "tma"}}},
      {.name = "store_columns",
       .values = IntegerValues(Multiples(8, 128)),
       .depends_on = {"store"},
       .present = [](Numbers n) { return n[0] > 0; }},
      {.name = "producer_registers", .values = IntegerValues(Multiples(4, 160))},
  };
}

}  // namespace

SpaceDefinition HopperGemm() {
  SpaceDefinition definition;
  definition.variant = "bench.wgmma";
  definition.decisions = Decisions();
  definition.combinations = {
      {.name = "stage_bytes",
       .reads = {"tile_m", "tile_n", "tile_k"},
       .value = [](Numbers n) { return (n[0] + n[1]) * n[2] * 2; }},
      {.name = "ring_bytes",
       .reads = {"stage_bytes", "stages"},
       .value = [](Numbers n) { return n[0] * n[1]; }},
      {.name = "groups",
       .reads = {"consumers", "ping_pong"},
       .value = [](Numbers n) { return n[1] == 1 ? 1 : n[0]; }},
      {.name = "cluster",
       .reads = {"cluster_m", "cluster_n"},
       .value = [](Numbers n) { return n[0] * n[1]; }},
      {.name = "store_bytes",
       .reads = {"tile_m", "store", "store_columns"},
       .value = [](Numbers n) { return n[1] == 0 ? 0 : n[0] * n[2] * 2; }},
  };
  definition.constraints = {
      Rule("ring", {"ring_bytes"}, [](Numbers n) { return n[0] <= 232448 - 1024; }),
      Rule("consumer_rows", {"tile_m", "groups"},
           [](Numbers n) { return n[0] % (64 * n[1]) == 0; }),
      Rule("accumulators", {"tile_m", "tile_n", "groups"},
           [](Numbers n) { return n[0] * n[1] / (n[2] * 128) + 40 <= 240; }),
      Rule("cluster_size", {"cluster"}, [](Numbers n) { return n[0] <= 16; }),
      Rule("cluster_reduction", {"cluster", "split_k", "reduce"},
           [](Numbers n) { return n[2] != 2 || (n[1] <= 16 && n[0] * n[1] <= 32); }),
      Rule("slab", {"tile_n", "store", "store_columns"},
           [](Numbers n) { return n[1] == 0 || n[0] % n[2] == 0; }),
      Rule("shared_memory", {"ring_bytes", "store_bytes"},
           [](Numbers n) { return n[0] + n[1] <= 232448 - 1024; }),
      Rule("registers", {"consumers", "tile_m", "tile_n", "groups", "producer_registers"},
           [](Numbers n) {
             const int64_t consumer = n[1] * n[2] / (n[3] * 128) + 40;
             return 128 * (n[0] * consumer + n[4]) <= 65536;
           }),
  };
  return definition;
}

}  // namespace tilewright
