#include "measure/cuda_kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

// More dynamic shared memory than this must be opted in for a function (CUDA C++ Programming Guide,
// "Compute Capabilities").
constexpr int64_t kSharedWithoutOptIn = 48 << 10;
// Larger clusters are not portable between devices of one architecture and must be opted in.
constexpr int kPortableCluster = 8;
constexpr int kLargestAlignment = 4096;
constexpr size_t kLogBytes = 8192;

absl::StatusOr<CUtensorMapDataType> MapTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kF64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case ElementType::kF32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case ElementType::kF16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case ElementType::kBF16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case ElementType::kE4M3:
    case ElementType::kE5M2:
    case ElementType::kI8:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case ElementType::kI32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
  }
  return absl::InvalidArgumentError("tensor map: unknown element type");
}

absl::StatusOr<CUtensorMapSwizzle> SwizzleOf(int bytes) {
  switch (bytes) {
    case 0:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
    case 32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case 64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case 128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("tensor map: swizzle of ", bytes, " B; accepted are 0, 32, 64, 128"));
  }
}

absl::StatusOr<CUtensorMapL2promotion> PromotionOf(int bytes) {
  switch (bytes) {
    case 0:
      return CU_TENSOR_MAP_L2_PROMOTION_NONE;
    case 64:
      return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
    case 128:
      return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    case 256:
      return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("tensor map: L2 promotion of ", bytes, " B; accepted are 0, 64, 128, 256"));
  }
}

absl::Status CheckDeviceDomain(const Domain& domain, absl::Span<const int64_t> sizes) {
  for (size_t i = 0; i < domain.sizes.size() && i < sizes.size(); ++i) {
    if (sizes[i] >= domain.sizes[i].low && sizes[i] <= domain.sizes[i].high) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("size ", i, " is ", sizes[i], ", outside the kernel's domain ",
                     domain.sizes[i].low, "..", domain.sizes[i].high));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorMapRequest> RequestOf(const TensorMap& map, absl::Span<const int64_t> sizes) {
  TensorMapRequest request;
  const absl::StatusOr<CUtensorMapDataType> type = MapTypeOf(map.type);
  if (!type.ok()) return type.status();
  request.type = *type;
  const absl::StatusOr<CUtensorMapSwizzle> swizzle = SwizzleOf(map.swizzle_bytes);
  if (!swizzle.ok()) return swizzle.status();
  request.swizzle = *swizzle;
  const absl::StatusOr<CUtensorMapL2promotion> promotion = PromotionOf(map.l2_promotion_bytes);
  if (!promotion.ok()) return promotion.status();
  request.l2_promotion = *promotion;
  const int bytes = Info(map.type).bytes;
  if (map.dims.empty() || map.dims.size() > 5 || map.box.size() != map.dims.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor map: ", map.dims.size(),
                                                   " dimensions and a box of ", map.box.size(),
                                                   "; accepted are 1 to 5, as many in both"));
  }
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const int64_t extent = map.dims[d].extent.Evaluate(sizes);
    if (extent < 1 || extent > (int64_t{1} << 32)) {
      return absl::InvalidArgumentError(absl::StrCat("tensor map: dimension ", d, " has ", extent,
                                                     " elements; accepted are 1 to 2^32"));
    }
    request.extents.push_back(static_cast<cuuint64_t>(extent));
    if (map.box[d] < 1 || map.box[d] > 256) {
      return absl::InvalidArgumentError(absl::StrCat("tensor map: the box has ", map.box[d],
                                                     " elements in dimension ", d,
                                                     "; accepted are 1 to 256"));
    }
    request.box.push_back(static_cast<cuuint32_t>(map.box[d]));
    request.element_strides.push_back(1);
    if (d == 0) continue;
    const int64_t stride = map.dims[d].stride.Evaluate(sizes) * bytes;
    if (stride < 0 || stride % 16 != 0 || stride >= (int64_t{1} << 40)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor map: dimension ", d, " has a stride of ", stride,
                       " B; accepted are multiples of 16 below 2^40"));
    }
    request.strides_bytes.push_back(static_cast<cuuint64_t>(stride));
  }
  const int64_t row = int64_t{map.box[0]} * bytes;
  if (row % 16 != 0 || (map.swizzle_bytes > 0 && row > map.swizzle_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor map: a row of the box has ", row, " B; accepted are multiples of 16",
        map.swizzle_bytes > 0 ? absl::StrCat(" up to the swizzle's ", map.swizzle_bytes) : ""));
  }
  return request;
}

