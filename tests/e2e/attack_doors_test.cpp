// Attacks on the daemon's doors by real processes of other users: who fills or forges its log, who
// makes it wait for a directory or a disk that does not answer, who asks it about files that he may
// not see, and who reads what others run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uid_t kAttacker = 34;
constexpr const char* kAttackersName = "backup";
// Users that the user database does not know, or does not answer for.
constexpr uid_t kHangs = 4711;
constexpr uid_t kBystander = 4712;

std::vector<std::string> as(uid_t uid, std::vector<std::string> command) {
  command.insert(command.begin(), {"/usr/bin/env", "-C", "/"});
  return as_account({std::to_string(uid)}, command);
}

// A command that another does not wait for; killed at the end.
class Beside {
 public:
  explicit Beside(std::vector<std::string> command,
                  const std::vector<std::string>& environment = {}) {
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::vector<std::string> variables = environment;
    for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
    std::vector<char*> pointers;
    for (std::string& variable : variables) pointers.push_back(variable.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    for (const int fd : {1, 2}) {
      posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    }
    posix_spawn(&pid_, arguments[0], &files, nullptr, arguments.data(), pointers.data());
    posix_spawn_file_actions_destroy(&files);
  }
  ~Beside() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

class Doors : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: other users";
    chmod(place_.path().c_str(), 0755);
    std::vector<std::string> test = as(kAttacker, {"/usr/bin/test", "-x", program("gpu-platform")});
    if (run_command(test).exit_code != 0) GTEST_SKIP() << "closed to other users";
  }

  void start(DaemonOptions options = {}) {
    daemon_ = std::make_unique<Daemon>(std::move(options));
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    chmod(daemon_->directory().c_str(), 0755);
  }
  // The command line as another user; given up after a while, so that a door that hangs fails.
  Finished by(uid_t uid, std::vector<std::string> words,
              const std::string& timeout_s = "60") const {
    return run_command(command(uid, std::move(words), timeout_s), {server()});
  }
  std::vector<std::string> command(uid_t uid, std::vector<std::string> words,
                                   const std::string& timeout_s = "60") const {
    words.insert(words.begin(),
                 {"/usr/bin/timeout", "-k", "5", timeout_s, program("gpu-platform")});
    return as(uid, words);
  }
  std::string server() const { return "GPU_PLATFORM_SERVER=unix:" + daemon_->socket(); }
  std::string submitted_by(uid_t uid, std::vector<std::string> words) const {
    words.insert(words.begin(), {"submit", "--gpus", "0"});
    const Finished done = by(uid, words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out.substr(0, done.out.find('\n'));
  }
  Finished emulator(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program("gpu-emulator"));
    arguments.insert(arguments.end(), {"--data-dir", daemon_->data_dir()});
    return run_command(arguments);
  }
  std::size_t lines_with(const std::string& text) const {
    std::size_t count = 0;
    for (const std::string& line : lines_of(daemon_->log())) count += line.contains(text) ? 1 : 0;
    return count;
  }
  std::string in_place(const std::string& name) const { return place_.path() + "/" + name; }

  TemporaryDirectory place_;
  std::unique_ptr<Daemon> daemon_;
};

// ---- the log

// Opens so many connections and keeps them; how many of them were refused, which is told unasked.
int refused_connections(const std::string& path, int tries) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  std::vector<pollfd> open;
  for (int i = 0; i < tries; ++i) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) break;
    open.push_back({fd, POLLIN, 0});
  }
  int refused = 0;
  while (poll(open.data(), open.size(), 1'000) > 0) {
    for (pollfd& one : open) {
      if (one.revents == 0) continue;
      ++refused;
      one.fd = -1;
    }
  }
  return refused;
}

int as_attacker(const std::function<int()>& attack) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit many{8192, 8192};
    setrlimit(RLIMIT_NOFILE, &many);
    int result = -1;
    if (setresgid(kAttacker, kAttacker, kAttacker) == 0 &&
        setresuid(kAttacker, kAttacker, kAttacker) == 0) {
      result = attack();
    }
    [[maybe_unused]] const ssize_t wrote = write(ends[1], &result, sizeof result);
    _exit(0);
  }
  close(ends[1]);
  int result = -1;
  [[maybe_unused]] const ssize_t got = read(ends[0], &result, sizeof result);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return result;
}

