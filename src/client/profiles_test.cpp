#include "client/profiles.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/exit_code.h"
#include "client/fake_server_test.h"
#include "client/process_fixture_test.h"

namespace gpu_platform::client {
namespace {

namespace fs = std::filesystem;

Profile lab() {
  Profile profile{"lab", *http::parse_server("https://gpus.example.org:8443")};
  profile.server.token = "gpt_s3cret";
  profile.server.tls.authorities = "/etc/lab.pem";
  return profile;
}

class ProfilesFile : public Process {
 protected:
  ProfilesFile() {
    std::string name = (fs::temp_directory_path() / "gp-profiles-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
    around_.uid = ::getuid();
    around_.environment.push_back("HOME=" + home_);
  }
  ~ProfilesFile() override { fs::remove_all(home_); }

  std::string path() const { return home_ + "/.config/gpu-platform/credentials"; }
  mode_t mode_of(const std::string& what) const {
    struct stat about{};
    EXPECT_EQ(::stat(what.c_str(), &about), 0) << what;
    return about.st_mode & 07777;
  }
  void put(const Profile& profile) {
    EXPECT_TRUE(change_profiles(around_, [&](Profiles& profiles) -> base::Status {
      profiles.put(profile);
      profiles.current = profile.name;
      return {};
    }));
  }
  std::string content() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& text) const {
    fs::create_directories(fs::path(path()).parent_path());
    std::ofstream(path()) << text;
    ::chmod(path().c_str(), 0600);
  }

