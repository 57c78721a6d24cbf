#include <errno.h>
#include <poll.h>

#include <chrono>
#include <string>

#include <fmt/format.h>

#include "execution/process/process_engine.h"
#include "node/protocol.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"

// The answer of the launcher to ProcessEngine::ask_for_users_file.

namespace gpu_platform::execution {

namespace {

base::Result<os::Descriptor> cannot_open(const std::string& path, int error,
                                         const std::string& what) {
  base::Error why = base::system_error("open " + path, error);
  if (!what.empty()) why.message = fmt::format("{} cannot be read: {}", path, what);
  if (error == EINVAL) why.code = base::ErrorCode::kFailedPrecondition;
  if (error == ENOENT || error == ENOTDIR) why.code = base::ErrorCode::kNotFound;
  if (error == EACCES || error == EPERM || error == ELOOP) {
    why.code = base::ErrorCode::kPermissionDenied;
  }
  return std::unexpected(std::move(why));
}

}  // namespace

base::Result<os::Descriptor> ProcessEngine::take_users_file(const os::Descriptor& asked,
                                                            const std::string& path,
                                                            std::chrono::milliseconds timeout) {
  pollfd answer{asked.get(), POLLIN, 0};
  char buffer[node::kMaxText + 64];
  os::Packet packet;
  if (poll(&answer, 1, static_cast<int>(timeout.count())) == 1) {
    packet = os::receive_packet(asked.get(), buffer, sizeof buffer);
  }
  os::Descriptor file(packet.fd);
  const auto opened = packet.kind == os::Packet::Kind::kMessage
                          ? node::decode_opened_file(packet.bytes)
                          : std::nullopt;
  if (opened && file.is_open()) return file;
  if (opened && opened->error != 0) return cannot_open(path, opened->error, opened->why);
  return base::fail(base::ErrorCode::kUnavailable,
                    fmt::format("{} cannot be opened just now: {}", path,
                                opened ? opened->why : "its file system does not answer"));
}

}  // namespace gpu_platform::execution
