#include "cli/commands/rerun.h"

#include <fmt/format.h>

#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/submission/sending.h"
#include "model/job_spec.h"

// `jobs rerun`: a new job like one that is there or has ended.

namespace gpu_platform::cli {

// Slurm's commands give a job its script where only the job itself finds it.
base::Status check_can_be_rerun(const v1::Job& job) {
  const auto& command = job.spec().command();
  if (job.spec().has_workload()) {
    return base::invalid({},
                         fmt::format("job {} represents pods of a Kubernetes cluster: submit it "
                                     "there again",
                                     job.id()));
  }
  if (command.size() > 1 && (command[1] == "batch-step" || command[1] == "job-step")) {
    return base::invalid({}, fmt::format("job {} came from sbatch or srun, and its script was kept "
                                         "for the job alone: submit the script again",
                                         job.id()));
  }
  return {};
}

namespace {

// The earlier job's specification without what was meant for that time alone.
v1::JobSpec spec_to_rerun(const v1::Job& job, std::string_view id, unsigned uid) {
  v1::JobSpec spec = job.spec();
  spec.clear_request_id();
  spec.clear_begin();
  spec.clear_deadline();
  spec.clear_dependency();
  if (job.has_time_limit_default_of()) spec.clear_time_limit_seconds();
  // The new job is the caller's; only root starts jobs of others.
  if (uid != 0) spec.clear_user();
  if (job.has_array_index() && id != job.array_id()) {
    spec.set_array(fmt::format("{}", job.array_index()));
  }
  return spec;
}

}  // namespace

int run_jobs_rerun(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  Submission submission;
  Output output;
  Arguments arguments(text);
  arguments.words(
      "ID", ids, 1, 1,
      "the job; 15_3 is one member of an array, 15 the whole array. The new job has its command "
      "and requests, and your environment as with 'submit', because only the job itself can "
      "read the one it had. Begin, deadline and dependencies are left out");
  define(arguments, submission);
  arguments.output(output, {"", "id"}, kFormatOption);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const std::string& id = ids.front();
  const auto job =
      client->ask<v1::Job>(fmt::format("/v1/jobs/{}", base::percent_encoded(id)), "a job");
  if (!job) return report(console, job.error(), output.wants_documents());
  if (const auto checked = check_can_be_rerun(*job); !checked) {
    console.error(checked.error().message);
    return kRefused;
  }
  v1::JobSpec spec = spec_to_rerun(*job, id, console.process_environment().uid);
  const auto done = complete(console, *client, submission, spec);
  if (!done) return tell_mistake(console, done.error(), text);
  const auto submitted = send(console, *client, submission, spec, output.wants_documents());
  if (!submitted) return submitted.error();
  if (output.is_document()) return print_document(console, output, submitted->document);
  tell_submitted(console, *client, submitted->id);
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
