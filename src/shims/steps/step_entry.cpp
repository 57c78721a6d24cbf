#include "shims/steps/step_entry.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "cli/text/json_view.h"
#include "client/channel.h"
#include "client/exec_session.h"
#include "client/submission.h"
#include "shims/options/input_variables.h"
#include "shims/steps/rendezvous.h"
#include "shims/submission/submission.h"

namespace gpu_platform::shims {

namespace {

bool is_of_the_job(std::string_view name) {
  return name.starts_with("SLURM") || name.starts_with("CUDA_") ||
         name.starts_with("GPU_EMULATOR_") ||
         (name.starts_with("GPU_PLATFORM_") && name != "GPU_PLATFORM_SERVER");
}

std::vector<std::string> environment_of_process(const std::filesystem::path& process) {
  std::ifstream file(process / "environ");
  std::vector<std::string> entries;
  for (std::string entry; std::getline(file, entry, '\0');) entries.push_back(entry);
  return entries;
}

std::string cgroups_of(const std::filesystem::path& process) {
  std::ifstream file(process / "cgroup");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The variables of the job's first process, which made the file of its steps' shares; nothing for a
// job that did not come through sbatch or salloc. Processes of others cannot be read. Another
// daemon on the machine may have a job of the same number, in a cgroup of its own.
std::optional<Variables> variables_of_first_process(std::string_view job) {
  const std::string own = cgroups_of("/proc/self");
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    Variables variables = variables_of(environment_of_process(entry->path()));
    const bool is_first = variable(variables, "GPU_PLATFORM_STEP_SHARES")
                              .starts_with(fmt::format("/proc/{}/fd/", name));
    if (is_first && variable(variables, "GPU_PLATFORM_JOB_ID") == job &&
        cgroups_of(entry->path()) == own)
      return variables;
  }
  return std::nullopt;
}

}  // namespace

bool is_inside(const Variables& variables) {
  return variables.contains("SLURM_JOB_ID") &&
         variable(variables, "SLURM_JOB_ID") == variable(variables, "GPU_PLATFORM_JOB_ID");
}

std::string allocation_of(const Variables& variables) {
  // A job of the platform's own that was submitted from an allocation is not in it.
  if (variables.contains("GPU_PLATFORM_JOB_ID")) return {};
  return std::string(variable(variables, "SLURM_JOB_ID"));
}

int step_from_outside(CommandCall& call, const std::string& job,
                      const std::vector<std::string>& words, bool wants_terminal) {
  auto client = call.client();
  if (!client) return 1;
  auto place = RendezvousPlace::open();
  if (!place) return call.fail(place.error());
  const auto self = own_path();
  if (!self) return call.fail(self.error());
  std::optional<model::TerminalSize> terminal;
  if (wants_terminal) terminal = client::terminal_size(call.around());
  const cli::Json told = {{"environment", client::environment_of(call.console())},
                          {"directory", call.around().directory},
                          {"words", words}};
  const std::vector<std::string> command = {*self, "enter-job", place->name()};
  // It ends with this process if nothing comes, as when the job has ended meanwhile.
  std::thread([place = std::move(*place), text = cli::json_text(told)] {
    if (const auto connection = place.accept()) [[maybe_unused]]
      const auto sent = connection->send_line(text);
  }).detach();
  boost::asio::io_context io;
  auto channel = client::Channel::open(io, *client, client::exec_target(job, command, terminal));
  if (!channel) return call.fail(channel.error());
  return client::stay_with_command(call.console(), io, *std::move(channel), terminal.has_value());
}

int enter_job(CommandCall& call) {
  if (call.words().size() != 1) return call.fail("the name of the place to meet is missing");
  const auto connection = meet(call.words().front());
  if (!connection) return call.fail(connection.error());
  const auto text = connection->read_line();
  if (!text) return call.fail(text.error());
  const auto told = cli::parse_object(*text);
  if (!told || !told->contains("environment")) return call.fail("srun was not understood");
  Variables own = variables_of(call.around().environment);
  const auto first = variables_of_first_process(variable(own, "GPU_PLATFORM_JOB_ID"));
  Variables variables;
  for (const auto& [name, value] : told->at("environment").items())
    if ((!is_of_the_job(name) || is_read_in_jobs(name)) && value.is_string())
      variables[name] = value.get<std::string>();
  for (const auto& [name, value] : first ? *first : own)
    if (is_of_the_job(name)) variables.emplace(name, value);
  if (!first) add_allocation_variables(variables);
  CommandCall srun("srun", cli::texts_at(*told, "words"), call.console());
  const std::string directory = cli::text_at(*told, "directory");
  if (::chdir(directory.c_str()) != 0)
    srun.warn(fmt::format("{}: {}: the step begins in the job's directory", directory,
                          std::strerror(errno)));
  return srun_as(srun, std::move(variables));
}

}  // namespace gpu_platform::shims
