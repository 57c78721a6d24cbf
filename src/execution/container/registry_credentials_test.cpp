#include "execution/container/registry_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "execution/container/answer_fields.h"

namespace gpu_platform::execution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

// What the engine reads.
Json decoded(const std::string& header) {
  return Json::parse(base::parse_base64(header, base::Base64::kUrl).value_or(""), nullptr, false);
}

// A file where the password of each key is the key.
std::string file_with(const std::vector<std::string>& keys) {
  Json auths = Json::object();
  for (const std::string& key : keys) auths[key] = {{"auth", base::to_base64("ann:" + key)}};
  return Json{{"auths", auths}}.dump();
}

std::string password_for(const std::string& image, const std::vector<std::string>& keys) {
  return text_field(decoded(find_credentials(file_with(keys), image, "x").header), "password");
}

TEST(RegistryCredentials, TheMostSpecialKeyComesFirst) {
  EXPECT_THAT(credential_keys("registry.org:5000/a/b:1"),
              ElementsAre("registry.org:5000/a/b", "registry.org:5000/a", "registry.org:5000"));
  EXPECT_THAT(credential_keys("localhost/a@sha256:00"), ElementsAre("localhost/a", "localhost"));
  EXPECT_THAT(credential_keys("busybox:1"),
              ElementsAre("docker.io/library/busybox", "docker.io/library", "docker.io"));
  EXPECT_THAT(credential_keys("index.docker.io/a/b"),
              ElementsAre("docker.io/a/b", "docker.io/a", "docker.io"));
  const std::vector<std::string> keys = {"registry.org", "registry.org/a", "registry.org/a/b"};
  EXPECT_EQ(password_for("registry.org/a/b:1", keys), "registry.org/a/b");
  EXPECT_EQ(password_for("registry.org/a/c:1", keys), "registry.org/a");
  EXPECT_EQ(password_for("registry.org/ab/c:1", keys), "registry.org");
  for (const char* const other :
       {"registry.org:5000/a", "other.org/registry.org", "registry.organ/a", "registry/a"}) {
    EXPECT_EQ(password_for(other, keys), "") << other;
  }
}

TEST(RegistryCredentials, KeysOfOlderDaysAreAddresses) {
  EXPECT_EQ(password_for("busybox", {"https://index.docker.io/v1/"}),
            "https://index.docker.io/v1/");
  EXPECT_EQ(password_for("registry.org/a", {"http://registry.org/v2/"}), "http://registry.org/v2/");
  EXPECT_EQ(password_for("registry.org/a", {"https://registry.org", "registry.org"}),
            "registry.org");
  EXPECT_EQ(password_for("registry.org/a", {"registry.org/v2/"}), "");
}

TEST(RegistryCredentials, TheValueIsThatOfTheEnginesApi) {
  const auto of_entry = [](const Json& entry) {
    return decoded(
        find_credentials(Json{{"auths", {{"r.org", entry}}}}.dump(), "r.org/a", "x").header);
  };
  EXPECT_EQ(of_entry({{"auth", base::to_base64("ann:a:b?>~")}}),
            (Json{{"username", "ann"}, {"password", "a:b?>~"}, {"serveraddress", "r.org"}}));
  EXPECT_EQ(of_entry({{"auth", base::to_base64("x:")}, {"identitytoken", "t"}}),
            (Json{{"identitytoken", "t"}, {"serveraddress", "r.org"}}));
}

TEST(RegistryCredentials, FilesThatAreNoneHaveNoneAndSayWhy) {
  const std::string deep(500'000, '[');
  const std::string texts[] = {
      "",
      "garbage",
      "[]",
      "null",
      deep,
      R"({"auths": {"r.org": {"auth": "???"}}})",
      R"({"auths": {"r.org": {"auth": ")" + base::to_base64("no colon") + "\"}}}",
      R"({"auths": {"r.org": {"auth": ")" + base::to_base64(":x") + "\"}}}",
      R"({"auths": {"r.org": {"auth": 7}}})",
      R"({"auths": {"r.org": "text"}})",
      R"({"auths": {"r.org": {}}})",
      R"({"auths": {"r.org": {"identitytoken": ")" + std::string(100'000, 'x') + "\"}}}"};
  for (const std::string& text : texts) {
    const RegistryCredentials found = find_credentials(text, "r.org/a", "file");
    EXPECT_THAT(found.header, IsEmpty()) << text.substr(0, 100);
    EXPECT_THAT(found.hint, HasSubstr("file")) << text.substr(0, 100);
  }
  for (const char* const text : {"{}", R"({"auths": []})", R"({"auths": {"other.org": 7}})",
                                 R"({"credHelpers": {"other.org": "pass"}, "credsStore": 7})"}) {
    const RegistryCredentials found = find_credentials(text, "r.org/a", "file");
    EXPECT_THAT(found.header, IsEmpty()) << text;
    EXPECT_THAT(found.hint, IsEmpty()) << text;
  }
}

TEST(RegistryCredentials, ProgramsAreNotRunAndThatIsSaid) {
  for (const char* const text : {R"({"credHelpers": {"r.org": "pass"}})",
                                 R"({"auths": {"r.org": {}}, "credsStore": "x"})"}) {
    const RegistryCredentials found = find_credentials(text, "r.org/a", "file");
    EXPECT_THAT(found.header, IsEmpty());
    EXPECT_THAT(found.hint, HasSubstr("programs are not run"));
  }
}

TEST(RegistryCredentials, AValueOfAHeaderHasNoLinesOfItsOwn) {
  EXPECT_TRUE(is_registry_auth("eyJ1c2VybmFtZSI6_-=="));
  EXPECT_FALSE(is_registry_auth("abc\r\nX-Other: 1"));
  EXPECT_FALSE(is_registry_auth("a b"));
  EXPECT_FALSE(is_registry_auth(std::string(100'000, 'a')));
}

TEST(RegistryCredentials, SecretsAreTakenOutOfWords) {
  const RegistryCredentials found = find_credentials(file_with({"r.org"}), "r.org/a", "x");
  const std::string told =
      "denied " + found.header + " r.org! " + base::to_base64("ann:r.org") + " r.org";
  EXPECT_EQ(without_secrets(told, found), "denied *** ***! *** ***");
  EXPECT_EQ(without_secrets("denied", RegistryCredentials()), "denied");
}

}  // namespace
}  // namespace gpu_platform::execution
