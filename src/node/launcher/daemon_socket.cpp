#include "node/launcher/daemon_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "node/folders/node_folders.h"

namespace gpu_platform::node {

// In a folder that is in our hands, so that the name is what we have made until it is given away.
std::string DaemonSocket::open(const std::string& path, std::uint32_t client_uid) {
  client_uid_ = client_uid;
  std::string why;
  const int folder = open_trusted_parent(path, why);
  if (folder < 0) return why;
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string handle = "/proc/self/fd/" + std::to_string(folder) + "/" + name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (handle.size() >= sizeof address.sun_path) {
    close(folder);
    return "the name of the socket is too long: " + path;
  }
  memcpy(address.sun_path, handle.data(), handle.size());
  fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  unlinkat(folder, name.c_str(), 0);
  umask(0177);  // the mode is the name's from its first moment on
  const bool is_bound =
      fd_ >= 0 && bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  umask(0);
  const bool is_ready =
      is_bound && listen(fd_, 4) == 0 &&
      (client_uid == geteuid() || fchownat(folder, name.c_str(), client_uid, static_cast<gid_t>(-1),
                                           AT_SYMLINK_NOFOLLOW) == 0);
  if (!is_ready) why = "listen at " + path + ": " + strerror(errno);
  close(folder);
  return why;
}

int DaemonSocket::accept() const {
  while (true) {
    const int connection = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0 || (errno != EINTR && errno != ECONNABORTED)) return connection;
  }
}

bool DaemonSocket::may_connect(int connection) const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == client_uid_;
}

void DaemonSocket::close_in_child() const {
  if (fd_ >= 0) close(fd_);
}

}  // namespace gpu_platform::node
