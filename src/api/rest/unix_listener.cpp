#include "api/rest/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "os/descriptor.h"

namespace gpu_platform::api {

namespace {

base::Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return base::invalid("socket",
                         fmt::format("socket: the path must have 1 to {} bytes; '{}' has {}",
                                     sizeof address.sun_path - 1, path, path.size()));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int open_socket() {
  return ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Checks what is at the path already. Nothing or a dead daemon's socket is fine.
base::Status check_free(const std::string& path, const sockaddr_un& address) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return {};
    return std::unexpected(base::system_error("look at " + path, errno));
  }
  if (!S_ISSOCK(found.st_mode)) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("{} exists and is not a socket; it is not changed", path),
                      "socket");
  }
  const os::Descriptor probe(open_socket());
  if (probe.get() < 0) return std::unexpected(base::system_error("open a socket", errno));
  const int result = ::connect(probe.get(), generic(address), sizeof address);
  // EAGAIN: a process listens and is busy.
  if (result == 0 || errno == EAGAIN) {
    return base::fail(base::ErrorCode::kAlreadyExists,
                      fmt::format("another daemon answers at {}", path), "socket");
  }
  if (errno != ECONNREFUSED && errno != ENOENT) {
    return std::unexpected(base::system_error("connect to " + path, errno));
  }
  return {};
}

}  // namespace

base::Result<UnixListener> UnixListener::open(const std::string& path) {
  TRY_ASSIGN(const sockaddr_un address, address_of(path));
  TRY(check_free(path, address));
  // The socket is bound and listens under another name first: a client that sees the path can
  // connect at once.
  const std::string temporary = path + ".new";
  TRY_ASSIGN(const sockaddr_un temporary_address, address_of(temporary));
  os::Descriptor socket(open_socket());
  if (socket.get() < 0) return std::unexpected(base::system_error("open a socket", errno));
  ::unlink(temporary.c_str());
  if (::bind(socket.get(), generic(temporary_address), sizeof temporary_address) != 0) {
    return std::unexpected(base::system_error("bind " + temporary, errno));
  }
  const auto give_up = [&](std::string_view what, int error) {
    ::unlink(temporary.c_str());
    return std::unexpected(base::system_error(what, error));
  };
  struct stat bound{};
  if (::chmod(temporary.c_str(), 0666) != 0) return give_up("chmod " + temporary, errno);
  if (::lstat(temporary.c_str(), &bound) != 0) return give_up("look at " + temporary, errno);
  if (::listen(socket.get(), SOMAXCONN) != 0) return give_up("listen on " + path, errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up("create " + path, errno);
  return UnixListener(socket.release(), path, bound.st_dev, bound.st_ino);
}

UnixListener::UnixListener(UnixListener&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

UnixListener::~UnixListener() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (path_.empty()) return;
  struct stat found{};
  const bool is_ours =
      ::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
  if (is_ours) ::unlink(path_.c_str());
}

int UnixListener::take_descriptor() {
  return std::exchange(descriptor_, -1);
}

}  // namespace gpu_platform::api
