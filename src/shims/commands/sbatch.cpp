#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "api/convert/text_forms.h"
#include "client/exit_code.h"
#include "client/follow.h"
#include "client/members.h"
#include "model/job_spec.h"
#include "shims/command_call.h"
#include "shims/options/batch_options.h"
#include "shims/options/input_variables.h"
#include "shims/submission/het_job.h"
#include "shims/submission/start_check.h"
#include "shims/submission/submission.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kSbatchSynopsis = "[options] [SCRIPT [ARGUMENT…]]";
constexpr std::size_t kLargestScript = 4 << 20;  // Slurm's

base::Result<std::string> read_all(int fd, const std::string& name) {
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return base::invalid(name, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kLargestScript) return base::invalid(name, "is larger than 4 MiB");
  }
}

base::Result<std::string> read_script(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return base::invalid(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  auto text = read_all(fd, path);
  ::close(fd);
  return text;
}

// Scripts in longer paths are shown without their path: a label has so many bytes.
void put_script_path(const std::string& directory, const std::string& name, Work& work) {
  constexpr std::size_t kMaxLabel = 255;
  const std::string path = name.starts_with('/') ? name : directory + "/" + name;
  if (path.size() <= kMaxLabel && api::is_valid_utf8(path))
    (*work.fields.mutable_labels())["slurm.command"] = path;
}

// The script from --wrap, the file, or standard input, with the words behind it.
base::Result<Work> work_of(CommandCall& call, const Settings& settings,
                           const std::vector<std::string>& words) {
  Work work;
  work.step = "batch-step";
  if (settings.has("wrap")) {
    if (!words.empty()) return base::invalid("--wrap", "goes without a script");
    work.name = "wrap";
    work.script = "#!/bin/sh\n" + settings.value("wrap") + "\n";
  } else if (words.empty()) {
    work.name = "sbatch";
    TRY_ASSIGN(work.script, read_all(call.around().in_fd, "standard input"));
  } else {
    work.name = words.front().substr(words.front().rfind('/') + 1);
    TRY_ASSIGN(work.script, read_script(words.front()));
    work.words = words;
    put_script_path(call.around().directory, words.front(), work);
  }
  if (work.words.empty()) work.words = {work.name};
  work.words.front() = work.name;
  if (const auto checked = check_script(work.script); !checked) {
    return base::invalid(words.empty() ? std::string() : words.front(), checked.error().message);
  }
  return work;
}

// Directives of the script, then the environment, then the command line: later ones count. Each
// part of the job has its own; those of the environment are for the first one.
base::Result<HetJob> all_settings(CommandCall& call, const std::string& script,
                                  const std::vector<Settings>& of_command_line) {
  std::vector<Settings> parts;
  std::vector<std::string> warnings;
  TRY(read_directives(script, parts, warnings));
  TRY(read_input_variables(VariablesOf::kSbatch, sbatch_options(), call.around().environment,
                           parts.front(), warnings));
  for (std::size_t i = 0; i < of_command_line.size(); ++i) {
    if (i == parts.size()) parts.emplace_back();
    for (const auto& [name, value] : of_command_line[i].all()) parts[i].set(Option{name}, value);
  }
  call.warn_all(warnings);
  TRY_ASSIGN(HetJob job, joined_parts(parts));
  if (job.settings.value("output").empty()) {
    job.settings.set(Option{"output"},
                     job.settings.has("array") ? "slurm-%A_%a.out" : "slurm-%j.out");
  }
  return job;
}

// The exit code of --wait: the job's, but 1 where it has none; of an array the highest.
int wait_for(CommandCall& call, client::Client& client, const std::string& id) {
  const auto members = client::members_of(client, id);
  if (!members) return call.fail(members.error());
  std::int64_t highest = 0;
  client::Interrupts none;
  for (const std::string& member : *members) {
    const auto ended = client::wait_for_end(call.console(), client, member, std::nullopt, none);
    if (!ended) return call.fail(ended.error());
    const v1::Job& job = (*ended)->job;
    highest = std::max<std::int64_t>(highest, job.has_exit_code() ? job.exit_code() : 1);
  }
  return static_cast<int>(highest);
}

}  // namespace

int sbatch(CommandCall& call) {
  std::vector<Settings> command_line(1);
  std::vector<std::string> warnings;
  const auto words = read_parts(sbatch_options(), call.words(), command_line, warnings);
  if (!words) return call.fail(words.error());
  if (call.answered(command_line.front(), kSbatchSynopsis)) return 0;
  call.warn_all(warnings);
  auto work = work_of(call, command_line.back(), *words);
  if (!work) return call.fail(work.error());
  const auto job = all_settings(call, work->script, command_line);
  if (!job) return call.fail(job.error());
  const Settings* const settings = &job->settings;
  if (!job->parts.empty()) work->variables["SLURM_SHIM_HET"] = parts_text(job->parts);
  if (const auto put = put_files(*settings, true, *work); !put) return call.fail(put.error());
  auto client = call.client();
  if (!client) return 1;
  const auto spec = job_request(call, *client, *settings, *work);
  if (!spec) return call.fail(spec.error());
  if (settings->has("test-only")) return tell_start(call, *client, *spec);
  const auto id = submit(call, *client, *spec);
  if (!id) return id.error();
  if (settings->has("parsable")) {
    call.console().out(*id + "\n");
  } else if (!settings->has("quiet")) {
    call.console().out(fmt::format("Submitted batch job {}\n", *id));
  }
  if (call.console().out_failed()) return 1;
  return settings->has("wait") ? wait_for(call, *client, *id) : 0;
}

}  // namespace gpu_platform::shims
