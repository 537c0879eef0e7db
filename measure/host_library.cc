#include "measure/host_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// Threads that a library starts may run where the thread that starts them may: a runner's is pinned
// to one core, so for as long as this lives it may use all that its process was given.
class OnAllCores {
 public:
  OnAllCores() {
    known_ = pthread_getaffinity_np(pthread_self(), sizeof(own_), &own_) == 0;
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
    if (known_) pthread_setaffinity_np(pthread_self(), sizeof(all), &all);
  }
  ~OnAllCores() {
    if (known_) pthread_setaffinity_np(pthread_self(), sizeof(own_), &own_);
  }

 private:
  cpu_set_t own_ = {};
  bool known_ = false;
};

// $VARIABLE names the file, else the system's loader finds it.
absl::StatusOr<void*> OpenLibraryFile(const char* library, const char* file, const char* variable,
                                      const char* package) {
  const char* named = getenv(variable);
  void* handle = dlopen(named != nullptr ? named : file, RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  return absl::FailedPreconditionError(absl::StrCat("no ", library, " here (Debian: ", package,
                                                    "; ", variable,
                                                    " can name its file): ", dlerror()));
}

template <typename Function>
absl::Status FindFunction(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the library lacks ", name));
}

// The C interface of BLAS. CBLAS_ORDER and CBLAS_TRANSPOSE of its header.
constexpr int kRowMajor = 101;
constexpr int kAsItIs = 111;
constexpr int kTransposed = 112;

class OpenBlasProduct : public HostProduct {
 public:
  static absl::StatusOr<std::unique_ptr<HostProduct>> Make(const LibraryProduct& product,
                                                           int threads) {
    const absl::StatusOr<void*> library =
        OpenLibraryFile("OpenBLAS", "libopenblas.so.0", "TILEWRIGHT_OPENBLAS", "libopenblas0");
    if (!library.ok()) return library.status();
    auto made = std::make_unique<OpenBlasProduct>();
    made->product_ = product;
    void (*set_threads)(int) = nullptr;
    absl::Status status = FindFunction(*library, "cblas_sgemm", &made->sgemm_);
    if (status.ok()) status = FindFunction(*library, "openblas_set_num_threads", &set_threads);
    if (!status.ok()) return status;
    for (int64_t size :
         {product.m, product.n, product.k, product.a.stride, product.b.stride, product.c.stride}) {
      if (size > std::numeric_limits<int>::max())
        return absl::FailedPreconditionError("OpenBLAS takes sizes of 32 bits");
    }
    set_threads(threads);
    return made;
  }

  void Multiply(const float* a, const float* b, float* c) const override {
    const LibraryProduct& p = product_;
    sgemm_(kRowMajor, p.a.depth_contiguous ? kAsItIs : kTransposed,
           p.b.depth_contiguous ? kTransposed : kAsItIs, static_cast<int>(p.m),
           static_cast<int>(p.n), static_cast<int>(p.k), 1, a, static_cast<int>(p.a.stride), b,
           static_cast<int>(p.b.stride), 0, c, static_cast<int>(p.c.stride));
  }

 private:
  LibraryProduct product_;
  void (*sgemm_)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                 float*, int) = nullptr;
};

class OneDnnProduct : public HostProduct {
 public:
  static absl::StatusOr<std::unique_ptr<HostProduct>> Make(const LibraryProduct& product,
                                                           int threads) {
    const absl::StatusOr<void*> library =
        OpenLibraryFile("oneDNN", "libdnnl.so.2", "TILEWRIGHT_ONEDNN", "libdnnl2");
    if (!library.ok()) return library.status();
    auto made = std::make_unique<OneDnnProduct>();
    made->product_ = product;
    if (absl::Status status = FindFunction(*library, "dnnl_sgemm", &made->sgemm_); !status.ok())
      return status;
    // Its threads are OpenMP's, which it has loaded.
    if (void* openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD); openmp != nullptr) {
      void (*set_threads)(int) = nullptr;
      if (FindFunction(openmp, "omp_set_num_threads", &set_threads).ok()) set_threads(threads);
    }
    // The first call starts them.
    std::vector<float> warm(3 * kWarmSize * kWarmSize);
    const int64_t s = kWarmSize;
    const int refused = made->sgemm_('N', 'N', s, s, s, 1, warm.data(), s, warm.data() + s * s, s,
                                     0, warm.data() + 2 * s * s, s);
    if (refused != 0)
      return absl::FailedPreconditionError(absl::StrCat("dnnl_sgemm: status ", refused));
    return made;
  }

  void Multiply(const float* a, const float* b, float* c) const override {
    const LibraryProduct& p = product_;
    (void)sgemm_(p.a.depth_contiguous ? 'N' : 'T', p.b.depth_contiguous ? 'T' : 'N', p.m, p.n, p.k,
                 1, a, p.a.stride, b, p.b.stride, 0, c, p.c.stride);
  }

 private:
  static constexpr int64_t kWarmSize = 256;
  LibraryProduct product_;
  // oneDNN developer guide, "dnnl_sgemm": row-major, sizes of 64 bits.
  int (*sgemm_)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
                int64_t, float, float*, int64_t) = nullptr;
};

struct HostLibrary {
  const char* name;
  absl::StatusOr<std::unique_ptr<HostProduct>> (*make)(const LibraryProduct& product, int threads);
};
constexpr HostLibrary kHostLibraries[] = {
    {"openblas", OpenBlasProduct::Make},
    {"onednn", OneDnnProduct::Make},
};

}  // namespace

absl::StatusOr<std::unique_ptr<HostProduct>> HostProduct::Make(const LibraryCall& call,
                                                               int threads) {
  const LibraryProduct& p = call.product;
  if (p.operand_type != ElementType::kF32 || p.output_type != ElementType::kF32 ||
      p.has_epilogue() || p.batches != 1) {
    return absl::FailedPreconditionError(
        "libraries of the CPU are asked for single products in f32");
  }
  const OnAllCores cores;
  for (const HostLibrary& library : kHostLibraries) {
    if (call.library == library.name) return library.make(p, threads);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("library '", call.library, "' is not called on CPUs"));
}

}  // namespace tilewright
