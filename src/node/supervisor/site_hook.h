#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/supervisor/output_pump.h"
#include "node/supervisor/start_report.h"

namespace gpu_platform::node {

// One run of the site's prolog or epilog: as ourselves, on the host's mounts, in the job's cgroup
// and groups. What it prints is kept in a file of its own, the newest of it; its end is told of in
// failure(). The caller waits for the process, polls output() and keeps the time.
class SiteHook {
 public:
  struct Options {
    std::string file;
    std::vector<std::string> environment;
    int cgroup_fd = -1;                           // -1: none
    const std::vector<int>* entrances = nullptr;  // see JobLimits
    const char* oom_score = nullptr;              // see JobStartOptions
  };

  // What it prints goes to the file `name` in `folder` of `output` (OutputPump::Options).
  SiteHook(int output, std::string folder, std::string name);
  SiteHook(const SiteHook&) = delete;
  SiteHook& operator=(const SiteHook&) = delete;

  // Call it once. It does not wait until the program is executed: a failure before that is reported
  // when the hook has ended. No shell is used.
  void start(const Options& options);
  int pid() const { return pid_; }  // -1: no process to wait for
  bool has_ended() const { return has_ended_; }
  void ended(int status);
  void is_out_of_time(std::uint64_t after_ms) { killed_after_ms_ = after_ms; }
  // Its first process, which may not have come into the job's cgroup yet.
  void kill_now() const;

  // To be polled for input, also when it has ended: it may have left processes. -1: nothing more.
  int output() const { return pump_.read_end(); }
  void pump() { pump_.pump(); }

  // Returns how an ended hook failed, with the end of its output. Empty if it succeeded.
  const std::string& failure() const { return failure_; }

 private:
  struct Plan;
  [[noreturn]] static void run_child(Plan& plan);
  void fail(std::string why);
  std::string last_words() const;

  OutputPump pump_;
  std::optional<SharedPage<StartReport>> report_;
  int pid_ = -1;
  bool has_ended_ = false;
  std::uint64_t killed_after_ms_ = 0;
  std::string failure_;
};

}  // namespace gpu_platform::node