  std::string home_;
};

TEST_F(ProfilesFile, IsForItsOwnerAlone) {
  put(lab());
  EXPECT_EQ(mode_of(path()), 0600U);
  EXPECT_EQ(mode_of(fs::path(path()).parent_path()), 0700U);
  EXPECT_EQ(read_profiles(around_)->all, std::vector<Profile>{lab()});
  EXPECT_EQ(read_profiles(around_)->current, "lab");
}

TEST_F(ProfilesFile, IsRefusedWhereOthersCanReadIt) {
  put(lab());
  for (const mode_t mode : {0640U, 0604U, 0660U, 0620U}) {
    ::chmod(path().c_str(), mode);
    const auto read = read_profiles(around_);
    ASSERT_FALSE(read.has_value()) << mode;
    EXPECT_TRUE(has(read.error().message, "chmod 600")) << read.error().message;
    // Nothing goes to a server without the profile that the person expects.
    EXPECT_FALSE(servers_to_try({}, around_).has_value());
    EXPECT_FALSE(change_profiles(around_, [](Profiles&) -> base::Status { return {}; }));
  }
}

TEST_F(ProfilesFile, IsRefusedWhereItIsNoFileOfItsOwner) {
  put(lab());
  around_.uid += 1;
  EXPECT_TRUE(has(read_profiles(around_).error().message, "another user"));
  around_.uid -= 1;
  fs::rename(path(), path() + ".moved");
  fs::create_symlink(path() + ".moved", path());
  EXPECT_FALSE(read_profiles(around_).has_value());
  fs::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_FALSE(read_profiles(around_).has_value());
}

TEST_F(ProfilesFile, IsRefusedWhereOthersMayWriteBesideIt) {
  put(lab());
  ::chmod(fs::path(path()).parent_path().c_str(), 0777);
  const auto changed = change_profiles(around_, [](Profiles&) -> base::Status { return {}; });
  ASSERT_FALSE(changed.has_value());
  EXPECT_TRUE(has(changed.error().message, "chmod 700")) << changed.error().message;
}

TEST_F(ProfilesFile, SaysWhatToDoWhereItIsDamagedAndShowsNothingOfIt) {
  const std::string damaged[] = {
      "",
      "gpt_s3cret",
      "{",
      "[]",
      R"({"current":"x","profiles":{}})",
      R"({"profiles":{"a/b":{"server":"https://h:1"}}})",
      R"({"profiles":{"lab":{"server":"unix:/x"}}})",
      R"({"profiles":{"lab":{"server":"https://h:1","token":"gpt_s3cret\r\nX: y"}}})",
      R"({"profiles":{"local":{"server":"https://h:1"}}})",
      std::string(2 << 20, ' ')};
  for (const std::string& text : damaged) {
    write(text);
    const auto read = read_profiles(around_);
    ASSERT_FALSE(read.has_value()) << text.substr(0, 80);
    EXPECT_TRUE(has(read.error().message, path())) << read.error().message;
    EXPECT_FALSE(has(read.error().message, "s3cret"));
    // Not overwritten: a person may still want what is in it.
    EXPECT_FALSE(change_profiles(around_, [](Profiles&) -> base::Status { return {}; }));
    EXPECT_EQ(content(), text);
  }
  write(R"({"version":2,"profiles":{}})");
  EXPECT_TRUE(has(read_profiles(around_).error().message, "newer gpu-platform"));
}

TEST_F(ProfilesFile, LosesNothingWhenManyLogInAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([this, i] {
      Profile profile = lab();
      profile.name = fmt::format("lab-{}", i);
      put(profile);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_profiles(around_)->all.size(), 16U);
}

TEST_F(ProfilesFile, StaysWholeWhereAWriterIsKilled) {
  put(lab());
  const std::string before = content();
  // A writer that is killed under the lock, and what one leaves that was killed while it wrote.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)change_profiles(around_, [](Profiles&) -> base::Status {
      ::kill(::getpid(), SIGKILL);
      return {};
    });
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  std::ofstream(path() + ".new") << "{\"half";
  EXPECT_EQ(content(), before);
  EXPECT_EQ(read_profiles(around_)->all.size(), 1U);
  Profile other = lab();
  other.name = "other";
  put(other);
  EXPECT_EQ(read_profiles(around_)->all.size(), 2U);
  EXPECT_FALSE(fs::exists(path() + ".new"));
}

TEST_F(ProfilesFile, NeedsAHome) {
  around_.environment = {};
  EXPECT_TRUE(read_profiles(around_)->all.empty());
  EXPECT_TRUE(
      has(change_profiles(around_, [](Profiles&) -> base::Status { return {}; }).error().message,
          "set HOME"));
}

TEST_F(ProfilesFile, GoBehindTheOptionAndTheVariableAndBeforeTheMachine) {
  put(lab());
  const auto first = [&](const ServerChoice& choice) {
    return servers_to_try(choice, around_)->front();
  };
  EXPECT_EQ(first({}), lab().server);
  around_.environment.push_back("GPU_PLATFORM_SERVER=unix:/a");
  EXPECT_EQ(first({}).text(), "unix:/a");
  EXPECT_EQ(first({.server = "lab"}), lab().server);
  EXPECT_EQ(first({.server = "local"}).kind, http::Server::Kind::kSocket);
  EXPECT_EQ(first({.server = "local"}).text(), "unix:/run/gpu-platform/gpu-platform.sock");
  // An address that a profile has brings that profile's token; another one brings none.
  EXPECT_EQ(first({.server = "https://GPUS.example.org"}).token, "gpt_s3cret");
  EXPECT_EQ(first({.server = "https://gpus.example.org:9"}).token, "");
  const auto unknown = servers_to_try({.server = "lob"}, around_);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_TRUE(has(unknown.error().message, "'lab'")) << unknown.error().message;
}

TEST_F(ProfilesFile, GiveWayToWhatAScriptSays) {
  put(lab());
  around_.directory = "/home/ann";
  around_.environment.push_back("GPU_PLATFORM_TOKEN=gpt_script");
  around_.environment.push_back("GPU_PLATFORM_CA_FILE=ca.pem");
  EXPECT_EQ(servers_to_try({}, around_)->front().token, "gpt_script");
  EXPECT_EQ(servers_to_try({}, around_)->front().tls.authorities, "/home/ann/ca.pem");
  EXPECT_EQ(servers_to_try({.authorities = "/b.pem"}, around_)->front().tls.authorities, "/b.pem");
  around_.environment.push_back("GPU_PLATFORM_TOKEN=");
  std::erase(around_.environment, "GPU_PLATFORM_TOKEN=gpt_script");
  around_.environment.push_back("GPU_PLATFORM_TOKEN=not\r\na token");
  const auto bad = servers_to_try({}, around_);
  ASSERT_FALSE(bad.has_value());
  EXPECT_FALSE(has(bad.error().message, "not\r\na"));
}

}  // namespace
}  // namespace gpu_platform::client
