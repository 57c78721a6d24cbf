#include "execution/container/attempt_container.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "execution/container/answer_fields.h"
#include "node/cgroup.h"
#include "node/syscalls.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

constexpr std::size_t kMaxCandidates = 32;  // with our labels

std::string file_of(int pid, const char* name) {
  return os::read_small_file(AT_FDCWD, fmt::format("/proc/{}/{}", pid, name).c_str());
}

// As the kernel names it in /proc/PID/cgroup; empty: it is none.
std::string path_below_mount(const std::string& cgroup) {
  const auto mount =
      node::find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
  if (!mount || !cgroup.starts_with(*mount)) return {};
  return cgroup.substr(*mount == "/" ? 0 : mount->size());
}

bool is_below(int pid, const std::string& cgroup) {
  const std::string wanted = path_below_mount(cgroup);
  const auto group = node::find_cgroup2_path(file_of(pid, "cgroup"));
  return wanted.size() > 1 && group && (*group + "/").find(wanted + "/") != std::string::npos;
}

bool has_pid_namespace(int pid) {
  struct stat about{};
  return stat(fmt::format("/proc/{}/ns/pid", pid).c_str(), &about) == 0;
}

bool share_pid_namespace(int one, int other) {
  struct stat a{};
  struct stat b{};
  return stat(fmt::format("/proc/{}/ns/pid", one).c_str(), &a) == 0 &&
         stat(fmt::format("/proc/{}/ns/pid", other).c_str(), &b) == 0 && a.st_ino == b.st_ino &&
         a.st_dev == b.st_dev;
}

// What was seen of the number is true of the process behind the handle if that still lives.
template <class Look>
HeldProcess hold_if(int pid, const Look& look) {
  HeldProcess process;
  if (pid <= 1) return process;
  process.pid = pid;
  process.handle.reset(node::open_pidfd(pid));
  if (process.is_there() && (!look() || process.has_ended())) process.handle.reset();
  return process;
}

// The words of the line "Name:\t…" of /proc/PID/status.
std::vector<std::string_view> words_at(std::string_view status, std::string_view name) {
  std::vector<std::string_view> words;
  const std::string begin = fmt::format("\n{}:", name);
  const std::size_t at = status.find(begin);
  if (at == std::string_view::npos) return words;
  std::string_view line = status.substr(at + begin.size());
  line = line.substr(0, line.find('\n'));
  while (true) {
    const std::size_t from = line.find_first_not_of(" \t");
    if (from == std::string_view::npos) return words;
    line.remove_prefix(from);
    words.push_back(line.substr(0, line.find_first_of(" \t")));
    line.remove_prefix(words.back().size());
  }
}

std::uint64_t capabilities_at(std::string_view status, std::string_view name) {
  const auto words = words_at(status, name);
  std::uint64_t bits = ~std::uint64_t{0};
  if (words.size() == 1) {
    std::from_chars(words[0].data(), words[0].data() + words[0].size(), bits, 16);
  }
  return bits;
}

}  // namespace

bool HeldProcess::has_ended() const {
  pollfd ended{handle.get(), POLLIN, 0};
  return handle.is_open() && poll(&ended, 1, 0) != 0;
}

HeldProcess hold_process_in(const std::string& cgroup, int pid) {
  return hold_if(pid, [&] { return is_below(pid, cgroup); });
}

HeldProcess hold_process_beside(const HeldProcess& other, int pid) {
  return hold_if(pid, [&] { return share_pid_namespace(pid, other.pid) && !other.has_ended(); });
}

HeldProcess hold_first_process(int pid) {
  return hold_if(pid,
                 [&] { return has_pid_namespace(pid) && !share_pid_namespace(pid, getpid()); });
}

void signal_processes_beside(const HeldProcess& first, int signal) {
  DIR* const processes = opendir("/proc");
  if (processes == nullptr) return;
  while (const dirent* entry = readdir(processes)) {
    const std::string_view name = entry->d_name;
    int pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const HeldProcess process = hold_process_beside(first, pid);
    if (process.is_there()) node::signal_pidfd(process.handle.get(), signal);
  }
  closedir(processes);
}

ContainerDone<AttemptContainer> find_container(EngineCalls& engine, const std::string& cgroup,
                                               const std::string& attempt) {
  const nlohmann::json filters = {{"label", {"gpu-platform.attempt=" + attempt}}};
  std::string query;
  http::append_query(query, "filters", filters.dump());
  const auto listed = engine.get("/containers/json?" + query);
  if (!listed) return container_failed("the container engine", listed.error());
  std::size_t looked_at = 0;
  for (const nlohmann::json& one : listed->is_array() ? *listed : nlohmann::json::array()) {
    AttemptContainer found;
    found.id = text_field(one, "Id");
    const bool is_id =
        !found.id.empty() && found.id.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_id || ++looked_at > kMaxCandidates) continue;
    const auto told = engine.get("/containers/" + found.id + "/json");
    if (!told) continue;
    const auto pid = static_cast<int>(number_field(field(*told, "State"), "Pid"));
    found.first = hold_process_in(cgroup, pid);
    // What only stands beside it there, as the engine's own monitor does, is no container.
    if (found.first.is_there() && !share_pid_namespace(pid, getpid())) return found;
  }
  return container_failed("the job's container does not run");
}

std::string error_in_entered(std::string_view status, std::string_view status_of_first,
                             const ContainerPlan& plan) {
  if (std::string why = error_in_process(status, plan); !why.empty()) return why;
  const std::uint64_t bound = capabilities_at(status, "CapBnd");
  if ((bound & ~capabilities_at(status_of_first, "CapBnd")) != 0) {
    return "the engine started it with more capabilities than the container has";
  }
  return {};
}

}  // namespace gpu_platform::execution
