// Gaussian-process regression: what a handful of measurements say about a point, and how sure they
// are of it.
//
//   GaussianProcess process;
//   process.Fit(inputs, values, {.steps = 20});         // [rows, columns], one value per row
//   Posterior posterior = process.Predict(candidates);  // mean and deviation of each
//
// The boosted forest (model.h) learns from many rows of many shapes but says nothing of its doubt,
// and knows little after ten rows. This one is for the few hundred rows of a single run: its
// deviation is what an acquisition function needs to explore (Jones, Schonlau, Welch, "Efficient
// Global Optimization of Expensive Black-Box Functions", 1998). The kernel is Matern 5/2 with one
// length per column (Rasmussen, Williams, "Gaussian Processes for Machine Learning", 2006, eq.
// 4.17 and 5.9), plus noise. Lengths, amplitude and noise maximise the posterior density under
// log-normal priors.
//
// Inputs should be scaled to about [0, 1] per column. Values are centred and scaled inside.
// Deterministic, single-threaded. O(rows^3) to fit, O(rows) to predict a mean, O(rows^2) a
// deviation.
#ifndef TILEWRIGHT_COSTMODEL_GAUSSIAN_PROCESS_H_
#define TILEWRIGHT_COSTMODEL_GAUSSIAN_PROCESS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "costmodel/booster.h"

namespace tilewright {

struct FitOptions {
  // Steps of the search for lengths, amplitude and noise, from those of the last Fit; 0 keeps them.
  int steps = 0;
  // The search for them uses this many rows at most (evenly spaced in the order of their values),
  // since each step costs their cube.
  int most_rows = 64;
};

struct Posterior {
  std::vector<double> mean;
  std::vector<double> deviation;  // of the noise-free value
};

class GaussianProcess {
 public:
  GaussianProcess();
  ~GaussianProcess();
  // InvalidArgument: no rows, a number of values other than that of rows, or a number that is not
  // finite; more columns or fewer than the last time. Internal: the covariance of these rows is not
  // positive definite. A failed fit leaves what was known.
  absl::Status Fit(const DenseMatrix& inputs, absl::Span<const double> values,
                   const FitOptions& options);
  // Precondition: fitted, with as many columns. In single precision, which is enough to rank many.
  std::vector<double> PredictMean(const DenseMatrix& inputs) const;
  Posterior Predict(const DenseMatrix& inputs) const;
  // A joint view of some candidates that can be conditioned on one of them after another having its
  // mean: what is left to learn once those before it in a batch are measured. Row-major
  // [rows, rows] covariance of the noise-free values beside the means.
  struct Joint {
    std::vector<double> mean;
    std::vector<double> covariance;
    double noise;  // variance
  };
  Joint PredictJoint(const DenseMatrix& inputs) const;
  bool fitted() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_COSTMODEL_GAUSSIAN_PROCESS_H_
