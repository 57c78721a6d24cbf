// Attacks by jobs: each test says who attacks, tries it as a real process with exactly those
// rights, and looks that nothing came of it. Unless it says otherwise the attacker is an ordinary
// user with jobs of his own, here `backup`. Where a shell cannot try it, the job runs this program:
//   e2e_attack_job_test attack NAME ARGUMENT...

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "harness.h"
#include "terminal.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kJobUser = "backup";

// ---- what the attacking program does

int say(long result) {
  if (result >= 0) {
    std::printf("done\n");
  } else {
    std::printf("%s\n", std::strerror(errno));
  }
  return 0;
}

// A key in the session keyring, and whether one is found there.
int add_key(const char* name) {
  const long ring = KEY_SPEC_SESSION_KEYRING;
  return say(syscall(SYS_add_key, "user", name, "x", 1, ring));
}
int find_key(const char* name) {
  const long ring = KEY_SPEC_SESSION_KEYRING;
  return say(syscall(SYS_keyctl, KEYCTL_SEARCH, ring, "user", name, 0));
}

long call_32(long number) {
#if defined(__x86_64__)
  long result = number;
  asm volatile("int $0x80"
               : "+a"(result)
               : "b"(0), "c"(0), "d"(0), "S"(0), "D"(0)
               : "memory", "r8", "r9", "r10", "r11");
  return result;
#else
  return number < 0 ? 0 : -ENOSYS;
#endif
}

// Prints how the kernel answers calls that do no harm with these arguments, in each way to make
// them.
int try_calls() {
  struct {
    const char* name;
    long number;
    long number_32;
  } const calls[] = {{"keyctl", SYS_keyctl, 288},
                     {"io_uring_setup", SYS_io_uring_setup, 425},
                     {"userfaultfd", SYS_userfaultfd, 374}};
  for (const auto& call : calls) {
    const long first = call.number == SYS_userfaultfd ? 1 : 0;  // UFFD_USER_MODE_ONLY
    const long result = syscall(call.number, first, KEY_SPEC_SESSION_KEYRING, 0, 0, 0, 0);
    std::printf("%s %s\n", call.name, result >= 0 ? "done" : std::strerror(errno));
  }
#if defined(__x86_64__)
  std::printf("x32 %s\n", syscall(SYS_getpid | 0x40000000) >= 0 ? "done" : std::strerror(errno));
#endif
  std::fflush(stdout);
  for (const auto& call : calls) {
    if (fork() == 0) {  // ends it where the kernel has no 32-bit calls at all
      const long result = call_32(call.number_32);
      std::printf("32-bit %s %s\n", call.name,
                  result >= 0 ? "done" : std::strerror(static_cast<int>(-result)));
      std::fflush(stdout);
      _exit(0);
    }
    wait(nullptr);
  }
  return 0;
}

