#include "config/listen_address.h"

#include <gtest/gtest.h>

namespace gpu_platform::config {
namespace {

TEST(ListenAddress, IsANumericAddressAndAPort) {
  EXPECT_EQ(parse_listen_address("0.0.0.0:8443"), (ListenAddress{"0.0.0.0", 8443, false}));
  EXPECT_EQ(parse_listen_address("[::]:8443"), (ListenAddress{"::", 8443, false}));
  EXPECT_EQ(parse_listen_address("[fd00::1]:1"), (ListenAddress{"fd00::1", 1, false}));
}

TEST(ListenAddress, KnowsLoopback) {
  EXPECT_TRUE(parse_listen_address("127.0.0.1:8080")->is_loopback);
  EXPECT_TRUE(parse_listen_address("127.1.2.3:8080")->is_loopback);
  EXPECT_TRUE(parse_listen_address("[::1]:8080")->is_loopback);
  EXPECT_FALSE(parse_listen_address("[::ffff:127.0.0.1]:8080")->is_loopback);
}

TEST(ListenAddress, NothingElseIsOne) {
  for (const char* text : {"",
                           ":",
                           "8443",
                           "localhost:8080",
                           "0.0.0.0",
                           "0.0.0.0:",
                           "0.0.0.0:0",
                           "0.0.0.0:65536",
                           "0.0.0.0:+1",
                           "1.2.3:1",
                           "1.2.3.4.5:1",
                           "1.2.3.256:1",
                           "1.2.3.04:1",
                           "127.evil:1",
                           "::1:8080",
                           "[]:1",
                           "[::1:1",
                           "[localhost]:1",
                           "[1.2.3.4]:1",
                           "*:1",
                           " 127.0.0.1:1"}) {
    EXPECT_FALSE(parse_listen_address(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::config
