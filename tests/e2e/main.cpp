#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>

#include "harness.h"

// The program of all end-to-end tests.

namespace gpu_platform::e2e {

int run_attack(int argc, char** argv);             // attack_job_test.cpp
int run_captured_listener(int argc, char** argv);  // attack_listener_budget_test.cpp

namespace {

// The tests of the file NAME_test.cpp, or of a suite NAME.h that it brings in, where the program is
// called as e2e_NAME_test; otherwise all.
std::string filter_for(std::string_view program) {
  constexpr std::string_view kPrefix = "e2e_";
  if (program.starts_with(kPrefix)) program.remove_prefix(kPrefix.size());
  std::string filter;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string file = std::filesystem::path(test.file()).stem();
      if (file != program && file + "_test" != program) continue;
      filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter.empty() ? "*" : filter;
}

// A line for each process: its id, its parent's, where in the kernel it waits, its command.
std::string process_list() {
  std::string list;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string command = read_file(entry.path() / "cmdline");
    const std::string stat = read_file(entry.path() / "stat");
    if (command.empty() || stat.empty()) continue;
    std::ranges::replace(command, '\0', ' ');
    // "PID (NAME) STATE PARENT …"; the name may have any characters.
    const std::size_t parent = stat.rfind(')') + 4;
    list += stat.substr(0, stat.find(' ')) + " of " +
            stat.substr(parent, stat.find(' ', parent) - parent) + " in " +
            read_file(entry.path() / "wchan") + ": " + command + "\n";
  }
  return list;
}

// Ends the program with a list of all processes when a test takes far longer than any should. All
// would only be told that the program ran out of time otherwise.
class Watch : public ::testing::EmptyTestEventListener {
 private:
  static constexpr std::chrono::minutes kLimit{4};

  void OnTestStart(const ::testing::TestInfo&) override {
    is_over_ = false;
    watcher_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      if (ended_.wait_for(lock, kLimit, [this] { return is_over_; })) return;
      std::fprintf(stderr, "The test takes more than 4 minutes. Processes:\n%s",
                   process_list().c_str());
      std::_Exit(EXIT_FAILURE);
    });
  }
  void OnTestEnd(const ::testing::TestInfo&) override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    ended_.notify_all();
    watcher_.join();
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread watcher_;
};

}  // namespace
}  // namespace gpu_platform::e2e

int main(int argc, char** argv) {
  using namespace gpu_platform::e2e;
  // The tests call the program so, as a user who attacks.
  if (argc > 2 && std::string_view(argv[1]) == "attack") return run_attack(argc, argv);
  const std::string name = std::filesystem::path(argv[0]).filename();
  // A daemon calls it so, as its listener.
  if (name == "gpu-platform-listener") return run_captured_listener(argc, argv);
  ::testing::InitGoogleMock(&argc, argv);
  if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, filter_for(name));
  ::testing::UnitTest::GetInstance()->listeners().Append(new Watch);  // GoogleTest is its owner
  return RUN_ALL_TESTS();
}
