#include "execution/container/terminal_link.h"

#include <sys/ioctl.h>

namespace gpu_platform::execution {

TerminalLink::~TerminalLink() {
  if (before_) tcsetattr(0, TCSANOW, &*before_);
}

void TerminalLink::make_raw() {
  termios modes{};
  if (before_ || tcgetattr(0, &modes) != 0) return;
  before_ = modes;
  cfmakeraw(&modes);
  tcsetattr(0, TCSANOW, &modes);
}

std::optional<model::TerminalSize> TerminalLink::size() {
  winsize window{};
  if (ioctl(0, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) {
    return std::nullopt;
  }
  return model::TerminalSize{window.ws_col, window.ws_row};
}

}  // namespace gpu_platform::execution