// Keeps a lease on a file that it writes nothing to, also if it is asked to.
int keep_lease(const char* file, const char* flag) {
  signal(SIGIO, SIG_IGN);
  const int fd = open(file, O_RDONLY | O_CREAT, 0644);
  if (fd < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return say(-1);
  close(open(flag, O_WRONLY | O_CREAT, 0644));
  while (true) pause();
}

int trace(const char* pid) {
  return say(ptrace(PTRACE_SEIZE, std::atoi(pid), nullptr, nullptr));
}

// Leaves on its terminal, as the group in its foreground, one that is gone: its number goes to the
// file.
int leave_group(const char* file) {
  signal(SIGTTOU, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  if (setpgid(child, child) != 0 || tcsetpgrp(0, child) != 0) return say(-1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::ofstream(std::string(file) + ".new") << child;
  std::filesystem::rename(std::string(file) + ".new", file);
  std::printf("the group is left\n");
  std::fflush(stdout);
  while (true) pause();
}

int attack(int argc, char** argv) {
  const std::string_view name = argv[2];
  if (name == "add-key") return add_key(argv[3]);
  if (name == "find-key") return find_key(argv[3]);
  if (name == "calls") return try_calls();
  if (name == "lease") return keep_lease(argv[3], argv[4]);
  if (name == "trace") return trace(argv[3]);
  if (name == "leave-group") return leave_group(argv[3]);
  return argc;
}

// ---- what the tests share

// A directory on which each process that touches it waits for ever: a FUSE file system whose server
// answers nothing. As a user would mount it with fusermount, or an NFS server that is gone.
class HangingFileSystem {
 public:
  explicit HangingFileSystem(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
    server_ = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options =
        "fd=" + std::to_string(server_) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
    is_there_ = server_ >= 0 && mount("hanging", path_.c_str(), "fuse", 0, options.c_str()) == 0 &&
                answer_begin();
  }
  ~HangingFileSystem() {
    if (server_ >= 0) close(server_);  // processes that wait are told that there is no answer
    if (is_there_) umount2(path_.c_str(), MNT_DETACH);
  }
  HangingFileSystem(const HangingFileSystem&) = delete;
  HangingFileSystem& operator=(const HangingFileSystem&) = delete;
  bool is_there() const { return is_there_; }
  const std::string& path() const { return path_; }
  // Whether a process waits for an answer now. Its request stays unread: the kernel takes an unread
  // request back when the process is killed.
  bool is_waited_for() const {
    pollfd requests{server_, POLLIN, 0};
    return poll(&requests, 1, 0) == 1 && (requests.revents & POLLIN) != 0;
  }

 private:
  // The one answer: without it the kernel hands on no request of a process.
  bool answer_begin() const {
    std::array<char, FUSE_MIN_READ_BUFFER> request{};
    if (read(server_, request.data(), request.size()) <
        static_cast<ssize_t>(sizeof(fuse_in_header))) {
      return false;
    }
    fuse_in_header asked{};
    std::memcpy(&asked, request.data(), sizeof asked);
    struct {
      fuse_out_header header{};
      fuse_init_out begin{};
    } answer;
    answer.header.len = sizeof answer;
    answer.header.unique = asked.unique;
    answer.begin.major = FUSE_KERNEL_VERSION;
    answer.begin.minor = FUSE_KERNEL_MINOR_VERSION;
    answer.begin.max_write = FUSE_MIN_READ_BUFFER;
    return asked.opcode == FUSE_INIT && write(server_, &answer, sizeof answer) == sizeof answer;
  }

  std::string path_;
  int server_ = -1;
  bool is_there_ = false;
};

class AttackJob : public ::testing::Test {
 protected:
  explicit AttackJob(DaemonOptions options = {}) : daemon_(with_limits(std::move(options))) {}

  static DaemonOptions with_limits(DaemonOptions options) {
    options.emulate = "dgx-h100";
    if (options.config.find("execution:") == std::string::npos) options.config += "execution:\n";
    options.config +=
        "  start_timeout: 3s\npolicies:\n  stop_grace: 1s\nfault_tolerance:\n  max_retries: 0\n";
    return options;
  }

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: jobs of other users";
    ASSERT_TRUE(daemon_.start()) << daemon_.log();
    chmod(daemon_.directory().c_str(), 0755);
    std::filesystem::create_directory(open_folder());
    chmod(open_folder().c_str(), 01777);
    const Finished reaches = as_attacker({"/usr/bin/test", "-w", open_folder()});
    if (reaches.exit_code != 0) GTEST_SKIP() << "closed to other users: " << open_folder();
    std::filesystem::copy_file("/proc/self/exe", in_open_folder("attack"));
    chmod(in_open_folder("attack").c_str(), 0755);
  }

  std::string open_folder() const { return daemon_.directory() + "/room"; }
  std::string in_open_folder(const std::string& name) const { return open_folder() + "/" + name; }

  static std::vector<std::string> attackers(const std::vector<std::string>& command) {
    return as_account({kJobUser, "backup"}, command);
  }
  static Finished as_attacker(const std::vector<std::string>& command) {
    return run_command(attackers(command));
  }

  std::string submit(std::vector<std::string> options, const std::vector<std::string>& command) {
    std::vector<std::string> words{"submit", "--workdir", open_folder(), "--user", kJobUser};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    const Finished submitted = daemon_.cli(words);
    EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
    return submitted.out.substr(0, submitted.out.find('\n'));
  }
  std::string submit_script(const std::string& script, std::vector<std::string> options = {}) {
    return submit(std::move(options), {"/bin/sh", "-c", script});
  }
  nlohmann::json ended(const std::string& id) {
    EXPECT_EQ(daemon_.cli({"jobs", "wait", "--timeout", "60s", id}).exit_code == 124, false)
        << daemon_.job(id).dump(1);
    return daemon_.job(id);
  }
  std::string output(const std::string& id) { return daemon_.cli({"jobs", "logs", id}).out; }
  std::string output_of(const std::string& script, std::vector<std::string> options = {}) {
    const std::string id = submit_script(script, std::move(options));
    EXPECT_EQ(ended(id)["state"], "COMPLETED") << output(id);
    return output(id);
  }
  bool runs(const std::string& id) { return daemon_.reaches(id, "RUNNING"); }
  // The daemon may hear that a job runs later than the job's first words are there to be seen.
  Finished exec(const std::string& id, const std::string& script) {
    EXPECT_TRUE(runs(id));
    return daemon_.cli({"jobs", "exec", id, "--", "/bin/sh", "-c", script});
  }
  bool is_held(const std::string& guard) {
    const nlohmann::json status = daemon_.json({"status"});
    for (const auto& state : status["isolation"]) {
      if (state["guard"] == guard) return state["held"].get<bool>();
    }
    ADD_FAILURE() << "no guard " << guard;
    return false;
  }
  bool wait_for(const std::string& name) {
    return eventually([&] { return access(in_open_folder(name).c_str(), F_OK) == 0; });
  }
  // All GPUs are free again for another job.
  void expect_all_gpus_free() {
    const Finished all = daemon_.cli({"run", "--gpus", "8", "--", "/bin/true"});
    EXPECT_EQ(all.exit_code, 0) << all.err;
  }
  std::vector<std::string> words(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {program("gpu-platform"), "--server", "unix:" + daemon_.socket()});
    return arguments;
  }
  std::vector<pid_t> relays() const { return daemon_.relays(); }

  Daemon daemon_;
};

std::string line_of(const std::string& text, const std::string& key) {
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with(key)) return line;
  }
  return {};
}

