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
  F(LayoutSet, cublasLtMatrixLayoutSetAttribute)         \
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
    case ElementType::kE4M3:
      return CUDA_R_8F_E4M3;
    case ElementType::kI8:
      return CUDA_R_8I;
    case ElementType::kI32:
      return CUDA_R_32I;
    default:
      return CUDA_R_32F;
  }
}

cublasLtEpilogue_t EpilogueOf(const LibraryProduct& p) {
  const bool bias = p.bias >= 0;
  switch (p.activation) {
    case LibraryProduct::Activation::kRelu:
      return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case LibraryProduct::Activation::kGelu:
      return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case LibraryProduct::Activation::kNone:
      break;
  }
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

class LoadedProduct : public CublasLtProduct {
 public:
  explicit LoadedProduct(const CublasLt& api) : api_(api) {}
  ~LoadedProduct() override {
    // Errors here are those of a context that has ended already.
    if (preference_ != nullptr) (void)api_.PreferenceDestroy(preference_);
    for (cublasLtMatrixLayout_t layout : {first_, second_, added_, result_}) {
      if (layout != nullptr) (void)api_.LayoutDestroy(layout);
    }
    if (desc_ != nullptr) (void)api_.DescDestroy(desc_);
    if (handle_ != nullptr) (void)api_.Destroy(handle_);
  }

  // The library's matrices are stored by columns, so our row-major c is its c transposed:
  //   c' [n, m] = op(b') [n, k] * op(a') [k, m]
  // A row-major b[n, k] is b'[k, n], to be transposed; a row-major b[k, n] is b'[n, k] as it
  // stands.
  // Its bias goes along its rows, our n; its C, times beta, is our residual. FP8 operands' scales
  // are left out, which means 1.
  absl::Status Prepare(const LibraryCall& call, int64_t workspace_bytes) {
    const LibraryProduct& p = call.product;
    workspace_bytes_ = static_cast<size_t>(workspace_bytes);
    integers_ = p.operand_type == ElementType::kI8;
    scale_ = static_cast<float>(p.scale);
    beta_ = p.has_residual ? 1 : 0;
    cublasStatus_t status = api_.Create(&handle_);
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtCreate", status);
    if (absl::Status made = MakeDescription(p); !made.ok()) return made;
    const auto layout = [&](cublasLtMatrixLayout_t* made, ElementType type,
                            const LibraryProduct::Operand& operand, int64_t rows) {
      const int64_t depth = &operand == &p.a || &operand == &p.b ? p.k : p.n;
      return MakeLayout(made, type, operand, operand.depth_contiguous ? depth : rows,
                        operand.depth_contiguous ? rows : depth, p.batches);
    };
    absl::Status made = layout(&first_, p.operand_type, p.b, p.n);
    if (made.ok()) made = layout(&second_, p.operand_type, p.a, p.m);
    if (made.ok()) made = layout(&added_, p.output_type, p.has_residual ? p.residual : p.c, p.m);
    if (made.ok()) made = layout(&result_, p.output_type, p.c, p.m);
    if (!made.ok()) return made;
    return ChooseAlgorithm(call.algorithm);
  }

  absl::Status Enqueue(const CublasLtBuffers& buffers, CUstream stream) override {
    if (buffers.bias != 0) {
      const void* bias = Pointer(buffers.bias);
      const cublasStatus_t status =
          api_.DescSet(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
      if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtMatmulDescSetAttribute", status);
    }
    const int32_t one = 1;
    const int32_t zero = 0;
    const void* alpha = integers_ ? static_cast<const void*>(&one) : &scale_;
    const void* beta = integers_ ? static_cast<const void*>(&zero) : &beta_;
    const cublasStatus_t status = api_.Matmul(
        handle_, desc_, alpha, Pointer(buffers.b), first_, Pointer(buffers.a), second_, beta,
        Pointer(buffers.residual != 0 ? buffers.residual : buffers.c), added_, Pointer(buffers.c),
        result_, &algorithm_, Pointer(buffers.workspace), workspace_bytes_, stream);
    return status == CUBLAS_STATUS_SUCCESS ? absl::OkStatus() : Refused("cublasLtMatmul", status);
  }

 private:
  absl::Status MakeDescription(const LibraryProduct& p) {
    cublasStatus_t status = integers_ ? api_.DescCreate(&desc_, CUBLAS_COMPUTE_32I, CUDA_R_32I)
                                      : api_.DescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtMatmulDescCreate", status);
    const cublasOperation_t first = p.b.depth_contiguous ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = p.a.depth_contiguous ? CUBLAS_OP_N : CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = EpilogueOf(p);
    const cudaDataType_t bias = DataType(p.bias_type);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      if (status == CUBLAS_STATUS_SUCCESS)
        status = api_.DescSet(desc_, attribute, &value, sizeof(value));
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, first);
    set(CUBLASLT_MATMUL_DESC_TRANSB, second);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (p.bias >= 0) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias);
    return status == CUBLAS_STATUS_SUCCESS ? absl::OkStatus()
                                           : Refused("cublasLtMatmulDescSetAttribute", status);
  }

  absl::Status MakeLayout(cublasLtMatrixLayout_t* layout, ElementType type,
                          const LibraryProduct::Operand& operand, int64_t rows, int64_t columns,
                          int64_t batches) {
    cublasStatus_t status = api_.LayoutCreate(layout, DataType(type), static_cast<uint64_t>(rows),
                                              static_cast<uint64_t>(columns), operand.stride);
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtMatrixLayoutCreate", status);
    if (batches == 1) return absl::OkStatus();
    const auto count = static_cast<int32_t>(batches);
    status = api_.LayoutSet(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = api_.LayoutSet(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                              &operand.batch_stride, sizeof(operand.batch_stride));
    }
    return status == CUBLAS_STATUS_SUCCESS ? absl::OkStatus()
                                           : Refused("cublasLtMatrixLayoutSetAttribute", status);
  }

  absl::Status ChooseAlgorithm(int number) {
    cublasStatus_t status = api_.PreferenceCreate(&preference_);
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = api_.PreferenceSet(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                  &workspace_bytes_, sizeof(workspace_bytes_));
    }
    if (status != CUBLAS_STATUS_SUCCESS) return Refused("cublasLtMatmulPreference", status);
    std::vector<cublasLtMatmulHeuristicResult_t> offered(kMostAlgorithms);
    int count = 0;
    status = api_.Heuristic(handle_, desc_, first_, second_, added_, result_, preference_,
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
  cublasLtMatrixLayout_t added_ = nullptr;
  cublasLtMatrixLayout_t result_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
  size_t workspace_bytes_ = 0;
  bool integers_ = false;  // products of i8: factors are i32
  float scale_ = 1;
  float beta_ = 0;
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
