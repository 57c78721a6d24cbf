#include "execution/container/image_start.h"

#include <errno.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "execution/container/start_hold.h"

namespace gpu_platform::execution {
namespace {

using ::testing::HasSubstr;
using ImageJson = nlohmann::json;

TEST(ImageStart, ADirectoryIsAbsoluteAndLeadsNowhereElse) {
  const std::pair<const char*, const char*> cases[] = {
      {"/work/x", "/work/x"}, {"work", "/work"},          {"", "/"},  {"/", "/"},
      {"//a/./b/", "/a/b"},   {"/x/../../proc", "/proc"}, {"..", "/"}};
  for (const auto& [text, path] : cases) {
    EXPECT_EQ(workdir_of_image({{"WorkingDir", text}}), path) << text;
  }
  EXPECT_EQ(workdir_of_image(ImageJson()), "/");
  EXPECT_EQ(workdir_of_image({{"WorkingDir", 7}}), "/");
}

TEST(ImageStart, AnEntryPointIsItsTexts) {
  EXPECT_EQ(entrypoint_of_image({{"Entrypoint", {"a", 1, "b"}}}),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(entrypoint_of_image({{"Entrypoint", nullptr}}).empty());
  EXPECT_TRUE(entrypoint_of_image(ImageJson()).empty());
}

TEST(ImageStart, VolumesAtPlacesOfThePlatformAreRefused) {
  const auto error_of = [](const char* path) {
    return error_in_volumes({{"Volumes", {{path, ImageJson::object()}}}});
  };
  for (const char* const path : {"/data", "/etcetera", "data", "/etc/../data"}) {
    EXPECT_EQ(error_of(path), "") << path;
  }
  for (const char* const path :
       {"/etc", "etc/ssl", "/x/../etc", "//dev//shm", "/proc", "/", ".."}) {
    EXPECT_THAT(error_of(path), HasSubstr(path)) << path;
  }
  EXPECT_EQ(error_in_volumes(ImageJson()), "");
}

TEST(ImageStart, IdsAreTheSameWithTheirKindOrWithout) {
  EXPECT_TRUE(is_same_image("sha256:ab", "ab"));
  EXPECT_FALSE(is_same_image("sha256:ab", "sha256:ac"));
  EXPECT_FALSE(is_same_image("", ""));
}

TEST(ImageStart, AnOutcomeNamesWhatCouldNotBeUsed) {
  EXPECT_THAT(describe_outcome({StartOutcome::Step::kProgram, ENOENT}, "/w", {"tool", "x"}),
              HasSubstr("execute 'tool': No such file"));
  EXPECT_THAT(describe_outcome({StartOutcome::Step::kWorkdir, EACCES}, "/w", {"tool"}),
              HasSubstr("directory '/w': Permission denied"));
}

TEST(StartHold, NamesOfGroupsAreTheirNumbers) {
  node::Identity user;
  user.uid = 1000;
  user.gid = 100;
  user.groups = {2106, 27, 100};
  user.name = "ann";
  EXPECT_EQ(passwd_of(user), "ann:x:1000:100::/:/bin/sh\n");
  EXPECT_EQ(group_of(user), "27:x:27:\n100:x:100:\n2106:x:2106:\n");
  for (const char* const name : {"", "2106", "a:b", "a\nroot", "-a", "0"}) {
    user.name = name;
    EXPECT_EQ(passwd_of(user), "user:x:1000:100::/:/bin/sh\n") << name;
  }
}

TEST(StartHold, ItsFolderIsNamedAfterTheAttempt) {
  const std::string folder = start_folder("/sys/fs/cgroup/gpu-platform-ab12/42-1", "42-1");
  EXPECT_EQ(folder, "/run/gpu-platform-mounts-ab12-42-1-onhold");
  EXPECT_TRUE(is_start_folder(folder));
  EXPECT_FALSE(is_start_folder("/run/gpu-platform-mounts-ab12-42-1-Xq3dFz"));
}

}  // namespace
}  // namespace gpu_platform::execution
