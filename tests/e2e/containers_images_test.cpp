// Images of containers: a registry behind a password, and what becomes of fetched images. A real
// engine and a small registry.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "containers_fixture.h"
#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPair = "ann:opensesame";
constexpr const char* kAuth = "YW5uOm9wZW5zZXNhbWU=";       // that pair
constexpr const char* kWrongAuth = "YW5uOnNob290bm9ib2R5";  // "ann:shootnobody"
// The words in which a secret could be seen. The value of the engine's header holds the password in
// base64, whose places follow from what is before it.
constexpr const char* kSecrets[] = {"opensesame",    "YW5uOm9wZW5z", "shootnobody",  "YW5uOnNob290",
                                    "b3BlbnNlc2FtZ", "9wZW5zZXNhbW", "vcGVuc2VzYW1l"};

// The registry serves kImage as team/tool:1.
class Registry {
 public:
  ~Registry() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void start(const Engine& engine) {
    const std::string layout = folder_.path() + "/layout";
    const Finished saved = run_command(
        engine.podman({"save", "--quiet", "--format", "oci-dir", "--output", layout, kImage}));
    ASSERT_EQ(saved.exit_code, 0) << saved.err;
    const std::string port = folder_.path() + "/port";
    std::string words[] = {"/usr/bin/python3",
                           std::string(GP_SOURCE_DIRECTORY) + "/tests/e2e/registry.py", layout,
                           kPair, port};
    char* arguments[std::size(words) + 1] = {};
    for (std::size_t i = 0; i < std::size(words); ++i) arguments[i] = words[i].data();
    ASSERT_EQ(posix_spawn(&pid_, arguments[0], nullptr, nullptr, arguments, environ), 0);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(port); }));
    address_ = "127.0.0.1:" + read_file(port);
  }
  const std::string& address() const { return address_; }
  std::string image() const { return address_ + "/team/tool:1"; }

 private:
  TemporaryDirectory folder_;
  pid_t pid_ = -1;
  std::string address_;
};

// The job's user has a home in the test's own folder.
class ContainersImages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(site_.path().c_str(), 0755);
    std::filesystem::create_directories(file("home/.docker"));
    write_rules("");
    std::ofstream users(file("passwd"));
    for (const std::string& line : lines_of(read_file("/etc/passwd"))) {
      if (!line.starts_with("nobody:")) users << line << "\n";
    }
    users << "nobody:x:65534:65534::" << file("home") << ":/bin/sh\n";
    users.close();
    chmod(file("passwd").c_str(), 0644);
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .config = "execution:\n  containers: " + file("rules") + "\n",
        .prefix = {"/usr/bin/unshare", "--mount", "--propagation", "slave", "/bin/sh", "-c",
                   "mount --bind \"$0\" /etc/passwd && exec \"$@\"", file("passwd")}});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    registry_.start(engine_);
  }

  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  void write_rules(const std::string& lines) const {
    std::ofstream(file("rules")) << "socket " << engine_.socket()
                                 << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/*\n"
                                 << "image 127.0.0.1:*\n"
                                 << lines;
    chmod(file("rules").c_str(), 0644);
  }
  void write_credentials(const std::string& name, const std::string& auth, mode_t mode,
                         uid_t owner = 0) const {
    std::ofstream(file(name)) << R"({"auths": {")" << registry_.address() << R"(/team": {"auth": ")"
                              << auth << "\"}}}";
    chmod(file(name).c_str(), mode);
    ASSERT_EQ(chown(file(name).c_str(), owner, owner), 0);
  }
  nlohmann::json run(const std::string& image) {
    const std::string id = daemon_->submit(
        {"--gpus", "0", "--user", "nobody", "--image", image, "--", "echo", "it ran"});
    daemon_->cli({"jobs", "wait", id});
    shown_ += daemon_->cli({"jobs", "logs", id}).out + daemon_->cli({"jobs", "describe", id}).out;
    shown_ += daemon_->cli({"jobs", "list", "--all"}).out;
    return daemon_->job(id);
  }
  static std::string detail_of(const nlohmann::json& job) {
    const nlohmann::json detail = job["attempts"][0]["detail"];
    return detail.is_string() ? detail.get<std::string>() : "";
  }
  bool has_image(const std::string& image) const {
    return run_command(engine_.podman({"image", "exists", image})).exit_code == 0;
  }
  // Everything that the daemon and the node part have written, and that users saw.
  std::string written() const {
    std::string all = shown_ + daemon_->log();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(daemon_->directory())) {
      if (entry.is_regular_file()) all += read_file(entry.path().string());
    }
    return all;
  }

  Engine engine_;
  Registry registry_;
  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
  std::string shown_;
};

TEST_F(ContainersImages, ThePasswordOfARegistryIsTheSitesAndIsShownNowhere) {
  EXPECT_THAT(detail_of(run(registry_.image())), HasSubstr("authentication required"));
  write_credentials("pulls.json", kAuth, 0644);
  write_rules("credentials " + file("pulls.json") + "\n");
  EXPECT_THAT(detail_of(run(registry_.image())), HasSubstr("can be read by others"));
  EXPECT_FALSE(has_image(registry_.image()));
  chmod(file("pulls.json").c_str(), 0600);
  const nlohmann::json job = run(registry_.image());
  EXPECT_EQ(job["state"], "COMPLETED") << job.dump(2);
  EXPECT_TRUE(has_image(registry_.image()));
  const std::string all = written();
  EXPECT_THAT(all, HasSubstr("it ran"));
  for (const char* const secret : kSecrets) EXPECT_THAT(all, Not(HasSubstr(secret)));
}

TEST_F(ContainersImages, AUsersOwnPasswordComesBeforeTheSites) {
  write_credentials("pulls.json", kWrongAuth, 0600);
  write_rules("credentials users\ncredentials " + file("pulls.json") + "\n");
  const std::string refused = detail_of(run(registry_.image()));
  EXPECT_THAT(refused, HasSubstr("authentication required, not Basic ***"));
  EXPECT_FALSE(has_image(registry_.image()));
  write_credentials("home/.docker/config.json", kAuth, 0600, 65534);
  const nlohmann::json job = run(registry_.image());
  EXPECT_EQ(job["state"], "COMPLETED") << job.dump(2);
  EXPECT_TRUE(has_image(registry_.image()));
  const std::string all = written();
  for (const char* const secret : kSecrets) EXPECT_THAT(all, Not(HasSubstr(secret)));
}

TEST_F(ContainersImages, ADeniedFetchSaysThatProgramsForCredentialsAreNotRun) {
  write_rules("credentials users\n");
  std::ofstream(file("home/.docker/config.json"))
      << R"({"credHelpers": {")" << registry_.address() << R"(": "touch-it"}})";
  ASSERT_EQ(chown(file("home/.docker/config.json").c_str(), 65534, 65534), 0);
  EXPECT_THAT(detail_of(run(registry_.image())),
              AllOf(HasSubstr("authentication required"), HasSubstr("programs are not run")));
}

}  // namespace
}  // namespace gpu_platform::e2e
