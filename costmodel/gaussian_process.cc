#include "costmodel/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "Eigen/Cholesky"
#include "Eigen/Core"
#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

// The logarithms of what the kernel depends on.
struct Hyperparameters {
  Vector length;         // by column
  double amplitude = 0;  // variance of the values, which are scaled to 1
  double noise = 0;      // variance
};

// Log-normal priors: median and deviation of the logarithm. A decision's effect is smooth over most
// of its range but not a straight line; a repeated timing differs by a few per cent of the spread.
constexpr double kLengthMedian = 0.7, kLengthDeviation = 1.0;
constexpr double kAmplitudeDeviation = 1.0;
constexpr double kNoiseMedian = 1e-2, kNoiseDeviation = 1.5;
constexpr double kLeastNoise = 1e-4, kMostNoise = 1.0;
constexpr double kLeastLength = 0.02, kMostLength = 20;

constexpr double kSqrt5 = 2.2360679774997896;

template <typename Scalar>
using MatrixOf = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;
template <typename Scalar>
using VectorOf = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

template <typename Scalar>
MatrixOf<Scalar> ToEigen(const DenseMatrix& inputs) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(inputs.values.data(), inputs.rows(), inputs.columns)
      .template cast<Scalar>();
}

// Distances after every column was divided by its length, [a.rows(), b.rows()].
template <typename Scalar>
MatrixOf<Scalar> ScaledDistances(const MatrixOf<Scalar>& a, const MatrixOf<Scalar>& b) {
  MatrixOf<Scalar> squared = Scalar{-2} * (a * b.transpose());
  squared.colwise() += a.rowwise().squaredNorm();
  squared.rowwise() += b.rowwise().squaredNorm().transpose();
  return squared.array().max(Scalar{0}).sqrt().matrix();
}

// Matern 5/2 of a distance, amplitude 1.
template <typename Scalar>
MatrixOf<Scalar> Matern(const MatrixOf<Scalar>& distance) {
  const auto r = static_cast<Scalar>(kSqrt5) * distance.array();
  return ((Scalar{1} + r + r.square() / Scalar{3}) * (-r).exp()).matrix();
}

template <typename Scalar>
MatrixOf<Scalar> Scaled(const MatrixOf<Scalar>& inputs, const VectorOf<Scalar>& log_length) {
  return inputs * (-log_length).array().exp().matrix().asDiagonal();
}

// Gradient of the log posterior density in (lengths, amplitude, noise); absent if the covariance is
// not positive definite. With W = a a' - K^-1, a = K^-1 y, the likelihood's part is
// tr(W dK / dh) / 2.
std::optional<Vector> LogPosteriorGradient(const Matrix& inputs, const Vector& values,
                                           const Hyperparameters& h) {
  const int n = static_cast<int>(inputs.rows()), d = static_cast<int>(inputs.cols());
  const Matrix x = Scaled(inputs, h.length);
  const Matrix distance = ScaledDistances(x, x);
  const double amplitude = std::exp(h.amplitude), noise = std::exp(h.noise);
  const Matrix kernel = amplitude * Matern(distance);
  Matrix covariance = kernel;
  covariance.diagonal().array() += noise;
  const Eigen::LLT<Matrix> factor(covariance);
  if (factor.info() != Eigen::Success) return std::nullopt;
  const Vector a = factor.solve(values);
  const Matrix w = a * a.transpose() - factor.solve(Matrix::Identity(n, n));
  Vector gradient(d + 2);
  // d Matern / d log(length_j) = 5/3 (1 + sqrt5 r) exp(-sqrt5 r) (difference_j / length_j)^2.
  const Matrix g = (w.array() * (amplitude * 5.0 / 3.0) * (1.0 + kSqrt5 * distance.array()) *
                    (-kSqrt5 * distance.array()).exp())
                       .matrix();
  const Vector row_sums = g.rowwise().sum();
  const Matrix gx = g * x;
  for (int j = 0; j < d; ++j) {
    const double weighted =
        2.0 * (x.col(j).array().square() * row_sums.array()).sum() - 2.0 * x.col(j).dot(gx.col(j));
    gradient[j] = 0.5 * weighted -
                  (h.length[j] - std::log(kLengthMedian)) / (kLengthDeviation * kLengthDeviation);
  }
  gradient[d] = 0.5 * (w.array() * kernel.array()).sum() -
                h.amplitude / (kAmplitudeDeviation * kAmplitudeDeviation);
  gradient[d + 1] = 0.5 * noise * w.trace() -
                    (h.noise - std::log(kNoiseMedian)) / (kNoiseDeviation * kNoiseDeviation);
  return gradient;
}

