#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace gpu_platform::e2e {

namespace {

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  result.insert(result.end(), added.begin(), added.end());
  return result;
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Feeds input and collects both outputs until the child has closed them.
void pump(int input_fd, const std::string& input, int out_fd, int err_fd, Finished& finished) {
  std::size_t written = 0;
  std::array<pollfd, 3> fds = {pollfd{out_fd, POLLIN, 0}, pollfd{err_fd, POLLIN, 0},
                               pollfd{input_fd, POLLOUT, 0}};
  if (input.empty()) {
    close(input_fd);
    fds[2].fd = -1;
  }
  std::array<std::string*, 2> sinks = {&finished.out, &finished.err};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      if (fds[i].fd < 0 || (fds[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      std::array<char, 65536> buffer;
      const ssize_t n = read(fds[i].fd, buffer.data(), buffer.size());
      if (n > 0) {
        sinks[i]->append(buffer.data(), static_cast<std::size_t>(n));
      } else {
        close(fds[i].fd);
        fds[i].fd = -1;
      }
    }
    if (fds[2].fd >= 0 && (fds[2].revents & (POLLOUT | POLLERR | POLLHUP)) != 0) {
      // A pipe that polls writable takes so much without waiting: we must go on reading meanwhile.
      const std::size_t most = std::min<std::size_t>(input.size() - written, PIPE_BUF);
      const ssize_t n = write(fds[2].fd, input.data() + written, most);
      written += n > 0 ? static_cast<std::size_t>(n) : 0;
      if (n < 0 || written == input.size()) {
        close(fds[2].fd);
        fds[2].fd = -1;
      }
    }
  }
  if (fds[2].fd >= 0) close(fds[2].fd);
}

}  // namespace

Finished run_command(const std::vector<std::string>& command,
                     const std::vector<std::string>& environment, const std::string& input) {
  signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  Finished finished;
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0 ||
      pipe2(err.data(), O_CLOEXEC) != 0) {
    return finished;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = environment_with(environment);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments.front().c_str(), &actions, nullptr,
                                 pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  for (const int fd : {in[0], out[1], err[1]}) close(fd);
  if (error != 0) {
    for (const int fd : {in[1], out[0], err[0]}) close(fd);
    finished.err = "cannot run " + command.front();
    return finished;
  }
  pump(in[1], input, out[0], err[0], finished);
  int status = 0;
  waitpid(pid, &status, 0);
  finished.exit_code = exit_code_of(status);
  return finished;
}

std::vector<std::string> as_account(const Account& account,
                                    const std::vector<std::string>& command) {
  const std::string& group = account.group.empty() ? account.user : account.group;
  std::vector<std::string> words = {"/usr/bin/setpriv", "--reuid", account.user,
                                    "--regid",          group,     "--clear-groups"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::string program(const std::string& name) {
  const char* const other_build = std::getenv("GP_PROGRAMS");
  return std::string(other_build != nullptr ? other_build : GP_PROGRAM_DIRECTORY) + "/" + name;
}

bool eventually(const std::function<bool()>& condition, std::chrono::seconds limit) {
  using std::chrono::milliseconds;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto asked = std::chrono::steady_clock::now();
    if (condition()) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now > deadline) return false;
    // A question is often a command of the platform, and takes the CPU from what is waited for: it
    // has a third of the time.
    const auto pause = std::chrono::duration_cast<milliseconds>(2 * (now - asked));
    poll(nullptr, 0,
         static_cast<int>(std::clamp(pause, milliseconds(5), milliseconds(100)).count()));
  }
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = std::string(GP_PROGRAM_DIRECTORY) + "/e2e-XXXXXX";
  path_ = mkdtemp(pattern.data());
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Daemon::Daemon(DaemonOptions options)
    : options_(std::move(options)),
      data_dir_(options_.data_dir.empty() ? directory() + "/data" : options_.data_dir),
      socket_(directory() + "/socket"),
      log_path_(directory() + "/serve.log") {}

Daemon::~Daemon() {
  if (is_running()) {
    // A last tidy: what runs is told to end at once, and what waits does not take its place, so
    // that no job outlives the test.
    if (!processes("gp-supervisor").empty()) {
      cli({"jobs", "kill", "--all-users", "--yes"});
      eventually([&] { return processes("gp-supervisor").empty(); }, std::chrono::seconds(10));
    }
    kill_now();
  }
  for (const char* role : {"gp-supervisor", "launcher", "probe"}) {
    // Launcher and probe end by themselves when their daemon is gone.
    eventually([&] { return processes(role).empty(); });
    for (const pid_t pid : processes(role)) kill(pid, SIGKILL);
  }
  // A launcher that a test has killed, and that has no successor, leaves its own cgroup.
  const std::string said = log();
  const std::size_t at = said.rfind("detail=\"/");
  if (at == std::string::npos) return;
  const std::string cgroup = said.substr(at + 8, said.find('"', at + 8) - at - 8);
  rmdir((cgroup + "/node").c_str());
  rmdir(cgroup.c_str());
}

namespace {

std::string config_of(const DaemonOptions& options) {
  const std::string key = "execution:\n";
  std::string config = options.config;
  if (config.find("min_uid") != std::string::npos) return config;
  const std::size_t at = config.starts_with(key) ? 0 : config.find("\n" + key);
  if (at == std::string::npos) return config + "\n" + key + "  min_uid: 1\n";
  return config.insert(config.find('\n', at + 1) + 1, "  min_uid: 1\n");
}

}  // namespace

bool Daemon::start() {
  std::vector<std::string> command = options_.prefix;
  command.insert(command.end(),
                 {program("gpu-platform"), "serve", "--data-dir", data_dir_, "--socket", socket_});
  command.insert(command.end(), options_.arguments.begin(), options_.arguments.end());
  if (!options_.emulate.empty()) command.insert(command.end(), {"--emulate", options_.emulate});
  const std::string config = config_of(options_);
  if (!config.empty()) {
    const std::string path = directory() + "/config.yaml";
    std::ofstream(path) << config;
    command.insert(command.end(), {"--config", path});
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0600);
  std::vector<std::string> variables = environment_with({});
  const std::size_t ready_before = lines_of(log()).size();
  const int error = posix_spawn(&pid_, command.front().c_str(), &actions, nullptr,
                                pointers(command).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return false;
  bool ready = false;
  eventually([&] {
    if (!is_running()) return true;
    const auto lines = lines_of(log());
    for (std::size_t i = ready_before; i < lines.size(); ++i) {
      ready = ready || lines[i].starts_with("ready ");
    }
    return ready;
  });
  return ready;
}

bool Daemon::is_running() {
  if (pid_ <= 0) return false;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
  return info.si_pid == 0;
}

int Daemon::terminate() {
  kill(pid_, SIGTERM);
  return wait_for_exit();
}

void Daemon::kill_now() {
  kill(pid_, SIGKILL);
  wait_for_exit();
}

int Daemon::wait_for_exit() {
  int status = 0;
  if (pid_ <= 0 || waitpid(pid_, &status, 0) != pid_) return -1;
  pid_ = -1;
  return exit_code_of(status);
}

std::string Daemon::log() const {
  return read_file(log_path_);
}

Finished Daemon::cli(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment, const std::string& input) const {
  std::vector<std::string> command = {program("gpu-platform"), "--server", "unix:" + socket_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(command, environment, input);
}

std::string Daemon::submit(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "submit");
  const Finished finished = cli(arguments);
  if (finished.exit_code != 0) throw std::runtime_error("submit refused: " + finished.err);
  return finished.out.substr(0, finished.out.find('\n'));
}

bool Daemon::reaches(const std::string& id, const std::string& state) const {
  return eventually([&] { return job(id)["state"] == state; }, std::chrono::seconds(60));
}

nlohmann::json Daemon::json(std::vector<std::string> arguments) const {
  arguments.emplace_back("--json");
  const Finished finished = cli(arguments);
  if (finished.exit_code != 0) return nullptr;
  auto parsed = nlohmann::json::parse(finished.out, nullptr, false);
  return parsed.is_discarded() ? nlohmann::json(nullptr) : parsed;
}

namespace {

// True when the process has a file below `directory` open: supervisors are known by their record,
// because their command line names only job and attempt.
bool has_open_file_below(const std::string& proc_entry, const std::string& directory) {
  DIR* fds = opendir((proc_entry + "/fd").c_str());
  if (fds == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(fds)) {
    std::array<char, 4096> target{};
    const std::string link = proc_entry + "/fd/" + entry->d_name;
    if (readlink(link.c_str(), target.data(), target.size() - 1) <= 0) continue;
    found = found || std::string(target.data()).starts_with(directory + "/");
  }
  closedir(fds);
  return found;
}

}  // namespace

std::vector<pid_t> Daemon::processes(const std::string& role) const {
  std::vector<pid_t> result;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid <= 0) continue;
    const std::string base = "/proc/" + std::string(entry->d_name);
    const std::string name = read_file(base + "/comm");
    std::string arguments = read_file(base + "/cmdline");
    for (char& c : arguments) c = c == '\0' ? ' ' : c;
    const bool is_role =
        name.find(role) != std::string::npos ||
        (role == "launcher" && arguments.find(" launcher ") != std::string::npos &&
         name.find("gp-supervisor") == std::string::npos) ||
        (role == "probe" && arguments.find("gpu-platform-probe") != std::string::npos);
    if (is_role && (arguments.find(directory()) != std::string::npos ||
                    has_open_file_below(base, data_dir_))) {
      result.push_back(pid);
    }
  }
  closedir(proc);
  return result;
}

std::vector<pid_t> Daemon::relays() const {
  const auto cgroup = [](const std::string& pid) { return read_file("/proc/" + pid + "/cgroup"); };
  const auto supervisors = processes("gp-supervisor");
  if (supervisors.empty()) throw std::logic_error("no supervisor runs");
  const std::string ours = cgroup(std::to_string(supervisors.front()));
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (read_file("/proc/" + pid + "/comm") == "gp-relay\n" && cgroup(pid) == ours) {
      found.push_back(std::atoi(pid.c_str()));
    }
  }
  return found;
}

bool may_have_private_mounts() {
  const pid_t child = fork();
  if (child == 0) {
    const bool may =
        unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    _exit(may ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::filesystem::directory_entry> entries_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::directory_entry> all;
  std::error_code gone;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator entry(folder, gone); !gone && entry != end;
       entry.increment(gone)) {
    all.push_back(*entry);
    std::error_code unknown;
    if (entry->is_symlink(unknown) || !entry->is_directory(unknown)) continue;
    auto further = entries_below(entry->path());
    std::ranges::move(further, std::back_inserter(all));
  }
  return all;
}

std::uintmax_t bytes_below(const std::filesystem::path& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : entries_below(folder)) {
    std::error_code gone;
    const std::uintmax_t size = entry.is_regular_file(gone) ? entry.file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

std::set<std::string> keys_of(const nlohmann::json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

}  // namespace gpu_platform::e2e
