#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/channel.h"
#include "cli/client.h"
#include "cli/session.h"

namespace gpu_platform::cli {

// Whether the person's standard input is a terminal, and how large it is.
std::optional<model::TerminalSize> terminal_size(const Surroundings& surroundings);

// Stays with a channel to a command: the person's standard input goes in, what it prints comes out.
// With a terminal every key goes to the job, Ctrl-C too; the terminal's mode is put back on every
// way out but SIGKILL. Without one Ctrl-C is passed on as SIGINT; the third ends the session.
// Returns the exit code: the command's, 128 + signal, or that of `run` where there is none.
int stay_with_command(Console& console, boost::asio::io_context& io,
                      std::shared_ptr<Channel> channel, bool has_terminal);

}  // namespace gpu_platform::cli
