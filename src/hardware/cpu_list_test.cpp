#include "hardware/cpu_list.h"

#include <gtest/gtest.h>

namespace gpu_platform::hardware {
namespace {

TEST(CpuList, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (CpuSet{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("\n"), CpuSet{});
}

TEST(CpuList, RefusesWhatIsNoList) {
  for (const char* text :
       {"3-1", "1,1", "2,1", "1,", ",1", "a", "1-", "-1", "1-2-3", "8192", "0-99999999999"}) {
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  }
}

TEST(CpuList, WritesWhatItReads) {
  for (const char* text : {"", "0", "0-223", "0-55,112-167", "1,3,5"}) {
    EXPECT_EQ(format_cpu_list(*parse_cpu_list(text)), text);
  }
}

}  // namespace
}  // namespace gpu_platform::hardware
