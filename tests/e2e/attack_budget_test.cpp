#include <gtest/gtest.h>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "harness.h"
#include "http_load.h"
#include "terminal.h"

// These tests check what local users can do to the daemon and to each other through its socket. The
// attackers are processes with the rights of their users and nothing else.

namespace gpu_platform::e2e {
namespace {

using Clock = std::chrono::steady_clock;

// Accounts that every Debian has. Jobs that are held never run, so no launcher judges them.
constexpr uid_t kAttackers[] = {1, 2, 5, 6};  // daemon, bin, games, man
constexpr uid_t kNoAccount = 54'321;
constexpr uid_t kSubordinate = 700'005;  // of "games", by the file that the daemon is given

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr double kMaxMemory = 512;  // MiB

// A connection of this process's user.
class Connection {
 public:
  explicit Connection(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
    close(fd_);
    fd_ = -1;
  }
  Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Connection() {
    if (fd_ >= 0) close(fd_);
  }

  bool is_open() const { return fd_ >= 0; }
  // Returns whether the other side has closed it. Its output is not read.
  bool is_ended() const {
    pollfd state{fd_, POLLRDHUP, 0};
    return fd_ < 0 || (poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLRDHUP)) != 0);
  }
  // As much as the other side takes at once.
  void push(std::string_view bytes) const {
    (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void send_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  // All that comes until it ends, or `until` is there, or nothing comes for ten seconds.
  std::string receive(const std::string& until = {}) const {
    std::string text;
    std::string buffer(65'536, '\0');
    while (until.empty() || text.find(until) == std::string::npos) {
      pollfd ready{fd_, POLLIN, 0};
      if (poll(&ready, 1, 10'000) <= 0) break;
      const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
      if (n <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return text;
  }

 private:
  int fd_;
};

// One request on a connection of its own, and its whole answer; empty where there was none.
std::string ask(const std::string& socket, std::string request) {
  const Connection connection(socket);
  if (!connection.is_open()) return {};
  request.insert(request.find("\r\n") + 2, "Connection: close\r\n");
  connection.send_all(request);
  return connection.receive();
}

int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::atoi(answer.c_str() + 9) : 0;
}

nlohmann::json body_of(const std::string& answer) {
  const std::size_t head = answer.find("\r\n\r\n");
  return head == std::string::npos ? nlohmann::json()
                                   : nlohmann::json::parse(answer.substr(head + 4), nullptr, false);
}

std::string detail_of(const std::string& answer) {
  const nlohmann::json body = body_of(answer);
  return body.is_object() ? body.value("detail", "") : std::string();
}

std::string held_job(std::size_t bytes) {
  return post("/v1/jobs",
              R"({"command":["/bin/true",")" + std::string(bytes, 'x') + R"("],"hold":true})");
}

// A process of that user and no group but its own, which does `work` until it is ended. What it
// has to say it tells once.
class Attacker {
 public:
  using Tell = std::function<void(const std::string&)>;

  Attacker(uid_t uid, const std::function<void(const Tell&)>& work) {
    int told[2] = {-1, -1};
    if (pipe2(told, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (setgroups(0, nullptr) != 0 || setresgid(uid, uid, uid) != 0 ||
          setresuid(uid, uid, uid) != 0) {
        _exit(1);
      }
      work([&](const std::string& said) {
        const std::string line = said + '\n';
        (void)!write(told[1], line.data(), line.size());
      });
      while (true) pause();
    }
    close(told[1]);
    told_ = told[0];
  }
  Attacker(Attacker&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), told_(std::exchange(other.told_, -1)) {}
  Attacker& operator=(Attacker&&) = delete;
  ~Attacker() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (told_ >= 0) close(told_);
  }
  // Returns its answer; empty if it says nothing in two minutes.
  std::string said() const {
    std::string text;
    char c = 0;
    pollfd ready{told_, POLLIN, 0};
    while (poll(&ready, 1, 120'000) > 0 && read(told_, &c, 1) == 1 && c != '\n') text.push_back(c);
    return text;
  }
  bool has_said() const {
    pollfd ready{told_, POLLIN, 0};
    return poll(&ready, 1, 0) > 0;
  }

 private:
  pid_t pid_ = -1;
  int told_ = -1;
};

// Returns the memory of the daemon, in MiB.
double memory_of(pid_t pid, std::string_view which = "VmRSS:") {
  for (const std::string& line : lines_of(read_file(fmt::format("/proc/{}/status", pid)))) {
    if (line.starts_with(which)) return std::atof(line.c_str() + which.size()) / 1024;
  }
  return 0;
}

class AttackBudget : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can be other users";
    if (run_command({"unshare", "--mount", "true"}).exit_code != 0)
      GTEST_SKIP() << "no mount namespace can be made";
    std::ofstream(file()) << "games:700000:65536\n";
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }

  // Started in a mount namespace where /etc/subuid says what the test wants.
  void start(const std::string& config = {}) {
    daemon_.emplace(DaemonOptions{
        .config = config,
        .prefix = {"/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
                   "mount --bind \"$0\" /etc/subuid && exec \"$@\"", file()}});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    std::filesystem::permissions(daemon_->directory(), std::filesystem::perms::others_exec,
                                 std::filesystem::perm_options::add);
    const std::string socket = daemon_->socket();
    if (said_by(kAttackers[0], [&] {
          return ask(socket, get("/v1/health")).substr(0, 12);
        }).empty()) {
      GTEST_SKIP() << "closed to other users";
    }
  }

  // Returns what a process of that user finds out. The process has ended then.
  static std::string said_by(uid_t uid, const std::function<std::string()>& work) {
    const Attacker attacker(uid, [&](const Attacker::Tell& tell) { tell(work()); });
    return attacker.said();
  }

  std::string file() const { return folder_.path() + "/subuid"; }
  const std::string& socket() const { return daemon_->socket(); }

  TemporaryDirectory folder_;
  std::optional<Daemon> daemon_;
};

// Everything that one user can think of at once, for ever: as much in the queue as is taken, then
// bodies that never end, lists that are never read, streams, headers that never end and connections
// for their own sake. What the daemon ends is begun again.
void attack_door(const std::string& socket, const Attacker::Tell& tell) {
  signal(SIGPIPE, SIG_IGN);
  int taken = 0;
  int refused = 0;
  while (taken < 60 && refused < 3) {
    status_of(ask(socket, held_job(kMiB - 4'096))) == 201 ? ++taken : ++refused;
  }
  constexpr std::size_t kConnections = 1'100;
  const std::string slow_body = held_job(kMiB - 4'096).substr(0, 900'000);
  std::vector<Connection> open;
  const auto begin = [&](std::size_t i) {
    Connection connection(socket);
    if (!connection.is_open()) return connection;
    if (i < 100) {
      connection.push(slow_body);
    } else if (i < 300) {
      connection.push(get(i % 2 == 0 ? "/v1/queue?limit=10000" : "/v1/jobs?limit=10000"));
    } else if (i < 400) {
      connection.push(get("/v1/events"));
    } else if (i < 500) {
      connection.push("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nX-Slow: ");
    }
    return connection;
  };
  for (std::size_t i = 0; i < kConnections; ++i) open.push_back(begin(i));
  tell(fmt::format("{} jobs of 1 MB", taken));
  for (std::size_t i = 0;; i = (i + 1) % kConnections) {
    if (open[i].is_ended()) open[i] = begin(i);
    if (i % 64 == 0) poll(nullptr, 0, 1);
  }
}

// Lists, as fast as they come, for ever.
void list_for_ever(const std::string& socket) {
  signal(SIGPIPE, SIG_IGN);
  while (true) {
    ask(socket, get("/v1/queue?limit=10000"));
    ask(socket, get("/v1/jobs?limit=10000"));
    ask(socket, get("/v1/status"));
  }
}

// Four users do their worst at once: hold connections, send bodies that never end, submit as much
// as they can, list all the time and read nothing.
TEST_F(AttackBudget, RootIsServedWhileFourUsersAttackAndMemoryStaysBounded) {
  start();
  if (IsSkipped()) return;
  std::vector<std::string> work;
  for (int i = 0; i < 12; ++i) work.push_back(daemon_->submit({"--hold", "--", "/bin/true"}));
  const double before = memory_of(daemon_->pid());

  std::vector<Attacker> attackers;
  const std::string path = socket();
  for (const uid_t uid : kAttackers) {
    attackers.emplace_back(uid, [path](const Attacker::Tell& tell) { attack_door(path, tell); });
    attackers.emplace_back(uid, [path](const Attacker::Tell&) { list_for_ever(path); });
  }
  double slowest = 0;
  std::size_t refused = 0;
  std::size_t asked = 0;
  std::string first_refusal;
  const auto as_root = [&](const std::vector<std::string>& words) {
    const auto begin = Clock::now();
    const Finished answer = daemon_->cli(words);
    slowest = std::max(slowest, std::chrono::duration<double>(Clock::now() - begin).count());
    ++asked;
    if (answer.exit_code == 0) return;
    if (refused++ == 0) first_refusal = answer.err;
  };
  // While they set out, and when all of them have everything that they can get.
  const auto all_have_said = [&] {
    for (std::size_t i = 0; i < attackers.size(); i += 2) {
      if (!attackers[i].has_said()) return false;
    }
    return true;
  };
  const auto limit = Clock::now() + std::chrono::seconds(120);
  while (!all_have_said() && Clock::now() < limit) as_root({"status"});
  for (const std::string& id : work) {
    as_root({"status"});
    as_root({"jobs", "cancel", id});
  }
  as_root({"submit", "--hold", "--", "/bin/true"});
  const double peak = memory_of(daemon_->pid(), "VmHWM:");
  std::string said;
  for (std::size_t i = 0; i < attackers.size(); i += 2) said += attackers[i].said() + "; ";
  std::printf(
      "attackers: %s\nroot: %zu asked, %zu refused, slowest %.3f s\n"
      "memory: %.0f MiB before, %.0f MiB at most\n",
      said.c_str(), asked, refused, slowest, before, peak);
  EXPECT_EQ(refused, 0u) << first_refusal;
  EXPECT_LT(slowest, 5.0);
  // Specifications of four users, a copy of those in the journal's cache, bodies and answers under
  // way, connections: each bounded by its budget.
  EXPECT_LT(peak, kMaxMemory);
}

// ---- one budget each

// Held jobs of that user, until one is refused: how many, and why the last was not taken.
std::string fill_queue(const std::string& socket, const std::string& request) {
  for (int taken = 0; taken < 2'000; ++taken) {
    const std::string answer = ask(socket, request);
    if (status_of(answer) != 201) {
      return fmt::format("{} taken, then {}: {}", taken, status_of(answer), detail_of(answer));
    }
  }
  return "all were taken";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' in: " << text;
  }
}

TEST_F(AttackBudget, OneUserDoesNotFillTheQueue) {
  start("scheduling: {max_queue_size: 40}\n");
  if (IsSkipped()) return;
  expect_words(said_by(kAttackers[0], [&] { return fill_queue(socket(), held_job(8)); }),
               {"10 taken, then 429", "user daemon has 10 jobs waiting", "25 %",
                "scheduling.max_queue_percent_per_user", "cancel some"});
  const std::string array =
      post("/v1/jobs", R"({"command":["/bin/true"],"hold":true,"array":"0-10"})");
  expect_words(said_by(kAttackers[1], [&] { return detail_of(ask(socket(), array)); }),
               {"user bin has 0 jobs waiting and asks for 11 more"});
  for (const uid_t uid : {kAttackers[1], kAttackers[2]}) {
    expect_words(said_by(uid, [&] { return fill_queue(socket(), held_job(8)); }),
                 {"10 taken, then 429"});
  }
  expect_words(said_by(kAttackers[3], [&] { return fill_queue(socket(), held_job(8)); }),
               {"6 taken, then 429", "scheduling.max_queue_size",
                "the last 10 % are root's (scheduling.percent_for_root)"});
  EXPECT_EQ(daemon_->cli({"submit", "--hold", "--", "/bin/true"}).exit_code, 0);
}

TEST_F(AttackBudget, OneUserDoesNotFillTheMemoryWithSpecifications) {
  start("scheduling: {max_specification_bytes_per_user: 4M, max_specification_bytes: 16M}\n");
  if (IsSkipped()) return;
  const auto fill = [&] { return fill_queue(socket(), held_job(kMiB - 4'096)); };
  expect_words(said_by(kAttackers[0], fill),
               {"4 taken, then 429", "the jobs of user daemon", "4M",
                "scheduling.max_specification_bytes_per_user", "submit again"});
  expect_words(said_by(kAttackers[1], fill), {"4 taken, then 429"});
  // Arguments that are empty take memory too.
  std::string many;
  for (int i = 0; i < 60'000; ++i) many += ",\"\"";
  const std::string empties = R"({"hold":true,"command":["true")" + many + "]}";
  expect_words(
      said_by(kAttackers[2], [&] { return fill_queue(socket(), post("/v1/jobs", empties)); }),
      {"2 taken, then 429", "max_specification_bytes_per_user"});
  expect_words(said_by(kAttackers[3], fill),
               {"2 taken, then 429", "scheduling.max_specification_bytes: 16M",
                "scheduling.percent_for_root"});
  EXPECT_EQ(daemon_->cli({"submit", "--hold", "--", "/bin/true"}).exit_code, 0);
  // The same after a crash, from what is on disk.
  daemon_->kill_now();
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  expect_words(said_by(kAttackers[0], fill), {"0 taken, then 429"});
}

// So many connections, each of which is asked something; how many were served, and why the last
// refused was not. They stay open as long as the process.
void open_many(const std::string& socket, int count, const Attacker::Tell& tell) {
  signal(SIGPIPE, SIG_IGN);
  static std::vector<Connection> open;
  int served = 0;
  std::string why;
  for (int i = 0; i < count; ++i) {
    open.emplace_back(socket);
    open.back().send_all(get("/v1/health"));
    const std::string answer = open.back().receive("}");
    status_of(answer) == 200 ? ++served : (why = detail_of(answer), 0);
  }
  tell(fmt::format("{} served; {}", served, why));
}

TEST_F(AttackBudget, SubordinateUidsAreTheirUsersAndTheUnknownAreOne) {
  start("api: {max_connections_per_user: 50}\n");
  if (IsSkipped()) return;
  const auto opens = [&](uid_t uid, int count) {
    return Attacker(uid,
                    [&, count](const Attacker::Tell& tell) { open_many(socket(), count, tell); });
  };
  const Attacker games = opens(5, 40);
  expect_words(games.said(), {"40 served; "});
  const Attacker of_games = opens(kSubordinate, 20);
  expect_words(of_games.said(),
               {"10 served; user games has 50 connections open",
                "the limit for one user is 50 (api.max_connections_per_user)", "close some"});
  const Attacker unknown = opens(kNoAccount, 30);
  expect_words(unknown.said(), {"30 served; "});
  const Attacker another = opens(kNoAccount + 1, 30);
  expect_words(another.said(), {"20 served; the users without an account together"});
  // Neither may submit.
  const Attacker bin = opens(2, 50);
  expect_words(bin.said(), {"50 served; "});
  EXPECT_EQ(daemon_->cli({"status"}).exit_code, 0);
}

TEST_F(AttackBudget, UidsWithoutAnAccountSubmitNothing) {
  start();
  if (IsSkipped()) return;
  for (const uid_t uid : {kNoAccount, kSubordinate}) {
    const auto submit = [&] {
      const std::string answer = ask(socket(), held_job(8));
      return fmt::format("{}: {}", status_of(answer), detail_of(answer));
    };
    expect_words(said_by(uid, submit),
                 {fmt::format("403: user: uid {} has no account on this machine", uid)});
  }
  EXPECT_EQ(daemon_->json({"status"})["held_jobs"], 0);
}

TEST_F(AttackBudget, OneUserHoldsAFewChannelsAndLeavesThoseOfOthers) {
  start("api: {max_channels_per_user: 2}\n");
  if (IsSkipped()) return;
  const auto words_of = [&](const char* user, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"/usr/bin/env", "-C", "/", program("gpu-platform"),
                                         "--server", "unix:" + socket()});
    return as_account({user}, arguments);
  };
  const auto sleeper_of = [&](const char* user) {
    return daemon_->submit(
        {"--user", user, "--gpus", "1", "--workdir", "/", "--", "/bin/sleep", "1000"});
  };
  const std::string first = sleeper_of("daemon");
  const std::string second = sleeper_of("bin");
  for (const std::string& id : {first, second}) ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  const std::vector<std::string> stay = {
      "jobs", "exec", first, "--", "/bin/sh", "-c", "echo in; exec sleep 1000"};
  Terminal one(words_of("daemon", stay));
  Terminal two(words_of("daemon", stay));
  ASSERT_TRUE(one.shows("in") && two.shows("in"));
  const Finished third =
      run_command(words_of("daemon", {"jobs", "exec", first, "--", "/bin/true"}));
  EXPECT_EQ(third.exit_code, 251);
  expect_words(third.err, {"user daemon has 2 channels into jobs open",
                           "the limit for one user is 2 (api.max_channels_per_user)"});
  // Another user's, and root's into the same job.
  EXPECT_EQ(run_command(words_of("bin", {"jobs", "exec", second, "--", "/bin/true"})).exit_code, 0);
  EXPECT_EQ(daemon_->cli({"jobs", "exec", first, "--", "/bin/true"}).exit_code, 0);
}

// The interim answer to "Expect: 100-continue" used to be written with a call that waits: two
// clients that read nothing held both threads for ever.
TEST_F(AttackBudget, ClientsThatReadNothingHoldNoThread) {
  start();
  if (IsSkipped()) return;
  const std::string id =
      daemon_->submit({"--", "/bin/sh", "-c", "head -c 400000 /dev/zero | tr '\\0' x"});
  ASSERT_TRUE(daemon_->reaches(id, "COMPLETED"));
  // Root's own connections: others may not read the output of this job.
  std::vector<Connection> deaf;
  for (int bytes = 100'000; bytes < 400'000; bytes += 6'000) {
    deaf.emplace_back(socket());
    deaf.back().push(
        fmt::format("GET /v1/jobs/{}/output?limit={} HTTP/1.1\r\nHost: x\r\n"
                    "Accept: application/octet-stream\r\n\r\n",
                    id, bytes));
    EXPECT_EQ(status_of(ask(socket(), get("/v1/health"))), 200);
    deaf.back().push(
        "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Expect: 100-continue\r\nContent-Length: 20\r\n\r\n");
    const auto begin = Clock::now();
    ASSERT_EQ(status_of(ask(socket(), get("/v1/health"))), 200) << bytes << " bytes not read";
    ASSERT_LT(Clock::now() - begin, std::chrono::seconds(5)) << bytes;
  }
}

}  // namespace
}  // namespace gpu_platform::e2e
