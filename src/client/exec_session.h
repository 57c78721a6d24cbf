#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "client/client.h"
#include "client/input_log.h"
#include "client/session.h"
#include "model/terminal_size.h"

namespace boost::asio {
class io_context;
}

namespace gpu_platform::client {

class Channel;

// Whether the person's standard input is a terminal, and how large it is.
std::optional<model::TerminalSize> terminal_size(const ProcessEnvironment& process_environment);

// The target of a channel to a command in a running job.
std::string exec_target(const std::string& id, std::span<const std::string> command,
                        const std::optional<model::TerminalSize>& terminal);

struct StayOptions {
  bool has_terminal = false;    // both here and there
  bool can_detach = false;      // by Ctrl-P Ctrl-Q on the terminal
  bool passes_signals = false;  // Ctrl-C is passed on as SIGINT, only the third ends the session
  bool watches_signals = true;  // false: the caller handles signals
  InputLog* log = nullptr;      // of a job's input, over several channels; null: this one is all
};

struct Stayed {
  enum class Why {
    kEnded,      // what was at the other side has; code is its exit code or 128 + signal
    kNotOpened,  // code: 126 or 127, or that of `run` for a refusal
    kDetached,   // the other side goes on and wants no more of us
    kLeft,       // by Ctrl-P Ctrl-Q, or because what comes out cannot be printed: code says
    kSignalled,  // we were; code is 128 + signal
    kLost,       // the daemon has gone
  };
  Why why = Why::kLost;
  int code = 0;
  std::string words;  // of the other side, for the person; may be empty
};

// Stays with a channel: the person's standard input goes in, what comes out is printed. With a
// terminal every key goes to the job, Ctrl-C too; the terminal's mode is put back on every way out
// but SIGKILL.
Stayed stay_with(Console& console, boost::asio::io_context& io, std::shared_ptr<Channel> channel,
                 const StayOptions& options);

// The same with a command. Returns the exit code: the command's, 128 + signal, or that of `run`
// where there is none.
int stay_with_command(Console& console, boost::asio::io_context& io,
                      std::shared_ptr<Channel> channel, bool has_terminal);

}  // namespace gpu_platform::client
