// Contractions against the libraries a user would pick instead: OpenBLAS, oneDNN, and for `linear`
// the library's product followed by a vectorised, threaded bias-and-gelu loop.
//
//   gemm_bench                                     the default schedules of the standard cases
//   gemm_bench --case matmul --size m=512,n=512,k=512 --schedule 'contraction.tiled{...}'
//   --schedule default gemm_bench --case linear --sample 200          the best of 200 random
//   schedules takes part as well
//
// Both sides alternate in one process on rotated inputs; a ratio is library time / our time (above
// 1: we are faster), the median over rounds of the medians' quotient. OpenBLAS takes part at its
// best number of threads.
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/writer.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "schedule/operators.h"
#include "schedule/variant.h"

namespace tilewright {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "gemm_bench: %s\n", message.c_str());
  std::exit(2);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Threads that spin while a case is timed; the caller is the first.
class Pool {
 public:
  explicit Pool(int threads) : threads_(threads) {
    for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { Work(t); });
  }
  ~Pool() {
    Run([](int) {}, true);
    for (std::thread& worker : workers_) worker.join();
  }
  int threads() const { return threads_; }
  void Run(const std::function<void(int)>& job, bool stop = false) {
    job_ = &job;
    stop_ = stop;
    left_.store(threads_ - 1, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    job(0);
    while (left_.load(std::memory_order_acquire) != 0) Wait();
  }

 private:
  static void Wait() { __builtin_ia32_pause(); }
  void Work(int number) {
    for (uint64_t seen = 0;;) {
      for (int spins = 0; round_.load(std::memory_order_acquire) == seen; ++spins) {
        // Asleep while others are timed.
        if (spins > 2000) round_.wait(seen, std::memory_order_acquire);
        Wait();
      }
      ++seen;
      (*job_)(number);
      const bool stop = stop_;
      left_.fetch_sub(1, std::memory_order_release);
      if (stop) return;
    }
  }
  const int threads_;
  std::vector<std::thread> workers_;
  const std::function<void(int)>* job_ = nullptr;
  bool stop_ = false;
  std::atomic<uint64_t> round_{0};
  std::atomic<int> left_{0};
};

struct Case {
  std::string name;
  std::string expression;
  std::string sizes;
  // out[m, n] = activation(a[m, k] * b + bias): how the library is called.
  bool b_transposed = false;
  bool bias_gelu = false;
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {"matmul", "C[m,n] = sum(k: A[m,k] * B[k,n])", "m=1024,n=1024,k=1024", false, false},
      {"linear", "Y[m,n] = gelu(sum(k: A[m,k] * B[n,k]) + bias[n])", "m=512,n=4096,k=1024", true,
       true},
  };
  return *cases;
}

struct Problem {
  int64_t m, n, k;
  Case kind;
};

// Input sets that together are larger than the last cache, unless one is asked for.
struct Data {
  std::vector<std::vector<float>> a, b, bias, out;
  std::vector<float> expected;
};

std::vector<float> Random(int64_t count, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// ---- The libraries
// -----------------------------------------------------------------------------------------------

struct Blas {
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                float*, int) = nullptr;
  void (*set_threads)(int) = nullptr;
  const char* (*config)() = nullptr;

  static Blas Load() {
    Blas blas;
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return blas;
    blas.sgemm = reinterpret_cast<decltype(blas.sgemm)>(dlsym(library, "cblas_sgemm"));
    blas.set_threads =
        reinterpret_cast<decltype(blas.set_threads)>(dlsym(library, "openblas_set_num_threads"));
    blas.config = reinterpret_cast<decltype(blas.config)>(dlsym(library, "openblas_get_config"));
    return blas;
  }
  void Multiply(const Problem& p, const float* a, const float* b, float* out) const {
    const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    sgemm(101, 111, p.kind.b_transposed ? 112 : 111, m, n, k, 1, a, k, b,
          p.kind.b_transposed ? k : n, 0, out, n);
  }
};

