#include "base/percent.h"

#include <gtest/gtest.h>

namespace gpu_platform::base {
namespace {

TEST(Percent, EncodesAllButWhatStandsForItself) {
  EXPECT_EQ(percent_encoded("aZ0-_.~"), "aZ0-_.~");
  EXPECT_EQ(percent_encoded("a b/c?d=e&f%+"), "a%20b%2Fc%3Fd%3De%26f%25%2B");
  EXPECT_EQ(percent_encoded("\xc3\xa4\n"), "%C3%A4%0A");
  EXPECT_EQ(percent_encoded("a b%", [](char c) { return c != '%'; }), "a b%25");
}

TEST(Percent, DecodesWhatItEncoded) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(percent_decoded(percent_encoded(all)), all);
  EXPECT_EQ(percent_decoded(percent_encoded(all), Plus::kIsSpace), all);
  EXPECT_EQ(percent_decoded("a%2fb%2F+"), "a/b/+");
  EXPECT_EQ(percent_decoded("a+b%2B", Plus::kIsSpace), "a b+");
}

TEST(Percent, RefusesHalfAnEscape) {
  for (const char* text : {"%", "%4", "a%4", "%4g", "%g4", "%%41", "% 41"}) {
    EXPECT_FALSE(percent_decoded(text)) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::base
