#include "schedule/canonical.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tests/schedule/rewriting.h"

namespace tilewright {
namespace {

std::string Text(std::string_view expression, const WorkloadOptions& options) {
  const auto workload = Workload::Make(expression, options);
  EXPECT_TRUE(workload.ok()) << expression << "\n" << options.sizes << "\n" << workload.status();
  return workload.ok() ? workload->canonical_text() : "";
}

TEST(Canonical, WritesAMatmul) {
  EXPECT_EQ(Text("C[m,n] = sum(k: B[k,n] * A[m,k])", {"m=1024 n=4096 k=1..64", "bf16,C:f32"}),
            "tw1 t2:f32[i0=1024,i1=4096]=sum(i2=1..64:t0:bf16[i0,i2]*t1:bf16[i2,i1])");
}

TEST(Canonical, WritesOwnSizesAndStrides) {
  EXPECT_EQ(Text("Y[i] = sum(k: X[2*i+k-1])", {"i=4 k=3 X.0=8 X.0.stride=2", "f32"}),
            "tw1 t1:f32[i0=4]=sum(i1=3:t0:f32{0=8,0.stride=2}[2*i0+i1-1])");
}

TEST(Canonical, FoldsConstantsAndFixedSizes) {
  const WorkloadOptions options = {"i=4", "f32"};
  EXPECT_EQ(Text("Y[i] = X[i] / size(i) + 2 - 0.5 + exp(0)", options),
            Text("Y[i] = 2.5 + X[i] / 4", options));
  EXPECT_EQ(Text("Y[i] = 2 * X[i] * 3", options), Text("Y[i] = X[i] * (-2 * -3)", options));
  EXPECT_EQ(Text("Y[i] = max(X[i], 2, -inf)", options), Text("Y[i] = max(sqrt(4), X[i])", options));
  EXPECT_EQ(Text("Y[i] = where(i < size(i) - 1, X[i], 0)", options),
            Text("Y[i] = where(i < 3, X[i], 0)", options));
  EXPECT_EQ(Text("Y[i] = 0.1 + X[i] + 0.2 + 0.3", options),
            Text("Y[i] = 0.3 + 0.2 + 0.1 + X[i]", options));
  // A range keeps size() as it is.
  EXPECT_EQ(Text("Y[i] = X[i] / size(i)", {"i=1..4", "f32"}),
            "tw1 t1:f32[i0=1..4]=t0:f32[i0]/size(i0)");
}

TEST(Canonical, TellsTextsApartThatNoRewriteJoins) {
  const WorkloadOptions options = {"i=4 j=4", "f32"};
  const char* kDifferent[] = {
      "Y[i,j] = A[i,j] - B[i,j]",
      "Y[i,j] = A[i,j] + B[i,j]",
      "Y[i,j] = A[i,j] + B[j,i]",
      "Y[i,j] = A[j,i] + B[j,i]",
      "Y[i,j] = A[i,j] + A[i,j]",
      "Y[i,j] = A[i,j] + A[j,i]",
      "Y[i,j] = 2 * A[i,j]",
      "Y[i,j] = A[i,j] * 2 + 0",
      "Y[i,j] = A[i,j] * 2 * B[i,j] / B[i,j]",
      "Y[i,j] = A[i,j] / B[i,j]",
      "Y[i,j] = A[i,j] * (1 / B[i,j])",
      "Y[i,j] = A[i,j] * (B[i,j] + 1)",
      "Y[i,j] = A[i,j] * B[i,j] + A[i,j]",
      "Y[i,j] = -(A[i,j] - B[i,j])",
      "Y[i,j] = where(i < j, A[i,j], B[i,j])",
      "Y[i,j] = where(i <= j, A[i,j], B[i,j])",
      "Y[i,j] = where(!(j <= i), A[i,j], B[i,j])",
      "Y[i,j] = where(i < j + 1, A[i,j], B[i,j])",
      "Y[i,j] = where(A[i,j] < B[i,j], A[i,j], B[i,j])",
      "Y[i,j] = min(A[i,j], B[i,j])",
      "Y[i,j] = max(A[i,j], max(B[i,j], A[j,i]))",
      "Y[i,j] = max(A[i,j], B[i,j], A[j,i])",
      "a[i,j] = A[i,j]; Y[i,j] = a[i,j] + B[i,j]",
      "out a[i,j] = A[i,j]; out Y[i,j] = a[i,j] + B[i,j]",
      "Y[i,j] = cast(f16, A[i,j])",
      "Y[i,j] = cast(bf16, A[i,j])",
      "Y[i,j] = tf32(A[i,j])",
  };
  std::map<std::string, std::string> seen;
  for (const char* expression : kDifferent) {
    const auto [entry, is_new] = seen.emplace(Text(expression, options), expression);
    EXPECT_TRUE(is_new) << expression << " and " << entry->second;
  }
  // Types, sizes and strides take part.
  const char* kSum = "Y[i,j] = A[i,j] + B[i,j]";
  std::set<std::string> texts = {Text(kSum, options),
                                 Text(kSum, {"i=4 j=5", "f32"}),
                                 Text(kSum, {"i=5 j=4", "f32"}),
                                 Text(kSum, {"i=4 j=1..4", "f32"}),
                                 Text(kSum, {"i=4 j=4", "f16"}),
                                 Text(kSum, {"i=4 j=4", "f32,A:f16"}),
                                 Text(kSum, {"i=4 j=4", "f32,Y:f16"}),
                                 Text(kSum, {"i=4 j=4 A.0.stride=8", "f32"}),
                                 Text(kSum, {"i=4 j=4 Y.0.stride=8", "f32"})};
  EXPECT_EQ(texts.size(), 9);
  EXPECT_EQ(Text(kSum, {"i=4 j=4", "f32,A:f16"}), Text(kSum, {"i=4 j=4", "f32,B:f16"}));
}

TEST(Canonical, ParsesBackToTheSameWorkload) {
  std::mt19937_64 random(4);
  std::vector<Example> examples = Examples();
  for (int i = 0; i < 200; ++i) examples.push_back(RandomExample(random));
  for (const Example& example : examples) {
    const auto workload = Workload::Make(example.expression, example.options);
    ASSERT_TRUE(workload.ok()) << workload.status();
    const auto again = Workload::FromCanonicalText(workload->canonical_text());
    ASSERT_TRUE(again.ok()) << workload->canonical_text() << "\n" << again.status();
    EXPECT_EQ(*again, *workload);
    EXPECT_EQ(again->key(), Sha256Hex(workload->canonical_text()));
    EXPECT_EQ(ToString(again->program()), ToString(workload->program()));
    EXPECT_EQ(again->HighestSizes(), workload->HighestSizes());
  }
}

TEST(Canonical, RefusesTextThatIsNotCanonical) {
  const std::string text = Text("C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=4 n=5 k=6", "f32"});
  EXPECT_TRUE(Workload::FromCanonicalText(text).ok());
  for (const std::string& wrong :
       {std::string(), std::string("tw1 "), std::string("tw2 ") + text.substr(4),
        std::string("C[m,n] = sum(k: A[m,k] * B[k,n])"), text + " ", text + ";",
        std::string("tw1 t2:f32[i0=4,i1=5]=sum(i2=6:t1:f32[i2,i1]*t0:f32[i0,i2])"),
        std::string("tw1 t2:f32[i0=4,i1=5]=sum(i3=6:t0:f32[i0,i3]*t1:f32[i3,i1])"),
        std::string("tw1 t2:f32[i0=4,i1=5]=sum(i2=6:t0:f32[i0,i2]*t1[i2,i1])"),
        std::string("tw1 t2:f32[i0=4,i1]=sum(i2=6:t0:f32[i0,i2]*t1:f32[i2,i1])"),
        std::string("tw1 t2:f32[m=4,i1=5]=sum(i2=6:t0:f32[m,i2]*t1:f32[i2,i1])")}) {
    const auto workload = Workload::FromCanonicalText(wrong);
    EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_THAT(std::string(Workload::FromCanonicalText("tw2 x").status().message()),
              testing::HasSubstr("'tw2' is no known version"));
}

// Names, orders of operands and of independent statements never change the text.
TEST(Canonical, IsTheSameForEveryWriting) {
  std::mt19937_64 random(5);
  std::vector<Example> examples = Examples();
  for (int i = 0; i < 60; ++i) examples.push_back(RandomExample(random));
  for (const Example& example : examples) {
    const auto program = ParseProgram(example.expression);
    ASSERT_TRUE(program.ok());
    const std::string text = Text(example.expression, example.options);
    for (int i = 0; i < 8; ++i) {
      const Program reordered = Reorder(*program, RandomPick(random));
      const Rewritten rewritten = Rename(reordered, example.options, random);
      ASSERT_EQ(Text(rewritten.expression, rewritten.options), text) << rewritten.expression;
    }
  }
}

// The definition, carried out: every order of everything, names by first appearance, the least text
// in byte order.
class LeastText {
 public:
  explicit LeastText(const Workload& workload) : workload_(workload) {}

