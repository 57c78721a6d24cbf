#include "bin/program_paths.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace gpu_platform::bin {
namespace {

// Of this test program, which is in a build folder.
TEST(ProgramPaths, AreBesideTheProgramInABuildFolder) {
  const auto own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const ProgramPaths paths = find_program_paths();
  EXPECT_EQ(paths.node, (own / "gpu-platform-node").string());
  EXPECT_EQ(paths.probe, (own / "gpu-platform-probe").string());
  EXPECT_EQ(paths.listener, (own / "gpu-platform-listener").string());
  EXPECT_EQ(paths.emulated_nvml, (own / "emulator/libnvidia-ml.so.1").string());
  EXPECT_EQ(paths.emulated_programs, (own / "emulator/bin").string());
}

}  // namespace
}  // namespace gpu_platform::bin
