#include "execution/container/credentials_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"

namespace gpu_platform::execution {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uid_t kNobody = 65534;
constexpr const char* kImage = "r.org/a";
constexpr const char* kFile = R"({"auths": {"r.org": {"auth": "YW5uOm9wZW5zZXNhbWU="}}})";

// A home of the user that the searches run as: another one, where we are root.
class SearchInHome : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/credentials-XXXXXX";
    CHECK(mkdtemp(folder) != nullptr);
    home_ = folder;
    chmod(folder, 0755);
    for (const char* const name : {"/.docker", "/.config", "/.config/containers"}) {
      std::filesystem::create_directory(home_ + name);
    }
  }
  void TearDown() override { std::filesystem::remove_all(home_); }

  std::string config() const { return home_ + "/.docker/config.json"; }
  void write(const std::string& path, const std::string& text) const {
    std::ofstream(path) << text;
    give(path);
  }
  void give(const std::string& path) const {
    if (geteuid() == 0) CHECK(lchown(path.c_str(), kNobody, kNobody) == 0);
  }

  // Searches as this user: "header" or "hint: why".
  std::string search() const {
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
      const bool is_user = geteuid() != 0 || (setresgid(kNobody, kNobody, kNobody) == 0 &&
                                              setresuid(kNobody, kNobody, kNobody) == 0);
      const RegistryCredentials found = find_in_home(home_, kImage);
      const std::string told = !found.header.empty() ? "found" : "hint: " + found.hint;
      const ssize_t size = ::write(ends[1], told.data(), told.size());
      _exit(is_user && size > 0 ? 0 : 1);
    }
    close(ends[1]);
    char buffer[1024];
    const ssize_t got = read(ends[0], buffer, sizeof buffer);
    close(ends[0]);
    waitpid(pid, nullptr, 0);
    return std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }

  std::string home_;
};

TEST_F(SearchInHome, BothFilesAreReadAndNoneIsNoMistake) {
  EXPECT_EQ(search(), "hint: ");
  write(config(), kFile);
  EXPECT_EQ(search(), "found");
  std::filesystem::remove(config());
  write(home_ + "/.config/containers/auth.json", kFile);
  EXPECT_EQ(search(), "found");
  write(config(), "garbage");
  EXPECT_EQ(search(), "found");
}

TEST_F(SearchInHome, ALinkToAFileOfTheUsersOwnIsFollowedAndOneToAnothersIsNot) {
  write(home_ + "/mine.json", kFile);
  std::filesystem::create_symlink(home_ + "/mine.json", config());
  EXPECT_EQ(search(), "found");
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  std::ofstream(home_ + "/roots.json") << kFile;
  std::filesystem::remove(config());
  std::filesystem::create_symlink(home_ + "/roots.json", config());
  EXPECT_THAT(search(), HasSubstr("belongs to another user"));
  chmod((home_ + "/roots.json").c_str(), 0600);
  EXPECT_THAT(search(), HasSubstr("Permission denied"));
}

TEST_F(SearchInHome, WhatIsNoSmallRegularFileIsNotRead) {
  const auto say = [&](const std::string& path) {
    give(path);
    std::string said = search();
    std::filesystem::remove_all(path);
    return said;
  };
  CHECK(mkfifo(config().c_str(), 0600) == 0);
  EXPECT_THAT(say(config()), HasSubstr("not a regular file"));
  std::filesystem::create_directory(config());
  EXPECT_THAT(say(config()), HasSubstr("not a regular file"));
  std::ofstream(config()).close();
  std::filesystem::resize_file(config(), 100'000'000);
  EXPECT_THAT(say(config()), HasSubstr("longer than 1 MiB"));
  std::filesystem::create_symlink("/proc/self/fd/0", config());
  EXPECT_THAT(say(config()), HasSubstr("hint: /"));
  std::filesystem::create_symlink("config.json", config());
  EXPECT_THAT(say(config()), HasSubstr("hint: /"));
  write(config(), R"({"auths": {"r.org": [7]}})");
  EXPECT_THAT(search(), HasSubstr("the entry of r.org in ~/.docker/config.json"));
}

TEST_F(SearchInHome, TheSitesFileIsUsedWhereTheRulesNameIt) {
  ContainerRules rules;
  CredentialsSearch search{&rules, {}, kImage, -1, [] { return true; }};
  EXPECT_THAT(search_credentials(search).header, IsEmpty());
  rules.site_credentials = config();
  std::ofstream(config()) << kFile;
  EXPECT_THAT(search_credentials(search).header, Not(IsEmpty()));
}

TEST_F(SearchInHome, AProcessOfTheUserSearchesAndTheSitesFileIsNext) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become a user";
  ContainerRules rules;
  rules.allow_user_credentials = true;
  CredentialsSearch search{&rules, {kNobody, kNobody, {}, ""}, kImage, -1, [] { return true; }};
  EXPECT_THAT(search_credentials(search).header, IsEmpty()) << "this user has no home";
  rules.site_credentials = config();
  std::ofstream(config()) << kFile;
  EXPECT_THAT(search_credentials(search).header, Not(IsEmpty()));
}

}  // namespace
}  // namespace gpu_platform::execution