absl::Status EncodeTensorMap(const CudaDriver& driver, const TensorMapRequest& request,
                             CUdeviceptr address, CUtensorMap* map) {
  const CUresult result = driver.TensorMapEncodeTiled(
      map, request.type, static_cast<cuuint32_t>(request.extents.size()),
      reinterpret_cast<void*>(address), request.extents.data(), request.strides_bytes.data(),
      request.box.data(), request.element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      request.swizzle, request.l2_promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  absl::Status status = driver.Check(result, "cuTensorMapEncodeTiled");
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), ": extents ", absl::StrJoin(request.extents, ","),
                   ", strides ", absl::StrJoin(request.strides_bytes, ","), " B, box ",
                   absl::StrJoin(request.box, ","), ", address ", address));
}

absl::StatusOr<std::unique_ptr<CudaKernel>> CudaKernel::Load(CudaContext& context,
                                                             const Kernel& kernel, bool dependent) {
  auto loaded = std::unique_ptr<CudaKernel>(new CudaKernel(context, kernel, dependent));
  if (absl::Status status = loaded->LoadCode(); !status.ok()) return status;
  if (absl::Status status = loaded->MakeWorkspace(); !status.ok()) return status;
  return loaded;
}

CudaKernel::~CudaKernel() {
  // Errors here are those of a context that has ended already.
  for (CUmodule module : modules_) (void)context_.driver().ModuleUnload(module);
}

absl::Status CudaKernel::LoadCode() {
  const CudaDriver& driver = context_.driver();
  if (const absl::StatusOr<LibraryCall> call = ReadLibraryKernel(kernel_); call.ok()) {
    absl::StatusOr<std::unique_ptr<CublasLtProduct>> library =
        CublasLtProduct::Make(*call, kernel_.workspace.bytes);
    if (!library.ok()) return library.status();
    library_ = *std::move(library);
    library_call_ = *call;
    return absl::OkStatus();
  }
  for (const CodeObject& object : kernel_.objects) {
    const bool ptx = absl::StartsWith(object.format, "ptx-");
    if (!ptx && !absl::StartsWith(object.format, "cubin-")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "object format '", object.format, "' cannot run on a GPU; cubin-ARCH and ptx-ARCH can"));
    }
    std::string log(kLogBytes, '\0');
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    CUmodule module = nullptr;
    // PTX must end with a zero, which std::string's bytes do.
    const CUresult result =
        driver.ModuleLoadDataEx(&module, object.bytes.c_str(), ptx ? 2 : 0, options, values);
    if (absl::Status status = driver.Check(result, "cuModuleLoadDataEx"); !status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat(status.message(), log[0] != '\0' ? ": " : "", log.c_str()));
    }
    modules_.push_back(module);
  }
  for (const Launch& launch : kernel_.launches) {
    CUfunction function = nullptr;
    for (CUmodule module : modules_) {
      CUfunction found = nullptr;
      if (driver.ModuleGetFunction(&found, module, launch.entry.c_str()) == CUDA_SUCCESS) {
        function = found;
      }
    }
    if (function == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the kernel's objects have no entry '", launch.entry, "'"));
    }
    functions_.push_back(function);
    if (launch.shared_memory_bytes > kSharedWithoutOptIn) {
      absl::Status status = driver.Check(
          driver.FuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  static_cast<int>(launch.shared_memory_bytes)),
          "cuFuncSetAttribute");
      if (!status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat(status.message(), ": ", launch.shared_memory_bytes,
                                         " B of dynamic shared memory"));
      }
    }
    if (launch.cluster > kPortableCluster) {
      absl::Status status = driver.Check(
          driver.FuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
          "cuFuncSetAttribute");
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// Band, workspace, band: the workspace's end is exact, as a buffer's is.
absl::Status CudaKernel::MakeWorkspace() {
  const Workspace& workspace = kernel_.workspace;
  if (workspace.bytes < 0 || workspace.alignment < 1 || workspace.alignment > kLargestAlignment ||
      (workspace.alignment & (workspace.alignment - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "recipe: workspace of ", workspace.bytes, " B aligned to ", workspace.alignment,
        "; accepted are powers of two up to ", kLargestAlignment));
  }
  if (workspace.flag_bytes < 0 || workspace.flag_bytes > workspace.bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "recipe: ", workspace.flag_bytes, " B of flags in a workspace of ", workspace.bytes, " B"));
  }
  if (workspace.bytes == 0) return absl::OkStatus();
  absl::StatusOr<DeviceMemory> memory =
      DeviceMemory::Allocate(context_, workspace.bytes + 2 * kDeviceBandBytes + kLargestAlignment);
  if (!memory.ok()) return memory.status();
  workspace_ = *std::move(memory);
  const auto mask = static_cast<CUdeviceptr>(workspace.alignment) - 1;
  workspace_data_ = (workspace_.address() + kDeviceBandBytes + mask) & ~mask;
  std::string pattern(static_cast<size_t>(kDeviceBandBytes), '\0');
  for (size_t i = 0; i < pattern.size(); ++i) {
    pattern[i] = static_cast<char>(kDeviceBandPattern[i % sizeof(kDeviceBandPattern)]);
  }
  const CudaDriver& driver = context_.driver();
  for (CUdeviceptr band : {workspace_data_ - kDeviceBandBytes, workspace_data_ + workspace.bytes}) {
    absl::Status status = driver.Check(
        driver.MemcpyHtoDAsync(band, pattern.data(), pattern.size(), context_.stream()),
        "cuMemcpyHtoDAsync");
    if (!status.ok()) return status;
  }
  // The copy from pageable memory has been staged when the call returns, so `pattern` may go.
  return ClearFlags();
}