// ---- output paths that hold a start

TEST_F(AttackJob, FifoThatNobodyReadsHoldsNoGpu) {
  mkfifo(in_open_folder("fifo").c_str(), 0666);
  chmod(in_open_folder("fifo").c_str(), 0666);
  for (const char* option : {"--output", "--error"}) {
    const auto job = ended(
        submit({"--gpus", "8", "--time", "2s", option, in_open_folder("fifo")}, {"/bin/true"}));
    EXPECT_EQ(job["reason"], "LAUNCH_FAILED");
    EXPECT_EQ(job["exit_code"], 126);
    EXPECT_THAT(job["detail"].get<std::string>(),
                HasSubstr(in_open_folder("fifo") + ": it is a FIFO without a reader"));
  }
  expect_all_gpus_free();
}

TEST_F(AttackJob, FifoThatIsReadTakesOutput) {
  mkfifo(in_open_folder("fifo").c_str(), 0666);
  chmod(in_open_folder("fifo").c_str(), 0666);
  const int reader = open(in_open_folder("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_EQ(ended(submit_script("echo read", {"--output", in_open_folder("fifo")}))["state"],
            "COMPLETED");
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof text - 1), 5);
  EXPECT_STREQ(text, "read\n");
  close(reader);
}

// Who reads it and then stops holds up what writes, which is the job, and nothing of ours.
TEST_F(AttackJob, FullFifoDoesNotOutliveTheTimeLimit) {
  mkfifo(in_open_folder("fifo").c_str(), 0666);
  chmod(in_open_folder("fifo").c_str(), 0666);
  const int reader = open(in_open_folder("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const auto job = ended(
      submit_script("exec cat /dev/zero", {"--output", in_open_folder("fifo"), "--time", "1s"}));
  EXPECT_EQ(job["reason"], "TIME_LIMIT");
  close(reader);
}

TEST_F(AttackJob, DevicesAndSocketsTakeNoOutput) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = in_open_folder("socket");
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  chmod(path.c_str(), 0777);
  for (const auto& [file, why] :
       {std::pair(path, "it is a socket"), std::pair(std::string("/dev/zero"), "it is a device")}) {
    const auto job = ended(submit({"--output", file}, {"/bin/true"}));
    EXPECT_EQ(job["exit_code"], 126);
    EXPECT_THAT(job["detail"].get<std::string>(), HasSubstr(file + ": " + why));
  }
  EXPECT_EQ(ended(submit({"--output", "/dev/null"}, {"/bin/true"}))["state"], "COMPLETED");
  close(server);
}

