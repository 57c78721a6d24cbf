#include "client/input_log.h"

#include <gtest/gtest.h>

namespace gpu_platform::client {
namespace {

TEST(InputLog, KeepsWhatWasNotTaken) {
  InputLog log;
  EXPECT_EQ(log.missing_after(0), "");
  log.sent("abcdef");
  log.taken(2);
  EXPECT_EQ(log.missing_after(2), "cdef");
}

TEST(InputLog, KnowsWhatWasTakenWithoutAWord) {
  InputLog log;
  EXPECT_EQ(log.missing_after(0), "");
  log.sent("abcdef");
  log.taken(2);
  EXPECT_EQ(log.missing_after(5), "f");
  log.taken(1);
  EXPECT_EQ(log.missing_after(6), "");
}

TEST(InputLog, CountsFromWhatOthersHaveSentBefore) {
  InputLog log;
  EXPECT_EQ(log.missing_after(100), "");
  log.sent("abc");
  EXPECT_EQ(log.missing_after(101), "bc");
}

TEST(InputLog, WhatSomebodyElseHasSentMeanwhileIsNotOurs) {
  InputLog log;
  EXPECT_EQ(log.missing_after(0), "");
  log.sent("abc");
  EXPECT_EQ(log.missing_after(50), "");
}

}  // namespace
}  // namespace gpu_platform::client
