#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "harness.h"

// A daemon, and Slurm's commands as people and programs call them.

namespace gpu_platform::e2e {

class SlurmCommands : public testing::Test {
 protected:
  explicit SlurmCommands(DaemonOptions options = {}) : daemon(std::move(options)) {}
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  // One command with the folder of links first in PATH, in the test's directory.
  Finished call(const std::vector<std::string>& words,
                const std::vector<std::string>& environment = {},
                const std::string& input = {}) const {
    std::vector<std::string> command = {"/usr/bin/env", "--chdir=" + files.path(),
                                        "PATH=" + program("slurm-shims") + ":/usr/bin:/bin",
                                        "GPU_PLATFORM_SERVER=unix:" + daemon.socket()};
    command.insert(command.end(), environment.begin(), environment.end());
    command.insert(command.end(), words.begin(), words.end());
    return run_command(command, {}, input);
  }
  // What a command that must work prints.
  std::string out(const std::vector<std::string>& words) const {
    const Finished finished = call(words);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out;
  }
  // What a command that must be refused says.
  std::string refusal(const std::vector<std::string>& words) const {
    const Finished finished = call(words);
    EXPECT_EQ(finished.exit_code, 1) << finished.out;
    return finished.err;
  }
  std::string path(const std::string& name) const { return files.path() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }

  // The id of a submission that must work.
  std::string sbatch(std::vector<std::string> words, const std::string& input = {}) const {
    words.insert(words.begin(), {"sbatch", "--parsable"});
    const Finished finished = call(words, {}, input);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out.substr(0, finished.out.find('\n'));
  }
  bool reaches(const std::string& id, const std::string& state) const {
    return eventually([&] { return daemon.job(id)["state"] == state; });
  }

  Daemon daemon;
  TemporaryDirectory files;
};

}  // namespace gpu_platform::e2e
