#include "mps/mps_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "os/packet_socket.h"

namespace gpu_emulator {
namespace {

using gpu_platform::os::Descriptor;

std::string folder_of(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

}  // namespace

std::string mps_pipe_folder() {
  return folder_of("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps");
}

std::string mps_log_folder() {
  return folder_of("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps");
}

std::optional<sockaddr_un> socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Descriptor connect_to_control(const std::string& pipe_folder, const char* kind) {
  const auto address = socket_address(pipe_folder + "/control");
  if (!address) {
    errno = ENAMETOOLONG;
    return {};
  }
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return {};
  const auto* const where = reinterpret_cast<const sockaddr*>(&*address);
  if (::connect(socket.get(), where, sizeof *address) != 0) return {};
  if (!gpu_platform::os::send_packet(socket.get(), kind)) return {};
  return socket;
}

}  // namespace gpu_emulator
