// A hostile user with a hostile image: each test says what is tried from within a container, and
// what refuses it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>

#include "containers_fixture.h"
#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class AttackFromAContainer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(site_.path().c_str(), 0755);
    for (const char* const name : {"open", "data"}) std::filesystem::create_directory(file(name));
    chmod(file("open").c_str(), 0777);
    std::ofstream(file("secret")) << "what only root reads\n";
    chmod(file("secret").c_str(), 0600);
    std::ofstream(file("rules")) << "socket " << engine_.socket()
                                 << "\nulimit nofile 1024\nulimit nproc 1024\n"
                                 << "image localhost/*\nmount " << file("open") << "\nmount "
                                 << file("data") << " ro\n";
    chmod(file("rules").c_str(), 0644);
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .config = "execution:\n  containers: " + file("rules") + "\n  output_limit: 1M\n"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_TRUE(eventually([&] { return engine_.containers().empty(); }));
    EXPECT_EQ(daemon_->cli({"status"}).exit_code, 0) << "the platform goes on";
  }

  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  std::string submit(const std::vector<std::string>& options, const std::string& script) {
    std::vector<std::string> words = {"--gpus", "0", "--user", "backup", "--image", kImage};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/busybox", "sh", "-c", script});
    return daemon_->submit(words);
  }
  nlohmann::json ended(const std::string& id) {
    daemon_->cli({"jobs", "wait", id});
    return daemon_->job(id);
  }
  std::string output(const std::string& id) { return daemon_->cli({"jobs", "logs", id}).out; }
  // What the script prints, on both streams, when it has ended.
  std::string said(const std::vector<std::string>& options, const std::string& script) {
    const std::string id = submit(options, script);
    ended(id);
    return output(id);
  }
  std::string why(const nlohmann::json& job) {
    const nlohmann::json& detail = job["attempts"][0]["detail"];
    return detail.is_string() ? detail.get<std::string>() : job.dump(2);
  }
  std::uintmax_t kept_output_bytes() const {
    return bytes_below(daemon_->node_folder() + "/output");
  }
  bool says(const std::string& id, const std::string& text) {
    return eventually([&] { return output(id).find(text) != std::string::npos; });
  }

  Engine engine_;
  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

// ---- who it is

TEST_F(AttackFromAContainer, ProgramsOfRootWithTheSetuidBitGiveNoRights) {
  const std::string image = engine_.add_image("localhost/setuid:1", [](const std::string& root) {
    std::filesystem::copy_file(root + "/bin/busybox", root + "/bin/su");
    chmod((root + "/bin/su").c_str(), 04755);
    std::ofstream(root + "/etc/passwd") << "root::0:0::/:/bin/sh\nevil::0:0::/:/bin/sh\n";
    std::ofstream(root + "/etc/shadow") << "root::::::::\n";
  });
  ASSERT_EQ(image, "");
  const std::string text =
      said({"--image", "localhost/setuid:1"},
           "/bin/su root -c 'echo root is: ; id -u' 2>&1 || echo no root; id -u; "
           "grep -e CapBnd -e CapPrm -e NoNewPrivs /proc/self/status");
  EXPECT_THAT(text, AllOf(HasSubstr("no root\n34\n"), Not(HasSubstr("root is")),
                          HasSubstr("CapBnd:\t0000000000000000"), HasSubstr("NoNewPrivs:\t1")));
}

TEST_F(AttackFromAContainer, AnImagesOwnUserIsNotTaken) {
  const std::string image = engine_.add_image("localhost/rooted:1", {}, {"USER 0:0"});
  ASSERT_EQ(image, "");
  EXPECT_THAT(said({"--image", "localhost/rooted:1"}, "id -u; id -g"), HasSubstr("34\n34\n"));
}

// ---- devices

