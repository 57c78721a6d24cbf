#include "host/unused_uid.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gpu_platform::host {
namespace {

TEST(UnusedUid, IsTheFirstThatIsFree) {
  const auto none = [](std::uint32_t) { return false; };
  EXPECT_EQ(unused_uid(0, none), 4'200'000'000U);
  EXPECT_EQ(unused_uid(4'097, none), 4'200'000'001U);
  EXPECT_EQ(unused_uid(0, [](std::uint32_t uid) { return uid < 4'200'000'007; }), 4'200'000'007U);
  EXPECT_EQ(unused_uid(3, [](std::uint32_t uid) { return uid > 65'536; }), 65'523U)
      << "a container has 65536 numbers";
  EXPECT_EQ(unused_uid(5, [](std::uint32_t) { return true; }), std::nullopt);
}

TEST(UnusedUid, IsNoProcesss) {
  EXPECT_TRUE(uids_of_processes("/proc").contains(geteuid()));
  EXPECT_TRUE(uids_of_processes("/nowhere").empty());
}

TEST(UnusedUid, IsNoAccountsNorGroups) {
  constexpr std::string_view kAccounts =
      "root:x:0:0::/root:/bin/sh\nann:x:1001:100::/:\nbob:x:10\ncut\n:\n";
  for (const std::uint32_t number : {0U, 1001U, 10U}) EXPECT_TRUE(has_number(kAccounts, number));
  for (const std::uint32_t number : {1U, 100U, 1002U}) EXPECT_FALSE(has_number(kAccounts, number));
  EXPECT_TRUE(has_number("adm:x:4:syslog,ann\n", 4));
}

TEST(UnusedUid, IsOneOfTheNamespace) {
  constexpr std::string_view kAll = "         0          0 4294967295\n";
  constexpr std::string_view kContainer = "0 1000 1\n1 100000 65535\n";
  EXPECT_TRUE(is_mapped(kAll, 4'200'000'000));
  EXPECT_FALSE(is_mapped(kAll, 4'294'967'295));
  EXPECT_TRUE(is_mapped(kContainer, 0) && is_mapped(kContainer, 65'535));
  EXPECT_FALSE(is_mapped(kContainer, 65'536));
  EXPECT_FALSE(is_mapped("", 0));
}

}  // namespace
}  // namespace gpu_platform::host
