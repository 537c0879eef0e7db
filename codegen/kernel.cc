#include "codegen/kernel.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

using nlohmann::json;

constexpr std::string_view kBufferKind = "buffer";
constexpr std::string_view kSizeKind = "size";
constexpr std::string_view kIntegerKind = "integer";
constexpr std::string_view kTensorMapKind = "tensor_map";
constexpr std::string_view kWorkspaceKind = "workspace";

// Recipes of CPU kernels are those of version 1.
constexpr int kCpuVersion = 1;
constexpr int kGpuVersion = 2;
constexpr int kFlagsVersion = 3;
static_assert(kFlagsVersion == kRecipeVersion);

json ArgumentJson(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::kBuffer:
      return {{"kind", kBufferKind}, {"number", argument.number}};
    case Argument::Kind::kSize:
      return {{"kind", kSizeKind}, {"number", argument.number}};
    case Argument::Kind::kInteger:
      return {{"kind", kIntegerKind}, {"value", argument.value}};
    case Argument::Kind::kTensorMap:
      return {{"kind", kTensorMapKind}, {"number", argument.number}};
    case Argument::Kind::kWorkspace:
      return {{"kind", kWorkspaceKind}, {"value", argument.value}};
  }
  return {};
}

json LaunchJson(const Launch& launch) {
  json arguments = json::array();
  for (const Argument& argument : launch.arguments) arguments.push_back(ArgumentJson(argument));
  if (!launch.on_gpu())
    return {{"entry", launch.entry}, {"threads", launch.threads}, {"arguments", arguments}};
  return {{"entry", launch.entry},
          {"arguments", arguments},
          {"grid", launch.grid},
          {"block", launch.block},
          {"cluster", launch.cluster},
          {"shared_memory_bytes", launch.shared_memory_bytes},
          {"dependent_launch", launch.dependent_launch}};
}

json StrideJson(const Stride& stride) {
  json terms = json::array();
  for (const Stride::Term& term : stride.terms)
    terms.push_back({{"coefficient", term.coefficient}, {"sizes", term.sizes}});
  return terms;
}

json TensorMapJson(const TensorMap& map) {
  json dims = json::array();
  for (const TensorMap::Dim& dim : map.dims)
    dims.push_back({{"extent", StrideJson(dim.extent)}, {"stride", StrideJson(dim.stride)}});
  return {{"buffer", map.buffer},
          {"type", Info(map.type).name},
          {"dims", dims},
          {"box", map.box},
          {"offset_bytes", map.offset_bytes},
          {"swizzle_bytes", map.swizzle_bytes},
          {"l2_promotion_bytes", map.l2_promotion_bytes}};
}

// Reads fields of one JSON object and remembers the first that is wrong, so that reading code needs
// one check at its end.
class FieldReader {
 public:
  FieldReader(const json& object, std::string path, absl::Status* status)
      : object_(object), path_(std::move(path)), status_(status) {
    if (!object_.is_object()) Fail("", "an object");
  }

  int64_t Integer(const char* name) {
    const json* field = Get(name);
    if (field == nullptr) return 0;
    if (!field->is_number_integer()) return Fail(name, "an integer"), 0;
    return field->get<int64_t>();
  }
  bool Boolean(const char* name) {
    const json* field = Get(name);
    if (field == nullptr) return false;
    if (!field->is_boolean()) return Fail(name, "true or false"), false;
    return field->get<bool>();
  }
  std::string Text(const char* name) {
    const json* field = Get(name);
    if (field == nullptr) return "";
    if (!field->is_string()) return Fail(name, "a string"), "";
    return field->get<std::string>();
  }
  std::vector<int64_t> Integers(const char* name) {
    std::vector<int64_t> numbers;
    for (const json& number : Array(name)) {
      if (!number.is_number_integer()) return Fail(name, "integers"), numbers;
      numbers.push_back(number.get<int64_t>());
    }
    return numbers;
  }
  const json& Array(const char* name) { return Child(name, &json::is_array, "an array"); }
  const json& Object(const char* name) { return Child(name, &json::is_object, "an object"); }
  void Fail(std::string_view name, std::string_view accepted) {
    if (!status_->ok()) return;
    *status_ = absl::InvalidArgumentError(
        absl::StrCat("recipe: field ", path_, name.empty() ? "" : "/",
                     absl::string_view(name.data(), name.size()), " must be ",
                     absl::string_view(accepted.data(), accepted.size())));
  }

 private:
  const json* Get(const char* name) {
    if (!status_->ok()) return nullptr;
    auto found = object_.find(name);
    if (found == object_.end()) return Fail(name, "present"), nullptr;
    return &*found;
  }
  const json& Child(const char* name, bool (json::*is)() const noexcept,
                    std::string_view accepted) {
    static const json* const kEmptyArray = new json(json::array());
    static const json* const kEmptyObject = new json(json::object());
    const json& empty = is == &json::is_array ? *kEmptyArray : *kEmptyObject;
    const json* field = Get(name);
    if (field == nullptr) return empty;
    if (!(field->*is)()) return Fail(name, accepted), empty;
    return *field;
  }

