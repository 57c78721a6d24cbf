#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client_names.h"
#include "config/configuration.h"

// The command line: a client of the daemon's REST interface. It decides nothing about jobs; it
// checks what can be checked without the daemon, asks, and shows the answer.

namespace gpu_platform::cli {

// A command that is not a client of the daemon (serve, simulate, …), listed and started here, done
// elsewhere.
struct OtherCommand {
  std::string_view name;     // "serve"
  std::string_view summary;  // one line for `gpu-platform --help`
  // Gets the words from its own name on, as main would: argv[0] is the name.
  std::function<int(int argc, char** argv)> run;
};

// What is wrong with a configuration on this host beyond the text of its file, and what is notable.
struct SiteFindings {
  std::vector<config::Problem> problems;
  std::vector<config::Problem> notes;
};
// Looks at the files, keys and users that a configuration names: those that the daemon opens, so it
// is done elsewhere.
using SiteCheck = std::function<SiteFindings(const config::Configuration&)>;

// Runs the command that argv names and returns the exit code of the process. Call it once, from
// main, before any thread is started.
int run(int argc, char** argv, std::span<const OtherCommand> others = {},
        const SiteCheck& check_site = {});

// The same with given process environment; words without the program's name.
int run_in(const ProcessEnvironment& process_environment, const std::vector<std::string>& words,
           std::span<const OtherCommand> others = {}, const SiteCheck& check_site = {});

}  // namespace gpu_platform::cli
