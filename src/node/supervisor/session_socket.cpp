#include "node/supervisor/session_socket.h"

#include <errno.h>
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

// A socket's address by way of its open folder: no path is resolved, and however long it is, it
// fits.
class Address {
 public:
  Address(int run, model::AttemptId attempt) {
    const std::string path = "/proc/self/fd/" + std::to_string(run) + "/" + session_name(attempt);
    address_.sun_family = AF_UNIX;
    if (path.size() < sizeof address_.sun_path) {
      memcpy(address_.sun_path, path.data(), path.size());
    }
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);

 private:
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

int listen_for_people(int run, model::AttemptId attempt) {
  const Address address(run, attempt);
  const int listener = socket(AF_UNIX, kSocketFlags, 0);
  if (listener < 0) return give_up(listener);
  remove_session_socket(run, attempt);  // of a start that came to nothing
  // The mode is the name's from its first moment on.
  const mode_t mask = umask(0177);
  const bool is_bound = bind(listener, address.get(), Address::kSize) == 0;
  umask(mask);
  if (!is_bound || listen(listener, kBacklog) != 0) return give_up(listener);
  return listener;
}

int connect_to_session(int run, model::AttemptId attempt) {
  const Address address(run, attempt);
  const int session = socket(AF_UNIX, kSocketFlags, 0);
  const bool is_connected = session >= 0 && connect(session, address.get(), Address::kSize) == 0 &&
                            is_of_our_own(session);
  return is_connected ? session : give_up(session);
}

void remove_session_socket(int run, model::AttemptId attempt) {
  unlinkat(run, session_name(attempt).c_str(), 0);
}

}  // namespace gpu_platform::node