TEST_F(AttackFromAContainer, DevicesCanNeitherBeMadeNorOpenedWhereTheirModesAllowIt) {
  ASSERT_EQ(mknod(file("open/gpu").c_str(), S_IFCHR | 0666, makedev(195, 200)), 0);
  ASSERT_EQ(mknod(file("open/disk").c_str(), S_IFBLK | 0666, makedev(7, 0)), 0);
  ASSERT_EQ(mknod(file("open/memory").c_str(), S_IFCHR | 0666, makedev(1, 1)), 0);
  for (const char* const name : {"gpu", "disk", "memory"})
    chmod(file("open/").append(name).c_str(), 0666);
  const std::string text = said(
      {"--mount", file("open") + ":/open"},
      "B=/bin/busybox; $B mknod /tmp/fresh c 195 0; $B mknod /open/fresh c 195 0; "
      "for f in gpu disk memory; do dd if=/open/$f of=/dev/null count=0 && echo opened $f; done");
  EXPECT_THAT(text, Not(HasSubstr("opened")));
  EXPECT_THAT(text, AllOf(ContainsRegex("open/gpu.*(not permitted|denied)"),
                          ContainsRegex("open/disk.*(not permitted|denied)"),
                          ContainsRegex("open/memory.*(not permitted|denied)")));
  EXPECT_FALSE(std::filesystem::exists(file("open/fresh")));
}

// ---- mounts

TEST_F(AttackFromAContainer, AFolderSwappedForALinkLeadsNowhere) {
  std::filesystem::create_directory(file("open/real"));
  std::ofstream(file("open/real/name")) << "harmless\n";
  std::atomic<bool> is_over = false;
  std::thread swapper([&] {
    const std::string name = file("open/swapped");
    while (!is_over) {
      std::error_code error;
      std::filesystem::create_directory_symlink(site_.path(), name, error);
      std::filesystem::remove(name, error);
      std::filesystem::create_directory(name, error);
      std::filesystem::remove(name, error);
    }
  });
  std::vector<std::string> jobs;
  for (int i = 0; i < 12; ++i) {
    jobs.push_back(submit({"--mount", file("open/swapped") + ":/in"}, "ls /in; cat /in/secret"));
  }
  for (const std::string& id : jobs) {
    const nlohmann::json job = ended(id);
    EXPECT_THAT(output(id), AllOf(Not(HasSubstr("rules")), Not(HasSubstr("what only root"))));
    if (job["exit_code"] == 125) {
      EXPECT_THAT(why(job), AnyOf(HasSubstr("symbolic link"), HasSubstr("No such file"),
                                  HasSubstr("error mounting")));
    }
  }
  is_over = true;
  swapper.join();
}

TEST_F(AttackFromAContainer, WhatOnlyRootReadsStaysUnreadThroughAMountOfItsFolder) {
  std::filesystem::copy_file(file("secret"), file("data/secret"));
  chmod(file("data/secret").c_str(), 0600);
  const std::string text =
      said({"--mount", file("data") + ":/in:ro"},
           "cat /in/secret; touch /in/new; B=/bin/busybox; $B mount -o remount,rw /in; "
           "$B mount -t tmpfs none /tmp; $B umount /in; touch /in/newer; $B chroot / true; "
           "ls /in");
  EXPECT_THAT(text, AllOf(HasSubstr("cat: can't open '/in/secret': Permission denied"),
                          Not(HasSubstr("what only root")), HasSubstr("\nsecret\n")));
  EXPECT_FALSE(std::filesystem::exists(file("data/new")));
  EXPECT_FALSE(std::filesystem::exists(file("data/newer")));
}

TEST_F(AttackFromAContainer, TheEnginesSocketCannotBeMounted) {
  // Even where the site's rules would let a folder above it be mounted.
  std::ofstream(file("rules"), std::ios::app)
      << "mount " << std::filesystem::path(engine_.socket()).parent_path().string() << "\n";
  const std::string id = submit({"--mount", engine_.socket() + ":/engine.sock"},
                                "ls -l /engine.sock; /bin/busybox nc local:/engine.sock </dev/null "
                                "&& echo connected");
  const nlohmann::json job = ended(id);
  EXPECT_THAT(output(id), Not(HasSubstr("connected")));
  EXPECT_NE(job["exit_code"], 0) << output(id);
}

