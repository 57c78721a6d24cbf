#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client_names.h"

namespace gpu_platform::cli {

// The ends of the streams of a command in a job. Called on the caller's thread.
struct CommandStreams {
  // Fills a part of the span and returns its size; 0: the end. Null: the command has no input.
  std::function<std::size_t(std::span<char>)> input;
  // Takes standard output; false ends the command.
  std::function<bool(std::string_view)> output;
};

struct CommandEnd {
  // As of `jobs exec`: the command's, 128 + signal, 126 or 127 if it could not be started.
  int code = 0;
  bool was_started = false;
  std::string errors;  // the end of its standard error, or why it was not started
};

// Runs a command in a running job, beside its program, and waits for its end. A failure: it could
// not be asked for, or the daemon has gone meanwhile.
Called<CommandEnd> run_in_job(Client& client, const std::string& job,
                              const std::vector<std::string>& command, CommandStreams streams);

}  // namespace gpu_platform::cli
