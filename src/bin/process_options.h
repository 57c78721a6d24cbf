#pragma once

#include <string>

#include "base/result.h"
#include "bin/program_paths.h"
#include "config/configuration.h"
#include "execution/process/process_engine.h"

namespace gpu_platform::bin {

// The files and folders of the process engine of this daemon.
struct ProcessPlaces {
  std::string data_dir;
  std::string launcher;  // the socket of a launcher that is a service; empty: we start one
  ProgramPaths programs;
  bool has_boards = false;  // the nodes are emulated boards, in the data directory
  std::string mps_control;  // see ProcessEngineOptions
};

// Returns the options of the engine that the configuration leads to, without the
// directory of users and what enters processes on boards. An error: the range of users is empty, or
// the configuration sets a key of the launcher, and the launcher is a service of its own, which has
// rights that the daemon lacks: the daemon does not decide what it runs, and as which user.
base::Result<execution::ProcessEngineOptions> process_options(
    const config::Configuration& configuration, const ProcessPlaces& places);

}  // namespace gpu_platform::bin
