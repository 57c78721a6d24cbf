#include "execution/container/container_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::execution {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ContainerRules rules_of(std::string_view text) {
  auto rules = parse_container_rules("socket /run/engine.sock\n" + std::string(text));
  EXPECT_TRUE(rules) << (rules ? "" : rules.error().message);
  return rules ? *rules : ContainerRules();
}

TEST(ContainerRules, AFileOfLines) {
  const ContainerRules rules = rules_of(
      "# a comment\n\nimage localhost/*\n mount /data/ ro # read\nnetwork host\n"
      "ulimit nofile 1024\ncapability CHOWN\nseccomp off\nwritable 10g\npull always\n"
      "credentials /etc/pulls.json\ncredentials users\nimages keep 14d\n");
  EXPECT_EQ(rules.socket, "/run/engine.sock");
  EXPECT_THAT(rules.images, ::testing::ElementsAre("localhost/*"));
  ASSERT_EQ(rules.mounts.size(), 1U);
  EXPECT_EQ(rules.mounts[0].path, "/data");
  EXPECT_TRUE(rules.mounts[0].read_only);
  EXPECT_TRUE(rules.allow_host_network);
  EXPECT_FALSE(rules.allow_bridge_network);
  EXPECT_EQ(rules.ulimits.at(0).limit, 1024);
  EXPECT_FALSE(rules.needs_seccomp);
  EXPECT_EQ(rules.writable, "10g");
  EXPECT_FALSE(rules.is_read_only);
  EXPECT_TRUE(rules_of("writable none\n").is_read_only);
  EXPECT_TRUE(rules.always_pulls);
  EXPECT_EQ(rules.keep_images, base::hours(14 * 24));
  EXPECT_FALSE(rules_of("").keep_images);
  EXPECT_EQ(rules.site_credentials, "/etc/pulls.json");
  EXPECT_TRUE(rules.allow_user_credentials);
  EXPECT_FALSE(rules_of("").allow_user_credentials);
}

TEST(ContainerRules, ALineThatIsNoRuleIsRefusedWithItsNumber) {
  for (const char* const line : {"images a",
                                 "image",
                                 "image a b",
                                 "mount data",
                                 "mount /a rw",
                                 "mount /a/../b",
                                 "network all",
                                 "socket /b",
                                 "ulimit nofile",
                                 "ulimit nofile -1",
                                 "capability sys_admin",
                                 "seccomp on",
                                 "privileged yes",
                                 "annotation",
                                 "annotation a b",
                                 "writable",
                                 "writable 10",
                                 "writable g",
                                 "pull never",
                                 "credentials",
                                 "credentials all",
                                 "credentials /a /b",
                                 "images keep",
                                 "images keep long",
                                 "images keep 0s",
                                 "images drop 1d"}) {
    const auto rules = parse_container_rules(std::string("socket /a\n") + line);
    ASSERT_FALSE(rules) << line;
    EXPECT_THAT(rules.error().message, HasSubstr("line 2")) << line;
  }
  EXPECT_FALSE(parse_container_rules("image a"));
}

TEST(ContainerRules, ImagesByPattern) {
  const ContainerRules rules = rules_of("image registry.org/team/*\nimage busybox:1\n");
  EXPECT_THAT(error_in_image(rules, "registry.org/team/a/b:2"), IsEmpty());
  EXPECT_THAT(error_in_image(rules, "busybox:1"), IsEmpty());
  for (const char* const image :
       {"busybox:12", "registry.org/other/a", "evil/registry.org/team/a"}) {
    EXPECT_THAT(error_in_image(rules, image), HasSubstr("registry.org/team/*")) << image;
  }
  EXPECT_THAT(error_in_image(rules_of("image *\n"), "a/../b"), Not(IsEmpty())) << "malformed";
  EXPECT_THAT(error_in_image(rules_of(""), "a"), HasSubstr("none"));
}

TEST(ContainerRules, APatternsStarsStandForAnyText) {
  EXPECT_TRUE(matches("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("a*b", "ab/c"));
  EXPECT_FALSE(matches("", "a"));
}

TEST(ContainerRules, MountsLieInAllowedFolders) {
  const ContainerRules rules = rules_of("mount /data\nmount /models ro\n");
  EXPECT_THAT(error_in_mount(rules, {"/data/x", "/x", false}), IsEmpty());
  EXPECT_THAT(error_in_mount(rules, {"/models", "/m", true}), IsEmpty());
  EXPECT_THAT(error_in_mount(rules, {"/models", "/m", false}), HasSubstr("only to read"));
  EXPECT_THAT(error_in_mount(rules, {"/database", "/m", true}), HasSubstr("not"));
}

TEST(ContainerRules, KeysOfAnnotationsByPattern) {
  const ContainerRules rules = rules_of("annotation org.example/*\n");
  EXPECT_THAT(error_in_annotation(rules, "org.example/purpose=a=b"), IsEmpty());
  EXPECT_THAT(error_in_annotation(rules, "run.oci.handler=x"),
              HasSubstr("allowed are: org.example/*"));
  EXPECT_THAT(error_in_annotation(rules_of(""), "a=b"), HasSubstr("none"));
  const ContainerRules all = rules_of("annotation *\n");
  for (const char* const wrong : {"gpu-platform.attempt=1-1", "=x", "", "a b=c"}) {
    EXPECT_THAT(error_in_annotation(all, wrong), Not(IsEmpty())) << wrong;
  }
}

TEST(ContainerRules, NetworksButNoneMustBeAllowed) {
  const ContainerRules rules = rules_of("network bridge\n");
  EXPECT_THAT(error_in_network(rules, model::ContainerNetwork::kNone), IsEmpty());
  EXPECT_THAT(error_in_network(rules, model::ContainerNetwork::kBridge), IsEmpty());
  EXPECT_THAT(error_in_network(rules, model::ContainerNetwork::kHost), Not(IsEmpty()));
}

}  // namespace
}  // namespace gpu_platform::execution
