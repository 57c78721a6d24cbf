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

// The registry serves one image under every name; a container of it says "from the registry".
class Registry {
 public:
  ~Registry() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void start(Engine& engine, const std::string& words = "from the registry\n") {
    const std::string why = engine.pack_image(
        [&](const std::string& root) { std::ofstream(root + "/etc/motd") << words; });
    ASSERT_EQ(why, "");
    const std::string port = folder_.path() + "/port";
    std::string command[] = {"/usr/bin/python3",
                             std::string(GP_SOURCE_DIRECTORY) + "/tests/e2e/registry.py",
                             engine.archive_path(), kPair, port};
    char* arguments[std::size(command) + 1] = {};
    for (std::size_t i = 0; i < std::size(command); ++i) arguments[i] = command[i].data();
    ASSERT_EQ(posix_spawn(&pid_, arguments[0], nullptr, nullptr, arguments, environ), 0);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(port); }));
    address_ = "127.0.0.1:" + read_file(port);
  }
  const std::string& address() const { return address_; }
  std::string image(const std::string& name = "tool:1") const { return address_ + "/team/" + name; }

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
      if (!line.starts_with("backup:")) users << line << "\n";
    }
    users << "backup:x:34:34::" << file("home") << ":/bin/sh\n";
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
        {"--gpus", "0", "--user", "backup", "--image", image, "--", "cat", "/etc/motd"});
    daemon_->cli({"jobs", "wait", id});
    shown_ += daemon_->cli({"jobs", "logs", id}).out + daemon_->cli({"jobs", "describe", id}).out;
    shown_ += daemon_->cli({"jobs", "list", "--all"}).out;
    return daemon_->job(id);
  }
  static std::string detail_of(const nlohmann::json& job) {
    const nlohmann::json detail = job["attempts"][0]["detail"];
    return detail.is_string() ? detail.get<std::string>() : "";
  }
  // Docker's engine does not pass on the registry's words.
  auto asks_for_a_password() const {
    return HasSubstr(engine_.is_docker() ? "no basic auth credentials" : "authentication required");
  }
  bool has_image(const std::string& image) const {
    return run_command(engine_.tool({"image", "inspect", image})).exit_code == 0;
  }
  // Everything that the daemon and the node part have written, and that users saw.
  std::string written() const {
    std::string all = shown_ + daemon_->log();
    for (const auto& entry : entries_below(daemon_->directory())) {
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
  EXPECT_THAT(detail_of(run(registry_.image())), asks_for_a_password());
  write_credentials("pulls.json", kAuth, 0644);
  write_rules("credentials " + file("pulls.json") + "\n");
  EXPECT_THAT(detail_of(run(registry_.image())), HasSubstr("can be read by others"));
  EXPECT_FALSE(has_image(registry_.image()));
  chmod(file("pulls.json").c_str(), 0600);
  const nlohmann::json job = run(registry_.image());
  EXPECT_EQ(job["state"], "COMPLETED") << job.dump(2);
  EXPECT_TRUE(has_image(registry_.image()));
  const std::string all = written();
  EXPECT_THAT(all, HasSubstr("from the registry"));
  for (const char* const secret : kSecrets) EXPECT_THAT(all, Not(HasSubstr(secret)));
}

TEST_F(ContainersImages, AUsersOwnPasswordComesBeforeTheSites) {
  write_credentials("pulls.json", kWrongAuth, 0600);
  write_rules("credentials users\ncredentials " + file("pulls.json") + "\n");
  const std::string refused = detail_of(run(registry_.image()));
  EXPECT_THAT(refused, HasSubstr("authentication required, not Basic ***"));
  EXPECT_FALSE(has_image(registry_.image()));
  write_credentials("home/.docker/config.json", kAuth, 0600, 34);
  const nlohmann::json job = run(registry_.image());
  EXPECT_EQ(job["state"], "COMPLETED") << job.dump(2);
  EXPECT_TRUE(has_image(registry_.image()));
  const std::string all = written();
  for (const char* const secret : kSecrets) EXPECT_THAT(all, Not(HasSubstr(secret)));
}

TEST_F(ContainersImages, FetchedImagesThatNoJobUsesAreRemovedAndOthersStay) {
  Registry second;
  second.start(engine_, "another image\n");
  std::ofstream(file("pulls.json")) << nlohmann::json{
      {"auths", {{registry_.address(), {{"auth", kAuth}}}, {second.address(), {{"auth", kAuth}}}}}};
  chmod(file("pulls.json").c_str(), 0600);
  write_rules("credentials " + file("pulls.json") + "\nimages keep 1s\n");
  const std::string used[] = {registry_.image(), registry_.image("same:1")};
  const std::string other = second.image();
  const std::string running = daemon_->submit(
      {"--gpus", "0", "--user", "backup", "--image", used[0], "--", "sleep", "1000"});
  EXPECT_EQ(run(used[1])["state"], "COMPLETED");
  EXPECT_EQ(run(other)["state"], "COMPLETED");
  EXPECT_EQ(run(kImage)["state"], "COMPLETED");
  ASSERT_TRUE(eventually([&] { return engine_.containers().size() == 1; }));
  const auto clean_until = [&](const std::function<bool()>& is_done) {
    return eventually([&] {
      // The launcher cleans when it starts.
      daemon_->terminate();
      return daemon_->start() && eventually(is_done, std::chrono::seconds(3));
    });
  };
  EXPECT_TRUE(clean_until([&] { return !has_image(other); }));
  for (const std::string& image : used) EXPECT_TRUE(has_image(image)) << image;
  EXPECT_EQ(daemon_->job(running)["state"], "RUNNING");
  daemon_->cli({"jobs", "kill", running});
  daemon_->cli({"jobs", "wait", running});
  EXPECT_TRUE(clean_until([&] { return !has_image(used[0]) && !has_image(used[1]); }));
  EXPECT_TRUE(has_image(kImage));
}

TEST_F(ContainersImages, ADeniedFetchSaysThatProgramsForCredentialsAreNotRun) {
  write_rules("credentials users\n");
  std::ofstream(file("home/.docker/config.json"))
      << R"({"credHelpers": {")" << registry_.address() << R"(": "touch-it"}})";
  ASSERT_EQ(chown(file("home/.docker/config.json").c_str(), 34, 34), 0);
  EXPECT_THAT(detail_of(run(registry_.image())),
              AllOf(asks_for_a_password(), HasSubstr("programs are not run")));
}

}  // namespace
}  // namespace gpu_platform::e2e