TEST_F(AttackFromAContainer, NoReferenceThatIsNoneReachesTheEngine) {
  const char* const references[] = {
      "",           " ",          "a b",         "A",       "a:",         ":tag",   "a::b",
      "a@",         "a@sha256:1", "../a",        "a/../b",  "/a",         "a/",     "a//b",
      "-a",         "a:-b",       "a\nb",        "a?b=c",   "a#b",        "a%2fb",  "http://a/b",
      "docker://a", "a:b:c",      "a@sha256:zz", "a/B",     "a_",         ".a",     "a:tag/other",
      "a\\b",       "a\"b",       "$(true)",     "`true`",  "a;true",     "a|true", "a&b",
      "a'b",        "\xff\xfe",   "a\tb",        "[::1]/a", "host:port/a"};
  for (const char* const reference : references) {
    const Finished done =
        daemon_->cli({"submit", "--gpus", "0", "--image", reference, "--", "true"});
    EXPECT_NE(done.exit_code, 0) << reference;
    EXPECT_THAT(done.err, HasSubstr("image")) << reference;
  }
}

// ---- the kernel: processes, namespaces, cgroups, settings

TEST_F(AttackFromAContainer, ProcessesOfTheHostCannotBeSeenOrSignalled) {
  const std::string host = std::to_string(daemon_->pid());
  const std::string text = said({}, "ls /proc | grep -c '^[0-9]*$'; kill -0 " + host +
                                        " || echo no such process; ls /proc/1/root/etc; "
                                        "cat /proc/1/root/etc/shadow; cat /proc/net/unix | "
                                        "/bin/busybox wc -l");
  EXPECT_THAT(text, AllOf(HasSubstr("no such process"), HasSubstr("motd")));
  EXPECT_THAT(text, Not(HasSubstr("root:")));
  EXPECT_LE(std::stoi(text), 5) << text;
  EXPECT_THAT(text, HasSubstr("\n1\n")) << "no socket of the host, by the headline alone: " << text;
}

TEST_F(AttackFromAContainer, NamespacesCgroupsAndSettingsOfTheKernelAreClosed) {
  const std::string text =
      said({},
           "B=/bin/busybox; $B unshare -m true && echo unshared; "
           "$B nsenter -t 1 -m true && echo entered; echo 1 > /proc/sys/kernel/panic && echo set; "
           "echo c > /proc/sysrq-trigger && echo triggered; "
           "echo '|/tmp/x' > /proc/sys/kernel/core_pattern && echo core; "
           "for f in $($B find /sys/fs/cgroup -name cgroup.procs -o -name tasks); do "
           "  echo 0 > $f && echo moved; done; "
           "for f in $($B find /sys/fs/cgroup -name 'memory.max' -o -name 'memory.limit_in_bytes' "
           "  -o -name pids.max); do echo 9999999999 > $f && echo lifted; done; echo over");
  EXPECT_THAT(text, HasSubstr("over\n"));
  for (const char* const word :
       {"unshared", "entered", "\nset\n", "triggered", "\ncore\n", "moved", "lifted"}) {
    EXPECT_THAT(text, Not(HasSubstr(word)));
  }
}

// Podman's filter lets a user namespace be made, as the host lets a job without an image. Its root
// has rights over what is made in it alone.
TEST_F(AttackFromAContainer, TheRootOfAUserNamespaceChangesNothingOutsideIt) {
  const std::string text =
      said({"--mount", file("data") + ":/in:ro"},
           "B=/bin/busybox; for c in 'mount -o remount,rw,bind /in' 'umount /in' 'umount /proc' "
           "'mknod /tmp/gpu c 195 0' 'nsenter -t 1 -m true' 'chroot /proc/1/root cat "
           "/etc/shadow' 'sysctl -w kernel.panic=1'; do "
           "$B unshare -r -m $B $c && echo did: $c; done; "
           "$B unshare -r -m $B touch /in/new && echo did: touch; "
           "$B unshare -r $B id -u; echo over");
  EXPECT_THAT(text, AllOf(HasSubstr("over\n"), Not(HasSubstr("did:"))));
  EXPECT_FALSE(std::filesystem::exists(file("data/new")));
}

