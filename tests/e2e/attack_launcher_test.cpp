// Code that runs as the daemon's user and speaks to the launcher: what a captured daemon could do.
// Each test says who attacks, what is tried, and what refuses it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <vector>

#include "launcher_attack_fixture.h"
#include "node/process_tree.h"
#include "node/protocol.h"
#include "node/record.h"
#include "os/packet_socket.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// ---- identity: the daemon names a user, the launcher finds out who that is

TEST_F(AttackOnTheLauncher, NoNumberMakesAJobRunAsRootOrAsAnAccountOfTheSystem) {
  std::uint64_t number = 0;
  const auto expect_refused = [&](std::uint32_t uid) {
    EXPECT_NE(launch(++number, {"touch " + job_file("ran"), uid}), "") << uid;
    EXPECT_FALSE(std::filesystem::exists(record_path(number))) << uid;
  };
  for (const std::uint32_t uid : {0U, 1U, 2U, 13U, 33U, 35U, 100U, 999U, 64030U}) {
    expect_refused(uid);
  }
  EXPECT_EQ(launch(++number, {"true", 0}), "this launcher starts no job as root");
  EXPECT_THAT(launch(++number, {"true", 1}), HasSubstr("account of the system, below 34"));
  EXPECT_THAT(launch(++number, {"true", 35}), HasSubstr("account of the system, above 34"));
  // Some are no user's for every site: the kernel's overflow number, which is that of an
  // account on every Debian, and the daemon's own.
  kill_launcher();
  start_launcher({"--max-uid", "4294967295"});
  greet();
  for (const std::uint32_t uid : {0U, 65534U, 65535U, 4294967294U, 4294967295U, kService}) {
    expect_refused(uid);
  }
  EXPECT_EQ(launch(++number, {"true", 4294967295U}), "4294967295 is not a user");
  EXPECT_THAT(launch(++number, {"true", 65534}), HasSubstr("for what belongs to no user"));
  EXPECT_THAT(launch(++number, {"true", kService}), HasSubstr("a part of the platform runs as it"));
  EXPECT_FALSE(std::filesystem::exists(job_file("ran")));
}

TEST_F(AttackOnTheLauncher, NumberThatNoAccountHasIsRefused) {
  kill_launcher();
  start_launcher({"--max-uid", "4294967295"});
  greet();
  std::uint64_t number = 0;
  for (const std::uint32_t uid : {3999999999U, 100000U}) {
    EXPECT_THAT(launch(++number, {"touch " + job_file("ran"), uid}),
                HasSubstr("is not known on this host"));
  }
  EXPECT_FALSE(std::filesystem::exists(job_file("ran")));
}

TEST_F(AttackOnTheLauncher, JobHasItsAccountsGroupsAndNoCapability) {
  const std::string said =
      run(1, {"id; grep -E '^(Uid|Gid|Groups|Cap(Inh|Prm|Eff|Amb)):' /proc/self/status"});
  EXPECT_THAT(said, HasSubstr("uid=34(backup) gid=34(backup) groups=34(backup)"));
  EXPECT_THAT(said, HasSubstr("Uid:\t34\t34\t34\t34"));
  EXPECT_THAT(said, HasSubstr("Gid:\t34\t34\t34\t34"));
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    EXPECT_THAT(said, HasSubstr(std::string(set) + ":\t0000000000000000"));
  }
}

TEST_F(AttackOnTheLauncher, NobodyElseIsHeardAtTheSocket) {
  EXPECT_LT(connect_as(1, launcher_socket()), 0);  // the folder's mode
  chmod(node_folder().c_str(), 0755);
  EXPECT_LT(connect_as(1, launcher_socket()), 0);  // the socket's mode
  chmod(launcher_socket().c_str(), 0666);
  close(socket_);
  socket_ = connect_as(1, launcher_socket());  // its peer's identity
  ASSERT_GE(socket_, 0);
  EXPECT_EQ(ask(node::Hello{}), std::nullopt);
}

// ---- files: nothing that root writes or believes can be changed, or led elsewhere

