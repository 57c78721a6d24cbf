#include <unistd.h>

#include <fmt/format.h>

#include "client/follow.h"
#include "shims/command_call.h"
#include "shims/options/batch_options.h"
#include "shims/options/common_options.h"
#include "shims/steps/step_entry.h"

// sbcast and sattach.

namespace gpu_platform::shims {

namespace {

constexpr Option kSbcastRows[] = {
    {"force", 'f', Take::kNothing, Rule::kHonoured, "", "SBCAST_FORCE"},
    {"preserve", 'p', Take::kNothing, Rule::kHonoured, "", "SBCAST_PRESERVE"},
    {"jobid", 'j', Take::kValue, Rule::kHonoured, "", ""},
    {"compress", 'C', Take::kMayHaveValue, Rule::kIgnored, "the file stays on its node",
     "SBCAST_COMPRESS"},
    {"fanout", 'F', Take::kValue, Rule::kIgnored,
     "all nodes of a job are on one host: one copy is made", "SBCAST_FANOUT"},
    {"size", 's', Take::kValue, Rule::kIgnored, "the file is copied as one", "SBCAST_SIZE"},
    {"timeout", 't', Take::kValue, Rule::kIgnored, "the copy has no limit", "SBCAST_TIMEOUT"},
    {"send-libs", 0, Take::kMayHaveValue, Rule::kRefused,
     "the node has the libraries of this one: leave it out", ""},
    {"exclude", 0, Take::kValue, Rule::kIgnored, "libraries are not sent", ""},
};
constexpr auto kSbcastOptions = joined(kSbcastRows, kVerboseOption, kHelpOption, kCommonOptions);

constexpr Option kSattachRows[] = {
    {"layout", 0, Take::kNothing, Rule::kRefused, "'scontrol show step' shows a job's steps", ""},
    {"pty", 0, Take::kNothing, Rule::kRefused,
     "'gpu-platform jobs attach ID' has the terminal of a job of 'srun --pty'", ""},
    {"input-filter", 0, Take::kValue, Rule::kRefused,
     "the output of a job's tasks is one: give the step a file with -o %t", ""},
    {"output-filter", 0, Take::kValue, Rule::kRefused,
     "the output of a job's tasks is one: give the step a file with -o %t", ""},
    {"error-filter", 0, Take::kValue, Rule::kRefused,
     "the output of a job's tasks is one: give the step a file with -o %t", ""},
    {"label", 'l', Take::kNothing, Rule::kRefused, "give -l to srun", ""},
    {"quiet", 'Q', Take::kNothing, Rule::kHonoured, "", ""},
};
constexpr auto kSattachOptions = joined(kSattachRows, kVerboseOption, kHelpOption, kCommonOptions);

// $1: -f or nothing; $2: -p or nothing; $3 and $4: the files. A copy that fails leaves none behind.
constexpr const char* kCopy =
    "if [ -e \"$4\" ] && [ -z \"$1\" ]; then echo \"sbcast: error: $4: File exists (--force "
    "replaces it)\" >&2; exit 1; fi\n"
    "cp ${1:+--remove-destination} ${2:+-p} -- \"$3\" \"$4\"";

}  // namespace

std::span<const Option> sbcast_options() {
  return kSbcastOptions;
}

int sbcast(CommandCall& call) {
  const auto given = call.given({kSbcastOptions, "[options] FILE DESTINATION", true});
  if (!given) return given.error();
  if (given->words.size() != 2)
    return call.fail("a file and where to copy it are needed: sbcast FILE DESTINATION");
  const Variables variables = variables_of(call.around().environment);
  std::string job = given->settings.value("jobid");
  job = job.substr(0, job.find('.'));
  if (job.empty() && !is_inside(variables)) job = allocation_of(variables);
  const bool is_here =
      is_inside(variables) && (job.empty() || job == variable(variables, "SLURM_JOB_ID"));
  if (!is_here && job.empty()) return call.fail("no job: call it in one, or name one with --jobid");
  const std::vector<std::string> words = {"-n1",
                                          "--overlap",
                                          "--quiet",
                                          "--gpus=0",
                                          "--input=none",
                                          "/bin/sh",
                                          "-c",
                                          kCopy,
                                          "sbcast",
                                          given->settings.has("force") ? "-f" : "",
                                          given->settings.has("preserve") ? "-p" : "",
                                          given->words[0],
                                          given->words[1]};
  if (!is_here) return step_from_outside(call, job, words, false);
  CommandCall srun("srun", words, call.console());
  return srun_as(srun, variables);
}

std::span<const Option> sattach_options() {
  return kSattachOptions;
}

int sattach(CommandCall& call) {
  const auto given = call.given({kSattachOptions, "[options] JOB.STEP", true});
  if (!given) return given.error();
  if (given->words.size() != 1) return call.fail("one step is needed: sattach JOB.STEP");
  auto client = call.client();
  if (!client) return 1;
  const std::string job = given->words.front().substr(0, given->words.front().find('.'));
  if (!given->settings.has("quiet"))
    call.warn(fmt::format("the output of job {} is shown, with that of all its steps", job));
  client::Interrupts none;
  const auto failure = client::follow_output(call.console(), *client, job, {}, none);
  return failure ? call.fail(*failure) : 0;
}

}  // namespace gpu_platform::shims
