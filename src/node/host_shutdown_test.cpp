#include "node/host_shutdown.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

TEST(HostShutdown, IsSystemdsLastProgramAndNoOther) {
  EXPECT_TRUE(is_shutdown_program("systemd-shutdow\n"));
  EXPECT_FALSE(is_shutdown_program("systemd\n"));
  EXPECT_FALSE(is_shutdown_program("sh\n"));
  EXPECT_FALSE(is_shutdown_program(""));
}

}  // namespace
}  // namespace gpu_platform::node
