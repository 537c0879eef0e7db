// The fast path divides the error by the allowance for every element, in vectors, and takes a block
// apart only if some element exceeds 1. An element that needs more than that (an infinity, a NaN,
// the neighbourhood of overflow) is expected as NaN, which fails the fast path, and stands in a
// sorted list with its reference and bound.
#include "measure/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

constexpr int64_t kBlock = 1024;

// Half a step above the largest finite value: what rounds to it and what overflows.
double OverflowThreshold(const ElementTypeInfo& info) {
  return info.max_finite + std::ldexp(info.unit_roundoff, std::ilogb(info.max_finite));
}

bool Straddles(const ElementTypeInfo& info, Expectation expected) {
  if (!info.is_float || !std::isfinite(expected.reference)) return false;
  const double magnitude = std::fabs(expected.reference);
  const double threshold = OverflowThreshold(info);
  return magnitude + 2 * expected.bound >= threshold && magnitude - 2 * expected.bound <= threshold;
}

// The value of every pattern of a 1- or 2-byte type.
const std::vector<float>& Decoded(ElementType type) {
  static std::once_flag once[8];
  static std::vector<float>* tables[8];
  const int number = static_cast<int>(type);
  std::call_once(once[number], [&] {
    const int bytes = Info(type).bytes;
    auto* table = new std::vector<float>(size_t{1} << (8 * bytes));
    for (size_t pattern = 0; pattern < table->size(); ++pattern) {
      unsigned char little_endian[2] = {static_cast<unsigned char>(pattern),
                                        static_cast<unsigned char>(pattern >> 8)};
      (*table)[pattern] = static_cast<float>(LoadElement(type, little_endian));
    }
    tables[number] = table;
  });
  return *tables[number];
}

// A block's worst ratio, and whether an element fails the fast path.
template <typename T>
struct BlockResult {
  bool all_pass;
  T worst;
};

template <typename T>
BlockResult<T> CompareBlock(const T* got, const T* expected, const T* allowance, int64_t count) {
  constexpr int kLanes = 32 / sizeof(T);
  typedef T Vector __attribute__((vector_size(32)));
  using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Integer Mask __attribute__((vector_size(32)));
  Vector worst{};
  Mask failed{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vector g, e, a;
    memcpy(&g, got + i, sizeof(g));
    memcpy(&e, expected + i, sizeof(e));
    memcpy(&a, allowance + i, sizeof(a));
    const Vector difference = g - e;
    const Vector ratio = (difference < 0 ? -difference : difference) / a;
    failed |= ~(ratio <= T{1});  // also if the ratio is NaN
    worst = ratio > worst ? ratio : worst;
  }
  BlockResult<T> result{true, T{0}};
  for (int lane = 0; lane < kLanes; ++lane) {
    result.all_pass &= failed[lane] == 0;
    result.worst = std::max(result.worst, worst[lane]);
  }
  for (; i < count; ++i) {
    const T ratio = std::fabs(got[i] - expected[i]) / allowance[i];
    result.all_pass &= ratio <= T{1};
    if (ratio > result.worst) result.worst = ratio;
  }
  return result;
}

// T: what the values of the output's type are compared in; float where it holds them exactly.
template <typename T>
class TypedExpectation : public ExpectedOutput {
 public:
  explicit TypedExpectation(OutputLayout layout)
      : layout_(std::move(layout)), dense_(layout_.Dense()), bytes_(Info(layout_.type).bytes) {}

