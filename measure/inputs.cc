#include "measure/inputs.h"

#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

namespace tilewright {
namespace {

constexpr int kLevels = 1 << 16;
constexpr int kTypes = static_cast<int>(ElementType::kI32) + 1;

// The quantiles of the normal distribution at (i + 1/2) / 65536: a random 16-bit number looked up
// here is a normal value.
std::vector<double> MakeQuantiles() {
  std::vector<double> quantiles(kLevels);
  double x = 0;
  for (int i = kLevels / 2; i < kLevels; ++i) {
    const double p = (i + 0.5) / kLevels;
    // Newton's iteration on the distribution function, started at the neighbour's value.
    for (int step = 0; step < 40; ++step) {
      const double error = 0.5 * std::erfc(-x / std::sqrt(2.0)) - p;
      const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
      const double change = error / density;
      x -= change;
      if (std::fabs(change) < 1e-14) break;
    }
    quantiles[i] = x;
    quantiles[kLevels - 1 - i] = -x;
  }
  return quantiles;
}

const std::vector<double>& Quantiles() {
  static const auto* quantiles = new std::vector<double>(MakeQuantiles());
  return *quantiles;
}

double Scale(ElementType type) {
  switch (type) {
    case ElementType::kI8:
      return 16;
    case ElementType::kI32:
      return 64;
    default:
      return 1;
  }
}

// A type's encodings of all quantiles, so that filling is a table look-up. Built once per type.
const std::vector<char>& EncodedQuantiles(ElementType type) {
  static std::once_flag once[kTypes];
  static std::vector<char>* tables[kTypes];
  const int number = static_cast<int>(type);
  std::call_once(once[number], [&] {
    const int bytes = Info(type).bytes;
    auto* table = new std::vector<char>(static_cast<size_t>(kLevels) * bytes);
    for (int i = 0; i < kLevels; ++i) {
      StoreElement(type, Quantiles()[i] * Scale(type),
                   table->data() + static_cast<size_t>(i) * bytes);
    }
    tables[number] = table;
  });
  return *tables[number];
}

template <int kBytes>
void Fill(const char* table, uint64_t key, int64_t begin, int64_t end, char* out) {
  for (int64_t i = begin; i < end; ++i) {
    // Four 16-bit numbers from each 64-bit word.
    const uint64_t word = MixBits(key + static_cast<uint64_t>(i / 4));
    const size_t level = (word >> (16 * (i % 4))) & 0xffff;
    std::memcpy(out + i * kBytes, table + level * kBytes, kBytes);
  }
}

}  // namespace

uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

void FillNormal(ElementType type, uint64_t seed, uint64_t stream, int64_t begin, int64_t end,
                void* data) {
  const char* table = EncodedQuantiles(type).data();
  const uint64_t key = MixBits(seed ^ MixBits(stream));
  char* out = static_cast<char*>(data);
  switch (Info(type).bytes) {
    case 1:
      return Fill<1>(table, key, begin, end, out);
    case 2:
      return Fill<2>(table, key, begin, end, out);
    case 4:
      return Fill<4>(table, key, begin, end, out);
    default:
      return Fill<8>(table, key, begin, end, out);
  }
}

}  // namespace tilewright
