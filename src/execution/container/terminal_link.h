#pragma once

#include <termios.h>

#include <optional>

#include "model/terminal_size.h"

namespace gpu_platform::execution {

// The terminal of a session on descriptor 0, while a container's own terminal stands behind it:
// keys, echo and line ends are that one's to handle.
class TerminalLink {
 public:
  TerminalLink() = default;
  TerminalLink(const TerminalLink&) = delete;
  TerminalLink& operator=(const TerminalLink&) = delete;
  ~TerminalLink();  // as it was before

  // Bytes pass as they are from here on. Nothing happens where there is no terminal.
  void make_raw();
  static std::optional<model::TerminalSize> size();

 private:
  std::optional<termios> before_;
};

}  // namespace gpu_platform::execution
