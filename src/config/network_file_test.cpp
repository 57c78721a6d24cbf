#include "config/network_file.h"

#include <gtest/gtest.h>

namespace gpu_platform::config {
namespace {

TEST(NetworkFile, SaysWhereNodesAre) {
  const auto places = parse_network(
      "# two halls\n"
      "dgx-[01-02] domain=su1 rack=r1 zone=a\n"
      "\n"
      "dgx-03,login\track=r2   # no switch of its own\n");
  ASSERT_TRUE(places);
  EXPECT_EQ(places->size(), 4U);
  EXPECT_EQ(places->at("dgx-02"), (model::NetworkPlace{"su1", "r1", "a"}));
  EXPECT_EQ(places->at("login"), (model::NetworkPlace{"", "r2", ""}));
}

TEST(NetworkFile, NamesTheLineThatIsWrong) {
  for (const char* wrong :
       {"a rack=", "a rack=1 rack=2", "a", "a place=1", "a[1- rack=1", "b rack=1"}) {
    const auto places = parse_network(std::string("b rack=0\n") + wrong + "\n");
    ASSERT_FALSE(places) << wrong;
    EXPECT_EQ(places.error().line, 2) << wrong;
  }
}

}  // namespace
}  // namespace gpu_platform::config