// ---- output paths that lead to what is no file of the user's

// The opener has the user's rights, but what /proc shows of it is the platform's, and what it shows
// of others is more than a job sees.
TEST_F(AttackJob, LogsShowNothingThatTheKernelShows) {
  const std::string of_root = "/proc/" + std::to_string(daemon_.pid()) + "/cmdline";
  const std::string out = in_open_folder("out");
  for (const std::string& target :
       {of_root, std::string("/proc/self/maps"), std::string("/proc/self/status"),
        std::string("/proc/version"), std::string("/sys/kernel/uevent_seqnum"),
        std::string("/proc/self/fd/3"), std::string("/dev/fd/0")}) {
    std::filesystem::remove(out);
    const std::string id =
        submit_script("rm " + out + "; ln -s " + target + " " + out, {"--output", out});
    EXPECT_EQ(ended(id)["state"], "COMPLETED");
    const Finished logs = daemon_.cli({"jobs", "logs", id});
    EXPECT_NE(logs.exit_code, 0) << target;
    EXPECT_EQ(logs.out, "") << target;
    const auto direct = ended(submit({"--output", target}, {"/bin/true"}));
    EXPECT_EQ(direct["exit_code"], 126) << target;
  }
}

TEST_F(AttackJob, KernelFilesThatTheUserMayWriteTakeNoOutput) {
  for (const std::string path : {"/proc/self/comm", "/proc/self/oom_score_adj", "/proc/self/mem",
                                 "/proc/self/clear_refs", "/proc/self/fd/1", "/dev/stdout"}) {
    const auto job = ended(submit({"--output", path}, {"/bin/echo", "x"}));
    EXPECT_EQ(job["exit_code"], 126) << path << job.dump(2);
  }
}

TEST_F(AttackJob, FileThatNoJobHasOpenedIsNoOutput) {
  std::ofstream(in_open_folder("secret")) << "of another\n";  // of root; all may read it
  const std::string id = submit({"--output", in_open_folder("secret")}, {"/bin/true"});
  EXPECT_EQ(ended(id)["exit_code"], 126);
  const Finished logs = daemon_.cli({"jobs", "logs", id});
  EXPECT_EQ(logs.exit_code, 3);
  EXPECT_EQ(logs.out, "");
  EXPECT_THAT(logs.err, HasSubstr("has printed nothing to"));
}

TEST_F(AttackJob, DescriptorOfThePlatformIsNoDirectoryOfAJob) {
  for (int fd = 3; fd < 12; ++fd) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const auto job = ended(submit({"--workdir", path}, {"/bin/pwd"}));
    EXPECT_EQ(job["exit_code"], 126) << path << job.dump(2);
  }
}

