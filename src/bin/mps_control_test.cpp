#include "bin/mps_control.h"

#include <gtest/gtest.h>

#include "bin/folder_fixture.h"

namespace gpu_platform::bin {
namespace {

using Folders = std::vector<std::string>;

TEST(MpsControl, IsLookedForWhereDriversPutItAndThenInThePath) {
  EXPECT_EQ(mps_control_folders({}, false, "/opt/bin:relative::/usr/sbin"),
            (Folders{"/usr/bin", "/usr/local/nvidia/bin", "/opt/bin", "/usr/sbin"}));
  EXPECT_EQ(mps_control_folders({}, false, ""), (Folders{"/usr/bin", "/usr/local/nvidia/bin"}));
}

TEST(MpsControl, OfEmulatedBoardsIsTheEmulators) {
  ProgramPaths programs;
  programs.emulated_programs = "/libexec/emulated";
  EXPECT_EQ(mps_control_folders(programs, true, "/opt/bin"), (Folders{"/libexec/emulated"}));
}

TEST(MpsControl, IsTheFirstOneThatCanBeExecuted) {
  const TestFolder folder;
  folder.write("a/nvidia-cuda-mps-control", "no program");
  const std::string second = folder.script("b/nvidia-cuda-mps-control", "exit 0");
  folder.script("c/nvidia-cuda-mps-control", "exit 0");
  EXPECT_EQ(
      find_mps_control({}, {folder.path() + "/a", folder.path() + "/b", folder.path() + "/c"}),
      second);
  EXPECT_EQ(find_mps_control({}, {folder.path()}), "");
}

TEST(MpsControl, OfTheSiteIsTheOnlyOne) {
  const TestFolder folder;
  folder.script("nvidia-cuda-mps-control", "exit 0");
  const std::string own = folder.script("own", "exit 0");
  const Folders folders = {folder.path()};
  EXPECT_EQ(find_mps_control({.is_off = false, .path = own}, folders), own);
  EXPECT_EQ(find_mps_control({.is_off = false, .path = own + "-gone"}, folders), "");
}

TEST(MpsControl, IsKnownThoughItIsSwitchedOffForJobsThatHaveBegun) {
  const TestFolder folder;
  const std::string program = folder.script("nvidia-cuda-mps-control", "exit 0");
  EXPECT_EQ(find_mps_control({.is_off = true, .path = {}}, {folder.path()}), program);
}

}  // namespace
}  // namespace gpu_platform::bin