// gelu(x) in the exact form, as a compiler vectorises it: the rational erf of Abramowitz and
// Stegun, 7.1.26 (error 1.5e-7), with exp by splitting off a power of two (Cephes expf).
inline float Exp(float x) {
  const float t = x * 1.44269504f;
  const float whole = std::floor(t + 0.5f);
  const float r = std::fmaf(whole, -0.693359375f, x) + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1;
  int32_t bits = (static_cast<int32_t>(whole) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, 4);
  return p * scale;
}
inline float Gelu(float x) {
  const float z = std::fabs(x) * 0.70710678f;
  const float t = 1 / (1 + 0.3275911f * z);
  const float tail =
      t * (0.254829592f +
           t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float negative_square = -z * z;
  const float erf = 1 - tail * Exp(negative_square < -87 ? -87 : negative_square);
  return 0.5f * x * (1 + (x < 0 ? -erf : erf));
}

__attribute__((target("avx2,fma"), optimize("O3,fast-math"))) void BiasGelu(float* row,
                                                                            const float* bias,
                                                                            int64_t n) {
  for (int64_t i = 0; i < n; ++i) row[i] = Gelu(row[i] + bias[i]);
}

void BiasGeluRows(const Problem& p, Pool& pool, const float* bias, float* out) {
  pool.Run([&](int t) {
    for (int64_t row = p.m * t / pool.threads(); row < p.m * (t + 1) / pool.threads(); ++row) {
      BiasGelu(out + row * p.n, bias, p.n);
    }
  });
}

// ---- Our side
// ----------------------------------------------------------------------------------------------------

Target HostTarget(int cores) {
  Target target;
  for (const Target& known : KnownTargets()) {
    if (known.backend == "host" && !__builtin_cpu_supports("avx512f") == (known.vector_bits == 256))
      target = known;
  }
  target.llvm_cpu = llvm::sys::getHostCPUName().str();
  target.cores = cores;
  target.kind =
      absl::StrCat("cpu:host/", target.vector_bits == 512 ? "avx512" : "avx2", "/", cores);
  return target;
}

class Ours {
 public:
  Ours(const Workload& workload, const Target& target, const Schedule& schedule)
      : text_(schedule.ToString()) {
    const double begin = Now();
    absl::StatusOr<Kernel> kernel = WriteKernel({workload, target, schedule}, DefaultCatalogue());
    build_seconds_ = Now() - begin;
    if (!kernel.ok()) Die(std::string(kernel.status().message()));
    kernel_ = *std::move(kernel);
    jit_ = std::move(*llvm::orc::LLJITBuilder().create());
    for (const CodeObject& object : kernel_.objects) {
      if (jit_->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object.bytes, "kernel")))
        Die("cannot load the kernel");
    }
    for (const Launch& launch : kernel_.launches)
      entries_.push_back(jit_->lookup(launch.entry)->toPtr<HostEntry>());
    workspace_.reset(static_cast<char*>(
        std::aligned_alloc(4096, (kernel_.workspace.bytes + 4096) / 4096 * 4096)));
    std::memset(workspace_.get(), 0xff, kernel_.workspace.bytes);
  }

  void Call(Pool& pool, const std::vector<void*>& buffers) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      std::vector<uint64_t> args;
      for (const Argument& argument : kernel_.launches[i].arguments) {
        args.push_back(reinterpret_cast<uint64_t>(buffers[argument.number]));
      }
      const int threads = kernel_.launches[i].threads;
      pool.Run([&](int t) {
        for (int number = t; number < threads; number += pool.threads())
          entries_[i](args.data(), workspace_.get(), number, threads);
      });
    }
  }
  const std::string& text() const { return text_; }
  double build_seconds() const { return build_seconds_; }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::string text_;
  double build_seconds_ = 0;
  Kernel kernel_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::vector<HostEntry> entries_;
  std::unique_ptr<char, Free> workspace_;
};

struct Options {
  std::string only;
  std::string sizes;
  std::vector<std::string> schedules;
  int sample = 0;
  int climb = 0;
  int rounds = 15;
  int cores = 0;
  int sets = 0;
  uint64_t seed = 1;
};