// The kernel gives a lease up to 45 seconds to be returned, for a process that waits for it.
TEST_F(AttackJob, LeaseOnTheOutputFileHoldsNoGpu) {
  const pid_t holder = fork();
  if (holder == 0) {
    std::vector<std::string> command =
        attackers({in_open_folder("attack"), "attack", "lease", in_open_folder("leased"),
                   in_open_folder("has-it")});
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  ASSERT_TRUE(wait_for("has-it"));
  const auto job =
      ended(submit({"--gpus", "8", "--output", in_open_folder("leased")}, {"/bin/true"}));
  EXPECT_EQ(job["exit_code"], 126);
  EXPECT_THAT(job["detail"].get<std::string>(), HasSubstr("has a lease on it"));
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
}

// ---- file systems that hang

class AttackWithHangingFiles : public AttackJob {
 protected:
  void SetUp() override {
    AttackJob::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    hanging_ = std::make_unique<HangingFileSystem>(daemon_.directory() + "/hanging");
    if (!hanging_->is_there()) GTEST_SKIP() << "this host mounts no FUSE file system";
  }
  std::string hanging(const std::string& name) const { return hanging_->path() + "/" + name; }
  // On its way to its program, and not further.
  bool hangs(const std::string& id) {
    return eventually([&] {
      const auto job = daemon_.job(id);
      return job.is_object() && job["state"] == "STARTING" && hanging_->is_waited_for();
    });
  }

  std::unique_ptr<HangingFileSystem> hanging_;
};

TEST_F(AttackWithHangingFiles, StartEndsAtItsTimeoutAndNamesThePath) {
  for (const char* option : {"--output", "--error"}) {
    const auto job = ended(submit({"--gpus", "8", option, hanging("out")}, {"/bin/true"}));
    EXPECT_EQ(job["state"], "FAILED");
    EXPECT_EQ(job["reason"], "LAUNCH_FAILED");
    EXPECT_THAT(job["detail"].get<std::string>(),
                HasSubstr(hanging("out") + ": not done after 3 s"));
  }
  const auto job = ended(submit({"--gpus", "8"}, {hanging("program")}));
  EXPECT_THAT(job["detail"].get<std::string>(), HasSubstr("execute " + hanging("program")));
  expect_all_gpus_free();
}

TEST_F(AttackWithHangingFiles, CancelEndsAStartAtOnceAlsoAfterARestart) {
  const std::string first = submit({"--gpus", "8", "--output", hanging("out")}, {"/bin/true"});
  ASSERT_TRUE(hangs(first));
  daemon_.cli({"jobs", "cancel", first});
  EXPECT_EQ(ended(first)["state"], "CANCELLED");
  EXPECT_THAT(daemon_.job(first)["detail"].get<std::string>(), HasSubstr("stopped meanwhile"));

  const std::string second = submit({"--gpus", "8", "--output", hanging("out")}, {"/bin/true"});
  ASSERT_TRUE(hangs(second));
  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  daemon_.cli({"jobs", "cancel", second});
  EXPECT_EQ(ended(second)["state"], "CANCELLED");
  expect_all_gpus_free();
}

// The command after the user's own prolog: the job has begun, so its time runs.
TEST_F(AttackWithHangingFiles, TimeLimitEndsAJobWhoseCommandHangsAfterItsProlog) {
  const auto job =
      ended(submit({"--gpus", "8", "--time", "1s", "--prolog", "/bin/true"}, {hanging("program")}));
  EXPECT_EQ(job["state"], "TIMED_OUT");
  EXPECT_EQ(job["reason"], "TIME_LIMIT");
  expect_all_gpus_free();
}

TEST_F(AttackWithHangingFiles, CommandInAJobEndsAtTheTimeoutAndWithItsClient) {
  const std::string id = submit({}, {"/bin/sleep", "1000"});
  ASSERT_TRUE(runs(id));
  const Finished finished = daemon_.cli({"jobs", "exec", id, "--", hanging("program")});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("not started after 3 s"));
  EXPECT_TRUE(eventually([&] { return relays().empty(); }));
}

// ---- the relay

TEST_F(AttackJob, RelayIsTheJobsUserAndClosedToTracing) {
  const std::string id = submit({}, {"/bin/sleep", "1000"});
  ASSERT_TRUE(runs(id));
  Terminal terminal(
      words({"jobs", "exec", "-t", id, "--", "/bin/sh", "-c", "echo is-there; exec sleep 1000"}));
  ASSERT_TRUE(terminal.shows("is-there")) << terminal.screen();
  const auto found = relays();
  ASSERT_EQ(found.size(), 1u);
  const std::string relay = std::to_string(found[0]);
  const std::string status = read_file("/proc/" + relay + "/status");
  EXPECT_EQ(line_of(status, "Uid:"), "Uid:\t34\t34\t34\t34");
  for (const char* set : {"CapPrm:", "CapEff:", "CapInh:", "CapAmb:"}) {
    EXPECT_THAT(line_of(status, set), HasSubstr("0000000000000000"));
  }
  EXPECT_THAT(line_of(status, "Groups:"), Not(HasSubstr(" 0 ")));
  EXPECT_EQ(as_attacker({in_open_folder("attack"), "attack", "trace", relay}).out,
            "Operation not permitted\n");
}

