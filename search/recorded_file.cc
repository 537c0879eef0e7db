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
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "db/export.h"

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

std::string TokenOf(const JsonValue& value);

// Inside a list or an object Python quotes texts.
std::string QuotedTokenOf(const JsonValue& value) {
  return value.kind == JsonValue::Kind::kText ? absl::StrCat("'", value.text, "'") : TokenOf(value);
}

std::string NumberTokenOf(const JsonValue& value) {
  if (std::isnan(value.number)) return "nan";
  if (std::isinf(value.number)) return value.number > 0 ? "inf" : "-inf";
  return value.text;
}

// A value as Python prints it, which is how the keys of these files are made.
std::string TokenOf(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return "None";
    case JsonValue::Kind::kBoolean:
      return value.boolean ? "True" : "False";
    case JsonValue::Kind::kNumber:
      return NumberTokenOf(value);
    case JsonValue::Kind::kText:
      return value.text;
    case JsonValue::Kind::kList: {
      std::vector<std::string> items;
      for (const JsonValue& item : value.items) items.push_back(QuotedTokenOf(item));
      return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
    }
    case JsonValue::Kind::kObject: {
      std::vector<std::string> items;
      for (const auto& [name, item] : value.members)
        items.push_back(absl::StrCat("'", name, "': ", QuotedTokenOf(item)));
      return absl::StrCat("{", absl::StrJoin(items, ", "), "}");
    }
  }
  return "";
}

bool IsText(const JsonValue* value) {
  return value != nullptr && value->kind == JsonValue::Kind::kText;
}
std::string TextOf(const JsonValue* value) { return IsText(value) ? value->text : ""; }

// What a file says of itself, for a line of a table: nothing in it moves a terminal's cursor.
std::string PrintableTextOf(const JsonValue* value) {
  std::string text = TextOf(value);
  std::replace_if(text.begin(), text.end(), absl::ascii_iscntrl, ' ');
  return text;
}

