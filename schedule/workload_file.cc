#include "schedule/workload_file.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "schedule/operators.h"
#include "schedule/source_text.h"

namespace tilewright {
namespace {

// Of a workload file; no program calls a million kernels.
constexpr size_t kMostBytes = size_t{16} << 20;

// Words of a line; one in quotes or with parentheses may contain spaces.
struct Word {
  std::string_view text;  // quotes taken off
  int offset = 0;         // in the line
  bool is_quoted = false;
};

absl::StatusOr<std::vector<Word>> SplitLine(std::string_view line) {
  std::vector<Word> words;
  size_t at = 0;
  while (true) {
    while (at < line.size() && absl::ascii_isspace(line[at])) ++at;
    if (at == line.size() || line[at] == '#') return words;
    Word word;
    word.offset = static_cast<int>(at);
    if (line[at] == '\'' || line[at] == '"') {
      const size_t close = line.find(line[at], at + 1);
      if (close == std::string_view::npos) {
        return ErrorAt(line, word.offset, "the quoted expression is not closed");
      }
      word.text = line.substr(at + 1, close - at - 1);
      word.offset += 1;
      word.is_quoted = true;
      at = close + 1;
    } else {
      const size_t begin = at;
      int depth = 0;
      while (at < line.size() && line[at] != '#' && (depth > 0 || !absl::ascii_isspace(line[at]))) {
        if (line[at] == '(') ++depth;
        if (line[at] == ')') --depth;
        ++at;
      }
      if (depth > 0) return ErrorAt(line, word.offset, "the parenthesis is not closed");
      word.text = line.substr(begin, at - begin);
    }
    words.push_back(word);
  }
}

bool IsCIdentifier(std::string_view name) {
  if (name.empty() || absl::ascii_isdigit(name[0])) return false;
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

// `x` and what begins like a number: meant as a weight, since no operator is called so.
bool LooksLikeWeight(std::string_view word) {
  return word.size() > 1 && word[0] == 'x' &&
         (absl::ascii_isdigit(word[1]) || word[1] == '-' || word[1] == '+' || word[1] == '.');
}

std::optional<int64_t> ParseWeight(std::string_view word) {
  int64_t weight = 0;
  if (word.empty() || word[0] != 'x') return std::nullopt;
  const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), weight);
  if (error != std::errc() || end != word.data() + word.size() || weight < 1) return std::nullopt;
  return weight;
}

absl::StatusOr<NamedWorkload> ParseLine(std::string_view line, const std::vector<Word>& words) {
  if (!IsCIdentifier(words[0].text) || words[0].is_quoted) {
    return ErrorAt(line, words[0].offset,
                   "a workload's name is a C identifier: letters, digits and '_'");
  }
  const std::optional<int64_t> weight =
      words.size() > 1 && !words[1].is_quoted ? ParseWeight(words[1].text) : std::nullopt;
  if (!weight && words.size() > 1 && !words[1].is_quoted && LooksLikeWeight(words[1].text)) {
    return ErrorAt(line, words[1].offset, "a weight is a whole number from 1, such as x32");
  }
  const size_t what_at = weight ? 2 : 1;
  if (words.size() <= what_at) {
    return ErrorAt(
        line, static_cast<int>(line.size()),
        "expected an operator such as linear(t=8 i=64 o=64), or an expression in quotes");
  }
  const Word& what = words[what_at];
  std::string sizes;
  WorkloadOptions options;
  for (size_t i = what_at + 1; i < words.size(); ++i) {
    if (words[i].is_quoted) {
      return ErrorAt(line, words[i].offset, "one expression per line; sizes and types stand bare");
    }
    std::string* list = words[i].text.find('=') != std::string_view::npos ? &sizes : &options.types;
    absl::StrAppend(list, list->empty() ? "" : " ", std::string(words[i].text));
  }
  std::string expression(what.text);
  options.sizes = sizes;
  if (!what.is_quoted) {
    absl::StatusOr<ExpandedOperator> expanded = ExpandOperator(what.text, sizes);
    if (!expanded.ok()) return expanded.status();
    if (expanded->expression == what.text) {
      return ErrorAt(line, what.offset,
                     "an expression stands in quotes; an operator is a name with (…)");
    }
    expression = std::move(expanded->expression);
    options.sizes = std::move(expanded->sizes);
  }
  Names names;
  absl::StatusOr<Workload> workload = Workload::Make(expression, options, &names);
  if (!workload.ok()) return workload.status();
  return NamedWorkload{.name = std::string(words[0].text),
                       .weight = weight.value_or(1),
                       .source = std::string(what.text),
                       .sizes = sizes,
                       .types = options.types,
                       .workload = *std::move(workload),
                       .names = std::move(names),
                       .line = 0};
}

}  // namespace

absl::StatusOr<std::vector<NamedWorkload>> ParseWorkloadFile(std::string_view text,
                                                             std::string_view file_name) {
  // Some editors begin a file with this mark of UTF-8.
  if (constexpr std::string_view kMark = "\xef\xbb\xbf"; text.substr(0, kMark.size()) == kMark)
    text.remove_prefix(kMark.size());
  std::vector<NamedWorkload> workloads;
  std::map<std::string, int> lines;
  int number = 0;
  for (size_t begin = 0; begin <= text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    auto located = [&](const absl::Status& status) {
      return absl::Status(status.code(), absl::StrCat(std::string(file_name), ":", number + 1, ": ",
                                                      std::string(status.message())));
    };
    const absl::StatusOr<std::vector<Word>> words = SplitLine(line);
    if (!words.ok()) return located(words.status());
    if (words->empty()) continue;
    absl::StatusOr<NamedWorkload> workload = ParseLine(line, *words);
    if (!workload.ok()) return located(workload.status());
    workload->line = number + 1;
    const auto [entry, is_new] = lines.emplace(workload->name, workload->line);
    if (!is_new) {
      return located(absl::InvalidArgumentError(absl::StrCat(
          "the name '", workload->name, "' stands in line ", entry->second, " already")));
    }
    workloads.push_back(*std::move(workload));
  }
  if (workloads.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        std::string(file_name),
        ": no workload in it; a line such as `qkv x4 linear(t=8 i=64 o=64) f32` is one"));
  }
  return workloads;
}

absl::StatusOr<std::vector<NamedWorkload>> ReadWorkloadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is a directory; expected a workload file"));
  }
  if (!file) {
    return absl::NotFoundError(absl::StrCat("can't open the workload file '", path, "'"));
  }
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) {
    return absl::NotFoundError(absl::StrCat("can't read the workload file '", path, "'"));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' has more than ", kMostBytes >> 20,
                                                   " MiB; expected a workload file"));
  }
  return ParseWorkloadFile(text, path);
}

}  // namespace tilewright
