// The contraction variants against the interpreter: seeded random contractions times random
// schedules.
//
// Inputs lie in [-1, 1], so that with K terms the sum of |term| is at most K, and the error of
// DESIGN.md 6 for the sum at most 8 u sqrt(K) K. Epilogues here multiply an error by less than 4
// (scales are below 2, gelu' below 1.13).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/writer.h"
#include "schedule/contraction_dot.h"
#include "schedule/contraction_tiled.h"
#include "schedule/interpreter.h"
#include "tests/codegen/host_loader.h"

namespace tilewright {
namespace {

constexpr int kBand = 512;  // bytes on either side of a buffer
constexpr unsigned char kBandByte = 0xa5;

// A buffer between guard bands, with nothing known about its alignment beyond the element's.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(bytes), memory_(bytes + 2 * kBand + 64, kBandByte) {}
  void* data() { return memory_.data() + kBand; }
  bool Intact() const {
    for (int i = 0; i < kBand; ++i) {
      if (memory_[i] != kBandByte || memory_[kBand + bytes_ + i] != kBandByte) return false;
    }
    return true;
  }

 private:
  int64_t bytes_;
  std::vector<unsigned char> memory_;
};

struct Example {
  std::string expression;
  std::string sizes;
  std::string types;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Example Next() {
    Example example;
    std::vector<std::string> a = {"m", "k"}, b = {"k", "n"}, c = {"m", "n"}, reduced = {"k"};
    std::vector<std::string> names = {"m", "n", "k"};
    if (Chance(6))
      Erase(&a, &c, "m");
    else if (Chance(6))
      Erase(&b, &c, "n");
    if (Chance(3)) {
      // A batch that both, or only one, depend on.
      names.push_back("p");
      c.push_back("p");
      const int which = Below(3);
      if (which != 1) a.push_back("p");
      if (which != 0) b.push_back("p");
    }
    if (Chance(4)) Widen(&a, &c, "m", "mm", &names);
    if (Chance(4)) Widen(&b, &c, "n", "nn", &names);
    if (Chance(4)) {
      names.push_back("kk");
      a.push_back("kk"), b.push_back("kk"), reduced.push_back("kk");
    }
    for (auto* order : {&a, &b, &c}) {
      if (Chance(2)) std::shuffle(order->begin(), order->end(), random_);
    }
    std::string left = absl::StrCat("A[", absl::StrJoin(a, ","), "]");
    std::string right = absl::StrCat("B[", absl::StrJoin(b, ","), "]");
    if (Chance(5)) left = absl::StrCat("relu(", left, ")");
    if (Chance(8)) right = absl::StrCat("(0.5 * ", right, ")");
    const bool integers = Chance(8);
    const bool doubles = !integers && Chance(8);
    std::string value =
        absl::StrCat("sum(", absl::StrJoin(reduced, ","), ": ", left, " * ", right, ")");
    example.types = Types(integers, doubles);
    if (integers) {
      value = absl::StrCat("sum(", absl::StrJoin(reduced, ","), ": A[", absl::StrJoin(a, ","),
                           "] * B[", absl::StrJoin(b, ","), "])");
    } else {
      value = Epilogue(value, c);
    }
    example.expression = absl::StrCat("C[", absl::StrJoin(c, ","), "] = ", value);
    for (const std::string& name : names) {
      if (!Contains(c, name) && !Contains(reduced, name)) continue;  // erased
      absl::StrAppend(&example.sizes, name, "=", Size(name), " ");
    }
    return example;
  }

 private:
  int Below(int bound) { return static_cast<int>(random_() % bound); }
  bool Chance(int one_in) { return Below(one_in) == 0; }
  static bool Contains(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  }
  static void Erase(std::vector<std::string>* operand, std::vector<std::string>* output,
                    const std::string& name) {
    operand->erase(std::find(operand->begin(), operand->end(), name));
    output->erase(std::find(output->begin(), output->end(), name));
  }
  // Splits a role over two indices.
  static void Widen(std::vector<std::string>* operand, std::vector<std::string>* output,
                    const std::string& name, const std::string& second,
                    std::vector<std::string>* names) {
    auto at = std::find(operand->begin(), operand->end(), name);
    if (at == operand->end()) return;
    operand->insert(at + 1, second);
    output->insert(std::find(output->begin(), output->end(), name) + 1, second);
    names->push_back(second);
  }
  std::string Types(bool integers, bool doubles) {
    if (integers) return "i8,C:i32";
    if (doubles) return "f64";
    static const char* const kTypes[] = {"f32", "f32", "f16", "bf16"};
    if (Chance(2)) return "f32";
    return absl::StrCat("f32,A:", kTypes[Below(4)], ",B:", kTypes[Below(4)],
                        ",C:", kTypes[Below(4)]);
  }
  std::string Epilogue(std::string value, const std::vector<std::string>& c) {
    if (Chance(5)) value = absl::StrCat(value, " * 1.25");
    if (Chance(8)) value = absl::StrCat("s[] * ", value);
    if (!c.empty() && Chance(3))
      value = absl::StrCat(value, " + bias[", c[Below(static_cast<int>(c.size()))], "]");
    static const char* const kFunctions[] = {"gelu", "relu", "silu", "tanh"};
    if (Chance(3)) value = absl::StrCat(kFunctions[Below(4)], "(", value, ")");
    if (Chance(5)) value = absl::StrCat(value, " + R[", absl::StrJoin(c, ","), "]");
    if (c.size() >= 2 && Chance(10))
      value = absl::StrCat("where(", c[0], " <= ", c[1], ", ", value, ", 0)");
    return value;
  }
  std::string Size(const std::string& name) {
    static const int kSizes[] = {1, 2, 3, 7, 8, 13, 16, 17, 24, 31, 40, 67, 97};
    const bool second = name.size() == 2 || name == "p";
    const int size = second ? 1 + Below(4) : kSizes[Below(13)];
    if (Chance(6)) return absl::StrCat(1 + Below(size), "..", size);
    return absl::StrCat(size);
  }