TEST_F(AttackFromAContainer, WhatIsLeftBehindEndsWithTheContainer) {
  const std::string name = "sleep 31" + std::to_string(getpid() % 10'000 + 10'000);
  const std::string id = submit({},
                                "B=/bin/busybox; for i in 1 2 3 4; do "
                                "(trap '' TERM HUP; $B setsid $B " +
                                    name +
                                    " &) & done; "
                                    "sleep 0.3; echo begun; exit 3");
  EXPECT_EQ(ended(id)["exit_code"], 3) << output(id);
  EXPECT_TRUE(eventually([&] {
    return run_command({"/usr/bin/pgrep", "-f", name}).exit_code == 1;
  })) << "processes of the job are left";
}

TEST_F(AttackFromAContainer, AForkBombEndsWithItsJob) {
  const std::string id = submit({}, "echo begun; b() { b | b & b; }; b; sleep 1000");
  EXPECT_TRUE(says(id, "begun"));
  EXPECT_EQ(said({}, "echo another works"), "another works\n");
  // Its shell gives up by itself where fork fails.
  daemon_->cli({"jobs", "kill", id});
  EXPECT_THAT(ended(id)["state"], AnyOf("CANCELLED", "FAILED"));
}

TEST_F(AttackFromAContainer, MemoryIsBoundedAlsoInDevShmAndTmpfs) {
  const std::string shm = submit({"--memory", "64M", "--shm-size", "1G"},
                                 "dd if=/dev/zero of=/dev/shm/x bs=1M count=512; echo wrote $?");
  const std::string tmpfs = submit({"--memory", "64M", "--tmpfs", "/scratch:1G"},
                                   "dd if=/dev/zero of=/scratch/x bs=1M count=512; echo wrote $?");
  for (const std::string& id : {shm, tmpfs}) {
    ended(id);
    EXPECT_THAT(output(id), Not(HasSubstr("wrote 0"))) << daemon_->job(id).dump(2);
  }
}

// ---- its program

TEST_F(AttackFromAContainer, ProgramsThatCannotBeExecutedSayWhy) {
  std::ofstream(file("open/text")) << "no program";
  chmod(file("open/text").c_str(), 0644);
  const auto run = [&](const std::string& program) {
    return ended(daemon_->submit({"--gpus", "0", "--user", "backup", "--image", kImage, "--mount",
                                  file("open") + ":/open", "--entrypoint", program, "--", "x"}));
  };
  EXPECT_EQ(run("/no/such")["exit_code"], 127);
  EXPECT_EQ(run("/open/text")["exit_code"], 126);
  EXPECT_EQ(run("/etc")["exit_code"], 126);
}

TEST_F(AttackFromAContainer, OutputWithoutEndIsCutAndTheJobCanBeCancelled) {
  const std::string id = submit({"--mount", file("open") + ":/open"},
                                "yes 0123456789 | head -c 8M; touch /open/printed; yes for ever");
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(file("open/printed")); }));
  // The engine may still have much of it.
  EXPECT_TRUE(eventually([&] { return kept_output_bytes() >= std::uintmax_t{1} << 20; }));
  EXPECT_EQ(daemon_->cli({"jobs", "kill", id}).exit_code, 0);
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["state"], "CANCELLED");
  EXPECT_THAT(job["detail"].dump(), HasSubstr("execution.output_limit")) << job.dump(2);
  EXPECT_LE(kept_output_bytes(), std::uintmax_t{2} << 20);
}

}  // namespace
}  // namespace gpu_platform::e2e
