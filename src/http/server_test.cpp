#include "http/server.h"

#include <gtest/gtest.h>

namespace gpu_platform::http {
namespace {

TEST(ServerAddress, IsReadInEveryForm) {
  const auto text = [](std::string_view address) { return parse_server(address)->text(); };
  EXPECT_EQ(text("https://Gpus.Example.org"), "https://gpus.example.org:8443");
  EXPECT_EQ(text("HTTPS://host:1/"), "https://host:1");
  EXPECT_EQ(text("https://[::1]:9"), "https://[::1]:9");
  EXPECT_EQ(text("http://127.0.0.1"), "http://127.0.0.1:8080");
  EXPECT_EQ(text("unix:/run/s"), "unix:/run/s");
}

TEST(ServerAddress, IsRefusedWhereItIsNone) {
  for (const std::string_view address :
       {"", "host", "host:1", "https://", "https://:1", "https://host:", "https://host:0",
        "https://host:65536", "https://host/path", "https://host?x", "https://user:pw@host",
        "https://ho st", "https://host\r\nX: y", "https://[::1", "https://[x]:1",
        "unix:", "ftp://h", "http://gpus.example.org", "http://127.evil.example"}) {
    EXPECT_FALSE(parse_server(address).has_value()) << address;
  }
  EXPECT_EQ(parse_server("https://user:pw@host").error().message.find("pw"), std::string::npos);
}

TEST(Token, IsOneWordOfVisibleCharacters) {
  EXPECT_TRUE(is_valid_token("gpt_AZaz09-._~+/="));
  for (const std::string& token : {std::string(), std::string("a b"), std::string("a\r\nX: y"),
                                   std::string("\xc3\xbc"), std::string(9000, 'x')}) {
    EXPECT_FALSE(is_valid_token(token));
  }
}

}  // namespace
}  // namespace gpu_platform::http
