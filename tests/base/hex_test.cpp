#include "base/hex.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Hex, WritesTwoLowerCaseDigitsPerByte) {
  EXPECT_EQ(to_hex(std::string_view("\x00\x0f\xa5\xff", 4)), "000fa5ff");
  EXPECT_EQ(to_hex(""), "");
}

TEST(Hex, ReadsEveryByteBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(from_hex(to_hex(bytes)), bytes);
}

}  // namespace
}  // namespace troupe