// A process of root's whose number is that of the group that a terminal names as its foreground.
class VictimWithNumber {
 public:
  VictimWithNumber(pid_t number, int signal_to_note) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return;
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<std::uint64_t>(&number);
    arguments.set_tid_size = 1;
    pid_ = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
    if (pid_ == 0) {
      setsid();
      sigset_t noted;
      sigemptyset(&noted);
      sigaddset(&noted, signal_to_note);
      if (signal_to_note != 0) sigprocmask(SIG_BLOCK, &noted, nullptr);
      close(ready[1]);
      while (true) pause();
    }
    close(ready[1]);
    char byte = 0;
    while (pid_ > 0 && read(ready[0], &byte, 1) > 0) {
    }
    close(ready[0]);
  }
  ~VictimWithNumber() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  VictimWithNumber(const VictimWithNumber&) = delete;
  VictimWithNumber& operator=(const VictimWithNumber&) = delete;
  bool is_there() const { return pid_ > 0; }
  bool lives() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }
  // Returns the signals to it that are blocked and not taken yet.
  std::string pending() const {
    return line_of(read_file("/proc/" + std::to_string(pid_) + "/status"), "ShdPnd:");
  }

 private:
  pid_t pid_ = -1;
};

TEST_F(AttackJob, TerminalThatNamesAGroupOfRootsMakesTheRelaySignalNobody) {
  const std::string id = submit({}, {"/bin/sleep", "1000"});
  ASSERT_TRUE(runs(id));
  auto terminal =
      std::make_unique<Terminal>(words({"jobs", "exec", "-t", id, "--", in_open_folder("attack"),
                                        "attack", "leave-group", in_open_folder("group")}));
  ASSERT_TRUE(wait_for("group")) << terminal->screen();
  const VictimWithNumber victim(std::atoi(read_file(in_open_folder("group")).c_str()), 0);
  ASSERT_TRUE(victim.is_there()) << std::strerror(errno);
  terminal.reset();  // the client goes: the relay hangs its command up
  EXPECT_TRUE(eventually([&] { return relays().empty(); }));
  EXPECT_TRUE(victim.lives());
}

TEST_F(AttackJob, TerminalThatNamesAGroupOfRootsMakesTheSupervisorSignalNobody) {
  Terminal first(
      words({"run", "--pty", "--user", kJobUser, "--workdir", open_folder(), "--gpus", "0", "--",
             in_open_folder("attack"), "attack", "leave-group", in_open_folder("group")}));
  ASSERT_TRUE(wait_for("group")) << first.screen();
  const VictimWithNumber victim(std::atoi(read_file(in_open_folder("group")).c_str()), SIGWINCH);
  ASSERT_TRUE(victim.is_there()) << std::strerror(errno);
  ASSERT_TRUE(first.shows("the group is left")) << "it is attached by then: " << first.screen();
  const std::string before = victim.pending();
  Terminal second(words({"jobs", "attach", "1"}));  // of the same size
  EXPECT_TRUE(first.shows("another client has attached")) << first.screen();
  EXPECT_EQ(victim.pending(), before);
}

// ---- keyrings

class AttackByKeys : public AttackJob {
 protected:
  AttackByKeys()
      : AttackJob({.config = "execution:\n  seccomp: off\n  prolog: " + hook() + "\n"}) {}
  // A place that root owns, also above it.
  static std::string hook() {
    static const std::string name = "/run/gp-attack-" + std::to_string(getpid());
    return name + "/prolog";
  }
  static std::string hooks_output() { return hook() + ".out"; }
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: jobs of other users";
    const std::filesystem::path file = hook();
    std::filesystem::create_directory(file.parent_path());
    std::filesystem::copy_file("/proc/self/exe", file.parent_path() / "attack");
    std::ofstream(file) << "#!/bin/sh\n{ " + attack_beside() + " find-key of-daemon; " +
                               attack_beside() + " find-key of-job; } >> " + hooks_output() + "\n";
    chmod(file.c_str(), 0755);
    // The daemon, and so the launcher, has this keyring if it gets no other.
    syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
    const long ring = KEY_SPEC_SESSION_KEYRING;
    const long key = syscall(SYS_add_key, "user", "of-daemon", "x", 1, ring);
    if (key < 0) GTEST_SKIP() << "the host has no keyrings";
    syscall(SYS_keyctl, KEYCTL_SETPERM, key, 0x3f3f3f3f);
    AttackJob::SetUp();
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(std::filesystem::path(hook()).parent_path(), ignored);
  }
  static std::string attack_beside() {
    return (std::filesystem::path(hook()).parent_path() / "attack").string() + " attack";
  }
};

