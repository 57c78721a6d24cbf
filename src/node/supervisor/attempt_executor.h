#pragma once

#include <poll.h>
#include <sys/resource.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "node/confinement.h"
#include "node/mps/mps_drain.h"
#include "node/owed_epilog.h"
#include "node/supervisor/attempt_processes.h"
#include "node/supervisor/attempt_report.h"
#include "node/supervisor/container_job.h"
#include "node/supervisor/job_start.h"
#include "node/supervisor/life/job_life.h"
#include "node/supervisor/output_pump.h"
#include "node/supervisor/session.h"
#include "node/supervisor/site_hook.h"
#include "node/supervisor/supervisor.h"

namespace gpu_platform::node {

// The hands of an attempt's life, and the ears for its processes: carries out the actions of a
// JobLife, and tells it what came of them, of starts and of ends. What is to be done, and when, is
// decided there. Owns the attempt's processes, programs, output, session and record.
//
// Never waits, but for a child that is about to end. Thread: the supervisor's one.
class AttemptExecutor {
 public:
  // Both must outlive this object.
  AttemptExecutor(const SupervisorOptions& options, JobLife& life);

  // Writes the first record of the attempt. False: not even that could be.
  bool write_beginning();
  // Makes all ready for the first process. Returns what failed; empty: nothing.
  std::string prepare();

  // Carries out what the life wants done. Returns whether there was anything. What is called within
  // it adds to what it does.
  bool act();

  // Writes the warning to the output that it keeps, and to the person at the job's terminal.
  void warn(const WarnOfMemory& warning);

  // Each of these tells the life what it finds, and acts.
  void look_at_start();
  void reap();
  void look_at_session();
  // What is asked next is for the step that is there then.
  void catch_up();

  // Returns what the step that is on its way does now; empty: none is.
  std::string doing() const { return start_ != nullptr ? start_->doing() : std::string(); }

  // kHandles entries to wait for.
  static constexpr std::size_t kHandles = 5 + Session::kHandles;
  void watch(pollfd* handles) const;
  void pump_all();
  AttemptReport& report() { return report_; }
  Session& session() { return session_; }

 private:
  void carry_out(const LifeAction& action);
  void kill_processes();
  void thaw_for(const LifeAction& action);
  void start_is_past();
  bool counts_idle_time() const;

  void note_epilog();
  SiteHook& program(SiteProgram which) { return which == SiteProgram::kProlog ? prolog_ : epilog_; }
  void start_program(SiteProgram which);
  void say_out_of_time(SiteProgram which);
  void tell_end_of(SiteProgram which);

  void start_step(const LifeAction& action);
  JobStartOptions start_options(const LifeAction& action);
  void start_is_over();
  std::unique_ptr<JobStart> take_start();
  void signal_first(int signal) const;
  void step_has_ended(int status, const rusage& usage);

  void look_for_processes(AttemptProcesses::Cgroup cgroup);
  void watch_processes(AttemptProcesses::Cgroup cgroup);
  void end_output();
  void end_session();

  void record_start(bool is_first);
  void record_end();
  void measure_usage();
  void add_detail(const std::string& detail);
  void tell(Notice::Kind kind);

  const SupervisorOptions& o_;
  const LaunchRequest& request_;
  JobLife& life_;
  const bool keeps_output_;
  JobConfinement confinement_;
  OutputPump pump_;
  Session session_;
  SiteHook prolog_;
  SiteHook epilog_;
  ContainerJob container_;
  AttemptProcesses processes_;
  MpsDrain mps_drain_;
  AttemptReport report_;
  OwedEpilog owed_epilog_;
  bool is_acting_ = false;
  std::int64_t wake_again_ms_ = 0;   // for what a client sends
  std::unique_ptr<JobStart> start_;  // of a step that is on its way
  int main_pid_ = -1;                // of the step that runs, until it is reaped
  StartedRecord started_;
  EndRecord end_;  // as it was recorded
};

}  // namespace gpu_platform::node
