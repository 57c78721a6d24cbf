#include "node/host_shutdown.h"

#include <fcntl.h>

#include "os/small_file.h"

namespace gpu_platform::node {

bool is_shutdown_program(std::string_view comm) {
  // systemd-shutdown, of which the kernel keeps 15 characters.
  return comm == "systemd-shutdow\n";
}

bool host_is_shutting_down() {
  return is_shutdown_program(os::read_small_file(AT_FDCWD, "/proc/1/comm"));
}

}  // namespace gpu_platform::node
