#pragma once

#include <string>

#include "base/units.h"
#include "cli/client_names.h"
#include "client/follow.h"
#include "gpu_platform/v1/jobs.pb.h"

// How far a job is, in one line, for a person who waits for it at a terminal.

namespace gpu_platform::cli {

// "job 13 is QUEUED for 1m20s, place 6: 1 node is 8 GPUs short; planned start in 2h00m",
// "job 13 is STARTING for 40s: pulling registry/train:3, 43 %",
// "job 13 is RUNNING for 5m12s of at most 4h00m on dgx-1:0-7". Empty for a job that has ended.
std::string progress_text(const v1::Job& job, base::Instant now);

// Shows that text as the console's progress; empty where the console shows none, and where a
// document is printed.
client::TellOfJob progress_teller(Console& console, bool prints_document = false);

}  // namespace gpu_platform::cli
