#include <openssl/evp.h>

#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "schedule/workload.h"

namespace tilewright {

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace tilewright