TEST_F(AttackOnTheLauncher, NothingBelowTheLaunchersFolderCanBeChangedByTheDaemonsUser) {
  run(1, {"echo words; mktemp >/dev/null"});
  launch(2, {"sleep 1000"});
  std::vector<std::string> folders = {node_folder()};
  for (const auto& entry : entries_below(node_folder())) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  EXPECT_GE(folders.size(), 7U);  // attempts, output, run, tmp and what is in them
  const std::string changed = in_process_of(kService, [&] {
    std::string all;
    for (const std::string& folder : folders) {
      if (folder.find("/tmp/") != std::string::npos) continue;  // jobs' own, behind a closed one
      if (symlink("/etc", (folder + "/planted").c_str()) == 0) all += "link in " + folder + "\n";
      if (mkdir((folder + "/made").c_str(), 0700) == 0) all += "folder in " + folder + "\n";
      if (rename(folder.c_str(), (folder + "-moved").c_str()) == 0) all += "moved " + folder + "\n";
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        const std::string path = entry.path();
        const int fd = open(path.c_str(), O_WRONLY | O_NONBLOCK);
        if (fd >= 0) all += "can write " + path + "\n";
        if (unlink(path.c_str()) == 0) all += "removed " + path + "\n";
      }
    }
    if (opendir((node_folder() + "/tmp").c_str()) != nullptr) all += "reads jobs' folders\n";
    return all;
  });
  EXPECT_EQ(changed, "");
  EXPECT_EQ(in_process_of(kService, [&] { return output(1); }), "words\n");  // may be read
  say(node::Stop{{model::JobId(2), 1}, true, 0, 1});
}

TEST_F(AttackOnTheLauncher, LinkPlantedAnywhereInTheDaemonsFolderChangesNothingElsewhere) {
  const std::string victim = folder_.path() + "/victim";
  std::filesystem::create_directory(victim);
  chmod(victim.c_str(), 0700);
  std::ofstream(victim + "/state") << "before";
  in_process_of(kService, [&]() -> std::string {
    for (const char* name : {"run", "attempts", "output", "tmp", "emulated", "node"}) {
      (void)!symlink(victim.c_str(), (data_dir() + "/" + name).c_str());
    }
    return "";
  });
  kill_launcher();
  start_launcher(of_one_user());
  greet();
  run(1, {"echo words; echo > /tmp/x"});
  struct stat about{};
  ASSERT_EQ(stat(victim.c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 0U);
  EXPECT_EQ(about.st_gid, 0U);
  EXPECT_EQ(about.st_mode & 07777, 0700U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(victim), {}), 1);
  EXPECT_EQ(read_file(victim + "/state"), "before");
}

TEST_F(AttackOnTheLauncher, LauncherRefusesAFolderThatOthersCouldReplace) {
  for (const std::string& root : {data_dir() + "/inner", data_dir() + "/link/node"}) {
    in_process_of(kService, [&]() -> std::string {
      (void)!symlink(folder_.path().c_str(), (data_dir() + "/link").c_str());
      return "";
    });
    const Finished refused =
        run_command({program("gpu-platform-node"), "launcher", "--root", root, "--listen",
                     node_folder() + "/other.sock", "--client-user", kServiceUser});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr(data_dir() + " belongs to user 38"));
    EXPECT_FALSE(std::filesystem::exists(data_dir() + "/inner"));
  }
  const Finished socket =
      run_command({program("gpu-platform-node"), "launcher", "--root", folder_.path() + "/second",
                   "--listen", data_dir() + "/socket", "--client-user", kServiceUser});
  EXPECT_EQ(socket.exit_code, 1);
  EXPECT_THAT(socket.err, HasSubstr("belongs to user 38"));
}

TEST_F(AttackOnTheLauncher, OutputFileIsOpenedAsTheUserWhereverItsPathLeads) {
  std::ofstream(folder_.path() + "/roots").flush();
  chmod((folder_.path() + "/roots").c_str(), 0600);
  ASSERT_EQ(symlink((folder_.path() + "/roots").c_str(), job_file("out").c_str()), 0);
  EXPECT_EQ(launch(1, {"echo written", kUser, {}, job_file("out")}), "");
  ASSERT_TRUE(eventually([&] { return record(1).cleaned.has_value(); }));
  EXPECT_EQ(record(1).end->kind, node::EndKind::kNotStarted);
  EXPECT_EQ(read_file(folder_.path() + "/roots"), "");
}

// ---- files of users, which the launcher opens for the daemon to read

