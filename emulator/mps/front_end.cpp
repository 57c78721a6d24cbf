#include "mps/front_end.h"

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "mps/mps_socket.h"
#include "os/packet_socket.h"

namespace gpu_emulator {

int run_mps_front_end(const std::string& pipe_folder, std::istream& commands) {
  using gpu_platform::os::Packet;
  constexpr std::size_t kMaxLine = 1024;
  const auto socket = connect_to_control(pipe_folder, "ui");
  if (!socket.is_open()) {
    // NVIDIA's says nothing about a path that is too long.
    if (errno != ENAMETOOLONG) std::fputs("Cannot find MPS control daemon process\n", stderr);
    return 1;
  }
  char buffer[kMaxMpsPacket];
  for (std::string line; std::getline(commands, line);) {
    if (!gpu_platform::os::send_packet(socket.get(), ":" + line.substr(0, kMaxLine))) {
      std::fputs("Cannot send command to MPS control daemon process\n", stderr);
      return 1;
    }
    const Packet answer = gpu_platform::os::receive_packet(socket.get(), buffer, sizeof buffer);
    // The daemon that ends leaves nothing to wait for.
    if (answer.kind != Packet::Kind::kMessage) continue;
    const std::string_view text = answer.bytes.substr(1);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace gpu_emulator
