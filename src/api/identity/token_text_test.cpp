#include "api/identity/token_text.h"

#include <set>

#include <gtest/gtest.h>

namespace gpu_platform::api {
namespace {

std::string secret_of(char c) {
  return std::string(model::kTokenSecretBytes, c);
}

TEST(TokenText, ComesBackAsItWasWritten) {
  for (const char c : {'\0', 'a', '\xff'}) {
    const std::string text = to_text({model::TokenId(7), secret_of(c)});
    EXPECT_TRUE(text.starts_with("gpt_7_"));
    EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-_"),
              std::string::npos)
        << text;
    const auto token = parse_token_text(text);
    ASSERT_TRUE(token) << text;
    EXPECT_EQ(token->id, model::TokenId(7));
    EXPECT_EQ(token->secret, secret_of(c));
  }
}

TEST(TokenText, IsNoOtherSpelling) {
  const std::string good = to_text({model::TokenId(7), secret_of('a')});
  ASSERT_TRUE(parse_token_text(good));
  const std::string secret = good.substr(6);
  // The last character has two bits that are none of the secret's.
  std::string other_end = good;
  other_end.back() = other_end.back() == 'E' ? 'F' : 'E';
  for (const std::string& text :
       {std::string(), std::string("gpt_"), good + "A", good + "=", good.substr(0, good.size() - 1),
        other_end, "gpt_07_" + secret, "gpt_0_" + secret, "gpt__" + secret, "gpt_-1_" + secret,
        "gpt_99999999999999999999_" + secret, "gpt_7-" + secret, "GPT_7_" + secret, " " + good,
        good + "\n", "gpt_7_" + secret.substr(0, 42) + std::string(1, '\0')}) {
    EXPECT_FALSE(parse_token_text(text)) << text;
  }
}

TEST(TokenText, SecretsAreOf256BitsAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const auto secret = random_secret();
    ASSERT_TRUE(secret);
    EXPECT_EQ(secret->size(), 32u);
    seen.insert(*secret);
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST(TokenText, TheHashIsSha256) {
  // The first test vector of FIPS 180-2.
  EXPECT_EQ(hash_of("abc"),
            std::string("\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23"
                        "\xb0\x03\x61\xa3\x96\x17\x7a\x9c\xb4\x10\xff\x61\xf2\x00\x15\xad",
                        32));
  EXPECT_TRUE(is_same_hash(hash_of("abc"), hash_of("abc")));
  EXPECT_FALSE(is_same_hash(hash_of("abc"), hash_of("abd")));
  EXPECT_FALSE(is_same_hash("ab", "a"));
}

}  // namespace
}  // namespace gpu_platform::api
