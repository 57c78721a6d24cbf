#include "node/folders/host_names.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

TEST(HostNames, StandBehindThoseOfTheHost) {
  EXPECT_EQ(hosts_with_names("127.0.0.1 localhost", "dgx-1,dgx-2"),
            "127.0.0.1 localhost\n127.0.0.1 dgx-1 dgx-2\n");
  EXPECT_EQ(hosts_with_names("", "dgx-1"), "127.0.0.1 dgx-1\n");
}

TEST(HostNames, OfTheHostKeepTheirMeaning) {
  constexpr std::string_view kHosts = "10.0.0.7\tdgx-1 db # head\n";
  EXPECT_EQ(hosts_with_names(kHosts, "dgx-1,db"), "");
  EXPECT_EQ(hosts_with_names(kHosts, "dgx-11,gx-1"),
            std::string(kHosts) + "127.0.0.1 dgx-11 gx-1\n");
}

TEST(HostNames, ThatAreNoneOfAHostAreLeftOut) {
  EXPECT_EQ(hosts_with_names("", "a b,x\n10.0.0.1 bank.example,-a,.a,#,,ok"), "127.0.0.1 ok\n");
  EXPECT_EQ(hosts_with_names("", std::string(254, 'a')), "");
  EXPECT_EQ(hosts_with_names("", ""), "");
}

}  // namespace
}  // namespace gpu_platform::node
