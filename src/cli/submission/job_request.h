#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client_names.h"
#include "cli/submission/sbatch_line.h"
#include "cli/words/job_options.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/terminal_size.h"

// The job that `submit`, `run` and `check` ask for, as the daemon's message.

namespace gpu_platform::cli {

struct JobRequest {
  JobOptions options{JobOptions::Of::kSubmission};
  std::vector<std::string> command;
  std::vector<std::string> environment_files;  // --env-file
  SbatchMail mail;                             // of the #SBATCH lines of the script
  std::optional<model::TerminalSize> terminal;
  bool takes_input = false;
};

// Puts the options, which win, into the job of `spec`: one without fields, or one that was read
// from a document or from an earlier job. Errors name the option.
base::Status put_options(Console& console, const JobRequest& request, v1::JobSpec& spec);

// Adds what a job has from its caller where neither it nor an option gives it: directory, mode
// mask, environment, request id. Variables of `spec` win over the caller's, and those of the
// options over both.
base::Status put_callers(Console& console, const JobRequest& request, v1::JobSpec& spec);

// If the program is a job script (submission/job_script.h), takes its option lines into `request`,
// where they give way to the options of the command line, and puts its text and the job's name into
// `spec`, which has no other field. Warnings are told. Errors name the script and the line.
base::Status take_script(Console& console, JobRequest& request, v1::JobSpec& spec);

// Makes --notify and --notify-to of the mail that the script asks for, unless the options have
// them. As with `sbatch`, mail is left out with a warning where the site has no notification
// command, which the daemon is asked for.
base::Status take_mail(Console& console, Client& client, JobRequest& request);

}  // namespace gpu_platform::cli
