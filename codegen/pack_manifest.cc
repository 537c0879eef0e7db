#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/pack.h"
#include "codegen/pack_text.h"

namespace tilewright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr char kFormat[] = "tilewright-pack";

ordered_json ArgumentsJson(const PackItem& item) {
  const PackSignature signature = *SignatureOf(item);
  ordered_json arguments = ordered_json::array();
  for (const PackTensor& tensor : signature.tensors) {
    const TensorLayout& layout = item.workload.layout(tensor.tensor);
    ordered_json shape = ordered_json::array();
    for (const Dimension& dimension : layout.dimensions) {
      if (dimension.index < 0) {
        shape.push_back(dimension.size);
      } else {
        shape.push_back(item.names.indices[dimension.index]);
      }
    }
    ordered_json argument = {{"kind", tensor.output ? "output" : "input"},
                             {"name", tensor.name},
                             {"buffer", tensor.buffer},
                             {"type", std::string(Info(layout.type).name)},
                             {"shape", shape}};
    if (!layout.strides.empty()) argument["strides"] = layout.strides;
    arguments.push_back(std::move(argument));
  }
  for (const PackSize& size : signature.sizes) {
    arguments.push_back({{"kind", "size"}, {"name", size.name}, {"index", size.index}});
  }
  return arguments;
}

ordered_json SizesJson(const PackItem& item) {
  ordered_json sizes = ordered_json::array();
  for (int i = 0; i < item.workload.sizes().size(); ++i) {
    const SizeRange& range = item.workload.sizes()[i];
    sizes.push_back({{"name", item.names.indices[i]}, {"low", range.low}, {"high", range.high}});
  }
  return sizes;
}

// Version 2 has what a launcher for GPUs must know beside the recipe.
constexpr int kVersionWithDependentLaunch = 2;

ordered_json WorkloadJson(const PackEntry& entry, int version) {
  const PackItem& item = entry.item;
  ordered_json condition = ordered_json::array();
  for (const SizeRange& range : item.workload.sizes()) condition.push_back({range.low, range.high});
  ordered_json objects = ordered_json::array();
  for (const CodeObject& object : entry.kernel.objects) objects.push_back(ObjectPath(object));
  ordered_json dispatch = {
      {"condition", condition},
      {"schedule", item.schedule.ToString()},
      {"provenance", {{"kind", item.provenance.kind}, {"detail", item.provenance.detail}}},
      {"toolchain", entry.toolchain},
      {"objects", objects},
      // The codegen's own text, keys sorted; read back by ParseRecipe.
      {"recipe",
       ordered_json::parse(entry.kernel.RecipeJson(), nullptr, /*allow_exceptions=*/false)}};
  if (version >= kVersionWithDependentLaunch) dispatch["dependent_launch"] = item.dependent_launch;
  return {{"name", item.name},
          {"key", item.workload.key()},
          {"canonical_text", item.workload.canonical_text()},
          {"source", item.source},
          {"regime", item.regime},
          {"tensors", item.names.tensors},
          {"sizes", SizesJson(item)},
          {"arguments", ArgumentsJson(item)},
          {"dispatch", ordered_json::array({dispatch})}};
}

// Reads fields and keeps the first error, so that reading needs one check at its end.
class Reader {
 public:
  absl::Status status = absl::OkStatus();

  const json& Field(const json& object, const std::string& where, const char* name,
                    json::value_t type, const char* accepted) {
    static const json* const kNull = new json();
    if (!status.ok()) return *kNull;
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (found != object.end() && (found->type() == type || (type == json::value_t::number_integer &&
                                                            found->is_number_integer()))) {
      return *found;
    }
    status =
        absl::InvalidArgumentError(absl::StrCat("manifest: ", where, name, " must be ", accepted));
    return *kNull;
  }
  std::string Text(const json& object, const std::string& where, const char* name) {
    const json& field = Field(object, where, name, json::value_t::string, "a text");
    return field.is_string() ? field.get<std::string>() : "";
  }
  const json& Array(const json& object, const std::string& where, const char* name) {
    return Field(object, where, name, json::value_t::array, "a list");
  }
  template <typename T>
  T Take(absl::StatusOr<T> value, const std::string& where, T otherwise) {
    if (value.ok()) return *std::move(value);
    if (status.ok()) {
      status = absl::InvalidArgumentError(
          absl::StrCat("manifest: ", where, ": ", value.status().message()));
    }
    return otherwise;
  }
};