void CudaKernel::AppendBandTasks(CUdeviceptr pattern, std::vector<CompareTask>* tasks) const {
  if (workspace_data_ == 0) return;
  tasks->push_back({workspace_data_ - kDeviceBandBytes, pattern, kDeviceBandBytes});
  tasks->push_back({workspace_data_ + kernel_.workspace.bytes, pattern, kDeviceBandBytes});
}

int64_t CudaKernel::BandOffset(int task, uint64_t at) const {
  return static_cast<int64_t>(at) + (task == 0 ? -kDeviceBandBytes : kernel_.workspace.bytes);
}

absl::Status CudaKernel::Bind(absl::Span<const int64_t> sizes, BuffersOfSet buffers) {
  if (absl::Status status = CheckDeviceDomain(kernel_.domain, sizes); !status.ok()) return status;
  sizes_.assign(sizes.begin(), sizes.end());
  buffers_ = std::move(buffers);
  bound_.clear();
  map_requests_.clear();
  for (const TensorMap& map : kernel_.tensor_maps) {
    absl::StatusOr<TensorMapRequest> request = RequestOf(map, sizes);
    if (!request.ok()) return request.status();
    map_requests_.push_back(*std::move(request));
  }
  return absl::OkStatus();
}

absl::Status CudaKernel::Fill(const Argument& argument, absl::Span<const CUdeviceptr> buffers,
                              Slot* slot) {
  uint64_t value = 0;
  const auto in = [&](size_t count) {
    return argument.number >= 0 && argument.number < static_cast<int>(count);
  };
  const auto missing = [&](const char* what, size_t count) {
    return absl::InvalidArgumentError(
        absl::StrCat("recipe: ", what, " ", argument.number, " of ", count, " does not exist"));
  };
  switch (argument.kind) {
    case Argument::Kind::kBuffer:
      if (!in(buffers.size())) return missing("buffer", buffers.size());
      value = buffers[argument.number];
      break;
    case Argument::Kind::kSize:
      if (!in(sizes_.size())) return missing("size", sizes_.size());
      value = static_cast<uint64_t>(sizes_[argument.number]);
      break;
    case Argument::Kind::kInteger:
      value = static_cast<uint64_t>(argument.value);
      break;
    case Argument::Kind::kWorkspace:
      value = workspace_data_ + static_cast<uint64_t>(argument.value);
      break;
    case Argument::Kind::kTensorMap: {
      if (!in(map_requests_.size())) return missing("tensor map", map_requests_.size());
      const TensorMap& map = kernel_.tensor_maps[argument.number];
      const bool workspace = map.buffer == TensorMap::kWorkspace;
      const bool exists = workspace
                              ? workspace_data_ != 0
                              : map.buffer >= 0 && map.buffer < static_cast<int>(buffers.size());
      if (!exists) {
        return absl::InvalidArgumentError(absl::StrCat("recipe: tensor map ", argument.number,
                                                       " of buffer ", map.buffer, " of ",
                                                       buffers.size()));
      }
      const CUdeviceptr base = workspace ? workspace_data_ : buffers[map.buffer];
      static_assert(sizeof(CUtensorMap) == sizeof(Slot::bytes));
      return EncodeTensorMap(context_.driver(), map_requests_[argument.number],
                             base + static_cast<CUdeviceptr>(map.offset_bytes),
                             reinterpret_cast<CUtensorMap*>(slot->bytes));
    }
  }
  std::memcpy(slot->bytes, &value, sizeof(value));
  return absl::OkStatus();
}

