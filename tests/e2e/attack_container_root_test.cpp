// A hostile user who prepares an image, folders and a specification so that what has root's rights,
// the engine and its runtime, acts on them: each test says what is tried, and what refuses it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>

#include "containers_fixture.h"
#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uid_t kMallory = 21060;  // who attacks
constexpr uid_t kVictimUid = 21070;
constexpr const char* kOfRootsGroup = "what only root's group reads";

// The attacker's account, which is a member of the group 2106, for this process and those that it
// starts: engine and daemon see the same files.
class Accounts {
 public:
  Accounts() : cwd_(std::filesystem::current_path()) {
    before_ = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    const std::string user = std::to_string(kMallory);
    is_there_ = before_ >= 0 && unshare(CLONE_NEWNS) == 0 &&
                mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                add("passwd", "mallory:x:" + user + ":" + user + "::/:/bin/sh\n") &&
                add("group", "mallory:x:" + user + ":\nteam:x:2106:mallory\n");
  }
  ~Accounts() {
    if (before_ < 0) return;
    (void)setns(before_, CLONE_NEWNS);
    close(before_);
    std::filesystem::current_path(cwd_);
  }
  Accounts(const Accounts&) = delete;
  Accounts& operator=(const Accounts&) = delete;
  bool are_there() const { return is_there_; }

 private:
  bool add(const std::string& name, const std::string& lines) const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << read_file("/etc/" + name) << lines;
    chmod(path.c_str(), 0644);
    return mount(path.c_str(), ("/etc/" + name).c_str(), nullptr, MS_BIND, nullptr) == 0;
  }

  std::filesystem::path cwd_;
  TemporaryDirectory folder_;
  int before_ = -1;
  bool is_there_ = false;
};

class AttackFromAContainerOnRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: the engine's containers are root's";
    if (!may_have_private_mounts())
      GTEST_SKIP() << "the mounts of this root cannot be made private";
    accounts_.emplace();
    ASSERT_TRUE(accounts_->are_there());
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(site_.path().c_str(), 0755);
    make_folder("open", 0777, 0);
    make_folder("open/mine", 0700, kMallory);
    make_folder("open/victim", 0700, kVictimUid);
    make_folder("data", 0755, 0);
    std::ofstream(file("data/secret")) << kOfRootsGroup << "\n";
    chmod(file("data/secret").c_str(), 0640);
    std::ofstream(file("open/mine/group")) << "2106:x:0:\nroot:x:0:\n";
    write_rules("");
    start_daemon();
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_TRUE(eventually([&] { return engine_.containers().empty(); }));
    EXPECT_TRUE(std::filesystem::is_empty(file("open/victim"))) << "root made something there";
  }

  void start_daemon() {
    daemon_ = std::make_unique<Daemon>(
        DaemonOptions{.config = "execution:\n  containers: " + file("rules") + "\n"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  void write_rules(const std::string& further) const {
    std::ofstream(file("rules")) << "socket " << engine_.socket()
                                 << "\nulimit nofile 1024\nulimit nproc 1024\n"
                                 << "image localhost/*\nmount " << file("open") << "\nmount "
                                 << file("data") << " ro\n"
                                 << further;
    chmod(file("rules").c_str(), 0644);
  }
  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  void make_folder(const std::string& name, mode_t mode, uid_t owner) const {
    std::filesystem::create_directory(file(name));
    chmod(file(name).c_str(), mode);
    ASSERT_EQ(chown(file(name).c_str(), owner, owner), 0);
  }
  void add_image(const std::string& name,
                 const std::function<void(const std::string& root)>& change,
                 const std::vector<std::string>& lines = {}) {
    ASSERT_EQ(engine_.add_image(name, change, lines), "");
  }

  std::vector<std::string> words(const std::vector<std::string>& options,
                                 const std::string& script) const {
    std::vector<std::string> words = {"--gpus", "0", "--user", "mallory", "--image", kImage};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/busybox", "sh", "-c", script});
    return words;
  }
  // What the job printed, and why it failed if it did.
  std::string tried(const std::vector<std::string>& options,
                    const std::string& script = "echo it ran") {
    const std::string id = daemon_->submit(words(options, script));
    daemon_->cli({"jobs", "wait", id});
    const nlohmann::json detail = daemon_->job(id)["attempts"][0]["detail"];
    return daemon_->cli({"jobs", "logs", id}).out +
           (detail.is_string() ? detail.get<std::string>() : "");
  }
  std::string refused(const std::vector<std::string>& options) {
    std::vector<std::string> all = words(options, "true");
    all.insert(all.begin(), "submit");
    const Finished done = daemon_->cli(all);
    return done.exit_code == 0 ? "accepted" : done.err;
  }
  bool says(const std::string& id, const std::string& text) {
    return eventually(
        [&] { return daemon_->cli({"jobs", "logs", id}).out.find(text) != std::string::npos; });
  }
  std::string mine(const std::string& target) const { return file("open/mine") + ":" + target; }
  std::string whole(const std::string& target) const { return file("open") + ":" + target; }

  std::optional<Accounts> accounts_;  // ends last
  TemporaryDirectory site_;
  Engine engine_;
  std::unique_ptr<Daemon> daemon_;
};

// ---- who it is

// An engine looks a group up by its name first. Podman then takes the platform's own file, which it
// has mounted; Docker the image's, so that the container is not let go on.
TEST_F(AttackFromAContainerOnRoot, AGroupOfTheImageThatIsCalledAsANumberIsNotTaken) {
  add_image("localhost/groups:1", [](const std::string& root) {
    std::ofstream(root + "/etc/group") << "2106:x:0:\n";
    std::ofstream(root + "/etc/passwd") << "m:x:21060:0::/:/bin/sh\n";
  });
  const std::string said =
      tried({"--image", "localhost/groups:1", "--mount", file("data") + ":/in:ro"},
            "echo ids $(id -u) $(id -G); cat /in/secret");
  EXPECT_THAT(said, Not(HasSubstr(kOfRootsGroup)));
  EXPECT_THAT(said, engine_.is_docker() ? HasSubstr("the engine started it in group 0")
                                        : HasSubstr("Permission denied"));
  EXPECT_THAT(said, AnyOf(HasSubstr("ids 21060 21060 2106\n"), HasSubstr("in group 0")));
}

TEST_F(AttackFromAContainerOnRoot, AJobHasExactlyTheGroupsOfItsUser) {
  EXPECT_THAT(tried({}, "id -G; grep -e Uid -e Gid -e Groups /proc/self/status; cat /etc/group"),
              AllOf(HasSubstr("21060 2106\n"), HasSubstr("Uid:\t21060\t21060\t21060\t21060\n"),
                    HasSubstr("Gid:\t21060\t21060\t21060\t21060\n"), HasSubstr("2106:x:2106:\n"),
                    Not(HasSubstr("x:0:"))));
}

TEST_F(AttackFromAContainerOnRoot, NothingIsMountedOverTheFilesThatSayWhoItIs) {
  const std::string source = file("open/mine/group");
  for (const char* const target :
       {"/etc", "/etc/", "/etc/group", "/etc/passwd", "/etc/ssl/x", "/etc/./group",
        "/x/../etc/group", "//etc/group", "/etc//group", "/", "/proc/1", "/dev/gpu-platform",
        "/dev/gpu-platform-start"}) {
    EXPECT_THAT(refused({"--mount", source + ":" + target}), HasSubstr("target")) << target;
    EXPECT_THAT(refused({"--tmpfs", std::string(target) + ":1M"}), HasSubstr("folder")) << target;
  }
  add_image("localhost/links:1", [](const std::string& root) {
    std::filesystem::create_directory_symlink("etc", root + "/names");
    std::filesystem::create_directory(root + "/deep");
    std::filesystem::create_directory_symlink("../names", root + "/deep/link");
    std::filesystem::create_symlink("/etc/group", root + "/file");
    std::filesystem::create_directory_symlink("/proc", root + "/kernel");
    std::filesystem::create_directory_symlink("../../dev", root + "/devices");
    std::filesystem::create_directory_symlink("/", root + "/all");
  });
  const std::string own = "echo $(cat /etc/group | /bin/busybox wc -l) groups; cat /etc/group";
  for (const std::string& mount :
       {source + ":/names/group", source + ":/deep/link/group", source + ":/file",
        source + ":/deep/link/made", mine("/names"), mine("/deep/link"), mine("/kernel"),
        mine("/kernel/1"), mine("/devices"), mine("/devices/shm"), mine("/all"),
        source + ":/devices/gpu-platform-start"}) {
    EXPECT_THAT(tried({"--image", "localhost/links:1", "--mount", mount}, own),
                AllOf(HasSubstr("mount at"), Not(HasSubstr("groups")), Not(HasSubstr("x:0:"))))
        << mount;
  }
  EXPECT_THAT(tried({"--image", "localhost/links:1", "--tmpfs", "/names:1M"}, own),
              HasSubstr("is in /etc"));
}

TEST_F(AttackFromAContainerOnRoot, AnImageWhoseEtcOrDevIsElsewhereDoesNotRun) {
  add_image("localhost/moved:1", [](const std::string& root) {
    std::filesystem::rename(root + "/etc", root + "/other");
    std::filesystem::create_directory_symlink("other", root + "/etc");
  });
  // Docker makes a folder of its own there.
  EXPECT_THAT(
      tried({"--image", "localhost/moved:1"}, "cat /etc/group"),
      engine_.is_docker() ? HasSubstr("2106:x:2106:\n") : HasSubstr("links or volumes of its own"));
  const auto restored = [](const std::string& root) {
    std::filesystem::remove(root + "/etc");
    std::filesystem::rename(root + "/other", root + "/etc");
  };
  int number = 0;
  for (const char* const volume :
       {"/etc", "/dev", "/x/../etc/ssl", "/proc/x", "/sys", "//dev//shm"}) {
    const std::string name = "localhost/volume:" + std::to_string(++number);
    add_image(name, number == 1 ? restored : std::function<void(const std::string&)>(),
              {std::string("VOLUME ") + volume});
    EXPECT_THAT(tried({"--image", name}),
                AllOf(HasSubstr("has a volume that"), Not(HasSubstr("it ran"))))
        << volume;
  }
}

// Engines look for a command's groups in the image's own file, below the one that is mounted over
// it. That file is the platform's as well, and no user can put another one there.
TEST_F(AttackFromAContainerOnRoot, ACommandBesideAContainerHasTheGroupsOfItsUser) {
  add_image("localhost/open:1", [](const std::string& root) {
    std::ofstream(root + "/etc/group") << "";
    std::filesystem::create_hard_link(root + "/etc/group", root + "/name");
    for (const char* const name : {"", "/etc", "/etc/group"}) chmod((root + name).c_str(), 0777);
    ASSERT_EQ(chown(root.c_str(), kMallory, kMallory), 0);
  });
  const std::string id =
      daemon_->submit(words({"--image", "localhost/open:1", "--mount", file("data") + ":/in:ro"},
                            "B=/bin/busybox; echo 2106:x:0: > /name; echo 2106:x:0: > /etc/group; "
                            "$B mv /etc /old; $B mkdir /etc; echo 2106:x:0: > /etc/group; "
                            "$B mv /dev/gpu-platform-start /dev/old; $B mv /dev /olddev; "
                            "touch /made && echo ready; exec $B sleep 1000"));
  ASSERT_TRUE(says(id, "ready")) << daemon_->job(id).dump(2);
  const Finished done =
      daemon_->cli({"jobs", "exec", id, "--", "sh", "-c", "echo ids $(id -G); cat /in/secret"});
  EXPECT_THAT(done.out + done.err,
              AllOf(HasSubstr("ids 21060 2106\n"), Not(HasSubstr(kOfRootsGroup))));
  daemon_->cli({"jobs", "kill", id});
  daemon_->cli({"jobs", "wait", id});
}

// Podman's filter lets the first process have mounts of its own, and a command enters these.
TEST_F(AttackFromAContainerOnRoot, AProgramInThePlaceOfTheOneThatWaitsGetsNoFurtherRights) {
  add_image("localhost/fake:1",
            [](const std::string& root) {
              std::filesystem::remove(root + "/name");
              std::ofstream(root + "/fake")
                  << "#!/bin/sh\n{ id -u; id -G; cat /in/secret; } > /open/mine/said 2>&1\n";
              chmod((root + "/fake").c_str(), 0755);
            });
  const std::string id = daemon_->submit(
      words({"--image", "localhost/fake:1", "--mount", file("data") + ":/in:ro", "--mount",
             whole("/open")},
            "B=/bin/busybox; echo 2106:x:0: > /etc/group; $B mv /etc /old; $B mkdir /etc; "
            "echo 2106:x:0: > /etc/group; $B unshare -r -m true && exec $B unshare -r -m $B sh -c "
            "'$0 mount --bind /fake /dev/gpu-platform-start; echo ready; exec $0 sleep 1000' $B; "
            "echo ready; exec $B sleep 1000"));
  ASSERT_TRUE(says(id, "ready")) << daemon_->job(id).dump(2);
  const Finished done = daemon_->cli({"jobs", "exec", id, "--", "sh", "-c", "id -G"});
  const std::string said = done.out + done.err + read_file(file("open/mine/said"));
  EXPECT_THAT(said, AllOf(HasSubstr("21060 2106\n"), Not(HasSubstr(kOfRootsGroup))));
  EXPECT_THAT(said, Not(AnyOf(HasSubstr(" 0\n"), HasSubstr(" 0 "))));
  daemon_->cli({"jobs", "kill", id});
  daemon_->cli({"jobs", "wait", id});
}

// ---- where root would write

TEST_F(AttackFromAContainerOnRoot, NoPlaceIsMadeInTheFolderOfAnotherUser) {
  std::filesystem::create_directory_symlink("../victim", file("open/mine/link"));
  std::filesystem::create_directory_symlink("/mnt/victim", file("open/mine/absolute"));
  add_image("localhost/alias:1",
            [](const std::string& root) {
              std::filesystem::create_directory_symlink("/mnt/victim", root + "/alias");
            },
            {"WORKDIR /mnt/victim/started"});
  add_image("localhost/kept:1",
            [](const std::string& root) { std::filesystem::remove(root + "/alias"); },
            {"VOLUME /mnt/victim/volume"});
  const std::string keys = file("open/mine/group") + ":/mnt/victim/authorized_keys";
  const std::vector<std::string> cases[] = {
      {"--mount", mine("/mnt/victim/made")},
      {"--mount", keys},
      {"--mount", mine("/mnt/victim/a/b/c")},
      {"--tmpfs", "/mnt/victim/memory:1M"},
      {"--container-workdir", "/mnt/victim/work"},
      {"--image", "localhost/alias:1"},
      {"--image", "localhost/alias:1", "--mount", mine("/alias/made")},
      {"--image", "localhost/alias:1", "--tmpfs", "/alias/memory:1M"},
      {"--mount", mine("/mnt/mine/link/made")},
      {"--mount", mine("/mnt/mine/absolute/made")},
      {"--tmpfs", "/mnt/mine/link/memory:1M"},
  };
  for (std::vector<std::string> options : cases) {
    options.insert(options.begin(), {"--mount", whole("/mnt")});
    EXPECT_THAT(tried(options), AllOf(AnyOf(HasSubstr("Permission denied"),
                                            HasSubstr("symbolic link inside another mount")),
                                      Not(HasSubstr("it ran"))))
        << options.back();
    EXPECT_TRUE(std::filesystem::is_empty(file("open/victim"))) << options.back();
  }
  tried({"--image", "localhost/kept:1", "--mount", whole("/mnt")});
}

TEST_F(AttackFromAContainerOnRoot, APlaceInAUsersOwnFolderIsMadeByThatUser) {
  EXPECT_THAT(tried({"--mount", mine("/w"), "--mount", file("data") + ":/w/in/here:ro", "--tmpfs",
                     "/w/scratch:1M", "--container-workdir", "/w/run/here"},
                    "pwd; ls /w/in/here; echo x > /w/scratch/x && echo scratch"),
              AllOf(HasSubstr("/w/run/here\n"), HasSubstr("secret\n"), HasSubstr("scratch\n")));
  for (const char* const name : {"in", "in/here", "scratch", "run", "run/here"}) {
    struct stat about{};
    ASSERT_EQ(stat((file("open/mine/") + name).c_str(), &about), 0) << name;
    EXPECT_EQ(about.st_uid, kMallory) << name;
    EXPECT_EQ(about.st_gid, kMallory) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(file("open/mine/scratch/x")));
}

TEST_F(AttackFromAContainerOnRoot, AReadOnlyRootGetsItsPlacesAndStaysReadOnly) {
  write_rules("writable none\n");
  EXPECT_THAT(
      tried({"--mount", file("data") + ":/not/there:ro", "--tmpfs", "/nor/this:1M"},
            "ls /not/there; touch /nor/this/x && echo memory; touch /x; touch "
            "/not/there/x"),
      AllOf(HasSubstr("secret\n"), HasSubstr("memory\n"), HasSubstr("/x: Read-only file system"),
            HasSubstr("/not/there/x: Read-only file system")));
}

TEST_F(AttackFromAContainerOnRoot, AFolderSwappedForALinkGetsNoPlace) {
  std::atomic<bool> is_over = false;
  std::thread swapper([&] {
    const std::string name = file("open/mine/sub");
    while (!is_over) {
      std::error_code error;
      std::filesystem::create_directory_symlink("../victim", name, error);
      std::filesystem::remove(name, error);
      std::filesystem::create_directory(name, error);
      (void)chown(name.c_str(), kMallory, kMallory);
      std::filesystem::remove_all(name, error);
    }
  });
  std::vector<std::string> jobs;
  for (int i = 0; i < 12; ++i) {
    jobs.push_back(
        daemon_->submit(words({"--mount", whole("/mnt"), "--mount", mine("/mnt/mine/sub/made"),
                               "--container-workdir", "/mnt/mine/sub/work"},
                              "echo it ran")));
  }
  for (const std::string& id : jobs) daemon_->cli({"jobs", "wait", id});
  is_over = true;
  swapper.join();
  EXPECT_TRUE(std::filesystem::is_empty(file("open/victim")));
}

TEST_F(AttackFromAContainerOnRoot, NoDirectoryToStartInIsTheKernels) {
  for (const char* const folder :
       {"/proc", "/proc/self/fd/7", "/sys/fs", "/dev/shm", "/x/../proc"}) {
    EXPECT_THAT(refused({"--container-workdir", folder}), HasSubstr("--container-workdir"))
        << folder;
  }
  int number = 0;
  for (const char* const folder : {"/proc/self/fd/7", "/sys", "/dev", "/x/../proc/1/root"}) {
    const std::string name = "localhost/workdir:" + std::to_string(++number);
    add_image(name, {}, {std::string("WORKDIR ") + folder});
    EXPECT_THAT(tried({"--image", name}),
                AllOf(HasSubstr("which belongs to the engine"), Not(HasSubstr("it ran"))))
        << folder;
  }
}

// What the platform starts a container with runs before the look at it: neither the image nor the
// variables of the job change what it does.
TEST_F(AttackFromAContainerOnRoot, TheProgramThatWaitsIsNoneOfTheImages) {
  add_image("localhost/early:1", [](const std::string& root) {
    std::filesystem::create_directories(root + "/dev/gpu-platform");
    for (const char* const name : {"/dev/gpu-platform-start", "/dev/gpu-platform/start"}) {
      std::ofstream(root + name) << "#!/bin/sh\necho early; id -G\n";
      chmod((root + name).c_str(), 0755);
    }
    std::ofstream(root + "/etc/ld.so.preload") << "/tmp/evil.so\n";
  });
  const std::string said =
      tried({"--image", "localhost/early:1", "--env", "LD_PRELOAD=/tmp/evil.so", "--env",
             "GLIBC_TUNABLES=glibc.malloc.check=3"},
            "echo it ran; ls -ld /dev/gpu-platform-start");
  EXPECT_THAT(said, AllOf(HasSubstr("it ran\n"), Not(HasSubstr("early")), HasSubstr("-rwx--x--x")));
}

}  // namespace
}  // namespace gpu_platform::e2e
