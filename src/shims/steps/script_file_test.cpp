#include "shims/steps/script_file.h"

#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

TEST(ScriptFile, KnowsATmpOfTheJob) {
  const std::string before = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n";
  const std::string own =
      "70 22 8:1 /var/lib/gpu-platform/node/tmp/7-1 /tmp rw - ext4 /dev/sda1 rw\n";
  const std::string hosts = "71 22 0:30 / /tmp rw - tmpfs tmpfs rw\n";
  EXPECT_TRUE(is_own_tmp(before + own, "7-1"));
  EXPECT_FALSE(is_own_tmp(before + own, "7-2"));
  EXPECT_FALSE(is_own_tmp(before, "7-1"));
  EXPECT_FALSE(is_own_tmp(before + hosts, "7-1"));
  EXPECT_FALSE(is_own_tmp(before + own + hosts, "7-1")) << "another lies over it";
}

TEST(ScriptFile, IsADescriptorElsewhere) {
  const auto path = script_file("#!/bin/sh\n", {});
  ASSERT_TRUE(path);
  EXPECT_TRUE(path->starts_with("/proc/self/fd/")) << *path;
}

}  // namespace
}  // namespace gpu_platform::shims
