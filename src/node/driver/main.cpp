#include <fcntl.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "node/driver/driver.h"
#include "node/driver/driver_order.h"
#include "os/packet_socket.h"

// gpu-platform-driver VERB --limit-ms N [--watts N] [--library FILE --nvidia-smi FILE] UUID...
// Started by the launcher for one request. Descriptor 3 is the socket for the answer.

namespace {

constexpr int kSocket = 3;
constexpr int kUsage = 2;

// The emulator's nvidia-smi looks for the library as NVIDIA's does.
void show_library_to_children(std::string_view library) {
  const std::string folder(library.substr(0, library.rfind('/')));
  setenv("LD_LIBRARY_PATH", folder.c_str(), 1);
}

}  // namespace

int main(int argc, char** argv) {
  namespace node = gpu_platform::node;
  const std::vector<std::string_view> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto order = node::parse_driver_order(arguments);
  if (!order || fcntl(kSocket, F_SETFD, FD_CLOEXEC) != 0) {
    std::fputs(
        "usage: gpu-platform-driver reset|quick-check|deep-check|power --limit-ms N [--watts N]\n"
        "                           [--library FILE --nvidia-smi FILE] UUID...\n"
        "The launcher starts it; descriptor 3 is a socket for the answer.\n",
        stderr);
    return kUsage;
  }
  if (order->is_emulated()) show_library_to_children(order->library);
  const std::string answer = node::encode_driver_answer(node::run_driver(*order));
  // No destructor is waited for: one may be inside a driver.
  std::_Exit(gpu_platform::os::send_packet(kSocket, answer) ? 0 : 1);
}
