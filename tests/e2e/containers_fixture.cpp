#include "containers_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpu_platform::e2e {

namespace {

constexpr const char* kBusybox = "/bin/busybox";

}  // namespace

Engine::~Engine() {
  if (pid_ > 0) {
    run_command(podman({"rm", "--all", "--force", "--time", "0"}));
    stop();
  }
  // Its layers are mounted nowhere now, so the folder's own end removes them.
}

std::string Engine::start() {
  if (geteuid() != 0) return "needs root: the engine's containers are root's";
  for (const char* const program : {"/usr/bin/podman", "/usr/sbin/runc", kBusybox}) {
    if (access(program, X_OK) != 0) return std::string(program) + " is not installed";
  }
  if (std::string why = make_image(); !why.empty()) return why;
  if (std::string why = serve(); !why.empty()) return why;
  // What this host cannot do at all is no fault of the platform.
  const Finished tried =
      run_command(podman({"run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024",
                          "--ulimit", "nproc=1024:1024", kImage, "true"}));
  return tried.exit_code == 0 ? "" : "podman runs no container here: " + tried.err;
}

std::string Engine::serve() {
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

void Engine::stop() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::vector<std::string> Engine::podman(const std::vector<std::string>& further) const {
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

std::vector<std::string> Engine::containers() const {
  return lines_of(run_command(podman({"ps", "--all", "--quiet"})).out);
}

// Of busybox alone, with its most needed names.
std::string Engine::make_image() {
  const std::string root = folder_.path() + "/image";
  for (const char* const name : {"bin", "tmp", "proc", "dev", "etc", "sys"}) {
    std::filesystem::create_directories(root + "/" + name);
  }
  std::filesystem::copy_file(kBusybox, root + "/bin/busybox");
  for (const char* const name : {"sh", "id", "cat", "echo", "env", "sleep", "true", "touch", "ls",
                                 "df", "tail", "grep", "dd", "trap", "pwd", "stty", "nc", "yes"}) {
    std::filesystem::create_symlink("busybox", root + "/bin/" + name);
  }
  // A test may mount the host's programs and libraries.
  std::filesystem::create_directory(root + "/usr");
  for (const char* const name : {"lib", "lib64"}) {
    std::filesystem::create_symlink(std::string("usr/") + name, root + "/" + name);
  }
  std::ofstream(root + "/etc/motd") << "from the image\n";
  return add_image(kImage, {});
}

std::string Engine::add_image(const std::string& name,
                              const std::function<void(const std::string& root)>& change,
                              const std::vector<std::string>& lines) {
  const std::string root = folder_.path() + "/image";
  if (change) change(root);
  const std::string archive = folder_.path() + "/image.tar";
  const Finished packed = run_command({"/bin/tar", "-C", root, "-cf", archive, "."});
  if (packed.exit_code != 0) return "tar: " + packed.err;
  std::vector<std::string> words = {"import"};
  for (const std::string& line : lines) words.insert(words.end(), {"--change", line});
  words.insert(words.end(), {archive, name});
  const Finished imported = run_command(podman(words));
  return imported.exit_code == 0 ? "" : "podman import: " + imported.err;
}

}  // namespace gpu_platform::e2e
