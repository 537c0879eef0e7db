#include "tests/agreement/random_program.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[Below(static_cast<int>(from.size()))];
  }
  std::string FloatType() {
    return Pick<std::string>({"f32", "f32", "f32", "f64", "f16", "bf16", "e4m3", "e5m2"});
  }
  int Size() { return Pick<int>({1, 2, 3, 7, 8, 16, 17, 31, 33, 64, 65}); }

  // A read of a new parameter over a subset of `indices` in random order.
  std::string NewRead(std::vector<std::string> indices, bool all) {
    std::shuffle(indices.begin(), indices.end(), random_);
    if (!all && !indices.empty()) indices.resize(Below(static_cast<int>(indices.size()) + 1));
    const std::string name = absl::StrCat("X", parameters_++);
    types_.push_back(
        absl::StrCat(name, ":", integers_ ? Pick<std::string>({"i8", "i32"}) : FloatType()));
    return absl::StrCat(name, "[", absl::StrJoin(indices, ","), "]");
  }

  // An expression over reads, depth levels deep.
  std::string Expression(const std::vector<std::string>& indices, int depth) {
    if (depth == 0 || Chance(10)) {
      if (Chance(10)) return Pick<std::string>({"0.5", "2", "1e-3", "3"});
      if (Chance(40) && !reads_.empty()) return Pick(reads_);
      reads_.push_back(NewRead(indices, Chance(70)));
      return reads_.back();
    }
    auto sub = [&] { return Expression(indices, depth - 1); };
    if (integers_) {
      switch (Below(5)) {
        case 0:
          return absl::StrCat("max(", sub(), ", ", sub(), ")");
        case 1:
          return absl::StrCat("(", sub(), " - ", sub(), ")");
        case 2:
          return absl::StrCat("relu(", sub(), ")");
        case 3:
          return absl::StrCat("where(", sub(), " < ", sub(), ", ", sub(), ", 3)");
        default:
          return absl::StrCat("(", sub(), " + ", sub(), ")");
      }
    }
    switch (Below(14)) {
      case 0:
        return absl::StrCat("(", sub(), " + ", sub(), ")");
      case 1:
        return absl::StrCat("(", sub(), " - ", sub(), ")");
      case 2:
        return absl::StrCat(sub(), " * ", sub());
      case 3:
        return absl::StrCat(sub(), " / (abs(", sub(), ") + 1)");
      case 4:
        return absl::StrCat(Pick<std::string>({"tanh", "erf", "sigmoid", "gelu", "silu", "relu"}),
                            "(", sub(), ")");
      case 5:
        return absl::StrCat("exp(0 - abs(", sub(), "))");
      case 6:
        return absl::StrCat("log(abs(", sub(), ") + 1)");
      case 7:
        return absl::StrCat("rsqrt(abs(", sub(), ") + 0.5)");
      case 8:
        return absl::StrCat("max(", sub(), ", ", sub(), ", 0.25)");
      case 9:
        return absl::StrCat("min(", sub(), ", ", sub(), ")");
      case 10:
        return absl::StrCat("where(", sub(), " < ", sub(), ", ", sub(), ", ", sub(), ")");
      case 11:
        return absl::StrCat("cast(", FloatType(), ", ", sub(), ")");
      case 12:
        return absl::StrCat("tf32(", sub(), ")");
      default:
        if (indices.size() < 2) return sub();
        return absl::StrCat("where(", indices[0], " + 1 <= ", indices[1], ", ", sub(), ", ", sub(),
                            ")");
    }
  }

  RandomProgram Finish(std::string expression, const std::string& output_type, std::string sizes) {
    return {std::move(expression),
            {std::move(sizes), absl::StrCat("f32,", absl::StrJoin(types_, ","),
                                            types_.empty() ? "" : ",", output_type)}};
  }

  bool integers_ = false;
  std::mt19937_64 random_;
  int parameters_ = 0;
  std::vector<std::string> types_;
  std::vector<std::string> reads_;
};

std::string SizesOf(Maker& make, const std::vector<std::string>& indices, bool may_range) {
  std::vector<std::string> sizes;
  for (const std::string& index : indices) {
    const int size = make.Size();
    const bool range = may_range && make.Chance(25);
    sizes.push_back(range ? absl::StrCat(index, "=1..", size + 5) : absl::StrCat(index, "=", size));
  }
  return absl::StrJoin(sizes, " ");
}

}  // namespace

RandomProgram RandomPointwise(uint64_t seed) {
  Maker make(seed);
  make.integers_ = make.Chance(15);
  std::vector<std::string> indices = {"i", "j", "k"};
  indices.resize(1 + make.Below(3));
  std::vector<std::string> output = indices;
  std::shuffle(output.begin(), output.end(), make.random_);
  // Every index has a bare use in the output, so its size is known.
  std::string value = make.Expression(indices, 1 + make.Below(3));
  if (make.parameters_ == 0) value = absl::StrCat(value, " + ", make.NewRead(indices, true));
  const std::string type =
      make.integers_ ? make.Pick<std::string>({"i8", "i32"}) : make.FloatType();
  return make.Finish(absl::StrCat("Y[", absl::StrJoin(output, ","), "] = ", value),
                     absl::StrCat("Y:", type), SizesOf(make, indices, true));
}

