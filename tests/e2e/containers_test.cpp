// Jobs with an image, through the whole platform and a real container engine: a Podman service of
// the test's own, with an image that is made here.

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

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kImage = "localhost/gp-test:1";
constexpr const char* kBusybox = "/bin/busybox";

// A Podman service with everything of its own below one folder: images, containers, socket.
class Engine {
 public:
  ~Engine() {
    if (pid_ > 0) {
      run_command(podman({"rm", "--all", "--force", "--time", "0"}));
      stop();
    }
    // Its layers are mounted nowhere now, so the folder's own end removes them.
  }

  // Why there is none; empty: it answers.
  std::string start() {
    if (geteuid() != 0) return "needs root: the engine's containers are root's";
    for (const char* const program : {"/usr/bin/podman", "/usr/sbin/runc", kBusybox}) {
      if (access(program, X_OK) != 0) return std::string(program) + " is not installed";
    }
    if (std::string why = make_image(); !why.empty()) return why;
    if (std::string why = serve(); !why.empty()) return why;
    // What this host cannot do at all is no fault of the platform.
    const Finished tried = run_command(
        podman({"run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit",
                "nproc=1024:1024", kImage, "true"}));
    return tried.exit_code == 0 ? "" : "podman runs no container here: " + tried.err;
  }

  std::string serve() {
    std::filesystem::remove(socket());
    std::vector<std::string> words =
        podman({"system", "service", "--time", "0", "unix://" + socket()});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
    const int error =
        posix_spawn(&pid_, words[0].c_str(), &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) return "podman cannot be started";
    const bool answers = eventually([&] { return std::filesystem::exists(socket()); });
    return answers ? "" : "podman's service does not answer: " + read_file(log_path());
  }
  void stop() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  std::vector<std::string> podman(const std::vector<std::string>& further) const {
    std::vector<std::string> words = {"/usr/bin/podman",
                                      "--root",
                                      folder_.path() + "/root",
                                      "--runroot",
                                      folder_.path() + "/run",
                                      "--tmpdir",
                                      folder_.path() + "/tmp",
                                      "--storage-driver",
                                      "vfs",
                                      "--cgroup-manager",
                                      "cgroupfs",
                                      "--runtime",
                                      "/usr/sbin/runc",
                                      "--events-backend",
                                      "none"};
    words.insert(words.end(), further.begin(), further.end());
    return words;
  }
  std::vector<std::string> containers() const {
    return lines_of(run_command(podman({"ps", "--all", "--quiet"})).out);
  }
  std::string socket() const { return folder_.path() + "/engine.sock"; }
  std::string log_path() const { return folder_.path() + "/log"; }

 private:
  // Of busybox alone, with its most needed names.
  std::string make_image() {
    const std::string root = folder_.path() + "/image";
    for (const char* const name : {"bin", "tmp", "proc", "dev", "etc", "sys"}) {
      std::filesystem::create_directories(root + "/" + name);
    }
    std::filesystem::copy_file(kBusybox, root + "/bin/busybox");
    for (const char* const name : {"sh", "id", "cat", "echo", "env", "sleep", "true", "touch", "ls",
                                   "df", "tail", "grep", "dd", "trap", "pwd"}) {
      std::filesystem::create_symlink("busybox", root + "/bin/" + name);
    }
    std::ofstream(root + "/etc/motd") << "from the image\n";
    const std::string archive = folder_.path() + "/image.tar";
    const Finished packed = run_command({"/bin/tar", "-C", root, "-cf", archive, "."});
    if (packed.exit_code != 0) return "tar: " + packed.err;
    const Finished imported = run_command(podman({"import", archive, kImage}));
    return imported.exit_code == 0 ? "" : "podman import: " + imported.err;
  }

  TemporaryDirectory folder_;
  pid_t pid_ = -1;
};

class Containers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(site_.path().c_str(), 0755);
    std::filesystem::create_directory(file("data"));
    std::ofstream(file("data/hello")) << "from the host\n";
    std::ofstream(file("secret")) << "root's\n";
    chmod(file("secret").c_str(), 0600);
    write_rules("image localhost/gp-test:*\nmount " + file("data") + " ro\nmount " + file("out") +
                "\nmount " + file("closed") + "\n");
    daemon_ = std::make_unique<Daemon>(
        DaemonOptions{.config = "execution:\n  containers: " + file("rules") + "\n"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  void write_rules(const std::string& lines) const {
    std::ofstream(file("rules")) << "socket " << engine_.socket()
                                 << "\nulimit nofile 1024\nulimit nproc 1024\n"
                                 << lines;
    chmod(file("rules").c_str(), 0644);
  }
  static std::vector<std::string> in_image(std::vector<std::string> options,
                                           const std::vector<std::string>& command) {
    std::vector<std::string> words = {"--gpus", "0", "--user", "nobody", "--image", kImage};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  std::string submit(const std::vector<std::string>& options, const std::string& script) {
    return daemon_->submit(in_image(options, {"sh", "-c", script}));
  }
  nlohmann::json ended(const std::string& id) {
    daemon_->cli({"jobs", "wait", id});
    return daemon_->job(id);
  }
  std::string output(const std::string& id) { return daemon_->cli({"jobs", "logs", id}).out; }
  bool says(const std::string& id, const std::string& text) {
    return eventually([&] { return output(id).find(text) != std::string::npos; });
  }
  Finished refused(const std::vector<std::string>& options) {
    std::vector<std::string> words = in_image(options, {"true"});
    words.insert(words.begin(), "submit");
    return daemon_->cli(words);
  }
  // Nothing of a container is left, with the engine or as a process.
  bool nothing_is_left() {
    return eventually([&] {
      return engine_.containers().empty() && daemon_->processes("gp-supervisor").empty();
    });
  }

  Engine engine_;
  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(Containers, AJobRunsInItsImageAsItsUserAndEndsWithItsExitCode) {
  const std::string id = submit({}, "cat /etc/motd; id -u; echo aside >&2; exit 7");
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["state"], "FAILED") << job.dump(2);
  EXPECT_EQ(job["exit_code"], 7) << job.dump(2) << output(id);
  EXPECT_EQ(job["spec"]["image"], kImage);
  EXPECT_THAT(output(id), AllOf(HasSubstr("from the image\n65534\n"), HasSubstr("aside\n")));
  EXPECT_TRUE(nothing_is_left());
}

}  // namespace
}  // namespace gpu_platform::e2e