  std::string Find() {
    ExhaustivePick all;
    std::string least;
    do {
      const std::string text = Numbered(ToString(Reorder(workload_.program(), all.pick())));
      if (least.empty() || text < least) least = text;
    } while (all.Next());
    return least;
  }

 private:
  std::string Numbered(const std::string& spaced) const {
    std::map<std::string, std::string> names;
    int indices = 0;
    int tensors[3] = {0, static_cast<int>(workload_.parameters().size()),
                      static_cast<int>(workload_.parameters().size() + workload_.outputs().size())};
    std::string text = absl::StrCat("tw", kCanonicalVersion, " ");
    for (size_t at = 0; at < spaced.size();) {
      if (spaced.compare(at, 4, "out ") == 0) {
        text += "out ";
        at += 4;
        continue;
      }
      if (spaced[at] == ' ') {
        ++at;
        continue;
      }
      size_t end = at;
      while (end < spaced.size() && (absl::ascii_isalnum(spaced[end]) || spaced[end] == '_')) ++end;
      const std::string word = spaced.substr(at, std::max<size_t>(end - at, 1));
      at += word.size();
      const bool is_name =
          word.size() > 1 && (word[0] == 'i' || word[0] == 't') && absl::ascii_isdigit(word[1]);
      if (!is_name) {
        text += word;
      } else if (names.count(word) != 0) {
        text += names[word];
      } else if (word[0] == 'i') {
        const SizeRange& size = workload_.sizes()[std::stoi(word.substr(1))];
        names[word] = absl::StrCat("i", indices++);
        absl::StrAppend(&text, names[word], "=", size.low, size.fixed() ? "" : "..",
                        size.fixed() ? "" : absl::StrCat(size.high));
      } else {
        const int tensor = std::stoi(word.substr(1));
        const Tensor& info = workload_.program().tensors[tensor];
        const int role = info.is_parameter ? 0 : info.is_output ? 1 : 2;
        names[word] = absl::StrCat("t", tensors[role]++);
        absl::StrAppend(&text, names[word], ":",
                        std::string(Info(workload_.layout(tensor).type).name));
        std::string own;
        const auto& dimensions = workload_.layout(tensor).dimensions;
        for (size_t d = 0; d < dimensions.size(); ++d) {
          if (dimensions[d].index < 0) {
            absl::StrAppend(&own, own.empty() ? "" : ",", d, "=", dimensions[d].size);
          }
        }
        if (!own.empty()) absl::StrAppend(&text, "{", own, "}");
      }
    }
    return text;
  }

