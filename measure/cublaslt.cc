#include "measure/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// F(member, function)
#define TILEWRIGHT_CUBLASLT_FUNCTIONS(F)                 \
  F(Create, cublasLtCreate)                              \
  F(Destroy, cublasLtDestroy)                            \
  F(Matmul, cublasLtMatmul)                              \
  F(DescCreate, cublasLtMatmulDescCreate)                \
  F(DescDestroy, cublasLtMatmulDescDestroy)              \
  F(DescSet, cublasLtMatmulDescSetAttribute)             \
  F(LayoutCreate, cublasLtMatrixLayoutCreate)            \
  F(LayoutDestroy, cublasLtMatrixLayoutDestroy)          \
  F(PreferenceCreate, cublasLtMatmulPreferenceCreate)    \
  F(PreferenceDestroy, cublasLtMatmulPreferenceDestroy)  \
  F(PreferenceSet, cublasLtMatmulPreferenceSetAttribute) \
  F(Heuristic, cublasLtMatmulAlgoGetHeuristic)

struct CublasLt {
#define TILEWRIGHT_CUBLASLT_MEMBER(member, function) decltype(&::function) member = nullptr;
  TILEWRIGHT_CUBLASLT_FUNCTIONS(TILEWRIGHT_CUBLASLT_MEMBER)
#undef TILEWRIGHT_CUBLASLT_MEMBER
};

// As many algorithms as it may have to offer.
constexpr int kMostAlgorithms = 128;

absl::StatusOr<CublasLt> LoadCublasLt() {
  std::vector<std::string> paths = {"libcublasLt.so.13"};
  if (const char* named = getenv("TILEWRIGHT_CUBLASLT"); named != nullptr) paths = {named};
  for (const char* root : {"/usr/local/cuda/lib64", "/usr/local/cuda-13.0/lib64"}) {
    paths.push_back(absl::StrCat(root, "/libcublasLt.so.13"));
  }
  void* library = nullptr;
  std::string reason;
  for (const std::string& path : paths) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (reason.empty()) reason = dlerror();
  }
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no cuBLASLt here (TILEWRIGHT_CUBLASLT can name its file): ", reason));
  }
  CublasLt api;
  std::string missing;
#define TILEWRIGHT_CUBLASLT_FIND(member, function)                                \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, #function)); \
  if (api.member == nullptr && missing.empty()) missing = #function;
  TILEWRIGHT_CUBLASLT_FUNCTIONS(TILEWRIGHT_CUBLASLT_FIND)
#undef TILEWRIGHT_CUBLASLT_FIND
  if (!missing.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("libcublasLt.so.13 lacks ", missing));
  }
  return api;
}

const absl::StatusOr<CublasLt>& TheCublasLt() {
  static const auto* const api = new absl::StatusOr<CublasLt>(LoadCublasLt());
  return *api;
}

absl::Status Refused(const char* function, cublasStatus_t status) {
  return absl::FailedPreconditionError(
      absl::StrCat(function, ": cuBLAS status ", static_cast<int>(status)));
}

cudaDataType_t DataType(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return CUDA_R_16F;
    case ElementType::kBF16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

class LoadedProduct : public CublasLtProduct {
 public:
  explicit LoadedProduct(const CublasLt& api) : api_(api) {}
  ~LoadedProduct() override {
    // Errors here are those of a context that has ended already.
    if (preference_ != nullptr) (void)api_.PreferenceDestroy(preference_);
    for (cublasLtMatrixLayout_t layout : {first_, second_, result_}) {
      if (layout != nullptr) (void)api_.LayoutDestroy(layout);
    }
    if (desc_ != nullptr) (void)api_.DescDestroy(desc_);
    if (handle_ != nullptr) (void)api_.Destroy(handle_);
  }

  // The library's matrices are stored by columns, so our row-major c is its c transposed:
  //   c' [n, m] = op(b') [n, k] * op(a') [k, m]
  // A row-major b[n, k] is b'[k, n], to be transposed; a row-major b[k, n] is b'[n, k] as it
  // stands.
  absl::Status Prepare(const LibraryCall& call, int64_t workspace_bytes) {
    const LibraryProduct& p = call.product;
    workspace_bytes_ = static_cast<size_t>(workspace_bytes);
    cublasStatus_t status = api_.Create(&handle_);
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtCreate", status);
    status = api_.DescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtMatmulDescCreate", status);
    const cublasOperation_t first = p.b.depth_contiguous ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = p.a.depth_contiguous ? CUBLAS_OP_N : CUBLAS_OP_T;
    status = api_.DescSet(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first));
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = api_.DescSet(desc_, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second));
    }
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtMatmulDescSetAttribute", status);
    const auto size = [](int64_t value) { return static_cast<uint64_t>(value); };
    const cudaDataType_t operands = DataType(p.operand_type);
    status = api_.LayoutCreate(&first_, operands, size(p.b.depth_contiguous ? p.k : p.n),
                               size(p.b.depth_contiguous ? p.n : p.k), p.b.stride);
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = api_.LayoutCreate(&second_, operands, size(p.a.depth_contiguous ? p.k : p.m),
                                 size(p.a.depth_contiguous ? p.m : p.k), p.a.stride);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
      status =
          api_.LayoutCreate(&result_, DataType(p.output_type), size(p.n), size(p.m), p.c.stride);
    }
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtMatrixLayoutCreate", status);
    return ChooseAlgorithm(call.algorithm);
  }

  absl::Status Enqueue(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr workspace,
                       CUstream stream) override {
    const float one = 1;
    const float zero = 0;
    const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
    const cublasStatus_t status = api_.Matmul(
        handle_, desc_, &one, pointer(b), first_, pointer(a), second_, &zero, pointer(c), result_,
        pointer(c), result_, &algorithm_, pointer(workspace), workspace_bytes_, stream);
    return status == CUBLAS_STATUS_SUCCESS ? absl::OkStatus() : Refused("cublasLtMatmul", status);
  }

 private:
  absl::Status ChooseAlgorithm(int number) {
    cublasStatus_t status = api_.PreferenceCreate(&preference_);
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = api_.PreferenceSet(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                  &workspace_bytes_, sizeof(workspace_bytes_));
    }
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtMatmulPreference", status);
    std::vector<cublasLtMatmulHeuristicResult_t> offered(kMostAlgorithms);
    int count = 0;
    status = api_.Heuristic(handle_, desc_, first_, second_, result_, result_, preference_,
                            kMostAlgorithms, offered.data(), &count);
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtMatmulAlgoGetHeuristic", status);
    if (number >= count) {
      return absl::FailedPreconditionError(
          absl::StrCat("cuBLASLt offers ", count, " algorithms; there is no number ", number));
    }
    algorithm_ = offered[number].algo;
    return absl::OkStatus();
  }

  const CublasLt& api_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr;
  cublasLtMatrixLayout_t second_ = nullptr;
  cublasLtMatrixLayout_t result_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
  size_t workspace_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CublasLtProduct>> CublasLtProduct::Make(const LibraryCall& call,
                                                                       int64_t workspace_bytes) {
  if (call.library != "cublaslt") {
    return absl::FailedPreconditionError(
        absl::StrCat("library '", call.library, "' is unknown here; cublaslt is known"));
  }
  const absl::StatusOr<CublasLt>& api = TheCublasLt();
  if (!api.ok()) return api.status();
  auto product = std::make_unique<LoadedProduct>(*api);
  if (absl::Status status = product->Prepare(call, workspace_bytes); !status.ok()) return status;
  return product;
}

}  // namespace tilewright