// Who: any local user. Tried: connections beyond the bound, each a line of the log. Refused by: the
// budget of lines of a source. What the platform has to say in the flood is there.
TEST_F(Doors, AFloodOfOneUserFillsNoLogAndHidesNothing) {
  start({.config = "monitoring:\n  interval_seconds: 1\n"});
  const int refused = as_attacker([this] { return refused_connections(daemon_->socket(), 3000); });
  ASSERT_GT(refused, 200) << "the flood is too small to prove anything";
  ASSERT_EQ(emulator({"inject", "xid", "79", "--gpu", "dgx-h100-1:3"}).exit_code, 0);
  EXPECT_TRUE(eventually([this] { return lines_with("xid=79") > 0; })) << daemon_->log();
  EXPECT_EQ(daemon_->terminate(), 0);
  EXPECT_LE(lines_with("api connection of uid"), 100U);
  EXPECT_GE(lines_with("api connection of uid"), 1U);
  EXPECT_EQ(lines_with("lines of uid 34 were not logged in the last 60 s"), 1U) << daemon_->log();
}

// Who: a user with a job. Tried: channels into it, each of which the daemon and the launcher log at
// its begin and its end. Refused by: the budget of each.
TEST_F(Doors, ChannelsOfOneUserFillNoLog) {
  start();
  const std::string id = submitted_by(kAttacker, {"--", "/bin/sleep", "600"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(by(kAttacker, {"jobs", "exec", id, "--", "/bin/true"}).exit_code, 0);
  }
  EXPECT_EQ(daemon_->terminate(), 0);
  EXPECT_GE(lines_with("gpu-platform-node: channel="), 2U);
  EXPECT_LE(lines_with("gpu-platform-node: channel="), 60U);
  EXPECT_GE(lines_with("kind=exec"), 2U);
  EXPECT_LE(lines_with("kind=exec"), 60U);
  EXPECT_EQ(lines_with("of uid 34 were not logged in the last 60 s"), 1U) << daemon_->log();
}

// Who: any local user where the site has a prolog that names the job's directory when it fails.
// Tried: a directory whose name is a line of the log. Refused by: one line for one message.
TEST_F(Doors, ANameChosenByAUserIsNoLineOfTheLog) {
  const std::string prolog = in_place("prolog");
  std::ofstream(prolog) << "#!/bin/sh\necho \"no quota for $GPU_PLATFORM_WORKDIR\" >&2\nexit 1\n";
  chmod(prolog.c_str(), 0755);
  start({.config = "execution:\n  prolog: " + prolog + "\n"});
  const std::string forged = "2026-01-01T00:00:00.000Z error node=all is on fire";
  const std::string folder = in_place("x\n" + forged + "\x1b[2J");
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  chmod(folder.c_str(), 0777);
  const Finished done =
      by(kAttacker, {"submit", "--gpus", "0", "--workdir", folder, "--", "/bin/true"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  ASSERT_TRUE(eventually([this] { return lines_with("not started: ") > 0; })) << daemon_->log();
  EXPECT_GE(lines_with("is on fire"), 1U) << "the name is told";
  for (const std::string& line : lines_of(daemon_->log())) {
    EXPECT_FALSE(line.starts_with(forged)) << line;
    EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
  }
}

// ---- what does not answer

class HangingHost : public Doors {
 protected:
  void SetUp() override {
    Doors::SetUp();
    if (IsSkipped()) return;
    std::filesystem::create_directory(in_place("users"));
    std::filesystem::create_directory(in_place("disk"));
    chmod(in_place("disk").c_str(), 0777);
    start({.prefix = {"/usr/bin/env", std::string("LD_PRELOAD=") + GP_HANGING_HOST,
                      "GP_HANGS=" + place_.path()}});
  }
  void TearDown() override {
    // A daemon that hangs must get over it, so that its end is one.
    std::filesystem::remove_all(in_place("users"));
    std::filesystem::remove(in_place("disk-hangs"));
  }
  void hang(const std::string& flag) { std::ofstream(in_place(flag)).flush(); }
  bool is_seen(const std::string& what) {
    return eventually([&] { return std::filesystem::exists(in_place("seen-" + what)); });
  }
  // Within a time in which no hanging call comes back.
  void expect_others_are_served() {
    EXPECT_EQ(by(kBystander, {"queue"}, "10").exit_code, 0);
    const Finished listed = by(kBystander, {"jobs", "list"}, "10");
    EXPECT_EQ(listed.exit_code, 0) << listed.err;
    EXPECT_EQ(by(0, {"status"}, "10").exit_code, 0);
  }
};

// Who: a user for whom the site's directory does not answer. Tried: to be one. Refused by: threads
// and a deadline for what the database is asked; he himself hears what is wrong.
TEST_F(HangingHost, AUserWhomTheDirectoryDoesNotFindKeepsNobodyWaiting) {
  hang("users/" + std::to_string(kHangs));
  std::vector<std::unique_ptr<Beside>> callers;
  for (int i = 0; i < 8; ++i) {
    callers.push_back(
        std::make_unique<Beside>(command(kHangs, {"jobs", "list"}), std::vector{server()}));
  }
  ASSERT_TRUE(is_seen(std::to_string(kHangs)));
  expect_others_are_served();
  const Finished listed = by(kHangs, {"jobs", "list"}, "30");
  EXPECT_EQ(listed.exit_code, 5) << listed.out << listed.err;
  EXPECT_THAT(listed.err, HasSubstr("try again"));
  EXPECT_EQ(by(kHangs, {"status"}, "30").exit_code, 0) << "what needs no name is answered";
  std::filesystem::remove_all(in_place("users"));
  EXPECT_TRUE(eventually([&] { return by(kHangs, {"jobs", "list"}).exit_code == 0; }));
}

// Who: root's own script, with a name that the directory does not answer for.
TEST_F(HangingHost, ANameThatIsLookedUpInVainKeepsNobodyWaiting) {
  hang("users/lost");
  Beside caller(command(0, {"submit", "--user", "lost", "--", "/bin/true"}), {server()});
  ASSERT_TRUE(is_seen("lost"));
  expect_others_are_served();
  const Finished refused = by(0, {"submit", "--user", "lost", "--", "/bin/true"}, "30");
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("user: the user database does not answer; try again"));
}

// Who: a user with a job whose start needs the directory. Refused by: a start that waits aside.
TEST_F(HangingHost, AStartThatWaitsForTheDirectoryHoldsNoOtherUp) {
  // Root submits for him: nothing has asked for his number yet.
  hang("users/" + std::to_string(kAttacker));
  const std::string id = daemon_->submit(
      {"--user", kAttackersName, "--gpus", "0", "--workdir", "/", "--", "/bin/true"});
  ASSERT_TRUE(is_seen(std::to_string(kAttacker)));
  const Finished ran = by(0, {"run", "--gpus", "0", "--", "/bin/echo", "here"}, "10");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "here\n");
  std::filesystem::remove_all(in_place("users"));
  EXPECT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->job(id);
}

// Who: a user with output on a disk whose server is gone. Tried: to read it, and to follow it,
// often. Refused by: threads and a deadline for files of users.
TEST_F(HangingHost, OutputOnADiskThatIsGoneKeepsNobodyWaiting) {
  const std::string file = in_place("disk/out");
  const std::string id =
      submitted_by(kAttacker, {"--output", file, "--", "/bin/sh", "-c", "echo hello; sleep 600"});
  ASSERT_TRUE(eventually([&] { return read_file(file) == "hello\n"; }));
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  const Finished before = by(kAttacker, {"jobs", "logs", id});
  EXPECT_EQ(before.out, "hello\n") << before.err;
  hang("disk-hangs");
  std::vector<std::unique_ptr<Beside>> callers;
  for (int i = 0; i < 6; ++i) {
    std::vector<std::string> words = {"jobs", "logs", id};
    if (i % 2 == 1) words.emplace_back("--follow");
    callers.push_back(std::make_unique<Beside>(command(kAttacker, words), std::vector{server()}));
  }
  ASSERT_TRUE(is_seen("disk"));
  expect_others_are_served();
  const Finished logs = by(kAttacker, {"jobs", "logs", id}, "30");
  EXPECT_NE(logs.exit_code, 0);
  EXPECT_THAT(logs.err, HasSubstr("try again"));
  EXPECT_EQ(by(kAttacker, {"jobs", "cancel", id}, "10").exit_code, 0);
}

// ---- files of others

// Who: any user. Tried: jobs whose output, directory and programs lie where only root may look;
// what is answered for a file that is there and for one that is not. Refused by: nothing but the
// job's own rights looks there.
TEST_F(Doors, NoAnswerTellsWhetherAFileIsThere) {
  start();
  const std::string secret = in_place("secret");
  ASSERT_TRUE(std::filesystem::create_directory(secret));
  std::ofstream(secret + "/there") << "root's own\n";
  std::filesystem::create_directory(secret + "/there.d");
  chmod(secret.c_str(), 0700);
  const auto answers = [&](const std::vector<std::string>& options, const std::string& name) {
    std::vector<std::string> words = {"submit", "--gpus", "0"};
    for (std::string option : options) {
      const std::size_t at = option.find("FILE");
      if (at != std::string::npos) option.replace(at, 4, secret + "/" + name);
      words.push_back(option);
    }
    words.insert(words.end(), {"--", "/bin/true"});
    const Finished submitted = by(kAttacker, words);
    std::string all = std::to_string(submitted.exit_code) + submitted.err;
    const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
    if (submitted.exit_code == 0) {
      EXPECT_TRUE(eventually([&] {
        const std::string state = daemon_->job(id)["state"];
        return state == "FAILED" || state == "COMPLETED";
      })) << daemon_->job(id);
      const auto job = daemon_->job(id);
      all += job["state"].get<std::string>() + job["reason"].dump() + job["exit_code"].dump() +
             job["attempts"].back()["detail"].dump();
      const Finished logs = by(kAttacker, {"jobs", "logs", id});
      all += std::to_string(logs.exit_code) + logs.out + logs.err;
      const Finished followed = by(kAttacker, {"jobs", "logs", "--follow", id});
      all += std::to_string(followed.exit_code) + followed.out + followed.err;
    }
    replace_all(all, secret + "/" + name, "FILE");
    replace_all(all, "job " + id, "JOB");
    replace_all(all, "/" + id + "/1.log", "/ID/1.log");
    return all;
  };
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--output", "FILE"},
                                                  {"--error", "FILE"},
                                                  {"--prolog", "FILE"},
                                                  {"--epilog", "FILE"}}) {
    EXPECT_EQ(answers(options, "there"), answers(options, "gone!")) << options[0];
  }
  EXPECT_EQ(answers({"--workdir", "FILE"}, "there.d"), answers({"--workdir", "FILE"}, "gone!.d"));
}