  const Workload& workload_;
};

TEST(Canonical, IsTheLeastTextOfAllWritings) {
  const Example kExamples[] = {
      {"", "C[m,n] = sum(k: A[m,k] * B[k,n])", {"m=4 n=4 k=4", "f32"}},
      {"", "C[m,n] = sum(k: A[k,n] * B[m,k]) + D[n,m]", {"m=4 n=3 k=4", "f32,A:f16"}},
      {"", "Y[i,j] = A[j,i] + B[i,j] * A[i,j] + 3 * B[j,i]", {"i=4 j=4", "f32"}},
      {"", "Y[i] = sum(j,k: A[i,j,k] * A[i,k,j])", {"i=2 j=3 k=3", "f32"}},
      {"", "Y[i] = sum(j,k: A[i,j,k] * B[k+2*j+1])", {"i=2 j=3 k=3 B.0=99", "f32"}},
      {"",
       "a[i] = A[i]; b[i] = A[i] * 2; c[i] = B[i]; Y[i] = max(a[i], b[i], c[i])",
       {"i=3", "f32"}},
      {"", "out a[i] = A[i] + B[i]; out b[i] = B[i] / A[i]; out c[i] = exp(C[i])", {"i=3", "f32"}},
      {"",
       "Y[i] = A[i] + B[i] + C[i]; out Z[i] = A[i] / B[i]; out W[i] = Y[i] / B[i]",
       {"i=3", "f32"}},
      {"",
       "hi[r] = max(c: X[r,c]); z[r] = sum(c: exp(X[r,c] * hi[r])); "
       "Y[r,c] = exp(X[r,c] * hi[r]) / z[r]",
       {"r=4 c=9", "f32"}},
  };
  for (const Example& example : kExamples) {
    const auto workload = Workload::Make(example.expression, example.options);
    ASSERT_TRUE(workload.ok()) << workload.status();
    EXPECT_EQ(workload->canonical_text(), LeastText(*workload).Find()) << example.expression;
  }
  std::mt19937_64 random(6);
  for (int i = 0; i < 100;) {
    const Example example = RandomExample(random);
    // Negated operands stand last in canonical text, which the search above does not know; long
    // chains take too long.
    if (example.expression.find('-') != std::string::npos || example.expression.size() > 120)
      continue;
    ++i;
    const auto workload = Workload::Make(example.expression, example.options);
    ASSERT_TRUE(workload.ok()) << workload.status();
    ASSERT_EQ(workload->canonical_text(), LeastText(*workload).Find()) << example.expression;
  }
}

TEST(Canonical, GivesTheCallersFirstTensorTheLowerNumberAmongEquals) {
  Names names;
  const WorkloadOptions options = {"i=4", "f32"};
  ASSERT_TRUE(Workload::Make("Y[i] = Q[i] + P[i] + R[i]", options, &names).ok());
  EXPECT_THAT(names.tensors, testing::ElementsAre("Q", "P", "R", "Y"));
  ASSERT_TRUE(Workload::Make("Y[i] = R[i] + Q[i] + P[i]", options, &names).ok());
  EXPECT_THAT(names.tensors, testing::ElementsAre("R", "Q", "P", "Y"));
}

TEST(Canonical, RefusesTooManyInterchangeableParts) {
  EXPECT_FALSE(Text("Y[i]=A[i]+B[i]+C[i]+D[i]+E[i]+F[i]+G[i]", {"i=4", "f32"}).empty());
  const auto eight = Workload::Make("Y[i]=A[i]+B[i]+C[i]+D[i]+E[i]+F[i]+G[i]+H[i]", {"i=4", "f32"});
  ASSERT_FALSE(eight.ok());
  EXPECT_THAT(std::string(eight.status().message()), testing::HasSubstr("more than 10000"));
  // Types tell them apart at once, and equal operands are one.
  EXPECT_FALSE(Text("Y[i]=A[i]+B[i]+C[i]+D[i]+E[i]+F[i]+G[i]+H[i]",
                    {"i=4", "f32,A:f16,B:bf16,C:f64,D:i8,E:i32"})
                   .empty());
  std::string chain = "Y[i]=A[i]";
  for (int i = 0; i < 500; ++i) chain += "*A[i]";
  EXPECT_FALSE(Text(chain, {"i=4", "f32"}).empty());
}

// Golden texts of version 1: a database holds such texts, so they never change without a new
// version.
TEST(Canonical, MatchesTheGoldenTexts) {
  const std::string path = std::string(TILEWRIGHT_GOLDEN_DIR) + "/workloads_v1.txt";
  std::string now =
      "# Canonical texts, version 1: example, then text. TILEWRIGHT_REWRITE_GOLDEN=1 rewrites.\n";
  for (const Example& example : Examples()) {
    absl::StrAppend(&now, example.name, "\n", Text(example.expression, example.options), "\n");
  }
  if (std::getenv("TILEWRIGHT_REWRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << now;
    GTEST_SKIP() << "rewrote " << path;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(now, golden.str());
}

}  // namespace
}  // namespace tilewright
