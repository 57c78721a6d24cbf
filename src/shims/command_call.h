#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "client/session.h"
#include "shims/options/option_table.h"

// One call of a command, and what the commands have in common: messages in Slurm's form, exit code
// 1 for any failure, the daemon.

namespace gpu_platform::shims {

// The version of Slurm whose manual pages the commands follow, and whose outputs they print.
inline constexpr std::string_view kSlurmVersion = "24.11.5";
// "slurm 24.11.5 (gpu-platform 0.1.0)": programs look for the first two words.
std::string version_line();

// What a command that has one table of options may be given.
struct Usage {
  std::span<const Option> options;
  std::string_view synopsis;  // behind the command's name in the text of --help
  bool takes_words = false;   // besides options
};

struct Given {
  Settings settings;
  std::vector<std::string> words;
};

class CommandCall {
 public:
  CommandCall(std::string name, std::vector<std::string> words, client::Console& console)
      : name_(std::move(name)), words_(std::move(words)), console_(console) {}

  const std::string& name() const { return name_; }
  const std::vector<std::string>& words() const { return words_; }
  client::Console& console() { return console_; }
  const client::ProcessEnvironment& around() const { return console_.process_environment(); }

  // "sbatch: warning: …" on stderr.
  void warn(std::string_view text);
  void warn_all(const std::vector<std::string>& texts);
  // "sbatch: error: …" on stderr; returns 1, as Slurm's commands do.
  int fail(std::string_view text);
  int fail(const base::Error& error);
  int fail(const client::Failure& failure);

  // The options of the environment and the command line, with warnings told. Instead of them the
  // exit code where that is all: after a mistake, --help or --version.
  std::expected<Given, int> given(const Usage& usage);
  std::expected<Given, int> given(const Usage& usage, std::span<const std::string> words);

  // What --help and --version print, where one of them is set.
  bool answered(const Settings& settings, std::string_view synopsis);

  // The daemon's client; nothing after a message where its place makes no sense.
  std::optional<client::Client> client();

 private:
  std::string name_;
  std::vector<std::string> words_;
  client::Console& console_;
};

// Shows something once, or with --iterate SECONDS again and again, with the time before it, until
// showing fails or the process is ended.
int again_and_again(CommandCall& call, const Settings& settings, const std::function<int()>& show);

// The commands. Each reads its words, does its work and returns the exit code.
int sbatch(CommandCall& call);
int srun(CommandCall& call);
int squeue(CommandCall& call);
int scancel(CommandCall& call);
int sinfo(CommandCall& call);
int sacct(CommandCall& call);
int sstat(CommandCall& call);
int scontrol(CommandCall& call);
int sacctmgr(CommandCall& call);
int sshare(CommandCall& call);
int seff(CommandCall& call);
int sprio(CommandCall& call);
int sdiag(CommandCall& call);
int sreport(CommandCall& call);
int salloc(CommandCall& call);
int sbcast(CommandCall& call);
int sattach(CommandCall& call);
// Their options; batch_options.h has those of sbatch, srun and salloc.
std::span<const Option> squeue_options();
std::span<const Option> scancel_options();
std::span<const Option> sinfo_options();
std::span<const Option> sacct_options();
std::span<const Option> sstat_options();
std::span<const Option> scontrol_options();
std::span<const Option> sacctmgr_options();
std::span<const Option> sshare_options();
std::span<const Option> seff_options();
std::span<const Option> sprio_options();
std::span<const Option> sdiag_options();
std::span<const Option> sreport_options();
std::span<const Option> sbcast_options();
std::span<const Option> sattach_options();
// Inside a job: its variables, files and then its program, in place of this one.
int batch_step(CommandCall& call);
int job_step(CommandCall& call);
int hold_allocation(CommandCall& call);
int enter_job(CommandCall& call);
int live_usage(CommandCall& call);

}  // namespace gpu_platform::shims