RandomProgram RandomRowReduction(uint64_t seed) {
  Maker make(seed);
  std::vector<std::string> rows = {"r", "s"};
  rows.resize(1 + make.Below(2));
  std::vector<std::string> all = rows;
  all.push_back("c");
  const std::string x = make.NewRead(all, true);
  std::shuffle(all.begin(), all.end(), make.random_);
  const std::string row = absl::StrJoin(rows, ",");
  const std::string out = absl::StrCat("Y[", absl::StrJoin(all, ","), "]");
  const std::string op = make.Pick<std::string>({"sum", "max", "min"});
  std::string expression;
  switch (make.Below(7)) {
    case 0:
      expression =
          absl::StrCat("h[", row, "] = max(c: ", x, "); z[", row, "] = sum(c: exp(", x, " - h[",
                       row, "])); ", out, " = exp(", x, " - h[", row, "]) / z[", row, "]");
      break;
    case 1:
      expression =
          absl::StrCat("q[", row, "] = sum(c: ", x, " * ", x, "); ", out, " = ", x, " * rsqrt(q[",
                       row, "] / size(c) + 1e-6) * ", make.NewRead({"c"}, true));
      break;
    case 2:
      expression =
          absl::StrCat("m[", row, "] = sum(c: ", x, ") / size(c); d[", absl::StrJoin(all, ","),
                       "] = ", x, " - m[", row, "]; v[", row, "] = sum(c: d[",
                       absl::StrJoin(all, ","), "] * d[", absl::StrJoin(all, ","), "]) / size(c); ",
                       out, " = d[", absl::StrJoin(all, ","), "] * rsqrt(v[", row, "] + 1e-5)");
      break;
    case 3:
      expression = absl::StrCat("Y[", row, "] = ", op, "(c: ", x, ")");
      break;
    case 4:  // log of the sum of exponentials
      expression = absl::StrCat("h[", row, "] = max(c: ", x, "); Y[", row, "] = h[", row,
                                "] + log(sum(c: exp(", x, " - h[", row, "])))");
      break;
    case 5:  // an intermediate per element that two passes read
      expression = absl::StrCat("p[", absl::StrJoin(all, ","), "] = exp(0 - abs(", x, ")); z[", row,
                                "] = sum(c: p[", absl::StrJoin(all, ","), "]); ", out, " = p[",
                                absl::StrJoin(all, ","), "] / (z[", row, "] + 1)");
      break;
    default:
      make.reads_ = {x};
      expression = absl::StrCat("a[", row, "] = ", op, "(c: ", x, " + ", make.Expression(all, 2),
                                "); ", out, " = a[", row, "] + ", x);
      break;
  }
  const std::string indices = row;
  std::vector<std::string> names = rows;
  names.push_back("c");
  return make.Finish(expression, absl::StrCat("Y:", make.FloatType()), SizesOf(make, names, true));
}

RandomProgram RandomContraction(uint64_t seed) {
  Maker make(seed);
  if (make.Chance(20)) {
    return make.Finish(
        "Y[n,p,q,o] = sum(r,s,c: X[n, 2*p+r-1, 2*q+s-1, c] * W[o,r,s,c])",
        absl::StrCat("X:", make.FloatType(), ",W:", make.FloatType(), ",Y:", make.FloatType()),
        "n=2 p=5 q=4 o=9 r=3 s=3 c=5 X.1=10 X.2=8");
  }
  make.integers_ = make.Chance(15);
  std::vector<std::string> batch = {"b"};
  batch.resize(make.Below(2));
  std::vector<std::string> left = batch;
  std::vector<std::string> right = batch;
  std::vector<std::string> output = batch;
  left.insert(left.end(), {"m", "k"});
  right.insert(right.end(), {"n", "k"});
  output.insert(output.end(), {"m", "n"});
  std::shuffle(output.begin(), output.end(), make.random_);
  const std::string a = make.NewRead(left, true);
  const std::string b = make.NewRead(right, true);
  std::string value = absl::StrCat("sum(k: ", a, " * ", b, ")");
  const bool integers = make.integers_;
  make.integers_ = false;
  if (make.Chance(50)) {
    value = absl::StrCat(make.Pick<std::string>({"gelu", "relu", "tanh"}), "(", value, " * 0.25 + ",
                         make.NewRead({"n"}, true), ")");
  } else if (integers) {
    return make.Finish(absl::StrCat("Y[", absl::StrJoin(output, ","), "] = ", value), "Y:i32",
                       SizesOf(make, {"m", "n", "k"}, true) + (batch.empty() ? "" : " b=3"));
  }
  return make.Finish(absl::StrCat("Y[", absl::StrJoin(output, ","), "] = ", value),
                     absl::StrCat("Y:", make.FloatType()),
                     SizesOf(make, {"m", "n", "k"}, true) + (batch.empty() ? "" : " b=3"));
}

std::vector<std::vector<char>> RandomInputs(const Workload& workload, const Sizes& sizes,
                                            uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<char>> buffers;
  for (int tensor : workload.parameters()) {
    const ElementType type = workload.layout(tensor).type;
    const ElementTypeInfo& info = Info(type);
    std::vector<char> buffer(workload.BufferBytes(tensor, sizes));
    std::memset(buffer.data(), 0xff, buffer.size());
    const std::vector<int64_t> shape = workload.Shape(tensor, sizes);
    const std::vector<int64_t> strides = workload.Strides(tensor, sizes);
    std::vector<int64_t> point(shape.size(), 0);
    for (bool more = true; more;) {
      int64_t offset = 0;
      for (size_t d = 0; d < point.size(); ++d) offset += point[d] * strides[d];
      const double value = info.is_float ? normal(random) : std::floor(normal(random) * 8);
      StoreElement(type, value, buffer.data() + offset * info.bytes);
      more = false;
      for (size_t d = point.size(); d-- > 0 && !more;) {
        if (++point[d] < shape[d])
          more = true;
        else
          point[d] = 0;
      }
    }
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

}  // namespace tilewright
