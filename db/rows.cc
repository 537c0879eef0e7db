#include "db/rows.h"

#include <sys/random.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

// Layouts, version 1, little-endian:
//   samples  u8 1 | u32 n | u8 has_clock | u8 has_marks | f64 seconds[n] | u32 clock_mhz[n]? | u8
//   marks[n]? rounds   u8 1 | u32 columns | u32 values | columns × (u32 bytes, text) | f64
//   seconds[values]
constexpr uint8_t kSamplesVersion = 1;
constexpr uint8_t kRoundsVersion = 1;

template <typename T>
void Put(std::string& bytes, T value) {
  uint64_t bits = 0;
  static_assert(sizeof(T) <= sizeof(bits) && std::is_trivially_copyable_v<T>);
  std::memcpy(&bits, &value, sizeof(T));
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xff);
}

// Reads values from the front; after the first short read `ok()` is false and values are zero.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T Get() {
    T value{};
    if (!Has(1, sizeof(T))) return value;
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      bits |= uint64_t{static_cast<uint8_t>(bytes_[i])} << (8 * i);
    std::memcpy(&value, &bits, sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  std::string Text(uint32_t length) {
    if (!Has(length, 1)) return "";
    std::string text(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
    return text;
  }
  template <typename T>
  std::vector<T> List(uint32_t count) {
    std::vector<T> values;
    if (!Has(count, sizeof(T))) return values;
    values.reserve(count);
    for (uint32_t i = 0; i < count; ++i) values.push_back(Get<T>());
    return values;
  }
  // Whether `count` values of `size` bytes are left: checked before anything of that size is
  // allocated.
  bool Has(uint64_t count, uint64_t size) {
    if (count * size > bytes_.size()) ok_ = false;
    return ok_;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

absl::Status BadBlob(absl::string_view what, std::string_view bytes, int version) {
  if (!bytes.empty() && static_cast<uint8_t>(bytes[0]) > version) {
    return absl::DataLossError(absl::StrCat(what, " blob has version ",
                                            static_cast<int>(static_cast<uint8_t>(bytes[0])),
                                            "; this program reads up to ", version));
  }
  return absl::DataLossError(absl::StrCat(what, " blob of ", bytes.size(), " bytes is damaged"));
}

}  // namespace

Id Id::Random() {
  Id id;
  // Up to 256 bytes come whole or not at all (getrandom(2)); without random ids no record may be
  // written.
  if (getrandom(id.bytes.data(), id.bytes.size(), 0) != static_cast<ssize_t>(id.bytes.size()))
    std::abort();
  return id;
}

absl::StatusOr<Id> Id::FromHex(std::string_view hex) {
  Id id;
  bool valid = hex.size() == 2 * id.bytes.size();
  for (const char c : hex) valid = valid && absl::ascii_isxdigit(static_cast<unsigned char>(c));
  if (!valid)
    return absl::InvalidArgumentError(
        absl::StrCat("id '", std::string(hex), "': expected 32 hexadecimal digits"));
  const std::string bytes = absl::HexStringToBytes(std::string(hex));
  std::memcpy(id.bytes.data(), bytes.data(), id.bytes.size());
  return id;
}

std::string Id::ToHex() const {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string EncodeSamples(const Samples& samples) {
  std::string bytes;
  Put(bytes, kSamplesVersion);
  Put(bytes, static_cast<uint32_t>(samples.seconds.size()));
  Put(bytes, static_cast<uint8_t>(!samples.clock_mhz.empty()));
  Put(bytes, static_cast<uint8_t>(!samples.marks.empty()));
  for (const double value : samples.seconds) Put(bytes, value);
  for (const uint32_t value : samples.clock_mhz) Put(bytes, value);
  for (const uint8_t value : samples.marks) Put(bytes, value);
  return bytes;
}

absl::StatusOr<Samples> DecodeSamples(std::string_view bytes) {
  Reader reader(bytes);
  Samples samples;
  const auto version = reader.Get<uint8_t>();
  if (version != kSamplesVersion) return BadBlob("samples", bytes, kSamplesVersion);
  const auto count = reader.Get<uint32_t>();
  const bool has_clock = reader.Get<uint8_t>() != 0;
  const bool has_marks = reader.Get<uint8_t>() != 0;
  samples.seconds = reader.List<double>(count);
  if (has_clock) samples.clock_mhz = reader.List<uint32_t>(count);
  if (has_marks) samples.marks = reader.List<uint8_t>(count);
  if (!reader.at_end()) return BadBlob("samples", bytes, kSamplesVersion);
  return samples;
}

std::string EncodeRounds(const Rounds& rounds) {
  std::string bytes;
  Put(bytes, kRoundsVersion);
  Put(bytes, static_cast<uint32_t>(rounds.schedules.size()));
  Put(bytes, static_cast<uint32_t>(rounds.seconds.size()));
  for (const std::string& schedule : rounds.schedules) {
    Put(bytes, static_cast<uint32_t>(schedule.size()));
    bytes += schedule;
  }
  for (const double value : rounds.seconds) Put(bytes, value);
  return bytes;
}

absl::StatusOr<Rounds> DecodeRounds(std::string_view bytes) {
  Reader reader(bytes);
  Rounds rounds;
  const auto version = reader.Get<uint8_t>();
  if (version != kRoundsVersion) return BadBlob("rounds", bytes, kRoundsVersion);
  const auto columns = reader.Get<uint32_t>();
  const auto values = reader.Get<uint32_t>();
  for (uint32_t i = 0; reader.ok() && i < columns; ++i)
    rounds.schedules.push_back(reader.Text(reader.Get<uint32_t>()));
  rounds.seconds = reader.List<double>(values);
  if (!reader.at_end()) return BadBlob("rounds", bytes, kRoundsVersion);
  return rounds;
}

}  // namespace tilewright