  std::mt19937_64 random_;
};

// One workload's inputs and expected outputs at some sizes.
struct Instance {
  Sizes sizes;
  std::vector<std::unique_ptr<Guarded>> buffers;  // parameters, then the output
  std::vector<double> expected;                   // dense row-major
  std::vector<std::vector<int64_t>> points;
};

double Tolerance(const Workload& workload, double depth, double expected) {
  const ElementType type = workload.layout(workload.outputs()[0]).type;
  bool f64 = true, integers = true;
  for (int tensor : workload.parameters()) {
    f64 &= workload.layout(tensor).type == ElementType::kF64;
    integers &= !Info(workload.layout(tensor).type).is_float;
  }
  if (integers) return 0;
  const double u = f64 ? 0x1p-53 : 0x1p-24;
  const double sum = 8 * u * std::sqrt(depth) * depth;
  return 2 * 4 * sum + 64 * u * (1 + std::fabs(expected)) +
         Info(type).unit_roundoff * std::fabs(expected) + Info(type).smallest_subnormal;
}

Instance MakeInstance(const Workload& workload, const Sizes& sizes, std::mt19937_64& random) {
  Instance instance;
  instance.sizes = sizes;
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<const void*> inputs;
  for (int tensor : workload.parameters()) {
    const ElementTypeInfo& type = Info(workload.layout(tensor).type);
    auto buffer = std::make_unique<Guarded>(workload.BufferBytes(tensor, sizes));
    for (int64_t i = 0; i < workload.BufferElements(tensor, sizes); ++i) {
      const double value = type.is_float ? uniform(random) : std::round(uniform(random) * 127);
      StoreElement(type.type, value, static_cast<char*>(buffer->data()) + i * type.bytes);
    }
    inputs.push_back(buffer->data());
    instance.buffers.push_back(std::move(buffer));
  }
  const int output = workload.outputs()[0];
  instance.buffers.push_back(std::make_unique<Guarded>(workload.BufferBytes(output, sizes)));
  auto interpreter = Interpreter::Make(workload, sizes, inputs);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  const std::vector<int64_t> shape = workload.Shape(output, sizes);
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  // All points of small outputs, else a seeded thousand and the corners.
  for (int64_t i = 0; i < std::min<int64_t>(count, 1000); ++i) {
    int64_t flat = count <= 1000 ? i
                   : i == 0      ? 0
                   : i == 1      ? count - 1
                                 : static_cast<int64_t>(random() % count);
    std::vector<int64_t> point(shape.size());
    for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) point[d] = flat % shape[d];
    instance.points.push_back(point);
    instance.expected.push_back(*(*interpreter)->Evaluate(output, point));
  }
  return instance;
}

void RunAndCompare(const Workload& workload, LoadedKernel& kernel, Instance& instance,
                   LoadedKernel::Order order, const std::string& label) {
  const int output = workload.outputs()[0];
  const ElementTypeInfo& type = Info(workload.layout(output).type);
  std::vector<void*> buffers;
  for (auto& buffer : instance.buffers) buffers.push_back(buffer->data());
  std::memset(buffers.back(), 0xff, workload.BufferBytes(output, instance.sizes));
  kernel.Run(buffers, instance.sizes, order);
  for (size_t i = 0; i < instance.buffers.size(); ++i) {
    ASSERT_TRUE(instance.buffers[i]->Intact()) << label << ": wrote beside buffer " << i;
  }
  double depth = 1;
  for (int64_t size : instance.sizes) depth = std::max(depth, static_cast<double>(size) * 4);
  const std::vector<int64_t> strides = workload.Strides(output, instance.sizes);
  for (size_t p = 0; p < instance.points.size(); ++p) {
    int64_t offset = 0;
    for (size_t d = 0; d < strides.size(); ++d) offset += strides[d] * instance.points[p][d];
    const double got =
        LoadElement(type.type, static_cast<char*>(buffers.back()) + offset * type.bytes);
    const double wanted = instance.expected[p];
    const double tolerance = Tolerance(workload, depth, wanted);
    ASSERT_TRUE(std::fabs(got - wanted) <= tolerance ||
                (std::isinf(got) && got == RoundTo(type.type, wanted)))
        << label << "\nat (" << absl::StrJoin(instance.points[p], ",") << "): " << got << ", not "
        << wanted << " +- " << tolerance;
  }
}

