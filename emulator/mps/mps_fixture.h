#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mps/mps_words.h"
#include "os/child_process.h"
#include "os/descriptor.h"
#include "os/small_file.h"
#include "os/testing/eventually.h"
#include "tool/node_files.h"

// A board with a folder for MPS, and the programs as a user starts them. All use the board's GPU 2.

namespace gpu_emulator {

// The emulated control daemon, or NVIDIA's own, where scripts/check_mps has it.
inline bool is_nvidias() {
  return getenv("GP_MPS_CONTROL") != nullptr;
}
inline std::string mps_control() {
  return is_nvidias() ? getenv("GP_MPS_CONTROL") : MPS_CONTROL;
}

class MpsTest : public ::testing::Test {
 protected:
  struct Answer {
    int exit_code = -1;
    std::string text;
  };

  void SetUp() override {
    char path[] = "/tmp/mps_test.XXXXXX";
    root_ = mkdtemp(path);
    const auto board = load_board(BOARDS_DIR "/t4x4.yaml");
    ASSERT_TRUE(board) << board.error().message;
    ASSERT_TRUE(create_node(*board, "n1", root_));
    file_.emplace(std::move(*StateFile::open(root_ + "/state", StateFile::Access::kWrite)));
    for (const char* const folder : {"/pipe", "/log"}) {
      std::filesystem::create_directory(root_ + folder);
    }
  }
  // A server ends when its daemon and its clients are gone.
  void TearDown() override {
    for (const auto& [pid, errors] : running_) kill(pid, SIGKILL);
    for (const auto& [pid, errors] : running_) waitpid(pid, nullptr, 0);
    file_.reset();
    std::filesystem::remove_all(root_);
  }

  std::string pipe_folder() const { return root_ + "/pipe"; }
  const GpuState& gpu() const { return file_->state().gpus[2]; }

  std::vector<std::string> environment() const {
    return {"PATH=/usr/bin:/bin", "GPU_EMULATOR_STATE=" + root_ + "/state",
            fmt::format("CUDA_VISIBLE_DEVICES={}", gpu().uuid),
            "CUDA_MPS_PIPE_DIRECTORY=" + pipe_folder(), "CUDA_MPS_LOG_DIRECTORY=" + root_ + "/log"};
  }

  pid_t start(const std::vector<std::string>& words, std::vector<std::string> environment) {
    const std::string errors = fmt::format("{}/errors.{}", root_, ++started_);
    const gpu_platform::os::Descriptor file(
        ::open(errors.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    gpu_platform::os::ChildProgram child;
    child.words = words;
    child.environment = std::move(environment);
    child.errors = file.get();
    const auto pid = gpu_platform::os::start_child_process(child);
    EXPECT_TRUE(pid);
    if (!pid) return -1;
    running_[*pid] = errors;
    errors_[*pid] = errors;
    return *pid;
  }

  // Starts a control daemon and waits until it answers.
  pid_t start_daemon() {
    const pid_t daemon = start({mps_control(), "-f"}, environment());
    EXPECT_TRUE(
        gpu_platform::os::eventually([&] { return ask("get_server_list").exit_code == 0; }));
    return daemon;
  }
  pid_t start_client(std::vector<std::string> options,
                     const std::vector<std::string>& variables = {}) {
    options.insert(options.begin(), GPU_WORKLOAD);
    std::vector<std::string> all = environment();
    all.insert(all.end(), variables.begin(), variables.end());
    return start(options, all);
  }
  // The same, and waits until it is on its GPU.
  pid_t serve_client(const std::vector<std::string>& options,
                     const std::vector<std::string>& variables = {}) {
    const pid_t client = start_client(options, variables);
    EXPECT_TRUE(gpu_platform::os::eventually([&] { return entry_of(client).has_value(); }));
    return client;
  }

  // Waits for its end. 128 and its number for a signal.
  int end_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    running_.erase(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // What it has written to standard error.
  std::string errors_of(pid_t child) {
    return gpu_platform::os::read_small_file(AT_FDCWD, errors_[child].c_str());
  }
  bool says(pid_t child, const std::string& text) {
    return gpu_platform::os::eventually(
        [&] { return errors_of(child).find(text) != std::string::npos; });
  }

  // Lines are separated as printf(1) has them.
  Answer ask(const std::string& commands, const std::string& folder) const {
    const std::string line = fmt::format("printf '{}\\n' | env CUDA_MPS_PIPE_DIRECTORY={} {} 2>&1",
                                         commands, folder, mps_control());
    Answer answer;
    std::FILE* const out = ::popen(line.c_str(), "re");
    if (out == nullptr) return answer;
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, out)) > 0;) {
      answer.text.append(buffer, n);
    }
    answer.exit_code = WEXITSTATUS(::pclose(out));
    return answer;
  }
  Answer ask(const std::string& commands) const { return ask(commands, pipe_folder()); }
  // The text of an answer, with which the front end ends with 0.
  std::string text_of(const std::string& commands) const {
    const Answer answer = ask(commands);
    EXPECT_EQ(answer.exit_code, 0) << commands;
    return answer.text;
  }

  // 0 without one.
  pid_t server() const { return static_cast<pid_t>(number_at(text_of("get_server_list"))); }
  std::vector<std::string> clients() const {
    return words_of(text_of(fmt::format("get_client_list {}", server())));
  }
  bool is_client(pid_t pid) const {
    const auto all = clients();
    return std::find(all.begin(), all.end(), fmt::format("{}", pid)) != all.end();
  }

  // What the GPU shows of the process.
  std::optional<ProcessReading> entry_of(pid_t pid) const {
    const GpuReading now = read_gpu(gpu());
    for (std::uint32_t i = 0; i < now.process_count; ++i) {
      if (now.processes[i].pid == static_cast<std::uint64_t>(pid)) return now.processes[i];
    }
    return std::nullopt;
  }
  std::uint64_t percent_of(pid_t pid) const {
    return entry_of(pid).value_or(ProcessReading{}).utilization_percent;
  }

  std::string root_;
  std::optional<StateFile> file_;

 private:
  int started_ = 0;
  std::map<pid_t, std::string> running_;
  std::map<pid_t, std::string> errors_;
};

}  // namespace gpu_emulator