class CaseBench {
 public:
  CaseBench(const Case& kind, const Options& options)
      : options_(options), pool_(options.cores), target_(HostTarget(options.cores)) {
    WorkloadOptions workload_options{options.sizes.empty() ? kind.sizes : options.sizes, "f32"};
    absl::StatusOr<Workload> workload = Workload::Make(kind.expression, workload_options, &names_);
    if (!workload.ok()) Die(std::string(workload.status().message()));
    workload_ = std::make_unique<Workload>(*std::move(workload));
    problem_.kind = kind;
    auto size = [&](const char* name) {
      for (size_t i = 0; i < names_.indices.size(); ++i) {
        if (names_.indices[i] == name) return workload_->sizes()[i].high;
      }
      return int64_t{1};
    };
    problem_.m = size("m"), problem_.n = size("n"), problem_.k = size("k");
    absl::StatusOr<std::shared_ptr<const ScheduleSpace>> space =
        ScheduleSpace::Make(*workload_, target_, AllVariants());
    if (!space.ok()) Die(std::string(space.status().message()));
    space_ = *space;
    MakeData();
  }

  void Run() {
    std::printf("%s m=%ld n=%ld k=%ld on %d threads, %zu input sets\n", problem_.kind.name.c_str(),
                problem_.m, problem_.n, problem_.k, pool_.threads(), data_.a.size());
    std::vector<std::unique_ptr<Ours>> ours;
    for (const std::string& text : options_.schedules) ours.push_back(Build(text));
    if (ours.empty()) ours.push_back(Build("default"));
    if (options_.sample > 0) ours.push_back(Search());
    Compare(ours);
  }

 private:
  void MakeData() {
    std::mt19937_64 random(options_.seed);
    const int64_t bytes =
        4 * (problem_.m * problem_.k + problem_.k * problem_.n + problem_.m * problem_.n);
    const int64_t sets =
        options_.sets > 0
            ? options_.sets
            : std::max<int64_t>(
                  1, 2.5 * static_cast<double>(target_.l3_bytes) / static_cast<double>(bytes) + 1);
    for (int64_t i = 0; i < sets; ++i) {
      data_.a.push_back(Random(problem_.m * problem_.k, random));
      data_.b.push_back(Random(problem_.k * problem_.n, random));
      data_.bias.push_back(Random(problem_.n, random));
      data_.out.emplace_back(problem_.m * problem_.n);
    }
  }

  std::unique_ptr<Ours> Build(const std::string& text) {
    Schedule schedule = space_->DefaultSchedule();
    if (text != "default") {
      absl::StatusOr<Schedule> parsed = ParseSchedule(text);
      if (!parsed.ok()) Die(std::string(parsed.status().message()));
      schedule = *parsed;
      absl::StatusOr<absl::uint128> index = space_->space().IndexOf(schedule);
      if (!index.ok()) Die(std::string(index.status().message()));
    }
    return std::make_unique<Ours>(*workload_, target_, schedule);
  }

  std::vector<void*> Buffers(size_t set) {
    std::vector<void*> buffers;
    auto add = [&](int tensor) {
      const std::string& name = names_.tensors[tensor];
      float* data = name == "A"      ? data_.a[set].data()
                    : name == "B"    ? data_.b[set].data()
                    : name == "bias" ? data_.bias[set].data()
                                     : data_.out[set].data();
      buffers.push_back(data);
    };
    for (int tensor : workload_->parameters()) add(tensor);
    for (int tensor : workload_->outputs()) add(tensor);
    return buffers;
  }

  double Time(Ours& kernel, int calls) {
    std::vector<double> times;
    for (int i = 0; i < calls; ++i) {
      const std::vector<void*> buffers = Buffers(next_++ % data_.a.size());
      const double begin = Now();
      kernel.Call(pool_, buffers);
      times.push_back(Now() - begin);
    }
    return *std::min_element(times.begin(), times.end());
  }

