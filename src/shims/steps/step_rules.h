#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "shims/options/option_table.h"
#include "shims/steps/step.h"
#include "shims/submission/resources.h"

// The options of srun that say how tasks run. A step in a job reads them at once; a job of its own
// carries them along to its first process.

namespace gpu_platform::shims {

// Puts the rules into the step, which has its tasks, GPUs and command. Warnings are appended.
base::Status put_task_rules(const Settings& settings, const Variables& variables, Step& step,
                            std::vector<std::string>& warnings);

// Which GPUs each task sees: by the options, else by those of the submission, else all.
base::Result<GpuBinding> gpu_binding_of(const Settings& settings, const Resources& resources);

// The rules that a job of its own carries, checked as far as they can be before it runs. Options
// that the submission would take for names of files ("--input=none") leave `settings`.
base::Result<std::string> carried_rules(Settings& settings, const std::string& program);
base::Result<Settings> taken_rules(std::string_view text);

// The file of --multi-prog, at most 64 KiB.
base::Result<std::string> read_multi_prog(const std::string& path);

}  // namespace gpu_platform::shims
