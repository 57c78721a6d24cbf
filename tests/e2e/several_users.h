#pragma once

#include <gtest/gtest.h>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "harness.h"

namespace gpu_platform::e2e {

// A daemon of root, and users that call it, each as a process of its own with its own rights. Users
// are named by their accounts: kAnn, kBob, "root". Skips where this process may not be them.
class SeveralUsers : public ::testing::Test {
 protected:
  explicit SeveralUsers(DaemonOptions options = {}) : daemon_(std::move(options)) {}

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: acts as several users";
    if (as(kAnn, {"/usr/bin/test", "-x", program("gpu-platform")}).exit_code != 0) {
      GTEST_SKIP() << "closed to other users";
    }
    start();
  }

  // Starts the daemon, whose socket all of them reach.
  void start() {
    ASSERT_TRUE(daemon_.start()) << daemon_.log();
    chmod(daemon_.directory().c_str(), 0755);
  }

  // Runs a command as that user.
  static Finished as(const char* user, std::vector<std::string> command,
                     const std::vector<std::string>& environment = {},
                     const std::string& input = {}) {
    const passwd* account = getpwnam(user);
    command.insert(command.begin(), {"/usr/bin/env", "-C", "/"});
    return run_command(as_account({user, std::to_string(account->pw_gid)}, command), environment,
                       input);
  }

  // Runs the command line as that user.
  Finished by(const char* user, std::vector<std::string> arguments,
              const std::string& input = {}) const {
    arguments.insert(arguments.begin(),
                     {program("gpu-platform"), "--server", "unix:" + daemon_.socket()});
    return as(user, std::move(arguments), {}, input);
  }

  Daemon daemon_;
};

}  // namespace gpu_platform::e2e