  // Random schedules, then neighbours of the best until none is faster.
  std::unique_ptr<Ours> Search() {
    std::mt19937_64 random(options_.seed);
    const Space& space = space_->space();
    const Space::Part* part = nullptr;
    for (const Space::Part& p : space.Parts()) {
      if (p.variant == "contraction.tiled") part = &p;
    }
    if (part == nullptr) Die("contraction.tiled does not apply");
    std::vector<double> seconds;
    std::unique_ptr<Ours> best = Build("default");
    double least = Time(*best, 5);
    absl::uint128 best_index = *space.IndexOf(space_->DefaultSchedule());
    double build = 0;
    int built = 0;
    auto attempt = [&](absl::uint128 index) {
      auto kernel = std::make_unique<Ours>(*workload_, target_, space.At(index));
      build += kernel->build_seconds();
      ++built;
      double time = Time(*kernel, 2);
      if (time < least * 1.05) time = std::min(time, Time(*kernel, 4));
      seconds.push_back(time);
      if (time >= least) return false;
      least = time;
      best = std::move(kernel);
      best_index = index;
      std::printf("  %4zu  %.3f ms  %s\n", seconds.size(), least * 1e3, best->text().c_str());
      std::fflush(stdout);
      return true;
    };
    for (int i = 0; i < options_.sample; ++i)
      attempt(part->begin + UniformIndex(random, part->end - part->begin));
    std::sort(seconds.begin(), seconds.end());
    std::printf(
        "  random: best %.3f ms, quartiles %.3f %.3f %.3f, worst %.3f; space %s, mean build %.1f "
        "ms\n",
        seconds[0] * 1e3, seconds[seconds.size() / 4] * 1e3, seconds[seconds.size() / 2] * 1e3,
        seconds[seconds.size() * 3 / 4] * 1e3, seconds.back() * 1e3,
        absl::StrCat(absl::Uint128Low64(space.Count())).c_str(), build / built * 1e3);
    for (int left = options_.climb; left > 0;) {
      std::vector<absl::uint128> neighbours = space.Neighbours(best_index);
      std::shuffle(neighbours.begin(), neighbours.end(), random);
      bool better = false;
      for (absl::uint128 index : neighbours) {
        if (left-- <= 0) break;
        if (index < part->begin || index >= part->end) continue;
        if (attempt(index)) {
          better = true;
          break;
        }
      }
      if (!better) break;
    }
    return best;
  }

  struct Entry {
    std::string name;
    std::function<void(size_t set)> call;
    std::vector<double> times;
  };

  void Compare(const std::vector<std::unique_ptr<Ours>>& ours) {
    std::vector<Entry> entries;
    const Blas blas = Blas::Load();
    if (blas.sgemm != nullptr) {
      std::printf("  OpenBLAS: %s\n", blas.config());
      for (int threads = 1; threads <= pool_.threads(); threads *= 2) {
        entries.push_back({absl::StrCat("openblas, ", threads, " threads",
                                        problem_.kind.bias_gelu ? " + gelu loop" : ""),
                           [this, blas, threads](size_t set) {
                             blas.set_threads(threads);
                             blas.Multiply(problem_, data_.a[set].data(), data_.b[set].data(),
                                           data_.out[set].data());
                             if (problem_.kind.bias_gelu) {
                               BiasGeluRows(problem_, pool_, data_.bias[set].data(),
                                            data_.out[set].data());
                             }
                           },
                           {}});
      }
    }
    const size_t libraries = entries.size();
    for (const std::unique_ptr<Ours>& kernel : ours) {
      Ours* own = kernel.get();
      entries.push_back(
          {own->text(), [this, own](size_t set) { own->Call(pool_, Buffers(set)); }, {}});
    }
    Check(entries);
    for (int round = 0; round < options_.rounds; ++round) {
      for (Entry& entry : entries) {
        std::vector<double> times;
        for (int i = 0; i < 5; ++i) {
          const size_t set = next_++ % data_.a.size();
          const double begin = Now();
          entry.call(set);
          times.push_back(Now() - begin);
        }
        entry.times.push_back(Median(times));
      }
    }
    Report(entries, libraries);
  }

