#include "node/launcher/identities.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "node/syscalls.h"

namespace gpu_platform::node {

namespace {

constexpr std::int64_t kKeptMs = 60'000;
constexpr std::int64_t kRefusalKeptMs = 5'000;
constexpr std::int64_t kTimeoutMs = 10'000;
constexpr std::size_t kMaxKept = 4096;
constexpr std::size_t kMaxSaid = 1 << 20;
constexpr const char* kPrograms[] = {"/usr/bin/getent", "/bin/getent"};

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

Identity own_identity() {
  Identity own;
  own.uid = geteuid();
  own.gid = getegid();
  own.groups.resize(static_cast<std::size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(own.groups.size()), own.groups.data());
  own.groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  return own;
}

// Has nothing of ours but its answer's pipe, and gains nothing by what it executes.
[[noreturn]] void be_getent(int pipe, const char* database, const std::string& key) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, 0) < 0 || dup2(pipe, 1) < 0 || dup2(null, 2) < 0) _exit(127);
  syscall(SYS_close_range, 3, ~0U, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  char* const arguments[] = {const_cast<char*>("getent"), const_cast<char*>(database),
                             const_cast<char*>("--"), const_cast<char*>(key.c_str()), nullptr};
  char* const environment[] = {const_cast<char*>("PATH=/usr/bin:/bin"), nullptr};
  for (const char* program : kPrograms) execve(program, arguments, environment);
  _exit(127);
}

}  // namespace

Identities::~Identities() {
  for (auto& [uid, entry] : entries_) hang_up(entry);
}

Identities::Answer Identities::find(std::uint32_t uid, std::int64_t now_ms) {
  now_ms_ = now_ms;
  if (geteuid() != 0) {
    if (uid == geteuid()) return {Answer::Kind::kKnown, own_identity(), {}};
    return {Answer::Kind::kRefused,
            {},
            "without root jobs run as user " + std::to_string(geteuid()) + " only, not as " +
                std::to_string(uid)};
  }
  if (std::string why = error_in_uid(uid, rules_); !why.empty()) {
    return {Answer::Kind::kRefused, {}, std::move(why)};
  }
  if (uid == 0) return {Answer::Kind::kKnown, {0, 0, {0}, "root"}, {}};
  Entry& entry = entries_[uid];
  if (entry.pipe < 0 && now_ms >= entry.until_ms) {
    if (entries_.size() > kMaxKept) {
      std::erase_if(entries_, [&](const auto& e) { return e.first != uid && e.second.pipe < 0; });
    }
    entries_[uid] = {};
    Entry& asked = entries_[uid];
    if (!ask(asked, "passwd", std::to_string(uid))) {
      conclude(asked, std::string("ask for user ") + std::to_string(uid) + ": " + strerror(errno));
    }
  }
  const Entry& known = entries_[uid];
  if (known.pipe >= 0) return {};
  if (!known.why.empty()) return {Answer::Kind::kRefused, {}, known.why};
  return {Answer::Kind::kKnown, known.user, {}};
}

bool Identities::ask(Entry& entry, const char* database, const std::string& key) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const int pid = fork_with_pidfd(&entry.pidfd);
  if (pid == 0) be_getent(ends[1], database, key);
  const int error = errno;
  close(ends[1]);
  if (pid < 0) close(ends[0]);
  entry.pipe = pid < 0 ? -1 : ends[0];
  asked_ += pid < 0 ? 0 : 1;
  entry.said.clear();
  entry.until_ms = now_ms_ + kTimeoutMs;
  errno = error;
  return pid > 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

void Identities::watch(std::vector<pollfd>& handles) const {
  if (asked_ == 0) return;
  for (const auto& [uid, entry] : entries_) {
    if (entry.pipe >= 0) handles.push_back({entry.pipe, POLLIN, 0});
  }
}

int Identities::timeout_ms(std::int64_t now_ms) const {
  std::int64_t next = -1;
  if (asked_ == 0) return -1;
  for (const auto& [uid, entry] : entries_) {
    if (entry.pipe < 0) continue;
    const std::int64_t left = std::max<std::int64_t>(entry.until_ms - now_ms, 0) + 1;
    if (next < 0 || left < next) next = left;
  }
  return static_cast<int>(next);
}

bool Identities::work(std::int64_t now_ms) {
  now_ms_ = now_ms;
  bool decided = false;
  if (asked_ == 0) return false;
  for (auto& [uid, entry] : entries_) {
    if (entry.pipe < 0) continue;
    read_from(entry);
    if (entry.pipe >= 0 && now_ms >= entry.until_ms) {
      conclude(entry, "the user database does not answer for user " + std::to_string(uid));
    } else if (entry.pipe < 0 && entry.asks_for_groups) {
      take_groups(entry);
    } else if (entry.pipe < 0) {
      take_account(uid, entry);
    }
    decided = decided || entry.pipe < 0;
  }
  return decided;
}

// To the end of what it says, as far as it is there; then the pipe is closed.
void Identities::read_from(Entry& entry) {
  char buffer[4096];
  while (true) {
    const ssize_t got = read(entry.pipe, buffer, sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0 && entry.said.size() < kMaxSaid) {
      entry.said.append(buffer, static_cast<std::size_t>(got));
      continue;
    }
    hang_up(entry);
    return;
  }
}

void Identities::take_account(std::uint32_t uid, Entry& entry) {
  if (!parse_account(first_line(entry.said), uid, entry.user)) {
    conclude(entry, "user " + std::to_string(uid) + " is not known on this host");
    return;
  }
  entry.asks_for_groups = true;
  if (!ask(entry, "initgroups", entry.user.name)) {
    conclude(entry, "ask for the groups of " + entry.user.name + ": " + strerror(errno));
  }
}

void Identities::take_groups(Entry& entry) {
  const bool is_whole = parse_groups(first_line(entry.said), entry.user);
  conclude(entry, is_whole ? "" : "the groups of " + entry.user.name + " cannot be found out");
}

void Identities::conclude(Entry& entry, std::string why) {
  hang_up(entry);
  entry.until_ms = now_ms_ + (why.empty() ? kKeptMs : kRefusalKeptMs);
  entry.why = std::move(why);
  entry.said = {};
}

void Identities::hang_up(Entry& entry) {
  if (entry.pidfd >= 0) {
    signal_pidfd(entry.pidfd, SIGKILL);  // one that has answered ends by itself
    close(entry.pidfd);
  }
  if (entry.pipe >= 0) {
    close(entry.pipe);
    --asked_;
  }
  entry.pidfd = entry.pipe = -1;
}

}  // namespace gpu_platform::node
