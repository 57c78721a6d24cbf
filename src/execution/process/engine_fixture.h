#pragma once

#include <gtest/gtest.h>

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "execution/engine_harness_fixture.h"
#include "execution/process/process_engine.h"

// A fixture for tests: a process engine with real processes in a data directory of its own.

namespace gpu_platform::execution::testing {

// Keeps the observations of each attempt. Waits for conditions, never for a time.
class Observed : public ObservationSink {
 public:
  using OfAttempt = Told;

  void observe(Observation observation) override;
  OfAttempt of(model::AttemptId attempt) const;
  bool wait_until(const std::function<bool()>& condition) const;
  bool wait_started(model::AttemptId attempt) const;
  bool wait_cleaned(model::AttemptId attempt) const;
  std::vector<ResetEnded> resets() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<model::AttemptId, OfAttempt> attempts_;
  std::vector<ResetEnded> resets_;
};

class Environments : public EnvironmentSource {
 public:
  std::map<std::string, std::string, std::less<>> by_ref;
  base::Result<std::string> environment(std::string_view ref) const override;
};

enum class Mode { kCgroup, kAdvisory };

// kCgroup: launcher started by the engine, as root. kAdvisory: launcher as a service of another
// user.
class EngineTest : public ::testing::Test {
 protected:
  explicit EngineTest(Mode mode = Mode::kCgroup) : mode_(mode) {}
  void SetUp() override;
  void TearDown() override;
  virtual void prepare() {}  // once the folders are there, before the engine

  void open_engine();      // the observations begin anew
  void close_engine();     // as a daemon that is killed: jobs stay
  void restart_service();  // kAdvisory: a launcher that was killed is there again
  StartOrder order(std::uint64_t job, std::vector<std::string> command) const;
  StartOrder shell(std::uint64_t job, const std::string& script) const;
  // Starts and waits until nothing of it is left.
  Ended run(const StartOrder& order);
  void adopt(const StartOrder& order, model::AttemptState state);

  std::string folder() const { return data_ + "/node"; }  // the launcher's
  std::string path(const std::string& name) const { return work_ + "/" + name; }
  std::string read(const std::string& file) const;
  std::string output(const StartOrder& order) const;
  std::uint32_t supervisor_pid(model::AttemptId attempt) const;
  std::filesystem::path cgroup_of(model::AttemptId attempt) const;
  bool wait_for_file(const std::string& file) const;

  const Mode mode_;
  std::string root_;  // holds everything of the test
  std::string data_;
  std::string work_;
  Environments environments_;
  ProcessEngineOptions options_;
  std::unique_ptr<Observed> observed_;
  std::unique_ptr<ProcessEngine> engine_;
  pid_t service_ = -1;

 private:
  void start_service();
  void prepare_service();
  void run_service();
  bool is_alone(const std::string& processes) const;
};

// True once the condition holds; false after the limit.
bool eventually(const std::function<bool()>& condition);
bool is_alive(int pid);
std::string boot_id();

}  // namespace gpu_platform::execution::testing
