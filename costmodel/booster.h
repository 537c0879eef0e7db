// A gradient-boosted forest: the only door to XGBoost, whose C API booster.cc alone includes.
//
// Deterministic: one thread (rank:pairwise of 1.7.4 differs between 1 and 2), one seed, no
// subsampling. Every error of the library, its exceptions included, comes back as a Status. Models
// are never read from files, which can crash the library.
#ifndef TILEWRIGHT_COSTMODEL_BOOSTER_H_
#define TILEWRIGHT_COSTMODEL_BOOSTER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tilewright {

// Numbers in rows of `columns`; NaN is missing.
struct DenseMatrix {
  int columns = 0;
  std::vector<float> values;  // row-major
  int rows() const { return columns == 0 ? 0 : static_cast<int>(values.size()) / columns; }
};

struct BoosterOptions {
  int rounds = 50;
  // XGBoost's parameters by name: {"objective", "rank:pairwise"}.
  std::vector<std::pair<std::string, std::string>> parameters;
};

class Booster {
 public:
  // `groups`: the sizes of consecutive groups of rows, for ranking; empty: none. InvalidArgument:
  // no rows or columns, numbers of labels or of grouped rows that differ from the number of rows,
  // an infinite value, a label that is not finite. Internal: the library's message.
  static absl::StatusOr<std::unique_ptr<Booster>> Train(const DenseMatrix& matrix,
                                                        absl::Span<const float> labels,
                                                        absl::Span<const unsigned> groups,
                                                        const BoosterOptions& options);
  virtual ~Booster() = default;
  // One number per row as the objective defines it (rank:pairwise: a margin; binary:logistic: a
  // probability). Columns beyond those of training are ignored, fewer are taken as missing.
  virtual absl::StatusOr<std::vector<float>> Predict(DenseMatrix matrix) const = 0;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_COSTMODEL_BOOSTER_H_