void Clamp(Hyperparameters* h) {
  h->length = h->length.array().max(std::log(kLeastLength)).min(std::log(kMostLength));
  h->noise = std::clamp(h->noise, std::log(kLeastNoise), std::log(kMostNoise));
  h->amplitude = std::clamp(h->amplitude, -4.0, 4.0);
}

// Climbs with a step size per parameter that grows while the sign of the gradient stays and shrinks
// when it turns (Rprop: Riedmiller, Braun, 1993): it needs no scale of the gradient and no line
// search. A step to where the covariance is not positive definite ends it.
Hyperparameters Climb(const Matrix& inputs, const Vector& values, Hyperparameters h, int steps) {
  const int d = static_cast<int>(inputs.cols());
  Vector step = Vector::Constant(d + 2, 0.2);
  Vector last = Vector::Zero(d + 2);
  for (int s = 0; s < steps; ++s) {
    const std::optional<Vector> gradient = LogPosteriorGradient(inputs, values, h);
    if (!gradient) break;
    Hyperparameters next = h;
    for (int j = 0; j < d + 2; ++j) {
      const double turn = (*gradient)[j] * last[j];
      if (turn > 0) step[j] = std::min(step[j] * 1.3, 0.8);
      if (turn < 0) step[j] = std::max(step[j] * 0.5, 1e-3);
      last[j] = turn < 0 ? 0 : (*gradient)[j];
      const double change = last[j] > 0 ? step[j] : last[j] < 0 ? -step[j] : 0;
      (j < d ? next.length[j] : j == d ? next.amplitude : next.noise) += change;
    }
    Clamp(&next);
    h = next;
  }
  return h;
}

// Up to `most` rows, evenly spaced in the order of their values, the least and largest among them.
std::vector<int> Spread(const Vector& values, int most) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  if (static_cast<int>(order.size()) <= most) return order;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[a] < values[b]; });
  std::vector<int> rows;
  for (int i = 0; i < most; ++i) rows.push_back(order[i * (order.size() - 1) / (most - 1)]);
  return rows;
}

}  // namespace

struct GaussianProcess::State {
  Hyperparameters h;
  Matrix x;  // scaled inputs
  Eigen::LLT<Matrix> factor;
  Vector a;  // K^-1 (values, centred and scaled)
  // What PredictMean computes with.
  MatrixOf<float> x_in_floats;
  VectorOf<float> amplitude_a_in_floats;
  double centre = 0;
  double scale = 1;

  Matrix Kernel(const Matrix& candidates) const {
    return std::exp(h.amplitude) * Matern(ScaledDistances(candidates, x));
  }
};

GaussianProcess::GaussianProcess() = default;
GaussianProcess::~GaussianProcess() = default;
bool GaussianProcess::fitted() const { return state_ != nullptr; }

