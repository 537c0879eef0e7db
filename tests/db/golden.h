// Golden files of tests/golden/. TILEWRIGHT_REWRITE_GOLDEN=1 in the environment writes them anew.
#ifndef TILEWRIGHT_TESTS_DB_GOLDEN_H_
#define TILEWRIGHT_TESTS_DB_GOLDEN_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace tilewright {

inline std::string GoldenPath(const std::string& name) {
  return std::string(TILEWRIGHT_GOLDEN_DIRECTORY) + "/" + name;
}

inline std::string ReadGolden(const std::string& name) {
  std::ifstream file(GoldenPath(name), std::ios::binary);
  EXPECT_TRUE(file.is_open()) << GoldenPath(name);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void ExpectGolden(const std::string& name, const std::string& text) {
  if (std::getenv("TILEWRIGHT_REWRITE_GOLDEN") != nullptr)
    std::ofstream(GoldenPath(name), std::ios::binary) << text;
  EXPECT_EQ(text, ReadGolden(name)) << "rewrite with TILEWRIGHT_REWRITE_GOLDEN=1";
}

}  // namespace tilewright

#endif  // TILEWRIGHT_TESTS_DB_GOLDEN_H_