// Who: any user. Tried: the output of another's job, one that there never was. Refused by: what is
// not his is not there.
TEST_F(Doors, AJobOfAnotherIsAsOneThatThereNeverWas) {
  start();
  const std::string id = daemon_->submit({"--gpus", "0", "--", "/bin/echo", "secret"});
  ASSERT_TRUE(daemon_->reaches(id, "COMPLETED"));
  const auto answer = [&](const std::string& command, const std::string& number) {
    const Finished done = by(kAttacker, {"jobs", command, number});
    std::string text = done.out + done.err;
    replace_all(text, "job " + number, "JOB");
    return std::to_string(done.exit_code) + text;
  };
  for (const char* command : {"logs", "describe", "cancel", "explain", "attach"}) {
    EXPECT_EQ(answer(command, id), answer(command, "999")) << command;
  }
}

// ---- what others run

// Who: any user. Tried: the tables of GPUs. Refused by: access.visibility.commands, owner by
// default.
class Commands : public Doors {
 protected:
  static constexpr const char* kGpu = "dgx-h100-1:0";

  // A process of root's, of no job, with a telling name, on a GPU.
  void begin_unmanaged_process() {
    std::filesystem::copy_file("/bin/sleep", in_place("merger-model"));
    unmanaged_process_ =
        std::make_unique<Beside>(std::vector<std::string>{in_place("merger-model"), "600"});
    ASSERT_EQ(emulator({"load", "--gpu", kGpu, "--pid", std::to_string(unmanaged_process_->pid()),
                        "--memory", "2G", "--utilization", "50"})
                  .exit_code,
              0);
    ASSERT_TRUE(eventually([this] {
      const auto health = daemon_->json({"health", "--gpu", kGpu});
      return health.is_object() && !health["gpu"]["reason"].is_null() &&
             health["gpu"]["reason"].dump().find(std::to_string(unmanaged_process_->pid())) !=
                 std::string::npos;
    })) << daemon_->json({"health", "--gpu", kGpu});
  }
  std::string tables(uid_t uid) {
    std::string all;
    for (const std::vector<std::string>& words : {std::vector<std::string>{"status", "--all"},
                                                  {"status", "--all", "--json"},
                                                  {"health", "--gpu", kGpu},
                                                  {"health", "--gpu", kGpu, "--json"},
                                                  {"health", "--json"},
                                                  {"topology", "--json"},
                                                  {"queue", "--all", "--json"},
                                                  {"jobs", "list", "--all", "--json"},
                                                  {"check", "--gpus", "8", "--", "/bin/true"}}) {
      const Finished done = by(uid, words);
      all += done.out + done.err;
    }
    EXPECT_THAT(all, HasSubstr(std::to_string(unmanaged_process_->pid())))
        << "that it is there is told";
    return all;
  }