absl::Status GaussianProcess::Fit(const DenseMatrix& inputs, absl::Span<const double> values,
                                  const FitOptions& options) {
  const auto finite = [](const auto& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); });
  };
  if (inputs.rows() == 0 || values.size() != static_cast<size_t>(inputs.rows()) ||
      !finite(values) || !finite(inputs.values) ||
      (state_ != nullptr && inputs.columns != state_->h.length.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a Gaussian process wants finite rows of as many columns each time and one value per row; "
        "got ",
        inputs.rows(), " rows of ", inputs.columns, " columns and ", values.size(), " values"));
  }
  auto next = std::make_unique<State>();
  if (state_ != nullptr) {
    next->h = state_->h;
  } else {
    next->h.length = Vector::Constant(inputs.columns, std::log(kLengthMedian));
    next->h.noise = std::log(kNoiseMedian);
  }
  const Vector raw = Eigen::Map<const Vector>(values.data(), values.size());
  next->centre = raw.mean();
  const double variance = (raw.array() - next->centre).square().mean();
  next->scale = variance > 0 ? std::sqrt(variance) : 1;
  const Vector y = (raw.array() - next->centre) / next->scale;
  const Matrix all = ToEigen<double>(inputs);
  if (options.steps > 0) {
    const std::vector<int> rows = Spread(y, std::max(2, options.most_rows));
    next->h = Climb(all(rows, Eigen::all), y(rows), next->h, options.steps);
  }
  next->x = Scaled(all, next->h.length);
  Matrix covariance = next->Kernel(next->x);
  covariance.diagonal().array() += std::exp(next->h.noise);
  next->factor.compute(covariance);
  if (next->factor.info() != Eigen::Success) {
    return absl::InternalError(
        absl::StrCat("the covariance of ", inputs.rows(), " rows is not positive definite"));
  }
  next->a = next->factor.solve(y);
  next->x_in_floats = next->x.cast<float>();
  next->amplitude_a_in_floats = (std::exp(next->h.amplitude) * next->a).cast<float>();
  state_ = std::move(next);
  return absl::OkStatus();
}

std::vector<double> GaussianProcess::PredictMean(const DenseMatrix& inputs) const {
  const MatrixOf<float> x = Scaled<float>(ToEigen<float>(inputs), state_->h.length.cast<float>());
  const MatrixOf<float> kernel = Matern(ScaledDistances(x, state_->x_in_floats));
  const VectorOf<float> mean = kernel * state_->amplitude_a_in_floats;
  std::vector<double> out(mean.size());
  for (int i = 0; i < mean.size(); ++i) out[i] = state_->centre + state_->scale * mean[i];
  return out;
}

Posterior GaussianProcess::Predict(const DenseMatrix& inputs) const {
  const Matrix kernel = state_->Kernel(Scaled(ToEigen<double>(inputs), state_->h.length));
  const Vector mean = kernel * state_->a;
  const Matrix v = state_->factor.matrixL().solve(kernel.transpose());
  const Vector explained = v.colwise().squaredNorm();
  Posterior posterior;
  for (int i = 0; i < mean.size(); ++i) {
    posterior.mean.push_back(state_->centre + state_->scale * mean[i]);
    posterior.deviation.push_back(
        state_->scale * std::sqrt(std::max(1e-12, std::exp(state_->h.amplitude) - explained[i])));
  }
  return posterior;
}

GaussianProcess::Joint GaussianProcess::PredictJoint(const DenseMatrix& inputs) const {
  const Matrix x = Scaled(ToEigen<double>(inputs), state_->h.length);
  const Matrix kernel = state_->Kernel(x);
  const Vector mean = kernel * state_->a;
  const Matrix v = state_->factor.matrixL().solve(kernel.transpose());
  const double scale2 = state_->scale * state_->scale;
  const Matrix covariance =
      scale2 * (std::exp(state_->h.amplitude) * Matern(ScaledDistances(x, x)) - v.transpose() * v);
  Joint joint;
  joint.noise = scale2 * std::exp(state_->h.noise);
  for (int i = 0; i < mean.size(); ++i)
    joint.mean.push_back(state_->centre + state_->scale * mean[i]);
  joint.covariance.assign(covariance.data(), covariance.data() + covariance.size());
  return joint;
}

}  // namespace tilewright
