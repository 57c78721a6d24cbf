#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "harness.h"

// These tests check what is said of a job at its end: to its owner how much of what was asked for
// it used, to the site's notification command that it has ended.

namespace gpu_platform::e2e {
namespace {

class Told : public testing::Test {
 protected:
  // A command that notes one line of JSON per call; it fails for jobs of the name "unheard".
  void SetUp() override {
    std::ofstream(command()) << "#!/bin/sh\n"
                                "line=$(cat)\n"
                                "case $line in *unheard*) exit 9;; esac\n"
                                "printf '%s %s%s %s\\n' \"$GPU_PLATFORM_EVENT\" \"$1\" "
                                "\"$GPU_PLATFORM_NOTIFY_TO\" \"$line\" >> " +
                                    told() + "\n";
    ASSERT_EQ(chmod(command().c_str(), 0755), 0);
  }
  std::string command() const { return directory.path() + "/tell"; }
  std::string told() const { return directory.path() + "/told"; }
  std::string submit(Daemon& daemon, std::vector<std::string> arguments) {
    return daemon.submit(std::move(arguments));
  }
  std::vector<std::string> lines() const { return lines_of(read_file(told())); }

  TemporaryDirectory directory;
};

TEST_F(Told, TheSitesCommandHearsOfJobsThatAskForIt) {
  Daemon daemon{{.config = "execution:\n  notify_command: " + command() + " site-a\n"}};
  ASSERT_TRUE(daemon.start()) << daemon.log();
  submit(daemon, {"--", "/bin/true"});
  const std::string good = submit(daemon, {"--notify", "start,end", "--", "/bin/true"});
  ASSERT_TRUE(eventually([&] { return lines().size() == 2; })) << read_file(told());
  const std::string bad =
      submit(daemon, {"--notify", "fail", "--notify", "end", "--", "/bin/false"});
  ASSERT_TRUE(eventually([&] { return lines().size() == 3; })) << read_file(told());
  const std::string events[] = {"START", "END", "FAIL"};
  const std::string ids[] = {good, good, bad};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string line = lines()[i];
    const std::string begin = events[i] + " site-a ";
    ASSERT_TRUE(line.starts_with(begin)) << line;
    const auto document = nlohmann::json::parse(line.substr(begin.size()));
    EXPECT_EQ(document["event"], events[i]);
    EXPECT_EQ(document["job"]["id"], ids[i]);
  }
  EXPECT_EQ(daemon.job(bad)["spec"]["notify"], nlohmann::json({"END", "FAIL"}));
}

TEST_F(Told, TheSitesCommandGetsTheAddressThatTheJobNames) {
  Daemon daemon{{.config = "execution:\n  notify_command: " + command() + " \n"}};
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string address = "https://hooks.example.org/T0?job=1&x=$(id)";
  const std::string id =
      submit(daemon, {"--notify", "end", "--notify-to", address, "--", "/bin/true"});
  ASSERT_TRUE(eventually([&] { return lines().size() == 1; })) << read_file(told());
  const std::string begin = "END " + address + " ";
  ASSERT_TRUE(lines()[0].starts_with(begin)) << lines()[0];
  const auto document = nlohmann::json::parse(lines()[0].substr(begin.size()));
  EXPECT_EQ(document["job"]["spec"]["notify_to"], address);
  EXPECT_EQ(daemon.job(id)["spec"]["notify_to"], address);
  const Finished silent =
      daemon.cli({"submit", "--notify-to", "ada@example.org", "--", "/bin/true"});
  EXPECT_EQ(silent.exit_code, 2);
  EXPECT_NE(silent.err.find("--notify end,fail"), std::string::npos) << silent.err;
  // As Slurm's users name both.
  const Finished sbatch =
      run_command({"/usr/bin/env", "PATH=" + program("slurm-shims") + ":/usr/bin:/bin",
                   "GPU_PLATFORM_SERVER=unix:" + daemon.socket(), "sbatch", "--chdir=/tmp",
                   "-o/dev/null", "--mail-type=END", "--mail-user=ada@example.org", "--wrap=true"},
                  {}, "");
  ASSERT_EQ(sbatch.exit_code, 0) << sbatch.err;
  EXPECT_EQ(sbatch.err, "");
  ASSERT_TRUE(eventually([&] { return lines().size() == 2; })) << read_file(told());
  EXPECT_TRUE(lines()[1].starts_with("END ada@example.org ")) << lines()[1];
}

TEST_F(Told, ACommandThatFailsIsLoggedAndHoldsNothingUp) {
  Daemon daemon{{.config = "execution:\n  notify_command: " + command() + "\n"}};
  ASSERT_TRUE(daemon.start()) << daemon.log();
  submit(daemon, {"--notify", "end", "--name", "unheard", "--", "/bin/true"});
  EXPECT_TRUE(eventually([&] {
    return daemon.log().find("failed: exit code 9") != std::string::npos;
  })) << daemon.log();
  submit(daemon, {"--notify", "end", "--", "/bin/true"});
  EXPECT_TRUE(eventually([&] { return lines().size() == 1; }));
  ASSERT_EQ(daemon.terminate(), 0);
}

TEST_F(Told, WithoutACommandAskingForItIsRefused) {
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const Finished refused = daemon.cli({"submit", "--notify", "end", "--", "/bin/true"});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_NE(refused.err.find("execution.notify_command"), std::string::npos) << refused.err;
}

TEST_F(Told, AJobSaysAtItsEndWhatItUsedOfWhatItAskedFor) {
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string id =
      submit(daemon, {"--cpus", "2", "--memory", "1G", "--time", "1h", "--", "/bin/sh", "-c",
                      "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done"});
  ASSERT_TRUE(
      eventually([&] { return daemon.job(id)["state"] == "COMPLETED"; }, std::chrono::seconds(60)));
  const auto efficiency = daemon.job(id)["efficiency"];
  ASSERT_TRUE(efficiency.is_object()) << daemon.job(id);
  // One busy process on two CPUs.
  EXPECT_GT(efficiency["cpu"], 0.0);
  EXPECT_LT(efficiency["cpu"], 0.8);
  EXPECT_GT(efficiency["time"], 0.0);
  EXPECT_LT(efficiency["time"], 0.1);
  EXPECT_GT(efficiency["memory"], 0.0);
  EXPECT_LT(efficiency["memory"], 0.5);
  const std::string page = daemon.cli({"jobs", "describe", id}).out;
  EXPECT_NE(page.find("% of 2 CPUs, "), std::string::npos) << page;
  EXPECT_NE(page.find("% of 1 GiB, "), std::string::npos) << page;
  const std::string running = submit(daemon, {"--", "/bin/sleep", "1000"});
  EXPECT_TRUE(daemon.job(running)["efficiency"].is_null());
}

}  // namespace
}  // namespace gpu_platform::e2e
