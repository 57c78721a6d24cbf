#pragma once

#include <optional>
#include <string>

#include "cli/client.h"
#include "cli/exec_session.h"
#include "cli/session.h"

// Sitting at a job: its terminal or its input is the person's.

namespace gpu_platform::cli {

struct SitOptions {
  std::string job;
  std::optional<model::TerminalSize> terminal;  // the person's, where the job has one too
  // Ctrl-C before its start, and later a signal to us, cancels the job; else we only leave.
  bool is_ours = false;
};

// Says what the job waits for, attaches when it runs, and stays until it has ended, over all its
// attempts, or until the person leaves. Shows also what an attempt printed that was over too soon.
// The job's exit code as `run` has it; 0 when the person left; 250 when somebody else took the
// place or the daemon has gone.
int sit_at(Console& console, Client& client, const SitOptions& options);

// Standard input goes to the job while its output is followed as by `run`, both also over a restart
// of the daemon.
int run_with_input(Console& console, Client& client, const std::string& job);

}  // namespace gpu_platform::cli
