#pragma once

#include "base/result.h"
#include "cli/client_names.h"
#include "gpu_platform/v1/jobs.pb.h"

// What can be known of a job before it is submitted to the daemon of this machine: without it a
// missing program is noticed when the job starts, hours later.

namespace gpu_platform::cli {

// Whether the files of this machine are those of the job: it runs as the caller, without an image,
// and the daemon is reached by a Unix socket.
bool is_local_job(const Client& client, const v1::JobSpec& spec);

// Refuses a command that is a shell line in one word. `spec` is complete.
base::Status check_shell_line(const ProcessEnvironment& process_environment,
                              const v1::JobSpec& spec);

// Looks at the directory, the program and the folders of the output files of a local job. `spec` is
// complete. The error names the option and what helps.
base::Status check_files(const ProcessEnvironment& process_environment, const v1::JobSpec& spec);

}  // namespace gpu_platform::cli
