#include "execution/container/credentials_search.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "node/user_switch.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/named_file.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

constexpr std::size_t kMaxFile = 1024 * 1024;
constexpr std::size_t kMaxFound = 64 * 1024;  // that the process tells
constexpr std::size_t kMaxHint = 300;
constexpr std::int64_t kAnswerTimeoutMs = 10'000;

// Empty: the user has none.
std::string home_of(std::uint32_t uid) {
  std::vector<char> buffer(64 * 1024);
  passwd record{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &record, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return {};
  }
  return found->pw_dir == nullptr ? std::string() : found->pw_dir;
}

// Tells the credentials and the hint as two lines.
[[noreturn]] void search_as_user(const CredentialsSearch& search, int told_fd) {
  const int answer_fd = dup2(told_fd, 3);
  // What asks for the user's home may be of the site's name services: it gets nothing of ours.
  if (answer_fd < 0 || close_range(4, ~0U, 0) != 0) _exit(1);
  node::UserSwitch as_user(search.user);
  if (as_user.become().what != nullptr) _exit(1);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // only now: a change of user forgets it
  const std::string home = home_of(search.user.uid);
  if (home.starts_with('/')) {
    const RegistryCredentials found = find_in_home(home, search.image);
    const std::string told = found.header + "\n" + found.hint.substr(0, kMaxHint) + "\n";
    for (std::size_t at = 0; at < told.size();) {
      const ssize_t wrote = write(answer_fd, told.data() + at, told.size() - at);
      if (wrote <= 0) _exit(1);
      at += static_cast<std::size_t>(wrote);
    }
  }
  _exit(0);
}

// Returns what is told until the pipe's end; nothing if it takes too long or is to be given up.
std::optional<std::string> read_answer(const CredentialsSearch& search, int answer_fd) {
  const std::int64_t until = os::boot_ms() + kAnswerTimeoutMs;
  std::string told;
  while (told.size() <= kMaxFound) {
    pollfd handles[] = {{answer_fd, POLLIN, 0}, {search.interrupt_fd, POLLIN, 0}};
    const std::int64_t left = std::max<std::int64_t>(until - os::boot_ms(), 0);
    const int ready = poll(handles, std::size(handles), static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || (handles[1].revents != 0 && search.on_interrupt())) break;
    if (handles[0].revents == 0) continue;
    char buffer[4096];
    const ssize_t got = read(answer_fd, buffer, sizeof buffer);
    if (got == 0) return told;
    if (got > 0) told.append(buffer, static_cast<std::size_t>(got));
    explicit_bzero(buffer, sizeof buffer);
  }
  wipe(told);
  return std::nullopt;
}

RegistryCredentials ask_user(const CredentialsSearch& search) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const os::Descriptor answer(ends[0]);
  os::Descriptor theirs(ends[1]);
  const pid_t pid = fork();
  if (pid == 0) search_as_user(search, theirs.get());
  theirs.reset();
  RegistryCredentials found;
  if (pid < 0) return found;
  auto told = read_answer(search, answer.get());
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, told ? 0 : WNOHANG);  // one that hangs in the kernel goes with us
  if (!told) {
    found.hint = "the search for credentials in the home of the job's user did not end";
    return found;
  }
  const std::size_t end = told->find('\n');
  if (end != std::string::npos && is_registry_auth(std::string_view(*told).substr(0, end))) {
    found.header = told->substr(0, end);
    found.hint = told->substr(end + 1, told->find('\n', end + 1) - end - 1);
  }
  wipe(*told);
  return found;
}

}  // namespace

std::string read_own_file(const std::string& path, std::string& why) {
  const os::Descriptor file(os::open_named_file(path.c_str(), O_RDONLY));
  struct stat about{};
  if (!file.is_open() || fstat(file.get(), &about) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) why = path + ": " + strerror(errno);
    return {};
  }
  if (!S_ISREG(about.st_mode)) why = path + " is not a regular file";
  if (const char* error = os::error_in_place(file.get())) why = path + ": " + error;
  if (about.st_uid != geteuid()) why = path + " belongs to another user";
  if (about.st_size > static_cast<off_t>(kMaxFile)) why = path + " is longer than 1 MiB";
  if (!why.empty()) return {};
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

RegistryCredentials find_in_home(const std::string& home, const std::string& image) {
  RegistryCredentials found;
  for (const char* const name : {"/.config/containers/auth.json", "/.docker/config.json"}) {
    std::string why;
    std::string text = read_own_file(home + name, why);
    RegistryCredentials in_file;
    if (!text.empty()) in_file = find_credentials(text, image, "~" + std::string(name));
    wipe(text);
    if (!in_file.header.empty()) return in_file;
    if (found.hint.empty()) found.hint = why.empty() ? in_file.hint : why;
  }
  return found;
}

RegistryCredentials search_credentials(const CredentialsSearch& search) {
  RegistryCredentials found;
  if (search.rules->allow_user_credentials) found = ask_user(search);
  const std::string& site = search.rules->site_credentials;
  if (!found.header.empty() || site.empty()) return found;
  std::string text = os::read_small_file(AT_FDCWD, site.c_str());
  RegistryCredentials of_site = find_credentials(text, search.image, "the site's file");
  wipe(text);
  if (of_site.header.empty() && !found.hint.empty()) of_site.hint = std::move(found.hint);
  return of_site;
}

}  // namespace gpu_platform::execution
