// Jobs with an image, through the whole platform and a real container engine: a Podman service of
// the test's own, with an image that is made here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "containers_fixture.h"
#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Containers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(site_.path().c_str(), 0755);
    std::filesystem::create_directory(file("data"));
    std::ofstream(file("data/hello")) << "from the host\n";
    std::ofstream(file("secret")) << "root's\n";
    chmod(file("secret").c_str(), 0600);
    write_rules("image localhost/gp-test:*\nannotation org.example/*\nmount " + file("data") +
                " ro\nmount " + file("out") + "\nmount " + file("closed") + "\n");
    daemon_ = std::make_unique<Daemon>(
        DaemonOptions{.config = "execution:\n  containers: " + file("rules") + "\n"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  static bool is_on_arm() {
    utsname host{};
    uname(&host);
    return std::string(host.machine) == "aarch64";
  }
  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  void write_rules(const std::string& lines) const {
    std::ofstream(file("rules")) << "socket " << engine_.socket()
                                 << "\nulimit nofile 1024\nulimit nproc 1024\n"
                                 << lines;
    chmod(file("rules").c_str(), 0644);
  }
  static std::vector<std::string> in_image(std::vector<std::string> options,
                                           const std::vector<std::string>& command) {
    std::vector<std::string> words = {"--gpus", "0", "--user", "backup", "--image", kImage};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  std::string submit(const std::vector<std::string>& options, const std::string& script) {
    return daemon_->submit(in_image(options, {"sh", "-c", script}));
  }
  nlohmann::json ended(const std::string& id) {
    daemon_->cli({"jobs", "wait", id});
    return daemon_->job(id);
  }
  std::string output(const std::string& id) { return daemon_->cli({"jobs", "logs", id}).out; }
  bool says(const std::string& id, const std::string& text) {
    const bool does = eventually([&] { return output(id).find(text) != std::string::npos; });
    if (!does) ADD_FAILURE() << output(id) << daemon_->job(id).dump(2);
    return does;
  }
  Finished refused(const std::vector<std::string>& options) {
    std::vector<std::string> words = in_image(options, {"true"});
    words.insert(words.begin(), "submit");
    return daemon_->cli(words);
  }
  // Nothing of a container is left, with the engine or as a process.
  bool nothing_is_left() {
    return eventually([&] {
      return engine_.containers().empty() && daemon_->processes("gp-supervisor").empty();
    });
  }

  Engine engine_;
  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(Containers, AJobRunsInItsImageAsItsUserAndEndsWithItsExitCode) {
  const std::string id = submit({}, "cat /etc/motd; id -u; echo aside >&2; exit 7");
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["state"], "FAILED") << job.dump(2);
  EXPECT_EQ(job["exit_code"], 7) << job.dump(2) << output(id);
  EXPECT_EQ(job["spec"]["image"], kImage);
  // What goes to one stream keeps its order; Docker's engine has no order for both.
  EXPECT_THAT(output(id),
              AllOf(HasSubstr("from the image\n"), HasSubstr("34\n"), HasSubstr("aside\n")));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Containers, TheContainerHasWhatWasAskedForAndNoMore) {
  setenv("GP_TEST_CALLER", "mine", 1);
  const std::string id = submit(
      {"--env", "COLOUR=red", "--container-env-from-host", "GP_TEST_CALLER", "--mount",
       file("data") + ":/in:ro", "--tmpfs", "/scratch:8M", "--shm-size", "32M",
       "--container-workdir", "/tmp"},
      "env; cat /in/hello; touch /in/new || echo read-only; pwd; df -m /dev/shm | tail -n 1; "
      "touch /scratch/a && echo scratch; grep -e NoNewPrivs -e CapEff -e Seccomp: "
      "/proc/self/status; ls /sys/class/net");
  EXPECT_EQ(ended(id)["state"], "COMPLETED") << output(id);
  const std::string text = output(id);
  EXPECT_THAT(text, AllOf(HasSubstr("COLOUR=red\n"), HasSubstr("GP_TEST_CALLER=mine\n"),
                          HasSubstr("GPU_PLATFORM_JOB_ID=" + id + "\n")));
  EXPECT_THAT(text, AllOf(HasSubstr("from the host\n"), HasSubstr("read-only\n"),
                          HasSubstr("\n/tmp\n"), HasSubstr(" 32 "), HasSubstr("scratch\n")));
  EXPECT_THAT(text, AllOf(HasSubstr("NoNewPrivs:\t1"), HasSubstr("CapEff:\t0000000000000000"),
                          HasSubstr("Seccomp:\t2")));
  EXPECT_THAT(text, Not(HasSubstr("eth0")));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Containers, AnAnnotationThatTheRulesAllowIsTheContainers) {
  const std::string id =
      submit({"--annotation", "org.example/purpose=test=1"}, "echo ready; sleep 1000");
  ASSERT_TRUE(says(id, "ready"));
  EXPECT_EQ(daemon_->job(id)["spec"]["annotations"],
            nlohmann::json({{"org.example/purpose", "test=1"}}));
  EXPECT_THAT(daemon_->cli({"jobs", "describe", id}).out, HasSubstr("org.example/purpose=test=1"));
  const Finished found =
      run_command(engine_.tool({"ps", "--quiet", "--filter", "label=org.example/purpose=test=1"}));
  EXPECT_EQ(lines_of(found.out).size(), 1U) << found.out << found.err;
  daemon_->cli({"jobs", "kill", id});
  ended(id);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Containers, AnImageForAnotherArchitectureIsRefusedBeforeItIsUsed) {
  const bool is_arm = is_on_arm();
  const std::string ours = is_arm ? "linux/arm64" : "linux/amd64";
  const std::string other = is_arm ? "linux/amd64" : "linux/arm64";
  ASSERT_EQ(engine_.add_image("localhost/gp-test:other", {}, {}, other), "");
  const struct {
    std::vector<std::string> options;
    std::string why;
  } cases[] = {
      {{"--image", "localhost/gp-test:other"}, "is for " + other + ", and this node is " + ours},
      {{"--image", "localhost/gp-test:other", "--platform", ours, "--pull", "never"},
       "is here for " + other + " and not for " + ours},
      {{"--platform", other}, "--platform is for " + other + ", and this node is " + ours},
  };
  for (const auto& [options, why] : cases) {
    const nlohmann::json job = ended(submit(options, "echo it ran"));
    EXPECT_EQ(job["exit_code"], 125) << job.dump(2);
    EXPECT_THAT(job["attempts"][0]["detail"].get<std::string>(), HasSubstr(why));
  }
  const nlohmann::json right = ended(submit({"--platform", ours}, "echo it ran"));
  EXPECT_EQ(right["state"], "COMPLETED") << right.dump(2);
  EXPECT_EQ(right["spec"]["container_platform"], ours);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Containers, ACancelledContainerGetsItsGraceAndOneThatIgnoresItIsKilled) {
  const std::string polite =
      submit({}, "trap 'echo bye; exit 3' TERM; echo ready; while true; do sleep 0.1; done");
  ASSERT_TRUE(says(polite, "ready"));
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", polite}).exit_code, 0);
  EXPECT_EQ(ended(polite)["state"], "CANCELLED");
  EXPECT_THAT(output(polite), HasSubstr("bye"));
  const std::string deaf = submit({}, "trap '' TERM; echo ready; while true; do sleep 1; done");
  ASSERT_TRUE(says(deaf, "ready"));
  EXPECT_EQ(daemon_->cli({"jobs", "kill", deaf}).exit_code, 0);
  EXPECT_EQ(ended(deaf)["state"], "CANCELLED");
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Containers, AContainerOutlivesTheDaemonAndTheEngine) {
  const std::string id = submit({"--mount", file("data") + ":/in:ro"},
                                "echo ready; until test -e /in/go; do sleep 0.1; done; exit 5");
  ASSERT_TRUE(says(id, "ready"));
  daemon_->kill_now();
  engine_.stop();
  ASSERT_EQ(engine_.serve(), "");
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  EXPECT_EQ(daemon_->job(id)["state"], "RUNNING");
  std::ofstream(file("data/go")) << "";
  EXPECT_EQ(ended(id)["exit_code"], 5) << daemon_->job(id).dump(2);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Containers, AProgramThatIsNotInTheImageFailsWith127) {
  const std::string id = daemon_->submit(in_image({"--retries", "2"}, {"no-such-program"}));
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["state"], "FAILED");
  EXPECT_EQ(job["attempts"].size(), 1U) << job.dump(2);  // it would fail again every time
  EXPECT_EQ(job["exit_code"], 127) << job.dump(2);
  EXPECT_THAT(job["attempts"][0]["detail"].get<std::string>(), HasSubstr("no-such-program"));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Containers, WhatTheSitesRulesForbidIsNotStarted) {
  std::filesystem::create_symlink(file("secret"), file("link"));
  std::filesystem::create_directory(file("closed"));
  std::ofstream(file("closed/file")) << "root's\n";
  chmod(file("closed").c_str(), 0700);
  std::filesystem::create_directory(file("out"));
  std::filesystem::create_symlink(file("secret"), file("out/link"));
  const struct {
    std::vector<std::string> options;
    const char* why;
  } cases[] = {
      {{"--image", "docker.io/library/busybox:1"}, "not allowed by this site's rules"},
      {{"--network", "host"}, "network host"},
      {{"--annotation", "run.oci.handler=x"}, "allowed are: org.example/*"},
      {{"--mount", "/etc:/in:ro"}, "do not allow it"},
      {{"--mount", file("data") + ":/in"}, "only to read"},
      {{"--mount", file("out") + "/link:/in"}, "symbolic link"},
      {{"--mount", file("closed") + "/file:/in"}, "Permission denied"},
      {{"--image", "localhost/gp-test:2", "--pull", "never"}, "--pull never"},
  };
  for (const auto& [options, why] : cases) {
    std::vector<std::string> words = {"--gpus", "0", "--user", "backup"};
    if (options[0] != "--image") words.insert(words.end(), {"--image", kImage});
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    const std::string id = daemon_->submit(words);
    const nlohmann::json job = ended(id);
    EXPECT_EQ(job["state"], "FAILED") << why;
    EXPECT_EQ(job["exit_code"], 125) << why;
    EXPECT_THAT(job["attempts"][0]["detail"].get<std::string>(), HasSubstr(why));
  }
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Containers, WhatMakesNoSenseIsRefusedAtOnce) {
  const struct {
    std::vector<std::string> options;
    const char* why;
  } cases[] = {
      {{"--mount", "/a/../b:/c"}, "--mount: "},
      {{"--mount", "/a:/proc"}, "--mount: "},
      {{"--mount", "/sys:/s"}, "--mount: "},
      {{"--tmpfs", "/a"}, "--tmpfs: "},
      {{"--shm-size", "1B"}, "--shm-size"},
      {{"--network", "all"}, "--network"},
      {{"--pull", "sometimes"}, "--pull"},
      {{"--container-workdir", "a"}, "--container-workdir"},
      {{"--platform", "windows/amd64"}, "--platform"},
      {{"--annotation", "gpu-platform.attempt=1-1"}, "--annotation"},
      {{"--annotation", "a b=c"}, "--annotation"},
      {{"--nodes", "2", "--gpus", "2"}, "--image"},
  };
  for (const auto& [options, why] : cases) {
    const Finished done = refused(options);
    EXPECT_NE(done.exit_code, 0) << why;
    EXPECT_THAT(done.err, HasSubstr(why)) << done.err;
  }
  std::vector<std::string> thousand;
  for (int i = 0; i < 1000; ++i) {
    thousand.insert(thousand.end(), {"--mount", "/a:/b" + std::to_string(i)});
  }
  EXPECT_NE(refused(thousand).exit_code, 0);
}

TEST(Container, AnImageIsRefusedWhereThereIsNoEngine) {
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const Finished done = daemon.cli({"submit", "--gpus", "0", "--image", kImage, "--", "true"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_THAT(done.err, HasSubstr("this daemon has no container engine (execution.containers)"));
}

}  // namespace
}  // namespace gpu_platform::e2e