TEST_F(AttackOnTheLauncher, FilesAreOpenedAsTheUserAndNeverAsRoot) {
  const auto asked = [this](std::uint32_t uid, const std::string& path) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    say(node::OpenFile{uid, path}, ends[1]);
    close(ends[1]);
    char buffer[4096];
    const os::Packet packet = os::receive_packet(ends[0], buffer, sizeof buffer);
    if (packet.fd >= 0) close(packet.fd);
    close(ends[0]);
    const auto opened = node::decode_opened_file(packet.bytes);
    if (!opened) return std::string("no answer");
    if (packet.fd >= 0) return std::string("opened");
    return opened->why.empty() ? std::string(strerror(opened->error)) : opened->why;
  };
  const std::string secret = folder_.path() + "/secret";
  std::ofstream(secret) << "root's";
  chmod(secret.c_str(), 0600);
  ASSERT_EQ(symlink(secret.c_str(), job_file("link").c_str()), 0);
  ASSERT_EQ(mkfifo(job_file("fifo").c_str(), 0666), 0);
  std::ofstream(job_file("own")) << "words";
  EXPECT_EQ(asked(kUser, secret), "Permission denied");
  EXPECT_EQ(asked(kUser, job_file("link")), "Permission denied");
  EXPECT_EQ(asked(0, secret), "this launcher starts no job as root");
  EXPECT_THAT(asked(1, secret), HasSubstr("account of the system"));
  EXPECT_EQ(asked(kUser, job_file("fifo")),
            "it is not a regular file");  // at once: no process writes it
  EXPECT_EQ(asked(kUser, job_file("none")), "No such file or directory");
  EXPECT_EQ(asked(kUser, job_file("own")), "opened");
}

// ---- the driver of GPUs: root does to it what root's rules allow, and runs nothing of the
// daemon's

class AttackOnTheDriver : public AttackOnTheLauncher {
 protected:
  // What became of a request, of its first GPU.
  std::string ask_driver(const node::RunDriver& order) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    say(order, ends[1]);
    close(ends[1]);
    std::vector<char> buffer(node::kMaxDriverAnswer);
    const os::Packet packet = os::receive_packet(ends[0], buffer.data(), buffer.size());
    close(ends[0]);
    const auto answer = node::decode_driver_answer(packet.bytes);
    return answer ? answer->gpus.at(0).failure : "no answer";
  }
  static node::RunDriver reset_of(const std::string& gpu) {
    return {node::DriverVerb::kReset, {gpu}, 0, 20'000, std::nullopt};
  }
  void restart_with_rules(const std::string& path) {
    kill_launcher();
    start_launcher({"--driver", path});
    greet();
  }
};

TEST_F(AttackOnTheDriver, NothingIsDoneWithoutRulesOfRoots) {
  EXPECT_THAT(ask_driver(reset_of("GPU-1")), HasSubstr("has no rules for it"));
  const std::string own = data_dir() + "/driver.rules";
  in_process_of(kService, [&]() -> std::string {
    std::ofstream(own) << "allow reset\n";
    return "";
  });
  restart_with_rules(own);
  EXPECT_THAT(ask_driver(reset_of("GPU-1")), HasSubstr("belongs to user 38"));
  const std::string roots = folder_.path() + "/driver.rules";
  restart_with_rules(roots);
  EXPECT_THAT(ask_driver(reset_of("GPU-1")), HasSubstr("root writes \"allow reset\" into"));
  std::ofstream(roots) << "allow check\n";
  chmod(roots.c_str(), 0644);
  EXPECT_THAT(ask_driver(reset_of("GPU-1")), HasSubstr("they do not allow it"));
}

TEST_F(AttackOnTheDriver, ProgramsOfABoardThatTheDaemonNamesHaveItsRightsAlone) {
  const std::string board = data_dir() + "/n1";
  const Finished made = run_command({program("gpu-emulator"), "create", "--board", "dgx-h100",
                                     "--node-name", "n1", "--dir", board});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string library = program("emulator/libnvidia-ml.so.1");
  const Finished listed =
      run_command({"/usr/bin/env", "GPU_EMULATOR_STATE=" + board + "/state",
                   "LD_LIBRARY_PATH=" + program("emulator"), program("emulator/bin/nvidia-smi"),
                   "-i", "0", "--query-gpu=uuid", "--format=csv,noheader"});
  const std::string gpu = lines_of(listed.out).at(0);
  const std::string planted = data_dir() + "/planted";
  const std::string said = data_dir() + "/said";
  in_process_of(kService, [&]() -> std::string {
    std::ofstream(planted) << "#!/bin/sh\nid > " << said
                           << "\ngrep -E '^Cap(Prm|Eff)' /proc/self/status >> " << said << "\n";
    chmod(planted.c_str(), 0755);
    return "";
  });
  node::RunDriver order = reset_of(gpu);
  order.board = node::BoardFiles{library, board + "/state", planted};
  EXPECT_EQ(ask_driver(order), "");
  const std::string rights = read_file(said);
  EXPECT_THAT(rights, HasSubstr("uid=38"));
  EXPECT_THAT(rights, HasSubstr("CapPrm:\t0000000000000000"));
  EXPECT_THAT(rights, HasSubstr("CapEff:\t0000000000000000"));
}

