#include "search/recorded_file.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewright {
namespace {

constexpr char kVariant[] = "recorded";
// What some tuners write for a configuration that failed.
constexpr double kFailureTime = 1e20;
constexpr size_t kMostBytes = size_t{2} << 30;

struct FileText {
  std::string text;
  bool cut = false;  // compressed data that ends early
};

absl::StatusOr<FileText> ReadText(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory"));
  }
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  // Reads files that are not compressed as they are.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be opened"));
  FileText read;
  std::vector<char> buffer(1 << 20);
  while (true) {
    const int bytes = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (bytes <= 0) {
      int code = Z_OK;
      const char* message = gzerror(file.get(), &code);
      if (code == Z_BUF_ERROR) {
        read.cut = true;
      } else if (bytes < 0) {
        return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read: ", message));
      }
      return read;
    }
    read.text.append(buffer.data(), bytes);
    if (read.text.size() > kMostBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": has more than 2 GiB of text"));
    }
  }
}

// A value as Python prints it, which is how the keys of these files are made.
std::string TokenOf(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return "None";
    case JsonValue::Kind::kBoolean:
      return value.boolean ? "True" : "False";
    case JsonValue::Kind::kNumber:
    case JsonValue::Kind::kText:
      return value.text;
    case JsonValue::Kind::kList: {
      std::vector<std::string> items;
      for (const JsonValue& item : value.items) items.push_back(TokenOf(item));
      return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
    }
    case JsonValue::Kind::kObject:
      return "{}";
  }
  return "";
}

bool IsText(const JsonValue* value) {
  return value != nullptr && value->kind == JsonValue::Kind::kText;
}
std::string TextOf(const JsonValue* value) { return IsText(value) ? value->text : ""; }

// Takes in the configurations of a file and what is odd about them.
class Collector {
 public:
  // `unit` is that of time and samples in milliseconds. `time` may be null.
  void Add(RecordedConfiguration configuration, const JsonValue* time, std::string failure,
           const JsonValue* samples, double time_unit, double sample_unit) {
    if (failure.empty()) failure = FailureIn(time);
    if (failure.empty()) {
      configuration.milliseconds = time->number * time_unit;
    } else {
      configuration.failure = std::move(failure);
    }
    if (samples != nullptr && configuration.milliseconds) {
      for (const JsonValue& sample : samples->items) {
        if (sample.kind == JsonValue::Kind::kNumber && std::isfinite(sample.number) &&
            sample.number > 0 && sample.number < kFailureTime)
          configuration.samples.push_back(sample.number * sample_unit);
      }
    }
    const auto [found, fresh] = place_.try_emplace(configuration.key, table_.configurations.size());
    if (fresh) {
      table_.configurations.push_back(std::move(configuration));
    } else {
      ++repeated_;
      table_.configurations[found->second] = std::move(configuration);
    }
  }
  void Skip() { ++skipped_; }
  void Warn(std::string warning) { table_.warnings.push_back(std::move(warning)); }

  RecordedTable Take() {
    WarnOf(skipped_, "left out: a parameter has no value, or the file ends inside");
    WarnOf(repeated_, "recorded twice: the last counts");
    WarnOf(without_time_, "counted as failed: no time is given");
    WarnOf(impossible_, "counted as failed: the time is not positive and finite");
    WarnOf(huge_, "counted as failed: the time is 1e20 or more, which stands for a failure");
    return std::move(table_);
  }
  RecordedTable& table() { return table_; }

 private:
  // Why `time` is no time. Empty: it is one.
  std::string FailureIn(const JsonValue* time) {
    if (IsText(time)) return time->text.empty() ? "failed" : time->text;
    if (time == nullptr || time->kind == JsonValue::Kind::kNull) {
      ++without_time_;
      return "no time";
    }
    if (time->kind != JsonValue::Kind::kNumber || !std::isfinite(time->number) ||
        time->number <= 0) {
      ++impossible_;
      return "impossible time";
    }
    if (time->number >= kFailureTime) {
      ++huge_;
      return "failed";
    }
    return "";
  }
  void WarnOf(int64_t count, std::string_view what) {
    if (count > 0) {
      Warn(absl::StrCat(count, count == 1 ? " configuration is " : " configurations are ",
                        std::string(what)));
    }
  }

  RecordedTable table_;
  absl::flat_hash_map<std::string, size_t> place_;  // by key
  int64_t skipped_ = 0;
  int64_t repeated_ = 0;
  int64_t without_time_ = 0;
  int64_t impossible_ = 0;
  int64_t huge_ = 0;
};

