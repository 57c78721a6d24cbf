#include "bin/reloaded.h"

#include <gtest/gtest.h>

#include <string>

namespace gpu_platform::bin {
namespace {

TEST(Reloaded, AReaderKeepsWhatItGot) {
  Reloaded<std::string> value;
  EXPECT_EQ(value.get(), nullptr);
  value.set("first");
  const auto kept = value.get();
  value.set("second");
  EXPECT_EQ(*kept, "first");
  EXPECT_EQ(*value.get(), "second");
}

}  // namespace
}  // namespace gpu_platform::bin
