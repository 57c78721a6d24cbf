#include "shims/text/host_list.h"

#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

TEST(HostList, JoinsNeighboursOfOnePrefix) {
  EXPECT_EQ(host_list({"b2", "a1", "b1", "c3"}), "a1,b[1-2],c3");
  EXPECT_EQ(host_list({"n9", "n10", "n11", "n7"}), "n[7,9-11]");
  EXPECT_EQ(host_list({"dgx-h100-1"}), "dgx-h100-1");
  EXPECT_EQ(host_list({"login", "n1", "login"}), "login,n1");
  EXPECT_EQ(host_list({}), "");
}

TEST(HostList, KeepsTheOrderWhereItCounts) {
  EXPECT_EQ(host_list_in_order({"n2", "n1", "a1"}), "n[2,1],a1");
  EXPECT_EQ(host_list_in_order({"n1", "n2", "n3"}), "n[1-3]");
  EXPECT_EQ(host_list_in_order({"b", "n1", "b"}), "b,n1,b");
}

TEST(HostList, SaysTheOrderOfNames) {
  EXPECT_EQ(host_order({"n10", "b", "n9"}), (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_TRUE(host_order({}).empty());
}

TEST(HostList, KeepsLeadingZeros) {
  EXPECT_EQ(host_list({"n001", "n002", "n010"}), "n[001-002,010]");
  EXPECT_EQ(host_list({"n9", "n010"}), "n[9,010]");
  EXPECT_EQ(host_list({"n0", "n1"}), "n[0-1]");
}

}  // namespace
}  // namespace gpu_platform::shims