TEST_F(AttackByKeys, NobodySeesTheSessionKeysOfAnother) {
  const std::string none = std::string(std::strerror(ENOKEY)) + "\n";
  const std::string first = submit_script(
      "./attack attack find-key of-daemon; ./attack attack add-key of-job; "
      "./attack attack find-key of-job; touch has-it; until [ -e end ]; do sleep 0.2; done",
      {"--prolog", "/bin/true"});
  ASSERT_TRUE(wait_for("has-it"));
  ASSERT_TRUE(runs(first));
  EXPECT_EQ(output(first), none + "done\ndone\n");
  EXPECT_EQ(output_of("./attack attack find-key of-job"), none) << "another job of the user";
  EXPECT_EQ(exec(first, "./attack attack find-key of-job; ./attack attack find-key of-daemon").out,
            none + none)
      << "a command beside it";
  // The launcher has the keyring that we have.
  const long ring = KEY_SPEC_SESSION_KEYRING;
  EXPECT_LT(syscall(SYS_keyctl, KEYCTL_SEARCH, ring, "user", "of-job", 0), 0) << "the launcher";
  EXPECT_THAT(read_file(hooks_output()), Not(HasSubstr("done"))) << "the site's prolog";
  std::ofstream(in_open_folder("end")).flush();
  EXPECT_EQ(ended(first)["state"], "COMPLETED");
}

// ---- system calls

std::string refused_calls() {
  const std::string no = std::strerror(EPERM);
  const std::string none = std::strerror(ENOSYS);
  std::string text = "keyctl " + no + "\nio_uring_setup " + none + "\nuserfaultfd " + no + "\n";
#if defined(__x86_64__)
  text += "x32 " + none + "\n";
#endif
  return text;
}

TEST_F(AttackJob, CallsThatOpenTheKernelAreRefusedInEveryWayToMakeThem) {
  ASSERT_TRUE(is_held("syscalls"));
  const std::string id = submit_script("./attack attack calls; touch tried; sleep 1000");
  ASSERT_TRUE(wait_for("tried"));
  ASSERT_TRUE(runs(id));
  EXPECT_THAT(output(id), HasSubstr(refused_calls()));
  EXPECT_THAT(output(id), Not(HasSubstr("done")));
  const Finished beside = exec(id, "./attack attack calls");
  EXPECT_THAT(beside.out, HasSubstr(refused_calls())) << "a command beside it";
  EXPECT_THAT(beside.out, Not(HasSubstr("done")));
  const std::string in_namespaces =
      output_of("unshare -Urm ./attack attack calls || ./attack attack calls");
  EXPECT_THAT(in_namespaces, HasSubstr(refused_calls())) << "root of a user namespace";
  EXPECT_THAT(output_of("./attack attack calls", {"--user", "root"}), HasSubstr(refused_calls()))
      << "root";
}

class AttackWithoutFilter : public AttackJob {
 protected:
  AttackWithoutFilter()
      : AttackJob({.config = "execution:\n  seccomp: off\n  hide_processes: false\n"}) {}
};

// The other side of the two switches: without them the attack gets through.
TEST_F(AttackWithoutFilter, SiteMayLoosenIt) {
  EXPECT_FALSE(is_held("syscalls"));
  EXPECT_FALSE(is_held("process-list"));
  EXPECT_THAT(output_of("./attack attack calls"), HasSubstr("keyctl done"));
  const std::string launcher = std::to_string(daemon_.processes("launcher").front());
  EXPECT_THAT(output_of("cat /proc/" + launcher + "/cmdline"), HasSubstr("launcher"));
  daemon_.terminate();
  Daemon other({.config = "execution:\n  seccomp: off\n", .arguments = {"--launcher", "/nowhere"}});
  EXPECT_FALSE(other.start());
  EXPECT_THAT(other.log(), HasSubstr("execution.seccomp: the launcher at /nowhere"));
}

// ---- what a user namespace reaches

