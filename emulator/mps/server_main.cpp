#include <sys/socket.h>

#include <cstdio>

#include "mps/mps_server.h"
#include "os/child_process.h"

// nvidia-cuda-mps-server of emulated boards. A control daemon starts it, with a socket to itself.

int main() {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(gpu_platform::os::kChildLink, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fputs("nvidia-cuda-mps-server is started by nvidia-cuda-mps-control alone\n", stderr);
    return 1;
  }
  return gpu_emulator::run_mps_server(gpu_platform::os::kChildLink);
}
