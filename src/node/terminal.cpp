#include "node/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpu_platform::node {

bool open_terminal(model::TerminalSize size, std::uint32_t uid, bool give_away, Terminal& out) {
  out.ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (out.ours < 0) return false;
  // By handle, so that no path of a job's making is in between.
  if (unlockpt(out.ours) == 0) {
    out.theirs = ioctl(out.ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  const bool ready = out.theirs >= 0 && resize_terminal(out.ours, size) &&
                     (!give_away || (fchown(out.theirs, uid, static_cast<gid_t>(-1)) == 0 &&
                                     fchmod(out.theirs, 0620) == 0));
  if (ready) return true;
  if (out.theirs >= 0) close(out.theirs);
  close(out.ours);
  return false;
}

bool resize_terminal(int ours, model::TerminalSize size) {
  winsize window{};
  window.ws_col = size.columns;
  window.ws_row = size.rows;
  return ioctl(ours, TIOCSWINSZ, &window) == 0;
}

}  // namespace gpu_platform::node