  const json& object_;
  std::string path_;
  absl::Status* status_;
};

Argument ReadArgument(const json& object, const std::string& path, absl::Status* status) {
  FieldReader reader(object, path, status);
  Argument argument;
  const std::string kind = reader.Text("kind");
  if (kind == kBufferKind || kind == kSizeKind || kind == kTensorMapKind) {
    argument.kind = kind == kBufferKind ? Argument::Kind::kBuffer
                    : kind == kSizeKind ? Argument::Kind::kSize
                                        : Argument::Kind::kTensorMap;
    argument.number = static_cast<int>(reader.Integer("number"));
    if (argument.number < 0) reader.Fail("number", "0 or more");
  } else if (kind == kIntegerKind || kind == kWorkspaceKind) {
    argument.kind = kind == kIntegerKind ? Argument::Kind::kInteger : Argument::Kind::kWorkspace;
    argument.value = reader.Integer("value");
  } else {
    reader.Fail("kind", "buffer, size, integer, tensor_map or workspace");
  }
  return argument;
}

void ReadGpuLaunch(FieldReader* reader, Launch* launch) {
  const std::vector<int64_t> grid = reader->Integers("grid");
  if (grid.size() != 3) return reader->Fail("grid", "three integers");
  for (size_t i = 0; i < grid.size(); ++i) {
    launch->grid[i] = static_cast<int>(grid[i]);
    if (launch->grid[i] < 1) reader->Fail("grid", "1 or more in each direction");
  }
  launch->block = static_cast<int>(reader->Integer("block"));
  if (launch->block < 1 || launch->block > 1024) reader->Fail("block", "1 to 1024");
  launch->cluster = static_cast<int>(reader->Integer("cluster"));
  if (launch->cluster < 1 || launch->cluster > 16) reader->Fail("cluster", "1 to 16");
  launch->shared_memory_bytes = reader->Integer("shared_memory_bytes");
  if (launch->shared_memory_bytes < 0) reader->Fail("shared_memory_bytes", "0 or more");
  launch->dependent_launch = reader->Boolean("dependent_launch");
}

Launch ReadLaunch(const json& object, const std::string& path, bool gpu, absl::Status* status) {
  FieldReader reader(object, path, status);
  Launch launch;
  launch.entry = reader.Text("entry");
  if (gpu) {
    ReadGpuLaunch(&reader, &launch);
  } else {
    launch.threads = static_cast<int>(reader.Integer("threads"));
    if (launch.threads < 1) reader.Fail("threads", "1 or more");
  }
  int i = 0;
  for (const json& argument : reader.Array("arguments")) {
    launch.arguments.push_back(
        ReadArgument(argument, absl::StrCat(path, "/arguments/", i++), status));
  }
  return launch;
}

Stride ReadStride(const json& terms, const std::string& path, absl::Status* status) {
  Stride stride;
  for (const json& object : terms) {
    FieldReader reader(object, path, status);
    Stride::Term term;
    term.coefficient = reader.Integer("coefficient");
    for (int64_t size : reader.Integers("sizes")) term.sizes.push_back(static_cast<int>(size));
    stride.terms.push_back(std::move(term));
  }
  return stride;
}

TensorMap ReadTensorMap(const json& object, const std::string& path, absl::Status* status) {
  FieldReader reader(object, path, status);
  TensorMap map;
  map.buffer = static_cast<int>(reader.Integer("buffer"));
  if (map.buffer < TensorMap::kWorkspace) reader.Fail("buffer", "0 or more, or -1");
  const absl::StatusOr<ElementType> type = ParseElementType(reader.Text("type"));
  if (type.ok()) {
    map.type = *type;
  } else {
    reader.Fail("type", std::string(type.status().message()));
  }
  for (const json& dim : reader.Array("dims")) {
    const std::string where = absl::StrCat(path, "/dims/", map.dims.size());
    FieldReader dim_reader(dim, where, status);
    map.dims.push_back({ReadStride(dim_reader.Array("extent"), where + "/extent", status),
                        ReadStride(dim_reader.Array("stride"), where + "/stride", status)});
  }
  if (map.dims.empty() || map.dims.size() > 5) reader.Fail("dims", "1 to 5 dimensions");
  for (int64_t extent : reader.Integers("box")) map.box.push_back(static_cast<int>(extent));
  if (map.box.size() != map.dims.size()) reader.Fail("box", "as long as dims");
  for (int extent : map.box) {
    if (extent < 1 || extent > 256) reader.Fail("box", "1 to 256 in each dimension");
  }
  map.offset_bytes = reader.Integer("offset_bytes");
  if (map.offset_bytes < 0 || map.offset_bytes % 16 != 0)
    reader.Fail("offset_bytes", "0 or a positive multiple of 16");
  map.swizzle_bytes = static_cast<int>(reader.Integer("swizzle_bytes"));
  map.l2_promotion_bytes = static_cast<int>(reader.Integer("l2_promotion_bytes"));
  return map;
}

