#include "node/local_user.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "# a comment\n"
    "gpu-platform:x:998:997:GPU platform:/nonexistent:/usr/sbin/nologin\n"
    "broken:x:12a:1::/:\n"
    "short:x:5\n"
    "large:x:4294967296:1::/:\n"
    "last:x:7:8::/:/bin/sh";

TEST(LocalUser, IsFoundByItsWholeName) {
  EXPECT_EQ(find_local_user(kPasswd, "gpu-platform"), (LocalUser{998, 997}));
  EXPECT_EQ(find_local_user(kPasswd, "root"), (LocalUser{0, 0}));
  EXPECT_EQ(find_local_user(kPasswd, "last"), (LocalUser{7, 8}));
  EXPECT_EQ(find_local_user(kPasswd, "gpu"), std::nullopt);
  EXPECT_EQ(find_local_user(kPasswd, ""), std::nullopt);
  EXPECT_EQ(find_local_user("", "root"), std::nullopt);
}

TEST(LocalUser, IsNotGuessedFromADamagedLine) {
  EXPECT_EQ(find_local_user(kPasswd, "broken"), std::nullopt);
  EXPECT_EQ(find_local_user(kPasswd, "short"), std::nullopt);
  EXPECT_EQ(find_local_user(kPasswd, "large"), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::node