// ---- records: what one says is believed only of what is proved to be that attempt's

// A process of root that no record speaks of by right.
class Bystander {
 public:
  Bystander() {
    char* arguments[] = {const_cast<char*>("/bin/sleep"), const_cast<char*>("1000"), nullptr};
    (void)!posix_spawn(&pid_, "/bin/sleep", nullptr, nullptr, arguments, environ);
  }
  ~Bystander() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  pid_t pid() const { return pid_; }
  bool is_untouched() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }

 private:
  pid_t pid_ = -1;
};

TEST_F(AttackOnTheLauncher, RecordsCannotBeForged) {
  run(1, {"true"});
  const std::string done = in_process_of(kService, [&]() -> std::string {
    if (open(record_path(1).c_str(), O_RDWR) >= 0) return "rewrote a record";
    if (open(record_path(2).c_str(), O_RDWR | O_CREAT, 0600) >= 0) return "made a record";
    if (unlink(record_path(1).c_str()) == 0) return "removed a record";
    if (link(record_path(1).c_str(), record_path(3).c_str()) == 0) return "linked a record";
    return "";
  });
  EXPECT_EQ(done, "");
}

TEST_F(AttackOnTheLauncher, LockOnARecordIsNoProofOfASupervisor) {
  const Bystander bystander;
  run(1, {"true"});
  // As if the number of the supervisor had been given to the bystander since; only root can write
  // this, so the test does.
  node::Record old = record(1);
  old.beginning->supervisor_pid = static_cast<std::uint32_t>(bystander.pid());
  // Both may have begun within one tick of the clock; a number comes round again much later.
  old.beginning->supervisor_ticks = node::start_ticks_of(bystander.pid()) - 1;
  std::ofstream(record_path(1), std::ios::binary) << node::encode_new_record(*old.beginning);
  int lock[2];
  ASSERT_EQ(pipe(lock), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    const bool is_user = setgroups(0, nullptr) == 0 &&
                         setresgid(kService, kService, kService) == 0 &&
                         setresuid(kService, kService, kService) == 0;
    const int fd = open(record_path(1).c_str(), O_RDONLY);
    const bool is_locked = is_user && fd >= 0 && flock(fd, LOCK_EX) == 0;
    (void)!write(lock[1], is_locked ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(lock[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');  // a reader may lock: that must not be enough
  EXPECT_EQ(ask(node::Stop{{model::JobId(1), 1}, true, 0, 1}),
            node::Message(node::StopSent{{model::JobId(1), 1}, false}));
  say(node::SetLimit{{model::JobId(1), 1}, 1});
  EXPECT_EQ(ask(node::Stop{{model::JobId(1), 1}, false, 0, 1}),
            node::Message(node::StopSent{{model::JobId(1), 1}, false}));
  EXPECT_TRUE(bystander.is_untouched());
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  close(lock[0]);
  close(lock[1]);
}

TEST_F(AttackOnTheLauncher, RecordThatNamesAForeignCgroupKillsNothingInIt) {
  const auto mount =
      lines_of(run_command({"/usr/bin/awk", "$3 == \"cgroup2\" { print $2 }", "/proc/mounts"}).out);
  ASSERT_FALSE(mount.empty());
  const std::string foreign = mount.front() + "/gp-attack-" + std::to_string(getpid());
  for (const std::string& cgroup : {foreign, foreign + "/7-1"}) {
    std::error_code error;
    std::filesystem::create_directory(cgroup, error);
    if (error) GTEST_SKIP() << "no cgroup can be made here";
  }
  {
    const Bystander bystander;
    std::ofstream(foreign + "/7-1/cgroup.procs") << bystander.pid();
    std::uint64_t number = 6;
    for (const std::string& named :
         {foreign + "/7-1", foreign + "/7-1/../7-1", "/sys/fs/cgroup/../cgroup" + foreign,
          mount.front(), std::string("/"), std::string("/proc/self/cwd")}) {
      node::Beginning forged;
      forged.attempt = {model::JobId(++number), 1};
      forged.boot_id = boot_id();
      forged.supervisor_pid = static_cast<std::uint32_t>(bystander.pid());
      forged.cgroup = named;
      std::ofstream(record_path(number), std::ios::binary) << node::encode_new_record(forged);
      EXPECT_EQ(ask(node::KillTree{forged.attempt}),
                node::Message(node::TreeState{forged.attempt, false}))
          << named;
      EXPECT_TRUE(bystander.is_untouched()) << named;
    }
  }
  std::filesystem::remove(foreign + "/7-1");
  std::filesystem::remove(foreign);
}

TEST_F(AttackOnTheLauncher, NoWayIntoAJobAsAnotherUserThanItsOwn) {
  kill_launcher();
  start_launcher();  // accounts of the system may have jobs, so that there are two users
  greet();
  EXPECT_EQ(launch(1, {"exec sleep 1000", 1}), "");
  ASSERT_TRUE(eventually([&] { return record(1).started.has_value(); }));
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const std::string request = request_of({"touch " + job_file("entered"), kUser});
  const int file = memfd_create("request", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(write(file, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0);
  os::send_packet(ends[0], node::encode_channel_start({}), file);
  say(node::OpenChannel{{model::JobId(1), 1}, false}, ends[1]);
  close(ends[1]);
  char buffer[4096];
  const os::Packet packet = os::receive_packet(ends[0], buffer, sizeof buffer);
  EXPECT_THAT(std::string(packet.bytes), HasSubstr("the job is another user's"));
  close(ends[0]);
  close(file);
  EXPECT_FALSE(std::filesystem::exists(job_file("entered")));
  say(node::Stop{{model::JobId(1), 1}, true, 0, 1});
}

// ---- devices

TEST_F(AttackOnTheLauncher, OnlyGpusOfTheNodeAreGivenToAJob) {
  std::uint64_t number = 0;
  for (const node::DeviceNumber device : std::vector<node::DeviceNumber>{{1, 1},
                                                                         {1, 4},
                                                                         {8, 0},
                                                                         {10, 1},
                                                                         {195, 248},
                                                                         {195, 254},
                                                                         {195, 255},
                                                                         {226, 128},
                                                                         {5, 1}}) {
    EXPECT_EQ(launch(++number, {"true", kUser, {device}}),
              "device " + std::to_string(device.major) + ":" + std::to_string(device.minor) +
                  " is not a GPU of this node");
  }
}

TEST_F(AttackOnTheLauncher, ModeSettingIsClosedToJobsWithGpusUnlessTheSiteOpensIt) {
  if (!held_.contains(node::Guard::kDevices)) GTEST_SKIP() << "advisory on this host";
  const std::string node = job_file("modeset");
  ASSERT_EQ(mknod(node.c_str(), S_IFCHR | 0666, makedev(195, 254)), 0);
  chmod(node.c_str(), 0666);
  const std::string script = "exec 2>&1; exec 3< " + node;
  EXPECT_THAT(run(1, {script, kUser, {{195, 0}}}), HasSubstr("Operation not permitted"));
  kill_launcher();
  start_launcher(of_one_user({"--mode-setting", "allow"}));
  greet();
  // There is no driver behind it, but it may be asked.
  EXPECT_THAT(run(2, {script, kUser, {{195, 0}}}), Not(HasSubstr("not permitted")));
}

// ---- frames

TEST_F(AttackOnTheLauncher, DamagedAndOversizedMessagesEndTheConnectionAndNothingElse) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), std::string(1, '\0'), std::string(node::kMaxMessage, 'x'),
        node::encode(node::Welcome{}),
        node::encode(node::Launch{{model::JobId(1), 1}, true, {}})}) {
    os::send_packet(socket_, bytes);
    hear();
    greet();
  }
  EXPECT_EQ(run(9, {"echo well"}), "well\n");
}

}  // namespace
}  // namespace gpu_platform::e2e