absl::StatusOr<PackEntry> EntryFromJson(const json& row, const std::string& where, int64_t version,
                                        const ReadObject& read_object) {
  Reader reader;
  absl::StatusOr<Workload> workload =
      Workload::FromCanonicalText(reader.Text(row, where, "canonical_text"));
  if (!reader.status.ok()) return reader.status;
  if (!workload.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("manifest: ", where, "canonical_text: ", workload.status().message()));
  }
  PackEntry entry{
      .item = {.name = reader.Text(row, where, "name"), .workload = *std::move(workload)}};
  PackItem& item = entry.item;
  item.source = reader.Text(row, where, "source");
  item.regime = reader.Text(row, where, "regime");
  for (const json& tensor : reader.Array(row, where, "tensors")) {
    item.names.tensors.push_back(tensor.is_string() ? tensor.get<std::string>() : "");
  }
  for (const json& size : reader.Array(row, where, "sizes")) {
    item.names.indices.push_back(reader.Text(size, absl::StrCat(where, "sizes/"), "name"));
  }
  const json& dispatch = reader.Array(row, where, "dispatch");
  if (reader.status.ok() && dispatch.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("manifest: ", where, "dispatch must hold one entry, has ", dispatch.size()));
  }
  if (!reader.status.ok()) return reader.status;
  const std::string at = absl::StrCat(where, "dispatch/0/");
  const json& only = dispatch.front();
  item.schedule = reader.Take(ParseSchedule(reader.Text(only, at, "schedule")),
                              absl::StrCat(at, "schedule"), Schedule{});
  entry.toolchain = reader.Text(only, at, "toolchain");
  const json& provenance = reader.Field(only, at, "provenance", json::value_t::object, "an object");
  item.provenance = {reader.Text(provenance, absl::StrCat(at, "provenance/"), "kind"),
                     reader.Text(provenance, absl::StrCat(at, "provenance/"), "detail")};
  if (version >= kVersionWithDependentLaunch) {
    const json& dependent =
        reader.Field(only, at, "dependent_launch", json::value_t::boolean, "true or false");
    item.dependent_launch = dependent.is_boolean() && dependent.get<bool>();
  }
  const json& recipe = reader.Field(only, at, "recipe", json::value_t::object, "an object");
  entry.kernel = reader.Take(ParseRecipe(recipe.dump()), absl::StrCat(at, "recipe"), Kernel{});
  const json& objects = reader.Array(only, at, "objects");
  if (!reader.status.ok()) return reader.status;
  if (objects.size() != entry.kernel.objects.size()) {
    return absl::InvalidArgumentError(absl::StrCat("manifest: ", at, "objects has ", objects.size(),
                                                   " paths, the recipe ",
                                                   entry.kernel.objects.size(), " objects"));
  }
  for (int i = 0; i < objects.size(); ++i) {
    const std::string path = objects[i].is_string() ? objects[i].get<std::string>() : "";
    absl::StatusOr<std::string> bytes = read_object(path);
    if (!bytes.ok()) return absl::DataLossError(bytes.status().message());
    entry.kernel.objects[i].bytes = *std::move(bytes);
    if (ObjectPath(entry.kernel.objects[i]) != path) {
      return absl::DataLossError(absl::StrCat("manifest: ", at, "objects: the bytes of '", path,
                                              "' do not have its digest"));
    }
  }
  item.expected = entry.kernel.digests;
  entry.reused = true;
  if (absl::StatusOr<PackSignature> signature = SignatureOf(item); !signature.ok())
    return signature.status();
  return entry;
}

}  // namespace

std::string ManifestJson(const Pack& pack) {
  ordered_json workloads = ordered_json::array();
  const int version = KindOf(pack).manifest_version;
  for (const PackEntry& entry : pack.entries) workloads.push_back(WorkloadJson(entry, version));
  const ordered_json manifest = {{"format", kFormat},
                                 {"version", version},
                                 {"name", pack.name},
                                 {"target", pack.target.ToString()},
                                 {"workloads", workloads}};
  return absl::StrCat(manifest.dump(2), "\n");
}

absl::StatusOr<Pack> ParseManifest(std::string_view text, const ReadObject& read_object) {
  const json manifest = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  Reader reader;
  if (reader.Text(manifest, "", "format") != kFormat || !reader.status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("manifest: format must be \"", kFormat, "\""));
  }
  const json& version =
      reader.Field(manifest, "", "version", json::value_t::number_integer, "an integer");
  if (!reader.status.ok()) return reader.status;
  if (version.get<int64_t>() > kManifestVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("manifest: version ", version.get<int64_t>(), " is newer than this program's ",
                     kManifestVersion, "; read it with a newer tilewright"));
  }
  Pack pack;
  pack.name = reader.Text(manifest, "", "name");
  pack.target = reader.Take(ParseTarget(reader.Text(manifest, "", "target")), "target", Target{});
  const json& workloads = reader.Array(manifest, "", "workloads");
  if (!reader.status.ok()) return reader.status;
  const absl::StatusOr<const PackKind*> kind = FindPackKind(pack.target);
  if (!kind.ok()) return kind.status();
  if (version.get<int64_t>() < (*kind)->manifest_version) {
    return absl::InvalidArgumentError(
        absl::StrCat("manifest: version must be ", (*kind)->manifest_version, " or more for ",
                     pack.target.kind, ", is ", version.get<int64_t>()));
  }
  for (int i = 0; i < workloads.size(); ++i) {
    absl::StatusOr<PackEntry> entry = EntryFromJson(
        workloads[i], absl::StrCat("workloads/", i, "/"), version.get<int64_t>(), read_object);
    if (!entry.ok()) return entry.status();
    pack.entries.push_back(*std::move(entry));
  }
  return pack;
}

}  // namespace tilewright
