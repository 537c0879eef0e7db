// What contraction.tiled may choose: its decisions and constraints, and the quantities both they
// and the plan compute.
#ifndef TILEWRIGHT_SCHEDULE_CONTRACTION_TILED_SPACE_H_
#define TILEWRIGHT_SCHEDULE_CONTRACTION_TILED_SPACE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/match.h"
#include "schedule/space_writer.h"
#include "schedule/target.h"

namespace tilewright {

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// What the space needs to know of a workload and a target. Sizes are the highest.
struct TiledProblem {
  std::shared_ptr<const Contraction> contraction;
  Target target;
  Sizes high;
  int64_t batches = 1, m = 1, n = 1, k = 1;
  int bytes = 4;                // of an accumulator
  int lanes = 1;                // accumulators in a vector
  bool sums_in_output = false;  // partial sums can wait in the output
  int64_t workspace_limit = 0;  // bytes
};
TiledProblem StudyTiled(const Workload& workload, const Target& target,
                        std::shared_ptr<const Contraction> contraction);
void WriteTiledSpace(const TiledProblem& problem, SpaceWriter* space);

// Shares of the cores, at most `extent`: every number of up to eight, then those of the forms 2^i
// and 3 * 2^i, and all.
std::vector<DecisionValue> ThreadCounts(int cores, int64_t extent);
// Accumulators, the vectors of b and one broadcast element of a.
int64_t VectorRegisters(int64_t micro_m, int64_t vectors_n);
// Rows of the thread that has the most, in whole strips.
int64_t StripRows(int64_t extent, int64_t threads, int64_t strip);
// Combinations of the batch axes that the operand depends on.
int64_t BatchesOf(const Contraction& contraction, const ContractionOperand& operand,
                  absl::Span<const int64_t> sizes);
// All of an operand in strips.
int64_t SharedPackingBytes(const TiledProblem& problem, const ContractionOperand& operand,
                           int64_t extent, int64_t strip);
// The share of cycles in which fused multiply-adds keep the pipes full.
double IssueEfficiency(const Target& target, int64_t micro_m, int64_t vectors_n, int64_t unroll_k);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_CONTRACTION_TILED_SPACE_H_
