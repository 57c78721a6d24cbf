#include "client/detach_keys.h"

#include <gtest/gtest.h>

namespace gpu_platform::client {
namespace {

TEST(DetachKeys, PassOnWhatIsTyped) {
  DetachKeys keys;
  EXPECT_EQ(keys.filter("ls\n\x11"), "ls\n\x11");
  EXPECT_FALSE(keys.were_pressed());
}

TEST(DetachKeys, AreFoundAlsoInTwoParts) {
  DetachKeys keys;
  EXPECT_EQ(keys.filter("a\x10"), "a");
  EXPECT_EQ(keys.held(), 1u);
  EXPECT_EQ(keys.filter("\x11 lost"), "");
  EXPECT_TRUE(keys.were_pressed());
}

TEST(DetachKeys, FirstKeyAloneIsPassedOnWithTheNextOne) {
  DetachKeys keys;
  EXPECT_EQ(keys.filter("\x10"), "");
  EXPECT_EQ(keys.filter("\x10"), "\x10");
  EXPECT_EQ(keys.filter("x"), "\x10x");
  EXPECT_EQ(keys.held(), 0u);
  EXPECT_FALSE(keys.were_pressed());
}

}  // namespace
}  // namespace gpu_platform::client
