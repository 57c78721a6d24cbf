#include "base/name_list.h"

#include <gtest/gtest.h>

namespace gpu_platform::base {
namespace {

using Names = std::vector<std::string>;

TEST(ExpandNames, CountsThroughBracketsAndKeepsLeadingZeros) {
  EXPECT_EQ(expand_names("dgx-[08-10,12],login"),
            (Names{"dgx-08", "dgx-09", "dgx-10", "dgx-12", "login"}));
  EXPECT_EQ(expand_names("r[1-2]n[1-2]"), (Names{"r1n1", "r1n2", "r2n1", "r2n2"}));
  EXPECT_EQ(expand_names(""), Names{});
}

TEST(ExpandNames, RefusesBracketsThatMakeNoSense) {
  for (const char* list : {"n[1-", "n[3-1]", "n[]", "n[a]", "n[0-9999][0-9999]"}) {
    EXPECT_EQ(expand_names(list), std::nullopt) << list;
  }
}

}  // namespace
}  // namespace gpu_platform::base