std::vector<Sizes> SizesToTry(const Workload& workload) {
  std::vector<Sizes> tried = {workload.HighestSizes()};
  if (!workload.has_range()) return tried;
  tried.push_back(workload.LowestSizes());
  Sizes middle = workload.LowestSizes();
  for (size_t i = 0; i < middle.size(); ++i) middle[i] = (middle[i] + tried[0][i]) / 2;
  tried.push_back(middle);
  return tried;
}

const std::vector<Variant>& OwnVariants() {
  static const auto* const variants =
      new std::vector<Variant>{ContractionTiledVariant(), ContractionDotVariant()};
  return *variants;
}

Target HostTarget(int cores) {
  Target target = *FindTarget("cpu:x86-64-v3");
  target.kind = absl::StrCat("cpu:test/avx2/", cores);
  target.cores = cores;
  return target;
}

void TryExample(const Example& example, int schedules, uint64_t seed) {
  SCOPED_TRACE(absl::StrCat(example.expression, " | ", example.sizes, "| ", example.types));
  absl::StatusOr<Workload> workload =
      Workload::Make(example.expression, WorkloadOptions{example.sizes, example.types});
  ASSERT_TRUE(workload.ok()) << workload.status();
  std::mt19937_64 random(seed);
  const Target target = HostTarget(1 + static_cast<int>(seed % 5));
  auto space = ScheduleSpace::Make(*workload, target, OwnVariants());
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<Instance> instances;
  for (const Sizes& sizes : SizesToTry(*workload))
    instances.push_back(MakeInstance(*workload, sizes, random));
  std::vector<Schedule> tried = {(*space)->DefaultSchedule()};
  for (const Space::Part& part : (*space)->space().Parts()) {
    for (int i = 0; i < schedules; ++i) {
      tried.push_back(
          (*space)->space().At(part.begin + UniformIndex(random, part.end - part.begin)));
    }
  }
  for (size_t i = 0; i < tried.size(); ++i) {
    const Schedule& schedule = tried[i];
    absl::StatusOr<Kernel> kernel =
        WriteKernel({*workload, target, schedule}, {OwnVariants(), AllWriters()});
    ASSERT_TRUE(kernel.ok()) << schedule.ToString() << ": " << kernel.status();
    auto loaded = LoadedKernel::Load(*kernel);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    for (Instance& instance : instances) {
      const auto order =
          i % 2 == 0 ? LoadedKernel::Order::kBackwards : LoadedKernel::Order::kForwards;
      RunAndCompare(*workload, **loaded, instance, order, schedule.ToString());
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

class RandomContractions : public testing::TestWithParam<int> {};

TEST_P(RandomContractions, AgreeWithTheInterpreter) {
  Generator generator(1000 + GetParam());
  for (int i = 0; i < 8; ++i) {
    TryExample(generator.Next(), 4, static_cast<uint64_t>(GetParam() * 8 + i));
    if (HasFatalFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomContractions, testing::Range(0, 12));

TEST(Contractions, OfEveryKindOfAccessAgreeWithTheInterpreter) {
  const std::vector<Example> examples = {
      {"Y[n,p,q,o] = sum(r,s,c: X[n, 2*p+r-1, q+s-1, c] * W[o,r,s,c])",
       "n=2,p=5,q=9,o=17,r=3,s=3,c=5,X.1=10,X.2=9", "f32"},
      {"C[b,m,n] = sum(k: A[b,m,k] * B[b/2,k,n])", "b=4,m=9,n=11,k=13,B.0=2", "f32"},
      {"H[t,i] = silu(X[t,i]) * G[t,i]; S[t,o] = sum(i: H[t,i] * W[o,i]); Y[t,o] = S[t,o] + R[t,o]",
       "t=1..20,i=33,o=18", "bf16"},
      {"C[m,n] = sum(k: A[m,k] * B[k,n])",
       "m=9,n=21,k=30,A.0.stride=40,C.0.stride=25,C.1.stride=1,A.1.stride=1", "f32"},
      {"C[m,n] = sum(k: A[m,k] * B[k,n])", "m=9,n=21,k=30,C.0.stride=50,C.1.stride=2", "f32"},
      {"C[m,n] = s[n] * sum(k: A[m,k] * B[n,k])", "m=33,n=21,k=70", "f32,A:i8,B:i8"},
      {"z[m,n] = sum(k: A[m,k] * B[n,k]); C[m,n] = z[m,n] * sigmoid(z[m,n])", "m=33,n=21,k=70",
       "f32"},
      {"Y[t,o] = gelu(sum(i: X[t,i] * W[o,i]) + b[o])", "t=1..3,i=77,o=19", "bf16,b:f32"},
      {"C[m,n] = sum(k: A[m,k] * B[n,k]) + where(n > 0, D[m,n+1], 0)", "m=10,n=21,k=12,D.1=22",
       "f32"},
  };
  uint64_t seed = 77;
  for (const Example& example : examples) {
    TryExample(example, 6, seed++);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tilewright
