#include "model/job_array.h"

#include <gtest/gtest.h>

#include <string>

namespace gpu_platform::model {
namespace {

std::string read_back(std::string_view text) {
  const auto array = parse_array(text);
  return array ? to_string(*array) : array.error().message;
}

TEST(JobArray, IsWrittenInItsShortestForm) {
  EXPECT_EQ(read_back("0-99%8"), "0-99%8");
  EXPECT_EQ(read_back("7"), "7");
  EXPECT_EQ(read_back("1,3,5-9:2"), "1-9:2");
  EXPECT_EQ(read_back("9,1-3,2,5"), "1-3,5,9");
  EXPECT_EQ(read_back("0-10:3"), "0-9:3");
  EXPECT_EQ(read_back("4294967294"), "4294967294");
}

TEST(JobArray, KnowsItsMembersByPositionAndIndex) {
  const ArraySpec array = *parse_array("1,3,5-9:2,20-22,40");
  EXPECT_EQ(member_count(array), 9U);
  EXPECT_EQ(least_index(array), 1U);
  EXPECT_EQ(largest_index(array), 40U);
  for (std::uint64_t position = 0; position < member_count(array); ++position) {
    EXPECT_EQ(position_of(array, index_at(array, position)), position);
  }
  for (const std::uint32_t absent : {0U, 2U, 10U, 19U, 23U, 41U}) {
    EXPECT_EQ(position_of(array, absent), std::nullopt) << absent;
  }
}

TEST(JobArray, RefusesWhatIsNoListOfIndices) {
  for (const char* text : {"", "a", "-3", "3-", "3-1", "1,,2", "1:2", "1-9:0", "1-9:", "0-3%",
                           "0-3%0", "%4", "4294967295", "0-3%8%9", "1 2", "18446744073709551616"}) {
    const auto array = parse_array(text);
    ASSERT_FALSE(array) << text;
    EXPECT_EQ(array.error().field, "array") << text;
    EXPECT_EQ(array.error().code, base::ErrorCode::kInvalidArgument) << text;
  }
}

TEST(JobArray, TenMillionMembersAreRefusedWithoutBeingWrittenOut) {
  const auto array = parse_array("0-9999999");
  ASSERT_FALSE(array);
  EXPECT_NE(array.error().message.find("100000"), std::string::npos);
  EXPECT_FALSE(parse_array("0-4294967294"));
  EXPECT_TRUE(parse_array("0-4294967294:4294967294"));
  EXPECT_TRUE(parse_array("0-99999"));
}

}  // namespace
}  // namespace gpu_platform::model