  absl::Status Fill(absl::Span<const double> reference, absl::Span<const double> bound) {
    const ElementTypeInfo& info = Info(layout_.type);
    expected_.resize(reference.size());
    allowance_.resize(reference.size());
    for (size_t i = 0; i < reference.size(); ++i) {
      const Expectation element{reference[i], bound[i]};
      if (!std::isfinite(element.bound)) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "%s has an error bound of %g beside the reference %g: its arithmetic loses everything "
            "on normal data, so no output can be checked",
            layout_.PointText(i), element.bound, element.reference));
      }
      const double rounded = RoundTo(layout_.type, element.reference);
      if (!std::isfinite(element.reference) || !std::isfinite(rounded) ||
          Straddles(info, element)) {
        special_.push_back({static_cast<int64_t>(i), element});
        expected_[i] = std::numeric_limits<T>::quiet_NaN();
        allowance_[i] = 1;
        continue;
      }
      expected_[i] = static_cast<T>(rounded);
      // Never 0: an exact integer's neighbours are 1 away.
      allowance_[i] = std::max(static_cast<T>(Allowance(layout_.type, element)),
                               info.is_float ? std::numeric_limits<T>::denorm_min() : T{0.5});
    }
    return absl::OkStatus();
  }

  const OutputLayout& layout() const override { return layout_; }

  CheckResult Check(const void* data, LaunchPool& pool) const override {
    CheckResult total;
    total.elements = static_cast<int64_t>(expected_.size());
    std::mutex mutex;
    // Blocks, not elements, are shared out; small outputs are not worth waking a thread for.
    const int64_t blocks = (total.elements + kBlock - 1) / kBlock;
    const auto body = [&](int64_t begin, int64_t end) {
      CheckResult part;
      for (int64_t block = begin; block < end; ++block) CheckBlock(data, block * kBlock, &part);
      std::lock_guard<std::mutex> lock(mutex);
      total.wrong += part.wrong;
      total.worst_ratio = std::max(total.worst_ratio, part.worst_ratio);
      if (part.first_wrong >= 0 &&
          (total.first_wrong < 0 || part.first_wrong < total.first_wrong)) {
        total.first_wrong = part.first_wrong;
      }
    };
    if (blocks < 8) {
      body(0, blocks);
    } else {
      pool.ForRanges(blocks, body);
    }
    if (total.wrong > 0) total.text = Explain(data, total);
    return total;
  }

 private:
  struct Special {
    int64_t number;
    Expectation element;
  };

  double Load(const void* data, int64_t number) const {
    const int64_t offset = dense_ ? number : layout_.Offset(number);
    return LoadElement(layout_.type, static_cast<const char*>(data) + offset * bytes_);
  }

  // The values of `count` elements from `first` on, in `buffer` or in place.
  const T* Decode(const void* data, int64_t first, int64_t count, T* buffer) const {
    if (!dense_) {
      for (int64_t i = 0; i < count; ++i) buffer[i] = static_cast<T>(Load(data, first + i));
      return buffer;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (layout_.type == ElementType::kF32) return static_cast<const float*>(data) + first;
      const float* table = Decoded(layout_.type).data();
      if (bytes_ == 2) {
        const auto* in = static_cast<const uint16_t*>(data) + first;
        for (int64_t i = 0; i < count; ++i) buffer[i] = table[in[i]];
      } else {
        const auto* in = static_cast<const uint8_t*>(data) + first;
        for (int64_t i = 0; i < count; ++i) buffer[i] = table[in[i]];
      }
      return buffer;
    } else {
      if (layout_.type == ElementType::kF64) return static_cast<const double*>(data) + first;
      const auto* in = static_cast<const int32_t*>(data) + first;
      for (int64_t i = 0; i < count; ++i) buffer[i] = in[i];
      return buffer;
    }
  }

  Expectation At(int64_t number) const {
    const auto found = std::lower_bound(
        special_.begin(), special_.end(), number,
        [](const Special& special, int64_t wanted) { return special.number < wanted; });
    if (found != special_.end() && found->number == number) return found->element;
    return {std::numeric_limits<double>::quiet_NaN(), -1};  // bound -1: not a special element
  }

  void CheckBlock(const void* data, int64_t first, CheckResult* part) const {
    const int64_t count = std::min(kBlock, static_cast<int64_t>(expected_.size()) - first);
    alignas(64) T buffer[kBlock];
    const T* got = Decode(data, first, count, buffer);
    const BlockResult<T> block =
        CompareBlock<T>(got, expected_.data() + first, allowance_.data() + first, count);
    if (block.all_pass) {
      part->worst_ratio = std::max(part->worst_ratio, static_cast<double>(block.worst));
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = first + i;
      double ratio =
          std::fabs(static_cast<double>(got[i]) - expected_[number]) / allowance_[number];
      bool passes = ratio <= 1;
      if (std::isnan(expected_[number])) {
        passes = ElementPasses(layout_.type, got[i],
                               At(number).bound < 0 ? Expectation{0, 0} : At(number), &ratio);
      }
      if (passes) {
        if (std::isfinite(ratio)) part->worst_ratio = std::max(part->worst_ratio, ratio);
        continue;
      }
      ++part->wrong;
      if (part->first_wrong < 0) part->first_wrong = number;
    }
  }

  std::string Explain(const void* data, const CheckResult& result) const {
    const int64_t number = result.first_wrong;
    const Expectation special = At(number);
    const bool is_special = special.bound >= 0;
    return absl::StrFormat(
        "%s: got %.9g, expected %.9g, allowed +-%.3g; %d of %d elements are wrong",
        layout_.PointText(number), Load(data, number),
        is_special ? RoundTo(layout_.type, special.reference) : double{expected_[number]},
        is_special ? 2 * special.bound : double{allowance_[number]}, result.wrong, result.elements);
  }

  const OutputLayout layout_;
  const bool dense_;
  const int bytes_;
  std::vector<T> expected_;
  std::vector<T> allowance_;
  std::vector<Special> special_;  // sorted
};

