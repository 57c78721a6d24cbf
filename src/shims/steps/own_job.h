#pragma once

#include <optional>
#include <string>
#include <thread>

#include "base/units.h"
#include "client/client.h"
#include "client/follow.h"
#include "shims/command_call.h"
#include "shims/options/option_table.h"
#include "shims/steps/rendezvous.h"

// A job that srun submits for its own command, on the daemon's machine. Its first process meets
// srun and borrows srun's standard streams for the tasks; srun passes signals on to it. When srun
// goes, however it does, the other side sees it and the tasks end.

namespace gpu_platform::shims {

struct OwnJobRules {
  bool is_quiet = false;
  // How long the job may wait for its start (--immediate). Zero: not at all. Absent: for ever.
  std::optional<base::Duration> start_timeout;
};

// What --immediate[=SECONDS] says; absent without it.
base::Result<std::optional<base::Duration>> start_timeout_of(const Settings& settings);

// Whether the scheduler has looked at the job and lets it wait.
bool waits_for_room(client::Client& client, const std::string& id);

// Waits for the start of a job that may wait for so long. Returns false after it was cancelled
// because it did not start.
bool starts_in_time(client::Client& client, const std::string& id, base::Duration start_timeout,
                    CommandCall& call, client::Interrupts& interrupts);

// Passes signals on to a job on another machine, from a thread of its own: SIGUSR1 and SIGUSR2 go
// to the job's processes, SIGHUP and SIGQUIT cancel it. client::Interrupts has SIGINT and SIGTERM.
// Made before other threads are.
class SignalsFromAfar {
 public:
  SignalsFromAfar(CommandCall& call, std::string id);
  SignalsFromAfar(const SignalsFromAfar&) = delete;
  SignalsFromAfar& operator=(const SignalsFromAfar&) = delete;
  ~SignalsFromAfar();

 private:
  void pass_on(CommandCall& call, const std::string& id);

  int signals_ = -1;
  int stop_[2] = {-1, -1};
  std::thread thread_;
};

// The signals that srun handles itself from now on, in this thread and those that it starts: a
// descriptor that tells of them. Call it before the job is submitted.
int watch_srun_signals();

// Stays with the job until it has ended and returns srun's exit code. `signals` is that descriptor.
int stay_with_own_job(CommandCall& call, client::Client& client, const RendezvousPlace& place,
                      int signals, const std::string& id, const OwnJobRules& rules);

// The exit code of srun for an ended job. What the code does not tell goes to standard error,
// unless the tasks' own end has been told of.
int srun_code(CommandCall& call, const client::Called<std::optional<client::EndedJob>>& ended,
              bool is_told);

}  // namespace gpu_platform::shims