// Takes in the configurations of a file and what is odd about them.
class Collector {
 public:
  // `unit` is that of time and samples in milliseconds. `time` may be null.
  void Add(RecordedConfiguration configuration, const JsonValue* time, std::string failure,
           const JsonValue* samples, double time_unit, double sample_unit) {
    if (failure.empty()) failure = FailureIn(time, time_unit);
    if (failure.empty()) {
      configuration.milliseconds = time->number * time_unit;
    } else {
      configuration.failure = std::move(failure);
    }
    if (samples != nullptr && configuration.milliseconds) {
      for (const JsonValue& sample : samples->items) {
        if (sample.kind == JsonValue::Kind::kNumber &&
            sample.number * sample_unit >= kLeastMilliseconds && sample.number < kFailureTime)
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
  // Leaves a configuration out. `lacks` is the parameter without a value, if it is for that.
  void Skip(const std::string& lacks = "") {
    ++skipped_;
    if (lacks_.empty()) lacks_ = lacks;
  }
  void Warn(std::string warning) { table_.warnings.push_back(std::move(warning)); }

  RecordedTable Take() {
    WarnOf(skipped_, lacks_.empty() ? "left out: it is none, or the file ends inside"
                                    : absl::StrCat("left out: `", lacks_, "` has no value"));
    WarnOf(repeated_, "recorded twice: the last counts");
    WarnOf(without_time_, "counted as failed: no time is given");
    WarnOf(impossible_,
           "counted as failed: the time is not positive and finite, or below 1e-20 ms");
    WarnOf(huge_, "counted as failed: the time is 1e20 or more, which stands for a failure");
    return std::move(table_);
  }
  RecordedTable& table() { return table_; }

 private:
  // Why `time` is no time, in that unit. Empty: it is one.
  std::string FailureIn(const JsonValue* time, double unit) {
    if (IsText(time)) return time->text.empty() ? "failed" : time->text;
    if (time == nullptr || time->kind == JsonValue::Kind::kNull) {
      ++without_time_;
      return "no time";
    }
    if (time->kind != JsonValue::Kind::kNumber || !std::isfinite(time->number) ||
        time->number * unit < kLeastMilliseconds) {
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
  std::string lacks_;  // a parameter that the first of these has no value for
  int64_t repeated_ = 0;
  int64_t without_time_ = 0;
  int64_t impossible_ = 0;
  int64_t huge_ = 0;
};

absl::StatusOr<std::vector<std::string>> ParameterNames(const JsonValue& file) {
  std::vector<std::string> names;
  if (const JsonValue* keys = file.Find("tune_params_keys"); keys != nullptr && keys->complete) {
    for (const JsonValue& key : keys->items) {
      if (!IsText(&key)) {
        return absl::InvalidArgumentError(
            absl::StrCat("`tune_params_keys` holds what is no name of a parameter; expected texts "
                         "such as \"block_size_x\" at place ",
                         names.size() + 1));
      }
      names.push_back(key.text);
    }
  } else if (const JsonValue* values = file.Find("tune_params");
             values != nullptr && values->complete) {
    for (const auto& [name, unused] : values->members) names.push_back(name);
  }
  absl::flat_hash_set<std::string> seen;
  std::erase_if(names, [&](const std::string& name) { return !seen.insert(name).second; });
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
    absl::flat_hash_map<std::string, size_t>
        places;  // of a name given twice, the last value counts
    for (const auto& [name, value] : values->members) {
      auto& decisions = configuration.schedule.decisions;
      const auto [found, fresh] = places.try_emplace(name, decisions.size());
      if (fresh) decisions.emplace_back(name, "");
      decisions[found->second].second = TokenOf(value);
    }
    configuration.key =
        absl::StrJoin(configuration.schedule.decisions, ",",
                      [](std::string* out, const auto& decision) { out->append(decision.second); });
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

absl::StatusOr<RecordedTable> ReadRecordedJson(const std::string& path, FileText read) {
  const absl::StatusOr<LenientJson> json = ParseLenientJson(std::move(read.text));
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
  if (read.cut) table->warnings.push_back("its compressed data end early");
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

absl::StatusOr<RecordedTable> ReadTable(const std::string& path, const std::string& workload) {
  const absl::StatusOr<bool> is_log = IsLog(path);
  if (!is_log.ok()) return is_log.status();
  if (*is_log) return ReadRecordedLog(path, workload);
  absl::StatusOr<FileText> read = ReadText(path);
  if (!read.ok()) return read.status();
  if (BeginsAsExport(read->text)) return ReadExportedLog(read->text, path, workload);
  if (!workload.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no tuning log, so no workload of it can be chosen"));
  }
  return ReadRecordedJson(path, *std::move(read));
}

}  // namespace

absl::StatusOr<RecordedTable> ReadKernelTunerCache(const JsonValue& file) {
  const absl::StatusOr<std::vector<std::string>> names = ParameterNames(file);
  if (!names.ok()) return names.status();
  Collector collector;
  for (const auto& [key, entry] : file.Find("cache")->members) {
    RecordedConfiguration configuration{.schedule = {.variant = kVariant}, .key = key};
    std::string lacks;
    for (const std::string& name : *names) {
      const JsonValue* value = entry.Find(name);
      if (value != nullptr) {
        configuration.schedule.decisions.emplace_back(name, TokenOf(*value));
      } else if (lacks.empty()) {
        lacks = name;
      }
    }
    if (!entry.complete || configuration.schedule.decisions.size() != names->size()) {
      collector.Skip(entry.complete && !entry.members.empty() ? lacks : "");
      continue;
    }
    std::string failure;
    const JsonValue* time = entry.Find("time");
    if (const JsonValue* error = entry.Find("__error__")) {
      failure = IsText(error) && !error->text.empty() ? error->text : "failed";
    }
    collector.Add(std::move(configuration), time, std::move(failure), entry.Find("times"), 1, 1);
  }
  collector.table().device = PrintableTextOf(file.Find("device_name"));
  collector.table().kernel = PrintableTextOf(file.Find("kernel_name"));
  if (collector.table().device.empty()) collector.Warn("it names no device");
  return collector.Take();
}

absl::StatusOr<RecordedTable> ReadT4Results(const JsonValue& file) { return T4Reader(file).Read(); }

absl::StatusOr<RecordedFile> ReadRecordedFile(const std::string& path,
                                              const RecordedFileOptions& options) {
  absl::StatusOr<RecordedTable> table = ReadTable(path, options.workload);
  if (!table.ok()) return table.status();
  if (table->configurations.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no configuration is recorded",
                                                   table->warnings.empty() ? "" : "; ",
                                                   absl::StrJoin(table->warnings, "; ")));
  }
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
