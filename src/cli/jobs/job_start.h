#pragma once

#include <string>

#include "cli/client_names.h"
#include "client/follow.h"
#include "gpu_platform/v1/jobs.pb.h"

// The time before a job starts, told to people.

namespace gpu_platform::cli {

// Whether the job waits for a start: its first one, or another one after a requeue.
bool waits_for_start(const v1::Job& job);

// "job 77 is QUEUED: 1 node is 4 GPUs short".
std::string waiting_line(const v1::Job& job);

// Whether Ctrl-C came and was not handled yet; `fd` is that of Interrupts, -1: never.
bool has_interrupt(int fd);

// Waits until the job has an attempt, or has ended, and returns it as it is then. Says on standard
// error what it waits for, and says it again when the reason changes; a terminal has a line about
// it until the attempt runs. A daemon that goes away meanwhile is waited for, as long as a restart
// takes. kInterrupted if `interrupts` says so.
Called<v1::Job> await_start(Console& console, Client& client, const std::string& id,
                            client::Interrupts& interrupts);

}  // namespace gpu_platform::cli