  // Every side must agree with the first before anything is timed.
  void Check(std::vector<Entry>& entries) {
    std::vector<float> expected;
    for (Entry& entry : entries) {
      std::fill(data_.out[0].begin(), data_.out[0].end(), NAN);
      entry.call(0);
      if (expected.empty()) {
        expected = data_.out[0];
        continue;
      }
      double worst = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        const double error =
            std::fabs(expected[i] - data_.out[0][i]) / (1 + std::fabs(expected[i]));
        if (!(error <= worst)) worst = error;
      }
      if (!(worst < 1e-3)) Die(absl::StrCat(entry.name, " is wrong by ", worst));
    }
  }

  void Report(const std::vector<Entry>& entries, size_t libraries) {
    const double operations = 2.0 * static_cast<double>(problem_.m) *
                              static_cast<double>(problem_.n) * static_cast<double>(problem_.k);
    size_t best_library = 0;
    for (size_t i = 1; i < libraries; ++i) {
      if (Median(entries[i].times) < Median(entries[best_library].times)) best_library = i;
    }
    for (size_t i = 0; i < entries.size(); ++i) {
      const double median = Median(entries[i].times);
      const double least = *std::min_element(entries[i].times.begin(), entries[i].times.end());
      std::printf("  %8.3f ms median %8.3f ms least %7.1f GFLOP/s", median * 1e3, least * 1e3,
                  operations / median / 1e9);
      if (i >= libraries && libraries > 0) {
        std::vector<double> ratios;
        for (size_t r = 0; r < entries[i].times.size(); ++r)
          ratios.push_back(entries[best_library].times[r] / entries[i].times[r]);
        const double other = *std::min_element(entries[best_library].times.begin(),
                                               entries[best_library].times.end());
        std::printf("  ratio %.3f (of the least times %.3f)", Median(ratios), other / least);
      }
      std::printf("  %s\n", entries[i].name.c_str());
    }
  }

  const Options options_;
  Pool pool_;
  const Target target_;
  Names names_;
  std::unique_ptr<Workload> workload_;
  Problem problem_;
  std::shared_ptr<const ScheduleSpace> space_;
  Data data_;
  size_t next_ = 0;
};

Options ParseOptions(int argc, char** argv) {
  Options options;
  options.cores = static_cast<int>(std::thread::hardware_concurrency());
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (i + 1 >= argc) Die(absl::StrCat(flag, " needs a value"));
    const std::string value = argv[++i];
    if (flag == "--case")
      options.only = value;
    else if (flag == "--size")
      options.sizes = value;
    else if (flag == "--schedule")
      options.schedules.push_back(value);
    else if (flag == "--sample")
      options.sample = std::stoi(value);
    else if (flag == "--climb")
      options.climb = std::stoi(value);
    else if (flag == "--rounds")
      options.rounds = std::stoi(value);
    else if (flag == "--cores")
      options.cores = std::stoi(value);
    else if (flag == "--sets")
      options.sets = std::stoi(value);
    else if (flag == "--seed")
      options.seed = std::stoull(value);
    else
      Die(absl::StrCat(
          "unknown flag ", flag,
          "; there are --case --size --schedule --sample --climb --rounds --cores --sets --seed"));
  }
  return options;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  // OpenBLAS reads these when it is loaded; a value left over from elsewhere would slow it down.
  if (getenv("OPENBLAS_CORETYPE") != nullptr || getenv("OPENBLAS_L2_SIZE") != nullptr) {
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("OPENBLAS_L2_SIZE");
    execv("/proc/self/exe", argv);
  }
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  const tilewright::Options options = tilewright::ParseOptions(argc, argv);
  for (const tilewright::Case& kind : tilewright::Cases()) {
    if (!options.only.empty() && options.only != kind.name) continue;
    tilewright::CaseBench(kind, options).Run();
  }
  return 0;
}
