#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "shims/steps/step_variables.h"

namespace gpu_platform::shims {

// Returns the path of a file with the batch script, for its interpreter. If the job has a /tmp
// of its own it is /tmp/job<ID>/slurm_script, which errors of the shell can name; it goes with the
// job. Elsewhere it would stay there if the job is killed, so it is a descriptor of a file without
// a name. 'bash -c' could give a name, but shows the whole script in the table of processes.
base::Result<std::string> script_file(const std::string& script, const Variables& variables);

// Whether this table of mounts (/proc/self/mountinfo) shows a /tmp that belongs to the attempt
// alone: its folder is named <job>-<attempt>.
bool is_own_tmp(std::string_view mounts, std::string_view folder);

}  // namespace gpu_platform::shims
