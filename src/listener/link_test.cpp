#include "listener/link.h"

#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/testing/hex.h"

namespace gpu_platform::listener {
namespace {

const Open kOpen{{Credential::Kind::kBearer, "gp_secret", "192.0.2.7"}};

TEST(Link, MessagesReadBackAsTheSame) {
  const std::vector<ToListener> to = {
      Settings{kLinkVersion, 3, 100, 10, 1 << 20, true, {"gpu.example"}, {"https://a.example"}},
      Listen{Door::kGrpc, true, "[::]:8443"}, CertificateTexts{"chain", "key"}, Begin{}};
  for (const ToListener& message : to) {
    const auto again = decode_to_listener(encode(message));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, message);
  }
  const std::vector<FromListener> from = {
      Begun{kLinkVersion, {{"user", true, ""}, {"files", false, "no landlock"}}}, kOpen,
      Open{{Credential::Kind::kCertificate, std::string("\0\x30\x82", 3), "::1"}},
      Note{true, "a line"}};
  for (const FromListener& message : from) {
    const auto again = decode_from_listener(encode(message));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, message);
  }
}

// A change of one of them counts kLinkVersion up and records them anew.
TEST(Link, BytesOfAMessageAreThoseOfItsVersion) {
  ASSERT_EQ(kLinkVersion, 2U);
  const std::pair<std::string, const char*> recorded[] = {
      {encode(ToListener(Settings{
           kLinkVersion, 3, 100, 10, 1 << 20, true, {"gpu.example"}, {"https://a.example"}})),
       "010203640a80804001010b6770752e6578616d706c65011168747470733a2f2f612e6578616d706c"
       "65"},
      {encode(ToListener(Listen{Door::kGrpc, true, "[::]:8443"})), "020101095b3a3a5d3a38343433"},
      {encode(ToListener(CertificateTexts{"chain", "key"})), "0305636861696e036b6579"},
      {encode(ToListener(Begin{})), "04"},
      {encode(FromListener(
           Begun{kLinkVersion, {{"user", true, ""}, {"files", false, "no landlock"}}})),
       "050202047573657201000566696c6573000b6e6f206c616e646c6f636b"},
      {encode(FromListener(kOpen)), "06000967705f736563726574093139322e302e322e37"},
      {encode(FromListener(
           Open{{Credential::Kind::kCertificate, std::string("\0\x30\x82", 3), "::1"}})),
       "060103003082033a3a31"},
      {encode(FromListener(Note{true, "a line"})), "07010661206c696e65"}};
  for (const auto& [bytes, expected] : recorded) EXPECT_EQ(base::hex(bytes), expected);
}

TEST(Link, EveryPartOfAMessageIsRefused) {
  const std::string bytes = encode(FromListener(kOpen));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_from_listener(bytes.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(decode_from_listener(bytes + "x").has_value());
}

TEST(Link, TheDaemonTakesNoMessageThatItSendsItself) {
  EXPECT_FALSE(decode_from_listener(encode(ToListener(Begin{}))).has_value());
  EXPECT_FALSE(decode_to_listener(encode(FromListener(kOpen))).has_value());
}

TEST(Link, WhatTheListenerMaySayIsBounded) {
  Open open = kOpen;
  open.credential.secret.assign(kMaxSecret, 's');
  EXPECT_TRUE(decode_from_listener(encode(FromListener(open))).has_value());
  open.credential.secret.push_back('s');
  EXPECT_FALSE(decode_from_listener(encode(FromListener(open))).has_value());
  open = kOpen;
  open.credential.address.assign(kMaxAddress + 1, '1');
  EXPECT_FALSE(decode_from_listener(encode(FromListener(open))).has_value());
  EXPECT_FALSE(
      decode_from_listener(encode(FromListener(Note{true, std::string(kMaxNote + 1, 'x')})))
          .has_value());
}

TEST(Link, NothingThatTheListenerSaysCanForgeALineOfTheLog) {
  EXPECT_FALSE(decode_from_listener(encode(FromListener(Note{true, "a\nb"}))).has_value());
  Open open = kOpen;
  open.credential.address = "192.0.2.7\n";
  EXPECT_FALSE(decode_from_listener(encode(FromListener(open))).has_value());
}

}  // namespace
}  // namespace gpu_platform::listener
