// A captured container part: a program in its place that says and does what it likes with what it
// is given. It has root's rights, as the real one, so what is held here is what it is given, and
// what is believed of its words.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "containers_fixture.h"
#include "launcher_attack_fixture.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kPrograms = "GP_PROGRAMS";

class AttackFromTheContainerPart : public AttackOnTheLauncher {
 protected:
  // The launcher takes the program that lies beside its own.
  void SetUp() override {
    ServiceFixture::SetUp();
    if (IsSkipped()) return;
    const std::string node = program("gpu-platform-node");
    std::filesystem::create_directory(place("programs"));
    std::filesystem::copy_file(node, place("programs/gpu-platform-node"));
    become("exit 0");
    std::ofstream(place("rules")) << "socket " << place("engine.sock") << "\nimage localhost/*\n";
    chmod(place("rules").c_str(), 0644);
    if (const char* const before = getenv(kPrograms)) before_ = before;
    setenv(kPrograms, place("programs").c_str(), 1);
    start_launcher(of_one_user({"--containers", place("rules")}));
    greet();
  }
  void TearDown() override {
    if (before_) {
      setenv(kPrograms, before_->c_str(), 1);
    } else {
      unsetenv(kPrograms);
    }
    AttackOnTheLauncher::TearDown();
  }

  std::string place(const std::string& name) const { return folder_.path() + "/" + name; }
  // From now on the container part does this: a shell's words. "run" and "exec" are its first.
  void become(const std::string& script) const {
    const std::string path = place("programs/gpu-platform-container");
    std::ofstream(path + ".new") << "#!/bin/sh\n[ \"$1\" = clean ] && exit 0\n" << script << "\n";
    chmod((path + ".new").c_str(), 0755);
    std::filesystem::rename(path + ".new", path);
  }
  Change in_image() {
    return [this](node::LaunchRequest& request) {
      image_ = with_nul(kImage);
      request.environment = {std::string_view("SECRET=of the job\0", 18),
                             std::string_view("LD_PRELOAD=/tmp/x.so\0", 21)};
      request.container.image = image_;
      request.private_folders = false;
    };
  }
  std::string tried(const std::string& script) {
    become(script);
    return run(++number_, {"echo never"}, in_image());
  }
  node::EndRecord end() const { return record(number_).end.value_or(node::EndRecord{}); }

  std::string image_;
  std::optional<std::string> before_;
  std::uint64_t number_ = 0;
};

TEST_F(AttackFromTheContainerPart, IsGivenItsRequestItsReportAndNothingElse) {
  const std::string said = tried("env; ls -l /proc/$$/fd; ulimit -c; pwd; umask");
  EXPECT_THAT(said, AllOf(Not(HasSubstr("SECRET")), Not(HasSubstr("LD_PRELOAD"))));
  for (const std::string& line : lines_of(said)) {
    if (line.find(" -> ") == std::string::npos) continue;
    // 10 is the script, which the shell itself has opened.
    EXPECT_THAT(line,
                ContainsRegex(" (0 -> /dev/null|[12] -> pipe:.*|3 -> /memfd:container-request.*"
                              "|4 -> .*/attempts/1-1[.]container|10 -> .*-container)$"))
        << said;
  }
}

// Of its words one line counts, without what could be another line, and never more than that.
TEST_F(AttackFromTheContainerPart, ItsReportForgesNothing) {
  for (const char* const report :
       {R"(failed: it\033[2J\ris\tover\nfailed: another\nclean\n)", R"(failed: \001\002\377\n)",
        R"(failed: level=error msg="forged"\nuid=0\n)"}) {
    tried(std::string("printf '") + report + "' >&4; exit 1");
    EXPECT_TRUE(record(number_).end.has_value()) << report;
    EXPECT_THAT(end().detail, Each(::testing::AllOf(::testing::Ge(' '), ::testing::Le('~'))));
    EXPECT_THAT(end().detail, Not(HasSubstr("another")));
  }
  tried("head -c 1000000 /dev/zero | tr '\\0' x >&4; exit 3");
  EXPECT_EQ(end().kind, node::EndKind::kExited);
  EXPECT_EQ(end().value, 3);
  EXPECT_LE(end().detail.size(), 1024U);
  tried("printf 'failed: ' >&4; head -c 1000000 /dev/zero | tr '\\0' x >&4; exit 3");
  EXPECT_LE(end().detail.size(), 1024U);
  tried("truncate -s 0 /proc/self/fd/4; printf 'oom\\nclean\\n' >&4; exit 0");
  EXPECT_EQ(end().cause, node::EndCause::kItself) << "it says out of memory and has ended well";
}

// What it prints is the job's output, within the job's bounds.
TEST_F(AttackFromTheContainerPart, ItsOutputIsBoundedAsAJobsIs) {
  tried("head -c 20000000 /dev/zero; exit 0");
  const std::uintmax_t size = bytes_below(node_folder() + "/output");
  EXPECT_GT(size, 0U);
  EXPECT_LE(size, 3U << 20);
}

// One that hangs, or that stays on purpose, holds its job's GPUs no longer than it is waited for.
TEST_F(AttackFromTheContainerPart, OneThatStaysAfterTheKillIsKilledItself) {
  kill_launcher();
  start_launcher(of_one_user({"--containers", place("rules"), "--containers-patience", "1s"}));
  greet();
  become(
      "trap '' USR1 TERM INT HUP; sleep 1000 & echo $! >$5/cgroup.procs\n"
      "printf 'ended\\nclean\\n' >&4; echo deaf; while :; do sleep 0.2; done");
  EXPECT_EQ(launch(++number_, {"echo never"}, in_image()), "");
  ASSERT_TRUE(eventually([&] { return output(number_) == "deaf\n"; })) << output(number_);
  ask(node::Stop{{model::JobId(number_), 1}, true, 0, 1});
  ASSERT_TRUE(eventually([&] { return record(number_).cleaned.has_value(); }));
  EXPECT_EQ(end().kind, node::EndKind::kSignalled);
  EXPECT_EQ(end().value, SIGKILL);
  EXPECT_EQ(end().cause, node::EndCause::kStopped);
  // So the launcher knows that something may be left with the engine.
  EXPECT_TRUE(std::filesystem::exists(record_path(number_) + ".container"));
}

// Another attempt's record is not its own, and its end is that of its own attempt.
TEST_F(AttackFromTheContainerPart, AnEndWithoutAWordIsTheAttemptsEnd) {
  for (const char* const script : {"kill -KILL $$", "exit 137", "exec 3<&- 4>&-; exit 0"}) {
    become(script);
    EXPECT_EQ(launch(++number_, {"echo never"}, in_image()), "");
    ASSERT_TRUE(eventually([&] { return record(number_).started.has_value(); })) << script;
    ask(node::Stop{{model::JobId(number_), 1}, true, 0, 1});
    EXPECT_TRUE(eventually([&] { return record(number_).cleaned.has_value(); })) << script;
  }
}

}  // namespace
}  // namespace gpu_platform::e2e
