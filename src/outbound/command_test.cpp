#include "outbound/command.h"

#include <stdlib.h>
#include <sys/eventfd.h>

#include <thread>

#include <gtest/gtest.h>

#include "os/descriptor.h"
#include "os/testing/eventually.h"
#include "outbound/folder_fixture.h"

namespace gpu_platform::outbound {
namespace {

class CommandTest : public testing::Test {
 protected:
  Channel channel(std::string_view script, std::vector<std::string> arguments = {}) const {
    std::vector<std::string> command{folder_.script("program", script)};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return {.name = "page", .kind = ChannelKind::kCommand, .command = command};
  }
  static Delivery delivery() {
    return {.channel = "page", .key = "k1", .subject = "GPU 3 is hot", .body = "{\"a\":1}"};
  }
  // A killed process may stay for a while as one that its parent has not asked for.
  bool is_running(const std::string& pid_file) const {
    std::string pid = folder_.read(pid_file);
    while (pid.ends_with('\n')) pid.pop_back();
    std::ifstream in("/proc/" + pid + "/stat");
    const std::string stat{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return !stat.empty() && stat.substr(stat.rfind(')') + 2, 1) != "Z";
  }

  Folder folder_;
};

TEST_F(CommandTest, GetsTheBodyAndItsArgumentsWithoutAShell) {
  const std::string out = folder_.path() + "/out";
  const Outcome outcome = run_command(
      channel("cat >" + out + "; echo \"|$1\" >>" + out, {"$HOME; touch x"}), delivery(), -1);
  EXPECT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  EXPECT_EQ(folder_.read("out"), "{\"a\":1}|$HOME; touch x\n");
}

TEST_F(CommandTest, HasASmallEnvironment) {
  setenv("GP_OUTBOUND_TEST_SECRET", "hunter2", 1);
  const Outcome outcome = run_command(channel("env >" + folder_.path() + "/out"), delivery(), -1);
  unsetenv("GP_OUTBOUND_TEST_SECRET");
  EXPECT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  const std::string environment = folder_.read("out");
  EXPECT_NE(environment.find("GPU_PLATFORM_CHANNEL=page\n"), std::string::npos) << environment;
  EXPECT_NE(environment.find("GPU_PLATFORM_KEY=k1\n"), std::string::npos);
  EXPECT_NE(environment.find("GPU_PLATFORM_SUBJECT=GPU 3 is hot\n"), std::string::npos);
  EXPECT_EQ(environment.find("hunter2"), std::string::npos);
}

TEST_F(CommandTest, FailsWithItsExitCode) {
  const Outcome outcome = run_command(channel("exit 3"), delivery(), -1);
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.problem, "the command ends with exit code 3");
  Channel none = channel("");
  none.command = {folder_.path() + "/none"};
  EXPECT_EQ(run_command(none, delivery(), -1).kind, Outcome::Kind::kFailed);
}

TEST_F(CommandTest, IsKilledWithItsGroupAtTheTimeout) {
  Channel slow = channel("sleep 1000 & echo $! >" + folder_.path() + "/pid; wait");
  // The program has begun before it is killed, also on a loaded machine.
  slow.timeout = base::seconds(5);
  const Outcome outcome = run_command(slow, delivery(), -1);
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
  EXPECT_NE(outcome.problem.find("was killed"), std::string::npos) << outcome.problem;
  EXPECT_TRUE(os::eventually([&] { return !is_running("pid"); }));
}

TEST_F(CommandTest, IsKilledWhenItIsStopped) {
  Channel slow = channel("echo $$ >" + folder_.path() + "/pid; exec sleep 1000");
  slow.timeout = base::hours(1);
  const os::Descriptor stop(eventfd(0, EFD_CLOEXEC));
  Outcome outcome;
  std::thread runner([&] { outcome = run_command(slow, delivery(), stop.get()); });
  EXPECT_TRUE(os::eventually([&] { return folder_.read("pid").ends_with('\n'); }));
  EXPECT_EQ(eventfd_write(stop.get(), 1), 0);
  runner.join();
  EXPECT_EQ(outcome.kind, Outcome::Kind::kStopped);
  EXPECT_FALSE(is_running("pid"));
}

}  // namespace
}  // namespace gpu_platform::outbound
