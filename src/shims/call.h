#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/client.h"
#include "cli/session.h"
#include "shims/options.h"

// One call of a command, and what the commands have in common: messages in Slurm's form, exit code
// 1 for whatever went wrong, the daemon.

namespace gpu_platform::shims {

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

class Call {
 public:
  Call(std::string name, std::vector<std::string> words, cli::Console& console)
      : name_(std::move(name)), words_(std::move(words)), console_(console) {}

  const std::string& name() const { return name_; }
  const std::vector<std::string>& words() const { return words_; }
  cli::Console& console() { return console_; }
  const cli::Surroundings& around() const { return console_.surroundings(); }

  // "sbatch: warning: …" on stderr.
  void warn(std::string_view text);
  void warn_all(const std::vector<std::string>& texts);
  // "sbatch: error: …" on stderr; returns 1, as Slurm's commands do.
  int fail(std::string_view text);
  int fail(const base::Error& error);
  int fail(const cli::Failure& failure);

  // The options of the environment and the command line, with warnings told. Instead of them the
  // exit code where that is all: after a mistake, --help or --version.
  std::expected<Given, int> given(const Usage& usage);
  std::expected<Given, int> given(const Usage& usage, std::span<const std::string> words);

  // What --help and --version print, where one of them is set.
  bool answered(const Settings& settings, std::string_view synopsis);

  // The daemon's client; nothing after a message where its place makes no sense.
  std::optional<cli::Client> client();

 private:
  std::string name_;
  std::vector<std::string> words_;
  cli::Console& console_;
};

// The commands. Each reads its words, does its work and returns the exit code.
int sbatch(Call& call);
int srun(Call& call);
int squeue(Call& call);
int scancel(Call& call);
int sinfo(Call& call);
int sacct(Call& call);
int scontrol(Call& call);
int sacctmgr(Call& call);
int sshare(Call& call);
// Inside a job: its variables, files and then its program, in place of this one.
int batch_step(Call& call);
int job_step(Call& call);

}  // namespace gpu_platform::shims
