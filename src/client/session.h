#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// What the command line was given by its process, as a value, so that a test can give something
// else.

namespace gpu_platform::client {

// What the caller finds at a path.
enum class PathKind : std::uint8_t {
  kNothing,
  kFolder,
  kFile,
  kProgram,  // a regular file that the caller may execute
  kUnknown,  // the caller may not look, or the file system does not answer
};

struct ProcessEnvironment {
  std::vector<std::string> environment;  // NAME=VALUE
  std::string directory;                 // current one
  unsigned umask = 022;
  unsigned uid = 0;
  std::string temporary = "/tmp";  // where a user without any other folder has one (places.h)
  int in_fd = 0;
  int out_fd = 1;
  int err_fd = 2;
  std::size_t width = 0;                  // columns of the terminal that stdout is; 0: it is none
  std::function<base::Instant()> now;     // wall clock, to show ages
  std::function<base::Instant()> steady;  // never set back, to measure waiting
  // Readable once the person pressed Ctrl-C (or SIGTERM came), one byte for each. Called by the
  // commands that handle interrupts themselves; until then an interrupt ends the program as usual.
  std::function<int()> watch_interrupts;
  // Waits, at most until the descriptor is readable (-1: none).
  std::function<void(base::Duration, int fd)> pause;
  std::function<PathKind(const std::string& path)> path_kind;
};

// Those of this process.
ProcessEnvironment environment_of_process();

// The value of an environment variable, if it is set and not empty.
std::optional<std::string> variable(const ProcessEnvironment& process_environment,
                                    std::string_view name);

// NO_COLOR forbids colours, CLICOLOR_FORCE asks for them; else a terminal has them.
bool wants_color(const ProcessEnvironment& process_environment);

// stdout is for data, stderr for everything else.
class Console {
 public:
  explicit Console(const ProcessEnvironment& process_environment)
      : process_environment_(process_environment) {}
  // Both streams go into the text, which must outlive this.
  Console(const ProcessEnvironment& process_environment, std::string& text)
      : process_environment_(process_environment), text_(&text) {}

  // False once stdout cannot be written to (a full disk); then all further output is dropped.
  bool out(std::string_view bytes);
  // A line to stderr, "gpu-platform: " before it; made harmless.
  void note(std::string_view text);
  // Print "error: …" and "warning: …".
  void error(std::string_view text);
  void warning(std::string_view text);
  // Bytes to stderr as they are.
  void err(std::string_view bytes);
  // The line that says how far long work is, where stderr is a terminal: each call replaces it, and
  // so does all that is written next. Cut to the terminal and made harmless; empty: it goes.
  void progress(std::string_view text);
  bool shows_progress() const;

  // The options of the command that runs ("--max-gpus"): errors about a field of a request name
  // the option that fills it.
  void set_options(std::vector<std::string> names) { options_ = std::move(names); }
  // Empty: the command has none for this field ("max_gpus", "states[0]").
  std::string option_of(std::string_view field) const;

  const ProcessEnvironment& process_environment() const { return process_environment_; }
  bool out_failed() const { return out_failed_; }

 private:
  const ProcessEnvironment& process_environment_;
  std::string* text_ = nullptr;
  std::vector<std::string> options_;
  bool out_failed_ = false;
  bool has_progress_ = false;  // the line stands on the terminal
};

}  // namespace gpu_platform::client
