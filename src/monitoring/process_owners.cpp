#include "monitoring/process_owners.h"

#include <sys/stat.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace gpu_platform::monitoring {

namespace {

constexpr int kMaxAncestors = 256;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The pid of the parent; 0 where there is none.
std::uint32_t parent_of(std::uint32_t pid) {
  const std::string stat = read_text(fmt::format("/proc/{}/stat", pid));
  const std::size_t after_name = stat.rfind(") ");
  // ") S PPID": the state is one letter.
  if (after_name == std::string::npos || stat.size() < after_name + 4) return 0;
  std::uint32_t parent = 0;
  const char* const begin = stat.data() + after_name + 4;
  std::from_chars(begin, stat.data() + stat.size(), parent);
  return parent;
}

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::optional<model::AttemptId> attempt_of_cgroup(std::string_view proc_cgroup,
                                                  std::string_view prefix) {
  const std::size_t at = prefix.empty() ? std::string_view::npos : proc_cgroup.find(prefix);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = proc_cgroup.substr(at + prefix.size());
  model::AttemptId attempt;
  if (!take_number(rest, attempt.job.value) || !rest.starts_with('-')) return std::nullopt;
  rest.remove_prefix(1);
  if (!take_number(rest, attempt.attempt)) return std::nullopt;
  const bool ends_here = rest.empty() || rest.front() == '/' || rest.front() == '\n';
  return ends_here ? std::optional(attempt) : std::nullopt;
}

bool is_cgroup_of_server(std::string_view proc_cgroup, std::string_view prefix) {
  const std::size_t at = prefix.empty() ? std::string_view::npos : proc_cgroup.find(prefix);
  return at != std::string_view::npos &&
         proc_cgroup.substr(at + prefix.size()).starts_with(kServerCgroups);
}

ProcessOwners::ProcessOwners(const std::string& cgroup_base, host::UserDirectory& users)
    : users_(users) {
  const std::size_t slash = cgroup_base.rfind('/');
  if (slash != std::string::npos) cgroup_prefix_ = cgroup_base.substr(slash) + "/";
}

ProcessOwner ProcessOwners::find(std::uint32_t pid, const AttemptOfPid& attempt_of_pid) {
  ProcessOwner owner;
  struct stat about{};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &about) != 0) return owner;
  owner.exists = true;
  owner.uid = about.st_uid;
  owner.user = user_name(about.st_uid);
  owner.command = read_text(fmt::format("/proc/{}/comm", pid));
  if (!owner.command.empty() && owner.command.back() == '\n') owner.command.pop_back();
  const std::string cgroup = read_text(fmt::format("/proc/{}/cgroup", pid));
  owner.attempt = attempt_of_cgroup(cgroup, cgroup_prefix_);
  owner.is_server = is_cgroup_of_server(cgroup, cgroup_prefix_);
  // The parents of a server are no jobs.
  if (owner.is_server || !attempt_of_pid) return owner;
  std::uint32_t ancestor = pid;
  for (int i = 0; i < kMaxAncestors && !owner.attempt && ancestor > 1; ++i) {
    owner.attempt = attempt_of_pid(ancestor);
    ancestor = parent_of(ancestor);
  }
  return owner;
}

std::string ProcessOwners::user_name(uid_t uid) const {
  // A name that comes late is there with the next reading.
  const host::UserName name = users_.name_now(uid);
  return name.text == fmt::format("{}", uid) ? "uid " + name.text : name.text;
}

}  // namespace gpu_platform::monitoring
