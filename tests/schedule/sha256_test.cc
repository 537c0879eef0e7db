#include <gtest/gtest.h>

#include "schedule/workload.h"

namespace tilewright {
namespace {

// FIPS 180-2, appendix B.1.
TEST(Sha256Hex, GivesTheStandardsDigestOfAbc) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace tilewright