absl::StatusOr<std::vector<std::string>> ParameterNames(const JsonValue& file) {
  std::vector<std::string> names;
  if (const JsonValue* keys = file.Find("tune_params_keys"); keys != nullptr && keys->complete) {
    for (const JsonValue& key : keys->items) names.push_back(TextOf(&key));
  } else if (const JsonValue* values = file.Find("tune_params");
             values != nullptr && values->complete) {
    for (const auto& [name, unused] : values->members) names.push_back(name);
  }
  if (names.empty()) {
    return absl::InvalidArgumentError(
        "the cache names no parameters: `tune_params_keys` is missing or empty");
  }
  return names;
}

struct TimeUnit {
  const char* name;  // lower case
  double milliseconds;
  bool misspelt = false;
};
constexpr TimeUnit kTimeUnits[] = {
    {"ms", 1},
    {"millisecond", 1},
    {"milliseconds", 1},
    {"milisecond", 1, true},
    {"miliseconds", 1, true},
    {"s", 1e3},
    {"second", 1e3},
    {"seconds", 1e3},
    {"us", 1e-3},
    {"microsecond", 1e-3},
    {"microseconds", 1e-3},
    {"ns", 1e-6},
    {"nanosecond", 1e-6},
    {"nanoseconds", 1e-6},
};

// A unit in milliseconds.
absl::StatusOr<double> ParseTimeUnit(const std::string& text, Collector* collector) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (const TimeUnit& unit : kTimeUnits) {
    if (lower != unit.name) continue;
    if (unit.misspelt) {
      collector->Warn(absl::StrCat("the time unit `", text, "` is misspelt; read as milliseconds"));
    }
    return unit.milliseconds;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown time unit `", text,
                   "`; units are seconds, milliseconds, microseconds, nanoseconds"));
}

const JsonValue* TimeMeasurement(const JsonValue& result) {
  const JsonValue* measurements = result.Find("measurements");
  if (measurements == nullptr) return nullptr;
  std::string objective = "time";
  if (const JsonValue* objectives = result.Find("objectives");
      objectives != nullptr && !objectives->items.empty())
    objective = TextOf(&objectives->items[0]);
  const JsonValue* found = nullptr;
  for (const JsonValue& measurement : measurements->items) {
    const std::string name = TextOf(measurement.Find("name"));
    if (name == "time") return &measurement;
    if (name == objective) found = &measurement;
  }
  // Another objective is a time if its unit is one.
  return found;
}

class T4Reader {
 public:
  explicit T4Reader(const JsonValue& file) : file_(file) {}

  absl::StatusOr<RecordedTable> Read() {
    if (const JsonValue* metadata = file_.Find("metadata")) {
      for (const char* name : {"timeunit", "time_unit"}) {
        const std::string unit = TextOf(metadata->Find(name));
        if (unit.empty()) continue;
        const absl::StatusOr<double> parsed = ParseTimeUnit(unit, &collector_);
        if (!parsed.ok()) return parsed.status();
        file_unit_ = *parsed;
      }
    }
    for (const JsonValue& result : file_.Find("results")->items) {
      if (absl::Status added = AddResult(result); !added.ok()) return added;
    }
    return collector_.Take();
  }

 private:
  absl::Status AddResult(const JsonValue& result) {
    const JsonValue* values = result.Find("configuration");
    if (!result.complete || values == nullptr || values->members.empty()) {
      collector_.Skip();
      return absl::OkStatus();
    }
    RecordedConfiguration configuration;
    configuration.schedule.variant = kVariant;
    std::vector<std::string> tokens;
    for (const auto& [name, value] : values->members) {
      tokens.push_back(TokenOf(value));
      configuration.schedule.decisions.emplace_back(name, tokens.back());
    }
    configuration.key = absl::StrJoin(tokens, ",");
    const JsonValue* measurement = TimeMeasurement(result);
    const JsonValue* time = measurement == nullptr ? nullptr : measurement->Find("value");
    absl::StatusOr<double> unit = UnitOf(measurement);
    if (!unit.ok()) return unit.status();
    std::string failure;
    if (const std::string invalidity = TextOf(result.Find("invalidity"));
        !invalidity.empty() && invalidity != "correct")
      failure = IsText(time) ? time->text : invalidity;
    const JsonValue* times = result.Find("times");
    collector_.Add(std::move(configuration), time, std::move(failure),
                   times == nullptr ? nullptr : times->Find("runtimes"), *unit,
                   file_unit_.value_or(*unit));
    return absl::OkStatus();
  }

  // The measurement's own unit, else the file's, else milliseconds.
  absl::StatusOr<double> UnitOf(const JsonValue* measurement) {
    const std::string text = measurement == nullptr ? "" : TextOf(measurement->Find("unit"));
    if (text.empty()) return file_unit_.value_or(1);
    const auto [found, fresh] = units_.try_emplace(text, 1.0);
    if (fresh) {  // a misspelt one is reported once
      const absl::StatusOr<double> parsed = ParseTimeUnit(text, &collector_);
      if (!parsed.ok()) return parsed.status();
      found->second = *parsed;
    }
    return found->second;
  }