  std::unique_ptr<Beside> unmanaged_process_;
};

TEST_F(Commands, OfOthersAreNotShown) {
  start({.config = "monitoring:\n  interval_seconds: 1\n"});
  ASSERT_NO_FATAL_FAILURE(begin_unmanaged_process());
  EXPECT_THAT(tables(kAttacker), Not(HasSubstr("merger-model")));
  EXPECT_THAT(tables(0), HasSubstr("merger-model")) << "root sees all";
}

TEST_F(Commands, OfOthersAreShownWhereTheSiteSaysSo) {
  start({.config = "monitoring:\n  interval_seconds: 1\naccess: {visibility: {commands: all}}\n"});
  ASSERT_NO_FATAL_FAILURE(begin_unmanaged_process());
  EXPECT_THAT(tables(kAttacker), HasSubstr("merger-model"));
}

TEST_F(Commands, OfOnesOwnAreShown) {
  start({.config = "monitoring:\n  interval_seconds: 1\n"});
  Beside own(as(kAttacker, {"/bin/sleep", "600"}));
  ASSERT_TRUE(eventually(
      [&] { return read_file("/proc/" + std::to_string(own.pid()) + "/comm") == "sleep\n"; }));
  ASSERT_EQ(emulator({"load", "--gpu", kGpu, "--pid", std::to_string(own.pid()), "--memory", "2G",
                      "--utilization", "50"})
                .exit_code,
            0);
  const auto command_seen_by = [&](uid_t uid) {
    const Finished done = by(uid, {"health", "--gpu", kGpu, "--json"});
    const auto health = nlohmann::json::parse(done.out, nullptr, false);
    if (!health.is_object() || health["processes"].empty()) return std::string("(none)");
    return health["processes"][0]["command"].dump();
  };
  EXPECT_TRUE(eventually([&] { return command_seen_by(kAttacker) == "\"sleep\""; }));
  EXPECT_EQ(command_seen_by(kBystander), "null");
}

}  // namespace
}  // namespace gpu_platform::e2e