template <typename T>
absl::StatusOr<std::unique_ptr<ExpectedOutput>> MakeTyped(OutputLayout layout,
                                                          absl::Span<const double> reference,
                                                          absl::Span<const double> bound) {
  auto expected = std::make_unique<TypedExpectation<T>>(std::move(layout));
  if (absl::Status status = expected->Fill(reference, bound); !status.ok()) return status;
  return expected;
}

}  // namespace

bool OutputLayout::Dense() const {
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

int64_t OutputLayout::elements() const {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

int64_t OutputLayout::Offset(int64_t number) const {
  int64_t offset = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    offset += number % shape[d] * strides[d];
    number /= shape[d];
  }
  return offset;
}

std::string OutputLayout::PointText(int64_t number) const {
  std::vector<int64_t> point(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    point[d] = number % shape[d];
    number /= shape[d];
  }
  return absl::StrCat(name, "[", absl::StrJoin(point, ","), "]");
}

double Allowance(ElementType type, Expectation expected) {
  const ElementTypeInfo& info = Info(type);
  if (!info.is_float) {
    const bool exact = expected.bound == 0 && expected.reference == std::rint(expected.reference);
    return exact ? 0 : std::max(1.0, 2 * expected.bound);
  }
  // Near a tie both neighbours are right, and round(ref) is half a step away from ref.
  const double step = std::fabs(expected.reference - RoundTo(type, expected.reference));
  const double tie = expected.bound > 0 && std::isfinite(step) ? step : 0;
  return 2 * expected.bound + info.unit_roundoff * std::fabs(expected.reference) +
         info.smallest_subnormal + tie;
}

bool ElementPasses(ElementType type, double out, Expectation expected, double* ratio) {
  const ElementTypeInfo& info = Info(type);
  const double rounded = RoundTo(type, expected.reference);
  if (ratio != nullptr) *ratio = 0;
  if (std::isfinite(expected.reference) && Straddles(info, expected)) {
    if (!info.has_infinity && std::isnan(out)) return true;
    if (std::isinf(out)) return std::signbit(out) == std::signbit(expected.reference);
    // The finite side: near the unrounded reference, since the rounded one may be infinite.
    return std::fabs(out - expected.reference) <= Allowance(type, expected);
  }
  if (std::isnan(rounded)) return std::isnan(out);
  if (std::isinf(rounded) || !std::isfinite(out)) return out == rounded;
  const double error = std::fabs(out - rounded);
  const double allowance = Allowance(type, expected);
  if (ratio != nullptr && allowance > 0) *ratio = error / allowance;
  return error <= allowance;
}

absl::StatusOr<std::unique_ptr<ExpectedOutput>> ExpectedOutput::Make(
    OutputLayout layout, absl::Span<const double> reference, absl::Span<const double> bound) {
  if (layout.type == ElementType::kF64 || layout.type == ElementType::kI32) {
    return MakeTyped<double>(std::move(layout), reference, bound);
  }
  return MakeTyped<float>(std::move(layout), reference, bound);
}

int64_t FindGapDamage(const OutputLayout& layout, const void* data, unsigned char poison) {
  if (layout.Dense()) return -1;
  const int bytes = Info(layout.type).bytes;
  std::vector<bool> covered(layout.buffer_elements, false);
  for (int64_t i = 0; i < layout.elements(); ++i) covered[layout.Offset(i)] = true;
  const auto* p = static_cast<const unsigned char*>(data);
  for (int64_t i = 0; i < layout.buffer_elements; ++i) {
    for (int b = 0; !covered[i] && b < bytes; ++b) {
      if (p[i * bytes + b] != poison) return i * bytes + b;
    }
  }
  return -1;
}

}  // namespace tilewright