Domain ReadDomain(const json& object, absl::Status* status) {
  FieldReader reader(object, "domain", status);
  Domain domain;
  for (const json& size : reader.Array("sizes")) {
    if (!size.is_array() || size.size() != 2 || !size[0].is_number_integer() ||
        !size[1].is_number_integer()) {
      reader.Fail("sizes", "pairs of integers, low and high");
      continue;
    }
    domain.sizes.push_back({size[0].get<int64_t>(), size[1].get<int64_t>()});
  }
  for (const json& alignment : reader.Array("alignments")) {
    if (!alignment.is_number_integer()) {
      reader.Fail("alignments", "integers");
      continue;
    }
    domain.alignments.push_back(alignment.get<int64_t>());
  }
  return domain;
}

}  // namespace

std::string Kernel::RecipeJson() const {
  json launch_list = json::array();
  bool gpu = false;
  for (const Launch& launch : launches) {
    launch_list.push_back(LaunchJson(launch));
    gpu |= launch.on_gpu();
  }
  json sizes = json::array();
  for (const SizeRange& range : domain.sizes) sizes.push_back(json::array({range.low, range.high}));
  json object_list = json::array();
  for (const CodeObject& object : objects) object_list.push_back({{"format", object.format}});
  json resource_map = json::object();
  for (const auto& [name, value] : resources) resource_map[name] = value;
  json recipe = {
      {"version", workspace.flag_bytes > 0 ? kFlagsVersion
                  : gpu                    ? kGpuVersion
                                           : kCpuVersion},
      {"launches", launch_list},
      {"workspace",
       {{"bytes", workspace.bytes},
        {"alignment", workspace.alignment},
        {"zeroed", workspace.zeroed}}},
      {"domain", {{"sizes", sizes}, {"alignments", domain.alignments}}},
      {"digests", {{"ir", digests.ir}, {"assembly", digests.assembly}, {"binary", digests.binary}}},
      {"objects", object_list},
      {"resources", resource_map}};
  if (gpu) {
    json map_list = json::array();
    for (const TensorMap& map : tensor_maps) map_list.push_back(TensorMapJson(map));
    recipe["tensor_maps"] = map_list;
  }
  if (workspace.flag_bytes > 0) recipe["workspace"]["flag_bytes"] = workspace.flag_bytes;
  return recipe.dump();
}

absl::StatusOr<Kernel> ParseRecipe(std::string_view text) {
  const json recipe = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (recipe.is_discarded())
    return absl::InvalidArgumentError("recipe: not JSON; one line of JSON is expected");
  absl::Status status;
  FieldReader reader(recipe, "recipe", &status);
  const int64_t version = reader.Integer("version");
  if (status.ok() && (version < kCpuVersion || version > kRecipeVersion)) {
    return absl::InvalidArgumentError(absl::StrCat("recipe: field version is ", version,
                                                   "; this build reads versions ", kCpuVersion,
                                                   " to ", kRecipeVersion));
  }
  const bool gpu = version >= kGpuVersion;
  Kernel kernel;
  int i = 0;
  for (const json& launch : reader.Array("launches")) {
    kernel.launches.push_back(ReadLaunch(launch, absl::StrCat("launches/", i++), gpu, &status));
  }
  i = 0;
  if (gpu) {
    for (const json& map : reader.Array("tensor_maps")) {
      kernel.tensor_maps.push_back(ReadTensorMap(map, absl::StrCat("tensor_maps/", i++), &status));
    }
  }
  FieldReader workspace(reader.Object("workspace"), "workspace", &status);
  kernel.workspace.bytes = workspace.Integer("bytes");
  kernel.workspace.alignment = static_cast<int>(workspace.Integer("alignment"));
  kernel.workspace.zeroed = workspace.Boolean("zeroed");
  if (kernel.workspace.bytes < 0) workspace.Fail("bytes", "0 or more");
  if (version >= kFlagsVersion) {
    kernel.workspace.flag_bytes = workspace.Integer("flag_bytes");
    if (kernel.workspace.flag_bytes < 1 || kernel.workspace.flag_bytes > kernel.workspace.bytes)
      workspace.Fail("flag_bytes", "1 … workspace/bytes");
  }
  kernel.domain = ReadDomain(reader.Object("domain"), &status);
  FieldReader digests(reader.Object("digests"), "digests", &status);
  kernel.digests.ir = digests.Text("ir");
  kernel.digests.assembly = digests.Text("assembly");
  kernel.digests.binary = digests.Text("binary");
  i = 0;
  for (const json& object : reader.Array("objects")) {
    FieldReader object_reader(object, absl::StrCat("objects/", i++), &status);
    kernel.objects.push_back({object_reader.Text("format"), ""});
  }
  for (const auto& [name, value] : reader.Object("resources").items()) {
    if (!value.is_number_integer()) {
      reader.Fail(absl::StrCat("resources/", name), "an integer");
      continue;
    }
    kernel.resources.emplace_back(name, value.get<int64_t>());
  }
  if (!status.ok()) return status;
  return kernel;
}

}  // namespace tilewright
