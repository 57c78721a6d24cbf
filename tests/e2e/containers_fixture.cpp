#include "containers_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

namespace gpu_platform::e2e {

namespace {

constexpr const char* kBusybox = "/bin/busybox";
constexpr std::size_t kMaxLog = 500;  // of it is shown
// Names a folder with Docker's programs (dockerd, docker, containerd, …): the tests' engine is then
// Docker's.
constexpr const char* kDockerFolder = "GPU_PLATFORM_TEST_DOCKER";

// Whether a child of this process has ended; it can still be waited for.
bool has_ended(pid_t child) {
  siginfo_t end = {};
  return waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         end.si_pid == child;
}

}  // namespace

Engine::Engine(std::uint32_t uid) : uid_(uid) {
  const char* const folder = getenv(kDockerFolder);
  if (folder != nullptr && !is_rootless()) docker_ = folder;
}

Engine::~Engine() {
  if (pid_ > 0) {
    clear();
    stop();
  }
  // It keeps the user namespace of all its processes.
  if (const std::string pause = read_file(folder_.path() + "/tmp/pause.pid"); !pause.empty()) {
    kill(std::stoi(pause), SIGKILL);
  }
  if (const std::string pid = read_file(folder_.path() + "/exec/containerd/containerd.pid");
      !pid.empty()) {
    kill(std::stoi(pid), SIGKILL);
  }
  // Its layers are mounted nowhere now, so the folder's own end removes them.
}

std::string Engine::start() {
  if (geteuid() != 0) return "needs root: the engine's containers are root's";
  for (const std::string& program :
       {is_docker() ? docker_ + "/dockerd" : std::string("/usr/bin/podman"),
        std::string("/usr/sbin/runc"), std::string(kBusybox)}) {
    if (access(program.c_str(), X_OK) != 0) return program + " is not installed";
  }
  // Engines of one user would share their locks in /dev/shm otherwise, and one that starts resets
  // those that another one holds.
  std::ofstream(settings_path()) << "[engine]\nlock_type = \"file\"\n";
  chmod(settings_path().c_str(), 0644);
  if (std::string why = is_rootless() ? make_user() : ""; !why.empty()) return why;
  if (std::string why = serve(); !why.empty()) return why;
  if (std::string why = make_image(); !why.empty()) return why;
  // What this host cannot do at all is no fault of the platform.
  const Finished tried =
      run_command(tool({"run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024",
                        "--ulimit", "nproc=1024:1024", kImage, "true"}));
  return tried.exit_code == 0 ? "" : "the engine runs no container here: " + tried.err;
}

// The user has a home and, for the user namespaces of its containers, numbers of users besides its
// own. Other processes do not see these files.
std::string Engine::make_user() {
  if (access("/usr/bin/newuidmap", X_OK) != 0) return "newuidmap (uidmap) is not installed";
  const std::string uid = std::to_string(uid_);
  std::ofstream(folder_.path() + "/passwd")
      << "root:x:0:0::/root:/bin/sh\nrootless:x:" << uid << ":" << uid << "::" << folder_.path()
      << "/home:/bin/sh\n";
  std::ofstream(folder_.path() + "/subid") << "rootless:200000:65536\n";
  chmod(folder_.path().c_str(), 0755);
  for (const char* const name : {"home", "xdg", "root", "run", "tmp", "place"}) {
    const std::string path = folder_.path() + "/" + name;
    std::filesystem::create_directory(path);
    if (chown(path.c_str(), uid_, uid_) != 0) return "chown " + path;
    chmod(path.c_str(), 0700);
  }
  return "";
}

std::vector<std::string> Engine::as_user() const {
  const std::string uid = std::to_string(uid_);
  return {"/usr/bin/unshare",
          "--mount",
          "--propagation",
          "private",
          "/bin/sh",
          "-c",
          "mount --bind \"$0/passwd\" /etc/passwd && touch /etc/subuid /etc/subgid && "
          "mount --bind \"$0/subid\" /etc/subuid && mount --bind \"$0/subid\" /etc/subgid && "
          "cd / && exec setpriv --reuid " +
              uid + " --regid " + uid +
              " --clear-groups env HOME=\"$0/home\" XDG_RUNTIME_DIR=\"$0/xdg\" "
              "PATH=/usr/sbin:/usr/bin:/sbin:/bin \"$@\"",
          folder_.path()};
}

std::vector<std::string> Engine::service() const {
  if (!is_docker()) return tool({"system", "service", "--time", "0", "unix://" + socket()});
  return {docker_ + "/dockerd",
          "--host=unix://" + socket(),
          "--data-root=" + folder_.path() + "/data",
          "--exec-root=" + folder_.path() + "/exec",
          "--pidfile=" + folder_.path() + "/pid",
          "--storage-driver=vfs",
          "--bridge=none",
          "--iptables=false",
          "--live-restore",
          "--exec-opt=native.cgroupdriver=cgroupfs"};
}

std::string Engine::serve() {
  std::filesystem::remove(socket());
  // Docker's processes die with it, and no process may have reaped them.
  for (const char* const name : {"/pid", "/exec/containerd/containerd.pid"}) {
    std::filesystem::remove(folder_.path() + name);
  }
  // Registries on this host have no certificates.
  const std::string registries = folder_.path() + "/registries.conf";
  std::ofstream(registries) << "[[registry]]\nlocation = \"127.0.0.1\"\ninsecure = true\n";
  const std::string setting = "CONTAINERS_REGISTRIES_CONF=" + registries;
  std::vector<std::string> words = service();
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {1, 2}) {
    posix_spawn_file_actions_addopen(&files, fd, log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
  }
  // Podman's monitors of containers leave a file where it runs: "oom", when one is out of memory.
  posix_spawn_file_actions_addchdir_np(&files, folder_.path().c_str());
  // Docker's programs call each other by name.
  const std::string path =
      "PATH=" + (is_docker() ? docker_ + ":" : "") + "/usr/sbin:/usr/bin:/sbin:/bin";
  std::vector<char*> environment = {const_cast<char*>(path.c_str()),
                                    const_cast<char*>(setting.c_str()), nullptr};
  // Without root's rights the service is a child of what is started here.
  posix_spawnattr_t group;
  posix_spawnattr_init(&group);
  posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
  const int error =
      posix_spawn(&pid_, words[0].c_str(), &files, &group, arguments.data(), environment.data());
  posix_spawnattr_destroy(&group);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return words[0] + " cannot be started";
  bool answers = false;
  eventually([&] {
    answers = std::filesystem::exists(socket()) &&
              (!is_docker() || run_command(tool({"version"})).exit_code == 0);
    return answers || has_ended(pid_);
  });
  if (answers) return "";
  const std::string log = read_file(log_path());
  return "the engine's service does not answer: " +
         log.substr(log.size() - std::min(log.size(), kMaxLog));
}

void Engine::hang() const {
  kill(is_rootless() ? -pid_ : pid_, SIGSTOP);
}

void Engine::go_on() const {
  kill(is_rootless() ? -pid_ : pid_, SIGCONT);
}

void Engine::stop() {
  kill(is_rootless() ? -pid_ : pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::vector<std::string> Engine::tool(const std::vector<std::string>& further) const {
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
  words.insert(words.begin(), {"/usr/bin/env", "CONTAINERS_CONF=" + settings_path()});
  if (is_docker()) words = {docker_ + "/docker", "--host", "unix://" + socket()};
  if (is_rootless()) {
    const std::vector<std::string> user = as_user();
    words.insert(words.begin(), user.begin(), user.end());
  }
  words.insert(words.end(), further.begin(), further.end());
  return words;
}

void Engine::clear() const {
  for (const std::string& id : containers()) run_command(tool({"rm", "--force", id}));
}

std::vector<std::string> Engine::containers() const {
  return lines_of(run_command(tool({"ps", "--all", "--quiet"})).out);
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

std::string Engine::pack_image(const std::function<void(const std::string& root)>& change) {
  const std::string root = folder_.path() + "/image";
  if (change) change(root);
  const Finished packed = run_command({"/bin/tar", "-C", root, "-cf", archive_path(), "."});
  return packed.exit_code == 0 ? "" : "tar: " + packed.err;
}

std::string Engine::add_image(const std::string& name,
                              const std::function<void(const std::string& root)>& change,
                              const std::vector<std::string>& lines, const std::string& platform) {
  if (std::string why = pack_image(change); !why.empty()) return why;
  if (!platform.empty()) return load_image(name, platform);
  std::vector<std::string> words = {"import"};
  for (const std::string& line : lines) words.insert(words.end(), {"--change", line});
  words.insert(words.end(), {archive_path(), name});
  const Finished imported = run_command(tool(words));
  return imported.exit_code == 0 ? "" : "import: " + imported.err;
}

// As `docker save` writes it. An import is for this host's architecture with Docker, also if
// another is named.
std::string Engine::load_image(const std::string& name, const std::string& platform) {
  const std::string digest = run_command({"/usr/bin/sha256sum", archive_path()}).out.substr(0, 64);
  const nlohmann::json image = {
      {"os", platform.substr(0, platform.find('/'))},
      {"architecture", platform.substr(platform.find('/') + 1)},
      {"rootfs", {{"type", "layers"}, {"diff_ids", nlohmann::json::array({"sha256:" + digest})}}}};
  const nlohmann::json manifest =
      nlohmann::json::array({{{"Config", "image.json"},
                              {"RepoTags", nlohmann::json::array({name})},
                              {"Layers", nlohmann::json::array({"image.tar"})}}});
  std::ofstream(folder_.path() + "/image.json") << image;
  std::ofstream(folder_.path() + "/manifest.json") << manifest;
  const std::string saved = folder_.path() + "/saved.tar";
  const Finished packed = run_command(
      {"/bin/tar", "-C", folder_.path(), "-cf", saved, "manifest.json", "image.json", "image.tar"});
  if (packed.exit_code != 0) return "tar: " + packed.err;
  const Finished loaded = run_command(tool({"load", "--input", saved}));
  return loaded.exit_code == 0 ? "" : "load: " + loaded.err;
}

}  // namespace gpu_platform::e2e
