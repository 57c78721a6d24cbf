#pragma once

#include <optional>
#include <string>

#include "cli/client_names.h"
#include "client/exec_session.h"
#include "client/follow.h"

// Attaches to a job: its terminal or its input becomes the caller's.

namespace gpu_platform::cli {

struct AttachOptions {
  std::string job;
  std::optional<model::TerminalSize> terminal;  // the caller's, if the job has one too
  // Ctrl-C before the job's start, and later a signal to this process, cancels the job. False: they
  // only detach.
  bool is_ours = false;
};

// Prints what the job waits for, attaches when it runs, and stays until the job has ended, over all
// its attempts, or until the user detaches. Also shows the output of an attempt that ended too
// soon. Returns the job's exit code as `run` does, 0 when the user detached, and 250 when another
// client took the place or the daemon has gone.
int attach_to(Console& console, Client& client, const AttachOptions& options);

// Sends standard input to the job and follows its output until the job has ended. Both survive a
// restart of the daemon. Nothing on success.
std::optional<Failure> follow_with_input(Console& console, Client& client, const std::string& job,
                                         client::Interrupts& interrupts);

// The same as `run` does it, with the job's exit code.
int run_with_input(Console& console, Client& client, const std::string& job);

}  // namespace gpu_platform::cli