TEST_F(AttackJob, RootOfAUserNamespaceReachesNoGpuNoNeighbourAndNoProcess) {
  ASSERT_TRUE(is_held("devices"));
  const std::string victim = submit({"--user", "root", "--gpus", "1"}, {"/bin/sleep", "1000"});
  ASSERT_TRUE(runs(victim));
  const auto job = daemon_.job(victim);
  const std::string pid = std::to_string(job["attempts"][0]["pid"].get<long>());
  const auto index = job["gpus"][0]["index"].get<unsigned>();
  ASSERT_EQ(mknod(in_open_folder("other").c_str(), S_IFCHR | 0666, makedev(195, index)), 0);
  chmod(in_open_folder("other").c_str(), 0666);
  const std::string folder = daemon_.data_dir() + "/tmp/" + victim + "-1";
  const std::string attack = "dd if=other of=/dev/null count=0; mknod fresh c 195 " +
                             std::to_string(index) + "; ls " + folder + "; kill -9 " + pid +
                             "; mount -t proc proc /proc; cat /proc/" + pid +
                             "/cmdline; umount /proc; cat /proc/" + pid + "/cmdline; echo end";
  const std::string said = output_of("unshare -Urm sh -c \"$ATTACK\" 2>&1 || echo end",
                                     {"--gpus", "1", "--env", "ATTACK=" + attack});
  EXPECT_THAT(said, HasSubstr("end\n"));
  EXPECT_THAT(said, Not(HasSubstr("sleep")));
  EXPECT_THAT(said, Not(HasSubstr("0+0 records")));
  EXPECT_NE(access(in_open_folder("fresh").c_str(), F_OK), 0);
  EXPECT_EQ(daemon_.job(victim)["state"], "RUNNING");
}

// ---- the process list

TEST_F(AttackJob, ProcessesOfOthersAreOutOfSight) {
  if (!is_held("process-list")) GTEST_SKIP() << "advisory on this host";
  const std::string launcher = std::to_string(daemon_.processes("launcher").front());
  const std::string look = "stat -c %U /proc/[0-9]* 2> gone | sort -u; cat /proc/" + launcher +
                           "/cmdline; kill -0 " + launcher +
                           "; ps -e -o comm= | grep -c gp-; echo $$ > pid; ls -d /proc/$$; ";
  const std::string id = submit_script("{ " + look + " } 2>&1; touch looked; sleep 1000");
  ASSERT_TRUE(wait_for("looked"));
  ASSERT_TRUE(runs(id));
  const std::string said = output(id);
  EXPECT_TRUE(said.starts_with("backup\ncat: /proc/" + launcher + "/cmdline: No such file"))
      << said;
  const std::string pid = lines_of(read_file(in_open_folder("pid"))).front();
  EXPECT_EQ(pid, std::to_string(daemon_.job(id)["attempts"][0]["pid"].get<long>()))
      << "numbers are the host's";
  EXPECT_THAT(said, HasSubstr("/proc/" + pid + "\n"));
  EXPECT_TRUE(exec(id, look + "exit 0").out.starts_with("backup\n")) << "a command beside it";
}

// ---- what a job keeps of its launcher's rights

class AttackFromAnOddHost : public AttackJob {
 protected:
  // As some containers start programs: capabilities are inherited, and a change of user drops none.
  AttackFromAnOddHost()
      : AttackJob({.prefix = {"/usr/bin/setpriv", "--inh-caps", "+net_raw", "--securebits",
                              "+no_setuid_fixup"}}) {}
};

TEST_F(AttackFromAnOddHost, UserKeepsNoCapability) {
  const std::string id = submit_script("grep Cap /proc/self/status; touch looked; sleep 1000");
  ASSERT_TRUE(wait_for("looked"));
  ASSERT_TRUE(runs(id));
  for (const std::string& status : {output(id), exec(id, "grep Cap /proc/self/status").out}) {
    for (const char* set : {"CapPrm:", "CapEff:", "CapInh:", "CapAmb:"}) {
      EXPECT_EQ(line_of(status, set), std::string(set) + "\t0000000000000000");
    }
  }
}

}  // namespace

int run_attack(int argc, char** argv) {
  return attack(argc, argv);
}

}  // namespace gpu_platform::e2e
