#include "node/supervisor/session_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "node/protocol.h"

namespace gpu_platform::node {

namespace {

constexpr int kBacklog = 4;
constexpr int kSocketFlags = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

// A socket's address by way of its open folder: however long the path of the data directory is, it
// fits. Holds the folder open.
class Address {
 public:
  Address(std::string_view root, model::AttemptId attempt)
      : folder_(open(run_dir(root).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    const std::string path =
        "/proc/self/fd/" + std::to_string(folder_) + "/" + session_name(attempt);
    address_.sun_family = AF_UNIX;
    if (path.size() < sizeof address_.sun_path) {
      memcpy(address_.sun_path, path.data(), path.size());
    }
  }
  ~Address() {
    if (folder_ >= 0) close(folder_);
  }
  Address(const Address&) = delete;
  Address& operator=(const Address&) = delete;

  bool is_open() const { return folder_ >= 0; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);

 private:
  int folder_;
  sockaddr_un address_{};
};

int give_up(int socket) {
  const int error = errno;
  if (socket >= 0) close(socket);
  errno = error;
  return -1;
}

}  // namespace

bool is_of_our_own(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

int listen_for_people(std::string_view root, model::AttemptId attempt) {
  const Address address(root, attempt);
  const int listener = socket(AF_UNIX, kSocketFlags, 0);
  if (!address.is_open() || listener < 0) return give_up(listener);
  remove_session_socket(root, attempt);  // of a start that came to nothing
  // The mode is the name's from its first moment on.
  const mode_t mask = umask(0177);
  const bool is_bound = bind(listener, address.get(), Address::kSize) == 0;
  umask(mask);
  if (!is_bound || listen(listener, kBacklog) != 0) return give_up(listener);
  return listener;
}

int connect_to_session(std::string_view root, model::AttemptId attempt) {
  const Address address(root, attempt);
  const int session = socket(AF_UNIX, kSocketFlags, 0);
  const bool is_connected = address.is_open() && session >= 0 &&
                            connect(session, address.get(), Address::kSize) == 0 &&
                            is_of_our_own(session);
  return is_connected ? session : give_up(session);
}

void remove_session_socket(std::string_view root, model::AttemptId attempt) {
  unlink((run_dir(root) + "/" + session_name(attempt)).c_str());
}

}  // namespace gpu_platform::node
