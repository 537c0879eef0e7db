// Runs a fuzz target without libFuzzer: every file of a corpus, and seeded mutations of each (bytes
// replaced, inserted, removed, spliced with another file). The same on every run and platform.
//
//   expression_replay CORPUS_DIRECTORY [MUTATIONS_PER_FILE]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// What the languages are made of, so that mutations get past the first token.
constexpr const char* kPieces[] = {"[",
                                   "]",
                                   "(",
                                   ")",
                                   "{",
                                   "}",
                                   ",",
                                   ";",
                                   ":",
                                   "=",
                                   "sum(",
                                   "max(k:",
                                   "1e308",
                                   "-",
                                   "/0",
                                   "%",
                                   "999999999999999999999",
                                   "size(",
                                   "where(",
                                   "<=",
                                   " ",
                                   "\n",
                                   "#",
                                   "..",
                                   "cast(",
                                   "out "};

std::string Mutate(std::string text, const std::vector<std::string>& corpus,
                   std::mt19937_64& random) {
  const int edits = 1 + random() % 4;
  for (int i = 0; i < edits; ++i) {
    const size_t at = random() % (text.size() + 1);
    const size_t count = std::min<size_t>(random() % 8, text.size() - at);
    switch (random() % 5) {
      case 0:
        text.erase(at, count);
        break;
      case 1:
        text.insert(at, kPieces[random() % std::size(kPieces)]);
        break;
      case 2:
        text.replace(at, count, kPieces[random() % std::size(kPieces)]);
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 4: {
        const std::string& other = corpus[random() % corpus.size()];
        text = text.substr(0, at) + other.substr(random() % (other.size() + 1));
        break;
      }
    }
  }
  return text;
}

void Run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY [MUTATIONS_PER_FILE]\n", argv[0]);
    return 2;
  }
  const int mutations = argc > 2 ? std::atoi(argv[2]) : 2000;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const std::filesystem::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus\n", argv[1]);
    return 2;
  }
  for (const std::string& text : corpus) Run(text);
  std::mt19937_64 random(1);
  for (const std::string& text : corpus) {
    for (int i = 0; i < mutations; ++i) Run(Mutate(text, corpus, random));
  }
  std::printf("%zu files, %d mutations of each\n", corpus.size(), mutations);
  return 0;
}