  const JsonValue& file_;
  Collector collector_;
  std::optional<double> file_unit_;
  absl::flat_hash_map<std::string, double> units_;
};

bool IsObject(const JsonValue* value) {
  return value != nullptr && value->kind == JsonValue::Kind::kObject;
}

absl::StatusOr<RecordedTable> ReadRecordedJson(const std::string& path) {
  absl::StatusOr<FileText> read = ReadText(path);
  if (!read.ok()) return read.status();
  const bool cut = read->cut;
  const absl::StatusOr<LenientJson> json = ParseLenientJson(std::move(read->text));
  if (!json.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": neither JSON nor a tuning log: ", std::string(json.status().message())));
  }
  const JsonValue* results = json->value.Find("results");
  absl::StatusOr<RecordedTable> table =
      IsObject(json->value.Find("cache")) ? ReadKernelTunerCache(json->value)
      : results != nullptr && results->kind == JsonValue::Kind::kList
          ? ReadT4Results(json->value)
          : absl::InvalidArgumentError(
                "neither a Kernel Tuner cache (an object with `cache`), nor T4 results (an object "
                "with a list `results`), nor a tuning log");
  if (!table.ok()) {
    return absl::Status(table.status().code(),
                        absl::StrCat(path, ": ", std::string(table.status().message())));
  }
  if (cut) table->warnings.push_back("its compressed data end early");
  if (json->ended_early) {
    table->warnings.push_back(absl::StrCat("it ends before its closing braces; its ",
                                           table->configurations.size(),
                                           " complete configurations count"));
  }
  if (json->text_follows) table->warnings.push_back("text after its end is ignored");
  return table;
}

absl::StatusOr<bool> IsLog(const std::string& path) {
  // What is read from a pipe is gone, and a database is never one.
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return false;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  constexpr std::string_view kMagic = "SQLite format 3";
  char start[kMagic.size()];
  return std::fread(start, 1, sizeof start, file.get()) == sizeof start &&
         std::string_view(start, sizeof start) == kMagic;
}

}  // namespace

absl::StatusOr<RecordedTable> ReadKernelTunerCache(const JsonValue& file) {
  const absl::StatusOr<std::vector<std::string>> names = ParameterNames(file);
  if (!names.ok()) return names.status();
  Collector collector;
  for (const auto& [key, entry] : file.Find("cache")->members) {
    RecordedConfiguration configuration{.schedule = {.variant = kVariant}, .key = key};
    for (const std::string& name : *names) {
      const JsonValue* value = entry.Find(name);
      if (value != nullptr) configuration.schedule.decisions.emplace_back(name, TokenOf(*value));
    }
    if (!entry.complete || configuration.schedule.decisions.size() != names->size()) {
      collector.Skip();
      continue;
    }
    std::string failure;
    const JsonValue* time = entry.Find("time");
    if (const JsonValue* error = entry.Find("__error__")) {
      failure = IsText(error) && !error->text.empty() ? error->text : "failed";
    }
    collector.Add(std::move(configuration), time, std::move(failure), entry.Find("times"), 1, 1);
  }
  collector.table().device = TextOf(file.Find("device_name"));
  collector.table().kernel = TextOf(file.Find("kernel_name"));
  if (collector.table().device.empty()) collector.Warn("it names no device");
  return collector.Take();
}

absl::StatusOr<RecordedTable> ReadT4Results(const JsonValue& file) { return T4Reader(file).Read(); }

absl::StatusOr<RecordedFile> ReadRecordedFile(const std::string& path,
                                              const RecordedFileOptions& options) {
  const absl::StatusOr<bool> is_log = IsLog(path);
  if (!is_log.ok()) return is_log.status();
  if (!*is_log && !options.workload.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no tuning log, so no workload of it can be chosen"));
  }
  absl::StatusOr<RecordedTable> table =
      *is_log ? ReadRecordedLog(path, options.workload) : ReadRecordedJson(path);
  if (!table.ok()) return table.status();
  absl::StatusOr<std::unique_ptr<RecordedSpace>> space =
      RecordedSpace::Make(std::move(table->configurations));
  if (!space.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", std::string(space.status().message())));
  }
  if ((*space)->ascending_milliseconds().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": every configuration failed, so there is nothing to search for"));
  }
  for (std::string& reason : NonsenseIn(**space)) table->warnings.push_back(std::move(reason));
  return RecordedFile{.space = *std::move(space),
                      .device = std::move(table->device),
                      .kernel = std::move(table->kernel),
                      .warnings = std::move(table->warnings)};
}

}  // namespace tilewright