absl::Status CudaKernel::BindSet(int set) {
  if (set >= static_cast<int>(bound_.size())) bound_.resize(set + 1);
  const std::vector<CUdeviceptr> buffers = buffers_(set);
  for (size_t i = 0; i < kernel_.domain.alignments.size() && i < buffers.size(); ++i) {
    const auto alignment = static_cast<uint64_t>(kernel_.domain.alignments[i]);
    if (alignment != 0 && buffers[i] % alignment != 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the kernel wants buffer ", i, " aligned to ", alignment, " B, which it is not"));
    }
  }
  std::vector<BoundLaunch> launches;
  for (const Launch& launch : kernel_.launches) {
    BoundLaunch& bound = launches.emplace_back();
    bound.slots = std::make_unique<Slot[]>(launch.arguments.size());
    for (size_t a = 0; a < launch.arguments.size(); ++a) {
      if (absl::Status status = Fill(launch.arguments[a], buffers, &bound.slots[a]); !status.ok()) {
        return status;
      }
      bound.pointers.push_back(bound.slots[a].bytes);
    }
  }
  bound_[set] = std::move(launches);
  return absl::OkStatus();
}

absl::Status CudaKernel::EnqueueLibrary(int set) {
  const std::vector<CUdeviceptr> buffers = buffers_(set);
  const LibraryProduct& p = library_call_->product;
  CublasLtBuffers call;
  call.workspace = workspace_data_;
  const auto find = [&](int number, CUdeviceptr* address) {
    if (number < 0 || number >= static_cast<int>(buffers.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("recipe: buffer ", number, " of ", buffers.size(), " does not exist"));
    }
    *address = buffers[number];
    return absl::OkStatus();
  };
  absl::Status status = find(p.a.buffer, &call.a);
  if (status.ok()) status = find(p.b.buffer, &call.b);
  if (status.ok()) status = find(p.c.buffer, &call.c);
  if (status.ok() && p.bias >= 0) status = find(p.bias, &call.bias);
  if (status.ok() && p.has_residual) status = find(p.residual.buffer, &call.residual);
  if (!status.ok()) return status;
  return library_->Enqueue(call, context_.stream());
}

absl::Status CudaKernel::Enqueue(int set, bool after_kernel) {
  if (library_) return EnqueueLibrary(set);
  if (set >= static_cast<int>(bound_.size()) || bound_[set].empty()) {
    if (absl::Status status = BindSet(set); !status.ok()) return status;
  }
  if (kernel_.workspace.zeroed && workspace_data_ != 0) {
    if (absl::Status status = FillWorkspace(0); !status.ok()) return status;
    after_kernel = false;
  }
  const CudaDriver& driver = context_.driver();
  for (size_t l = 0; l < kernel_.launches.size(); ++l) {
    const Launch& launch = kernel_.launches[l];
    CUlaunchAttribute attributes[2] = {};
    CUlaunchConfig config = {};
    config.gridDimX = static_cast<unsigned>(launch.grid[0]);
    config.gridDimY = static_cast<unsigned>(launch.grid[1]);
    config.gridDimZ = static_cast<unsigned>(launch.grid[2]);
    config.blockDimX = static_cast<unsigned>(launch.block);
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = static_cast<unsigned>(launch.shared_memory_bytes);
    config.hStream = context_.stream();
    config.attrs = attributes;
    if (launch.cluster > 1) {
      CUlaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim.x = static_cast<unsigned>(launch.cluster);
      attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    }
    if (dependent_ && launch.dependent_launch && after_kernel) {
      CUlaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attribute.value.programmaticStreamSerializationAllowed = 1;
    }
    absl::Status status = driver.Check(
        driver.LaunchKernelEx(&config, functions_[l], bound_[set][l].pointers.data(), nullptr),
        "cuLaunchKernelEx");
    if (!status.ok()) return status;
    after_kernel = true;
  }
  return absl::OkStatus();
}

absl::Status CudaKernel::FillWorkspace(unsigned char value) {
  if (workspace_data_ == 0) return absl::OkStatus();
  const CudaDriver& driver = context_.driver();
  absl::Status status = driver.Check(
      driver.MemsetD8Async(workspace_data_, value, static_cast<size_t>(kernel_.workspace.bytes),
                           context_.stream()),
      "cuMemsetD8Async");
  return status.ok() ? ClearFlags() : status;
}

absl::Status CudaKernel::ClearFlags() {
  if (kernel_.workspace.flag_bytes == 0) return absl::OkStatus();
  return context_.driver().Check(
      context_.driver().MemsetD8Async(
          workspace_data_, 0, static_cast<size_t>(kernel_.workspace.flag_bytes), context_.stream()),
      "cuMemsetD8Async");
}

}  // namespace tilewright
