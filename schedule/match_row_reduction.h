// The family of programs that reduce along rows: sums, maxima and minima of elements of which all
// factors lie in the same row, and what is computed from them. softmax, rmsnorm, layernorm, reduce.
// Sums of products of two different rows are contractions.
#ifndef TILEWRIGHT_SCHEDULE_MATCH_ROW_REDUCTION_H_
#define TILEWRIGHT_SCHEDULE_MATCH_ROW_REDUCTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/workload.h"

namespace tilewright {

// What one pass over all rows can write: every statement is per row or per element of a row, and
// all reductions run over the same indices, the columns.
struct RowReduction {
  // Empty: the rest is set. Else why one pass can't write the program, though it is of the family.
  std::string not_fusable;
  std::vector<int>
      rows;  // indices of a row statement, outermost first as in the first one that writes rows
  std::vector<int> columns;  // the last is the one that lies closest in memory
  // Vector lanes run along the last column index; else (what is read lies closer along it) along
  // the last row index.
  bool lanes_along_columns = true;
  // The text of the largest subexpression with a costly function that several passes compute;
  // empty: none.
  std::string kept_text;
  const Expr* kept = nullptr;  // its first occurrence; owned by the workload
  int passes = 0;              // over the columns: one per reduction and per output with columns
};

// FailedPrecondition: the statement and the reason why the program is not of the family.
absl::StatusOr<RowReduction> MatchRowReduction(const Workload& workload);

}  // namespace tilewright

#endif  // TILEWRIGHT_SCHEDULE_MATCH_ROW_REDUCTION_H_
