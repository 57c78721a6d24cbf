// Code that runs as the daemon's user, at the launcher of a node with a container engine: what a
// captured daemon could do with it beyond what it can do with processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <deque>
#include <fstream>

#include "containers_fixture.h"
#include "launcher_attack_fixture.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class AttackOnTheContainerPart : public AttackOnTheLauncher {
 protected:
  void SetUp() override {
    AttackOnTheLauncher::SetUp();
    if (IsSkipped()) return;
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    std::ofstream(place("secret")) << "what only root reads\n";
    chmod(place("secret").c_str(), 0600);
    std::filesystem::create_directory(place("closed"));
    std::ofstream(place("closed/name")) << "what only root reads\n";
    chmod(place("closed").c_str(), 0700);
    write_rules("");
    restart(of_one_user());
  }
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_TRUE(eventually([&] { return engine_.containers().empty(); }));
    }
    AttackOnTheLauncher::TearDown();
  }

  std::string place(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string rules() const { return place("rules"); }
  void write_rules(const std::string& further) const {
    std::ofstream(rules()) << "socket " << engine_.socket()
                           << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/*\nmount "
                           << folder_.path() << "/jobs\n"
                           << further;
    chmod(rules().c_str(), 0644);
  }
  void restart(std::vector<std::string> options) {
    kill_launcher();
    options.insert(options.end(), {"--containers", rules()});
    start_launcher(options);
    greet();
  }

  // Texts of a request end with a NUL and live as long as the test.
  std::string_view text(const std::string& value) { return texts_.emplace_back(value + '\0'); }
  // What a container of kImage is changed to.
  using Container = std::function<void(node::ContainerRequest&)>;
  Change in_container(const Container& change = {}) {
    return [this, change](node::LaunchRequest& request) {
      request.command = {text("/bin/busybox"), text("sh"), text("-c"), request.command.back()};
      request.container.image = text(kImage);
      request.private_folders = false;
      if (change) change(request.container);
    };
  }
  std::string tried(const Container& change, const std::string& script = "echo it ran") {
    return run(++number_, {script}, in_container(change));
  }

  Engine engine_;
  std::deque<std::string> texts_;
  std::uint64_t number_ = 0;
};

TEST_F(AttackOnTheContainerPart, WhatTheSitesRulesDoNotAllowIsRefusedWhoeverAsksForIt) {
  EXPECT_EQ(tried({}), "it ran\n") << "what they allow";
  EXPECT_THAT(tried([&](auto& c) { c.image = text("docker.io/evil/image:1"); }),
              HasSubstr("not allowed by this site's rules"));
  EXPECT_THAT(tried([&](auto& c) { c.network = 1; }), HasSubstr("network"));
  for (const char* const annotation :
       {"run.oci.handler=krun", "cdi.k8s.io/all=nvidia.com/gpu=all", "gpu-platform.attempt=9-9"}) {
    EXPECT_THAT(tried([&](auto& c) { c.annotations = {text(annotation)}; }),
                HasSubstr("annotation '"))
        << annotation;
  }
  for (const std::string& mount :
       {folder_.path() + ":/x", std::string("/:/x"), std::string("/etc:/x"),
        place("secret") + ":/x", folder_.path() + "/jobs/../secret:/x", std::string("relative:/x"),
        std::string("/etc"), std::string("/proc:/x"), folder_.path() + "/jobs:/proc/sys",
        engine_.socket() + ":/x"}) {
    EXPECT_THAT(tried([&](auto& c) { c.mounts = {text(mount)}; }),
                AllOf(HasSubstr("gpu-platform: "), Not(HasSubstr("it ran"))))
        << mount;
  }
}

TEST_F(AttackOnTheContainerPart, RequestsThatNoSpecificationHasAreRefused) {
  for (const char* const tmpfs : {"/x", "/x:1G,exec,suid", "/x:", "x:1G", "/proc:1G", "/../x:1G"}) {
    EXPECT_THAT(tried([&](auto& c) { c.tmpfs = {text(tmpfs)}; }), Not(HasSubstr("it ran")))
        << tmpfs;
  }
  EXPECT_THAT(tried([&](auto& c) {
                for (int i = 0; i < 1'000; ++i)
                  c.mounts.push_back(text("/a:/b" + std::to_string(i)));
              }),
              HasSubstr("more than"));
  for (const char* const platform : {"all", "linux/a&name=x", "windows/amd64", "linux/../x"}) {
    EXPECT_THAT(tried([&](auto& c) { c.platform = text(platform); }), HasSubstr("linux/ARCH"))
        << platform;
  }
  for (const char* const image :
       {"localhost/../x", "localhost/a?b=c", "localhost/a/json?x=", "-a"}) {
    EXPECT_THAT(tried([&](auto& c) { c.image = text(image); }), Not(HasSubstr("it ran"))) << image;
  }
}

TEST_F(AttackOnTheContainerPart, NamesThatMeanAllGpusDoNotReachTheEngine) {
  for (const char* const way : {"nodes", "cdi", "nvidia"}) {
    write_rules(std::string("gpus ") + way + "\n");
    for (const char* const name : {"all", "0", "void", "", "GPU-1,GPU-2", "../gpu", "GPU-"}) {
      EXPECT_THAT(tried([&](auto& c) { c.gpus = {text(name)}; }),
                  HasSubstr("is not the UUID of a GPU"))
          << way << " " << name;
    }
  }
  EXPECT_EQ(launch(++number_, {"true", kUser, {{195, 200}, {1, 1}}},
                   in_container([&](auto& c) { c.gpus = {text("GPU-1")}; })),
            "device 1:1 is not a GPU of this node");
}

// A board's files are the daemon's word, without a rule of the site.
TEST_F(AttackOnTheContainerPart, NoFileOfTheHostIsMountedAsThatOfABoard) {
  std::filesystem::create_symlink(place("secret"), job_file("link"));
  std::filesystem::create_directories(job_file("own"));
  std::ofstream(job_file("own/state")) << "the daemon's\n";
  std::ofstream(job_file("own/group")) << "2106:x:0:\n";
  std::filesystem::create_directory(place("theirs"));
  std::ofstream(place("theirs/state")) << "the daemon's\n";
  ASSERT_EQ(chown(place("theirs").c_str(), kService, kService), 0);
  const auto board = [&](const std::string& mount) {
    return [&, mount](node::ContainerRequest& c) {
      c.gpus = {text("GPU-1")};
      c.board_files = {text(mount)};
    };
  };
  const std::string look = "cat /x /x/name /etc/shadow; id -G; echo it ran";
  for (const std::string& source :
       {place("secret"), place("closed"), place("closed/name"), std::string("/etc/shadow"),
        std::string("/etc"), std::string("/root"), std::string("/usr"),
        std::string("/etc/hostname"), job_file("link"), job_file("own/state"), job_file("own"),
        place("theirs/state"), place("theirs/../rules"), engine_.socket(),
        std::string("/proc/self/environ")}) {
    for (const std::string& target : {source, std::string("/x"), std::string("/etc/group")}) {
      EXPECT_THAT(tried(board(source + ":" + target), look),
                  AllOf(HasSubstr("gpu-platform: "), Not(HasSubstr("it ran"))))
          << source << ":" << target;
    }
  }
  EXPECT_THAT(tried(board(job_file("own/group") + ":/etc/group"), look),
              HasSubstr("is in /etc, which belongs to the platform"));
  std::filesystem::create_directory(place("board"));
  std::ofstream(place("board/state")) << "root's\n";
  const std::string state = place("board/state");
  EXPECT_THAT(
      tried(board(state + ":" + state),
            "cat " + state + "; echo mine > " + state + "; echo it ran"),
      AllOf(HasSubstr("root's\n"), HasSubstr("Read-only file system"), HasSubstr("it ran\n")));
}

TEST_F(AttackOnTheContainerPart, WhatSaysWhoAJobIsComesFromTheLauncherAlone) {
  std::ofstream(job_file("group")) << "2106:x:0:\n";
  const auto mount = [&](const std::string& target) {
    return [&, target](node::ContainerRequest& c) { c.mounts = {text(target)}; };
  };
  for (const char* const target : {"/etc/group", "/etc", "/etc/", "/etc/passwd", "//etc/group",
                                   "/a/../etc/group", "/dev/gpu-platform", "/proc/1/root"}) {
    EXPECT_THAT(tried(mount(job_file("group") + ":" + target), "id -G; echo it ran"),
                AllOf(HasSubstr("gpu-platform: "), Not(HasSubstr("it ran"))))
        << target;
    EXPECT_THAT(tried([&](auto& c) { c.tmpfs = {text(std::string(target) + ":1M")}; }),
                AllOf(HasSubstr("gpu-platform: "), Not(HasSubstr("it ran"))))
        << target;
  }
  for (const char* const folder : {"/proc/self/fd/7", "/sys", "/dev", "relative", "/a/../proc"}) {
    EXPECT_THAT(tried([&](auto& c) { c.workdir = text(folder); }),
                AllOf(HasSubstr("the directory '"), Not(HasSubstr("it ran"))))
        << folder;
  }
}

TEST_F(AttackOnTheContainerPart, NeitherTheEngineNorItsRulesAreTheDaemons) {
  const std::string socket = engine_.socket();
  EXPECT_THAT(in_process_of(kService,
                            [&]() -> std::string {
                              const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
                              sockaddr_un address{};
                              address.sun_family = AF_UNIX;
                              socket.copy(address.sun_path, sizeof address.sun_path - 1);
                              const bool is_connected =
                                  connect(fd, reinterpret_cast<sockaddr*>(&address),
                                          sizeof address) == 0;
                              const bool is_written = std::ofstream(rules()).is_open();
                              return is_connected || is_written ? "got it" : "closed";
                            }),
              "closed");
  // Rules that others can write are none.
  chmod(rules().c_str(), 0666);
  EXPECT_THAT(tried({}), Not(HasSubstr("it ran")));
  chmod(rules().c_str(), 0644);
  ASSERT_EQ(chown(rules().c_str(), kService, 0), 0);
  EXPECT_THAT(tried({}), Not(HasSubstr("it ran")));
  ASSERT_EQ(chown(rules().c_str(), 0, 0), 0);
  EXPECT_EQ(tried({}), "it ran\n");
}

TEST_F(AttackOnTheContainerPart, NoImageMakesAJobRunAsRootOrAsAnAccountOfTheSystem) {
  for (const std::uint32_t uid : {0U, 1U, 999U}) {
    EXPECT_NE(launch(++number_, {"true", uid}, in_container()), "") << uid;
    EXPECT_FALSE(std::filesystem::exists(record_path(number_))) << uid;
  }
  EXPECT_EQ(run(++number_, {"/bin/busybox id -u"}, in_container()), "34\n");
}

TEST_F(AttackOnTheContainerPart, NoWayIntoAContainerAsAnotherUserThanItsOwn) {
  restart({});  // accounts of the system may have jobs, so that there are two users
  EXPECT_EQ(launch(1, {"sleep 1000", 1}, in_container()), "");
  ASSERT_TRUE(eventually([&] { return record(1).started && !engine_.containers().empty(); }));
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const std::string request = request_of({"echo entered"}, in_container());
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
  say(node::Stop{{model::JobId(1), 1}, true, 0, 1});
  EXPECT_TRUE(eventually([&] { return record(1).cleaned.has_value(); }));
}

}  // namespace
}  // namespace gpu_platform::e2e
